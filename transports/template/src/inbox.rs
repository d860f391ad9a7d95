//! The receive slots: what arrives becomes an event in a slot, or waits until a slot is free.

use crate::mailbox::Request;
use cci_transport::{Connection, Core, PendingRequests, ReceiveSlots};
use std::collections::VecDeque;

pub(crate) struct Inbox {
    /// Receive slots, and buffers of payloads.
    pub(crate) slots: ReceiveSlots,
    /// Requests that the program has seen and not answered.
    pub(crate) shown: PendingRequests<Request>,
    /// Requests that wait for a slot.
    pub(crate) requests: VecDeque<Request>,
    /// Connections with messages that wait for a slot, in the order of their turns. Each gets one
    /// slot in turn, so that no peer's flood takes all of them.
    pub(crate) turns: VecDeque<u32>,
}

impl Inbox {
    pub(crate) fn new(core: &Core, max_send_size: u32) -> rustix::io::Result<Self> {
        Ok(Self {
            slots: ReceiveSlots::new(core, max_send_size)?,
            shown: PendingRequests::default(),
            requests: VecDeque::new(),
            turns: VecDeque::new(),
        })
    }

    /// Queues a RECV event. False: no slot is free.
    pub(crate) fn show_message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        self.slots.message(core, cell, bytes) || self.slots.starve(core) && self.slots.message(core, cell, bytes)
    }

    /// Queues CONNECT_REQUEST events of the requests that wait, as far as slots are free.
    pub(crate) fn show_requests(&mut self, core: &mut Core) {
        while let Some(request) = self.requests.front() {
            match self.slots.request(core, request.attribute, &request.payload, true) {
                Some(slot) => self.requests.pop_front().into_iter().for_each(|asked| self.shown.insert(slot, asked)),
                None if self.slots.starve(core) => {}
                None => break,
            }
        }
    }

    /// Forgets the request of a client that has given up. An answer then finds no client.
    pub(crate) fn withdraw(&mut self, client: u64, number: u32) {
        let is_gone = |request: &Request| request.from.number == client && request.number == number;
        self.requests.retain(|request| !is_gone(request));
        self.shown.forget(is_gone);
    }
}
