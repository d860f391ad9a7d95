//! Requests that have not ended, and accepts.

use cci_transport::Slot;
use std::collections::BTreeMap;

/// A request of a client that has ways.
struct Asked {
    /// What the program has.
    slot: &'static Slot,
    /// The same connect by another way, should the first one die before the client has its answer.
    other: Option<&'static Slot>,
}

/// An accept of the program, or a client that it expects.
pub(crate) struct Accepting {
    /// The program's context.
    pub(crate) context: u64,
    /// The identity of the connect, if the client has ways.
    pub(crate) connect: Option<[u64; 2]>,
}

/// The requests and accepts of an endpoint.
#[derive(Default)]
pub(crate) struct Accepts {
    /// By the identity of the connect.
    asked: BTreeMap<[u64; 2], Asked>,
    /// The connects of requests that are not answered, by the address of the slot.
    pub(crate) unanswered: BTreeMap<usize, [u64; 2]>,
    /// By the context that the way has in place of the program's.
    pub(crate) accepting: BTreeMap<u64, Accepting>,
}

pub(crate) fn address(slot: &'static Slot) -> usize {
    std::ptr::from_ref(slot).addr()
}

impl Accepts {
    /// The program gets a request for the first time.
    pub(crate) fn on_shown(&mut self, connect: [u64; 2], slot: &'static Slot) {
        self.asked.insert(connect, Asked { slot, other: None });
        self.unanswered.insert(address(slot), connect);
    }

    /// The connect has come by another way. False: it has ended, or has a second way already.
    pub(crate) fn keep_other(&mut self, connect: [u64; 2], slot: &'static Slot) -> bool {
        let asked = self.asked.get_mut(&connect).filter(|asked| asked.other.is_none());
        asked.map(|asked| asked.other = Some(slot)).is_some()
    }

    /// What a way is told in place of the context of an accept.
    pub(crate) fn expect(&mut self, number: u64, context: u64) {
        self.accepting.insert(number, Accepting { context, connect: None });
    }

    /// The accept of this number does not come.
    pub(crate) fn forget(&mut self, number: u64) {
        self.accepting.remove(&number);
    }

    /// Whether no accept is open, and no client is expected.
    pub(crate) fn is_idle(&self) -> bool {
        self.accepting.is_empty()
    }

    /// The connect of a request has ended; what waits in its place, if anything does.
    pub(crate) fn end(&mut self, connect: [u64; 2]) -> Option<&'static Slot> {
        let asked = self.asked.remove(&connect)?;
        let place = address(asked.slot);
        // The slot may have another request by now.
        if self.unanswered.get(&place) == Some(&connect) {
            self.unanswered.remove(&place);
        }
        asked.other
    }
}
