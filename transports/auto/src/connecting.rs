//! The connects of an endpoint that have not ended.

use crate::candidate::Candidate;
use crate::known::KnownRequests;
use cci_proto::{Attribute, Failure, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A connect that has not ended.
pub(crate) struct Pending {
    /// The program's.
    pub(crate) context: u64,
    pub(crate) attribute: Attribute,
    /// With the header, if the peer has ways.
    pub(crate) payload: Vec<u8>,
    pub(crate) deadline: Option<Time>,
    pub(crate) left: VecDeque<Candidate>,
    /// When the next of these is tried though no way has failed.
    pub(crate) next_at: Option<Time>,
    /// Ways that were asked and have not answered.
    pub(crate) open: u32,
    pub(crate) has_timed_out: bool,
    /// Why ways were not taken.
    pub(crate) reasons: Vec<String>,
    /// What to do if the server was restarted.
    pub(crate) advice: Option<String>,
}

impl Pending {
    /// Why the connect has failed.
    pub(crate) fn why(&self, failure: Failure) -> String {
        let advice = self.advice.as_ref().filter(|_| failure == Failure::Refused);
        self.reasons.iter().chain(advice).map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// A way that was asked for a connect.
pub(crate) struct Attempt {
    /// The number of the connect.
    pub(crate) connect: u64,
    pub(crate) way: u8,
    /// The way, and which address where the peer has several.
    pub(crate) label: String,
    /// How long it has before the next one.
    pub(crate) turn: Duration,
}

/// The connects that have not ended, and the requests that are known.
#[derive(Default)]
pub(crate) struct Connects {
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// By the context that the way has in place of the program's.
    pub(crate) attempts: BTreeMap<u64, Attempt>,
    /// The last number of a connect or an attempt.
    last: u64,
    /// Of requests.
    pub(crate) known: KnownRequests,
}

impl Connects {
    /// A context for a way.
    pub(crate) fn number(&mut self) -> u64 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Whether no connect is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// When the next way of some connect is to be tried.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.pending.values().filter_map(|pending| pending.next_at).min()
    }

    /// Whether [`Connects::deadline`] would give a time.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && self.deadline().is_some()
    }
}
