//! The oracle of RMA: what was started, which bytes have moved, and how it ended.

use super::messages::{State, Wrong};
use super::violation::Rule;
use cci_proto::Failure;

/// What the target will make of an RMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// It succeeds.
    Success,
    /// Its registration ends at some time: it succeeds, or is refused.
    Either,
    /// It is refused.
    Refusal,
}

/// An RMA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// Connection and side that started it, as one number.
    pub(super) stream: u32,
    /// Whether the peer's memory is read.
    pub(super) read: bool,
    /// Whether it changes a word of the peer, and reads what that was.
    pub(super) atomic: bool,
    /// Whether it is a large message: its target is asked for the memory.
    pub(super) large: bool,
    /// Whether the target has changed the word.
    pub(super) changed: bool,
    /// Whether it is fenced.
    pub(super) fence: bool,
    /// What becomes of it.
    pub(super) expect: Expect,
    /// The node whose memory changes.
    pub(super) node: u32,
    /// Where it changes.
    pub(super) to: usize,
    /// Where the bytes come from, in the pattern.
    pub(super) from: usize,
    /// Bytes.
    pub(super) len: usize,
    /// Bytes that have moved.
    pub(super) done: usize,
    /// Something of it has happened at the target.
    pub(super) started: bool,
    /// The target has refused it.
    pub(super) refused: bool,
    /// The message that follows it, by its index in the stream.
    pub(super) message: Option<u32>,
    /// Another one depends on it, or it on another: no third may.
    pub(super) followed: bool,
    /// How far it has come.
    pub(super) state: State,
}

impl Transfer {
    /// One of which nothing is known yet.
    pub(super) const EMPTY: Self = Self {
        stream: 0,
        read: false,
        atomic: false,
        large: false,
        changed: false,
        fence: false,
        expect: Expect::Success,
        node: 0,
        to: 0,
        from: 0,
        len: 0,
        done: 0,
        started: false,
        refused: false,
        message: None,
        followed: false,
        state: State::Open,
    };

    /// Nothing more of it will happen.
    fn is_over(&self) -> bool {
        self.done == self.len || self.refused || self.expect == Expect::Refusal || self.state != State::Open
    }
}

/// All RMAs of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfers {
    all: Vec<Transfer>,
    /// By where they read or write, ascending: node, kind of memory, offset.
    places: Vec<(u64, u32)>,
}

/// What is added to an offset, so that a read of memory that was written and a write to it are
/// known by different places.
pub(super) const READ_BACK: u64 = 1 << 32;

/// Which memory an RMA is known by at its target: its node, and whether it is the one that is
/// written.
#[must_use]
pub(super) fn place(node: u32, arena: bool, offset: u64) -> u64 {
    u64::from(node) << 48 | u64::from(arena) << 40 | offset
}

impl Transfers {
    /// The number of the next RMA.
    #[must_use]
    pub(super) fn next_number(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// An RMA begins. `place`: what its target knows it by; `None` if it is to be refused.
    pub(super) fn post(&mut self, transfer: Transfer, place: Option<u64>) {
        let number = self.next_number();
        self.all.push(transfer);
        if let Some(place) = place {
            let at = self.places.partition_point(|(other, _)| *other < place);
            self.places.insert(at, (place, number));
        }
    }

    /// The engine has refused the RMA that began last.
    pub(super) fn withdraw(&mut self, place: Option<u64>) {
        self.all.pop();
        self.places.retain(|(other, _)| Some(*other) != place);
    }

    /// The last RMA of a stream.
    #[must_use]
    pub(super) fn last(&self, stream: u32) -> Option<(u32, Transfer)> {
        let at = self.all.iter().rposition(|transfer| transfer.stream == stream)?;
        Some((u32::try_from(at).ok()?, self.all[at]))
    }

    /// An RMA.
    #[must_use]
    pub(super) fn get(&self, number: u32) -> &Transfer {
        &self.all[number as usize]
    }

    /// An RMA.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut Transfer {
        &mut self.all[number as usize]
    }

    /// All RMAs.
    #[must_use]
    pub(super) fn all(&self) -> &[Transfer] {
        &self.all
    }

    /// The RMA that a target sees at this place.
    #[must_use]
    pub(super) fn at(&self, place: u64) -> Option<u32> {
        let at = self.places.binary_search_by_key(&place, |(other, _)| *other).ok()?;
        Some(self.places[at].1)
    }

    /// Something of an RMA happens at its target.
    ///
    /// # Errors
    ///
    /// A fence forbids it yet.
    pub(super) fn start(&mut self, number: u32) -> Result<(), Wrong> {
        let this = self.all[number as usize];
        if this.started {
            return Ok(());
        }
        self.all[number as usize].started = true;
        for (at, earlier) in self.all[..number as usize].iter().enumerate() {
            if earlier.stream == this.stream && (this.fence || earlier.fence) && !earlier.is_over() {
                let detail = format!(
                    "RMA {number} (fence: {}) began before RMA {at} (fence: {}) was complete",
                    this.fence, earlier.fence
                );
                return Err((Rule::Fence, detail));
            }
        }
        Ok(())
    }

    /// An RMA has ended. `delivered`: whether its message has been.
    ///
    /// # Errors
    ///
    /// It had ended before, or the outcome is not what it should be.
    pub(super) fn end(&mut self, number: u32, outcome: Result<(), Failure>, delivered: bool) -> Result<(), Wrong> {
        let this = &mut self.all[number as usize];
        let wrong = |rule, how: &str| Err((rule, format!("RMA {number} ({outcome:?}): {how}")));
        if this.state != State::Open {
            return wrong(Rule::EndsOnce, "it has ended already");
        }
        this.state = State::Ended(outcome);
        match outcome {
            // A read whose last bytes had been sent before its registration ended may succeed,
            // though they are not sent again.
            Ok(()) if this.expect == Expect::Refusal || this.refused && !this.read => {
                wrong(Rule::Cause, "the target refused it")
            }
            Ok(()) if this.done != this.len => {
                wrong(Rule::CompletionAfterDelivery, &format!("{} of {} bytes had moved", this.done, this.len))
            }
            Ok(()) if this.message.is_some() && !delivered => {
                wrong(Rule::CompletionAfterDelivery, "its message had not been delivered")
            }
            Err(Failure::RemoteHandle) if this.expect == Expect::Success => {
                wrong(Rule::Cause, "the target did not refuse it")
            }
            Err(Failure::RemoteHandle) if delivered => {
                wrong(Rule::MessageAfterData, "its message was delivered nevertheless")
            }
            _ => Ok(()),
        }
    }
}
