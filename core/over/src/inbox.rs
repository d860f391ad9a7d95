//! The receive slots: what arrives becomes an event in a slot, or waits until a slot is free.

use crate::wire::Opening;
use cci_transport::{Connection, Core, PendingRequests, ReceiveSlots};
use std::collections::VecDeque;

/// A request for a connection.
#[derive(Clone, Debug)]
pub(crate) struct Request<P> {
    pub(crate) from: P,
    pub(crate) opening: Opening,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Inbox<P> {
    /// Receive slots, and buffers of payloads.
    pub(crate) slots: ReceiveSlots,
    /// Requests that the program has seen and not answered.
    pub(crate) shown: PendingRequests<Request<P>>,
    /// Requests that wait for a slot.
    pub(crate) requests: VecDeque<Request<P>>,
    /// Connections with messages that wait for a slot, in the order of their turns. Each gets one
    /// slot in turn, so that no peer's flood takes all of them.
    pub(crate) turns: VecDeque<u32>,
}

impl<P> Inbox<P> {
    pub(crate) fn new(slots: ReceiveSlots) -> Self {
        Self { slots, shown: PendingRequests::default(), requests: VecDeque::new(), turns: VecDeque::new() }
    }

    /// Queues a RECV event. False: no slot is free.
    #[inline]
    pub(crate) fn show_message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        self.slots.message(core, cell, bytes) || self.show_starved(core, cell, bytes)
    }

    /// Again, after the slots that the program has given back were taken.
    #[cold]
    fn show_starved(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        self.slots.starve(core) && self.slots.message(core, cell, bytes)
    }

    /// Queues CONNECT_REQUEST events of the requests that wait, as far as slots are free.
    pub(crate) fn show_requests(&mut self, core: &mut Core) {
        while let Some(request) = self.requests.front() {
            match self.slots.request(core, request.opening.attribute, &request.payload, true) {
                Some(slot) => self.requests.pop_front().into_iter().for_each(|asked| self.shown.insert(slot, asked)),
                None if self.slots.starve(core) => {}
                None => break,
            }
        }
    }

    /// Forgets the request of a client that has given up. An answer then finds no client.
    pub(crate) fn withdraw(&mut self, is_gone: impl Fn(&Request<P>) -> bool) {
        self.requests.retain(|request| !is_gone(request));
        self.shown.forget(is_gone);
    }
}
