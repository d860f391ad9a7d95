//! What must never happen, by name.

use cci_sim::network::Time;
use std::fmt;

/// A rule that every run keeps, whatever the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// RO: every message is delivered once, in order, intact.
    Ordered,
    /// RU: every message is delivered once, intact.
    Unordered,
    /// UU: only what was sent is delivered, intact, at most once.
    Unreliable,
    /// A connection opens as it was asked for, on both sides, once.
    Handshake,
    /// What was reported delivered had been delivered.
    CompletionAfterDelivery,
    /// A completion message comes after the data of its RMA.
    MessageAfterData,
    /// A fence: after all earlier RMA of the connection, before all later.
    Fence,
    /// Every operation ends exactly once.
    EndsOnce,
    /// Nothing fails without a cause.
    Cause,
    /// Memory does not change after its operation, its connection or its registration has ended.
    MemoryAfterEnd,
    /// Every byte of memory is what the operations made it.
    Memory,
    /// A slot that was taken comes back.
    SlotLost,
    /// The world comes to rest.
    Rest,
    /// The engine takes no more than its share: frames fit the path, and outputs come to an end.
    Bounds,
    /// The engine does not panic.
    Panic,
    /// The same seed gives the same run.
    Trace,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordered => "RO: every message once, in order, intact",
            Self::Unordered => "RU: every message once, intact",
            Self::Unreliable => "UU: only what was sent, intact, at most once",
            Self::Handshake => "a connection opens as it was asked for, once",
            Self::CompletionAfterDelivery => "completion never before delivery",
            Self::MessageAfterData => "a completion message comes after the data",
            Self::Fence => "a fence orders RMA",
            Self::EndsOnce => "every operation ends exactly once",
            Self::Cause => "nothing fails without a cause",
            Self::MemoryAfterEnd => "memory never changes after its operation or registration ended",
            Self::Memory => "memory is what the operations made it",
            Self::SlotLost => "no slot is lost",
            Self::Rest => "the world comes to rest",
            Self::Bounds => "frames fit the path, and outputs come to an end",
            Self::Panic => "the engine does not panic",
            Self::Trace => "the same seed gives the same run",
        })
    }
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// When, in virtual time.
    pub at: Time,
    /// How.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}), at {} ns: {}", self.rule, self.rule, self.at.0, self.detail)
    }
}
