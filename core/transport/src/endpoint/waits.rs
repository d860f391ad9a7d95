//! The published list of peers for which an endpoint waits (`docs/design/counters.md`).

mod core;

use cci_mem::counters::{Page, WAITS};
use cci_proto::Time;
use std::fmt::Display;

/// What an endpoint waits for.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::WaitFor;
///
/// assert_eq!(WaitFor::from_u32(2), Some(WaitFor::Room));
/// assert_eq!(WaitFor::from_u32(99), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum WaitFor {
    /// The peer's part in making a connection.
    Connection = 1,
    /// Room at the peer: a receive slot, or a place in its ring.
    Room = 2,
    /// The peer's acknowledgements, or the bytes of a read.
    Acknowledgement = 3,
    /// The peer's help with an RMA.
    Rma = 4,
    /// Memory of the peer for a large message.
    Memory = 5,
}

impl WaitFor {
    /// Reads the word of a counters page. `None`: unknown.
    #[must_use]
    pub fn from_u32(number: u32) -> Option<Self> {
        [Self::Connection, Self::Room, Self::Acknowledgement, Self::Rma, Self::Memory]
            .into_iter()
            .find(|what| *what as u32 == number)
    }
}

/// The writer's side of the list; the page is never read for it.
#[derive(Default)]
pub(super) struct Waits {
    /// The transport's key of each entry.
    keys: [Option<u64>; WAITS],
    /// Entries in use.
    taken: u32,
    /// Entries that were published since `begin`, a bit each.
    seen: u32,
    /// Waits that found no entry since `begin`.
    unlisted: u64,
}

const _: () = assert!(WAITS <= 32);

/// Bits of a transport's key; those above name its way.
const WAY_SHIFT: u32 = 56;

impl Waits {
    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    pub(super) fn show(&mut self, page: &Page, key: u64, waiting: (WaitFor, Time, u64), peer: impl Display) {
        let known = self.keys.iter().position(|other| *other == Some(key));
        let Some(at) = known.or_else(|| self.keys.iter().position(Option::is_none)) else {
            self.unlisted += 1;
            return;
        };
        self.taken += u32::from(self.keys[at].replace(key).is_none());
        self.seen |= 1 << at;
        let (what, since, operations) = waiting;
        page.waits[at].show((what as u32, since.0, operations), peer);
    }

    pub(super) fn hide(&mut self, page: &Page, key: u64) {
        if let Some(at) = self.keys.iter().position(|other| *other == Some(key)) {
            self.keys[at] = None;
            self.taken -= 1;
            page.waits[at].clear();
        }
    }

    pub(super) fn begin(&mut self) {
        (self.seen, self.unlisted) = (0, 0);
    }

    /// Ends the list of a way: what it did not publish since `begin` goes. Returns how many waits
    /// found no entry.
    pub(super) fn end(&mut self, page: &Page, way: u8) -> u64 {
        for (at, key) in self.keys.iter_mut().enumerate() {
            let is_of_way = key.is_some_and(|key| key >> WAY_SHIFT == u64::from(way));
            if self.seen & 1 << at == 0 && is_of_way {
                *key = None;
                self.taken -= 1;
                page.waits[at].clear();
            }
        }
        self.unlisted
    }
}
