//! What is known of one peer (`docs/design/peers-by-name.md`, States).

use crate::name::Name;
use cci::Connection;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The first pause between attempts, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

/// This side's own attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dial {
    /// There is none now.
    None,
    /// The endpoint is asking.
    Asked,
    /// The connection is open, and the peer's first message is to come.
    Open(Connection),
}

/// A request of the peer that was accepted, and whose connection is not open yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepting {
    /// The context of the accept.
    pub(crate) context: u64,
    /// Which process asked, and the number of its attempt.
    pub(crate) process: u64,
    pub(crate) serial: u32,
}

/// The way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nobody wants one.
    Idle,
    /// One side is trying, or both are.
    Opening { dial: Dial, accepting: Option<Accepting> },
    /// The one link. `serial`: the number of the peer's attempt, where that has made it.
    Up { connection: Connection, serial: Option<u32> },
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Entry<W> {
    pub(crate) name: Name,
    pub(crate) way: Way,
    /// Operations for when the link is up.
    pub(crate) waiting: VecDeque<W>,
    /// When this side began to want a link, if it has none.
    pub(crate) wanted: Option<Instant>,
    /// When the first of the last attempts, which were all refused, has ended.
    pub(crate) refused: Option<Instant>,
    /// When the next attempt is to be made.
    pub(crate) next_at: Option<Instant>,
    /// The timer that is set.
    pub(crate) timer: Option<Instant>,
    pause: Duration,
    /// The number of the last attempt.
    pub(crate) serial: u32,
    /// Which process the last link was to.
    pub(crate) process: Option<u64>,
    /// How many links there were to that one.
    pub(crate) links: u32,
    /// Why the last attempt failed.
    pub(crate) last: String,
}

impl<W> Entry<W> {
    pub(crate) fn new(name: Name) -> Self {
        Self {
            name,
            way: Way::Idle,
            waiting: VecDeque::new(),
            wanted: None,
            refused: None,
            next_at: None,
            timer: None,
            pause: PAUSES.0,
            serial: 0,
            process: None,
            links: 0,
            last: String::new(),
        }
    }

    /// The pause before the next attempt.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES.1);
        pause
    }

    /// The number of the next link, if it is to this process.
    pub(crate) fn next_link(&self, process: u64) -> u32 {
        if self.process == Some(process) { self.links.wrapping_add(1) } else { 1 }
    }

    /// Nothing is wanted any more.
    pub(crate) fn settle(&mut self) {
        (self.wanted, self.refused, self.next_at, self.pause) = (None, None, None, PAUSES.0);
        self.last.clear();
    }
}
