//! The receive slots: what arrives becomes an event in a slot, or waits until a slot is free.

use crate::mailbox::Request;
use cci_mem::buffers::Buffers;
use cci_mem::sync::Ordering;
use cci_proto::EventKind;
use cci_transport::{Connection, Core, PendingRequests, Slot, tag_event};
use std::collections::VecDeque;

/// Longest payload of a request, bytes.
const MAX_PAYLOAD: u32 = 1024;

pub(crate) struct Inbox {
    /// Memory of payloads. It is never unmapped, so that a program's stale pointer can be read.
    buffers: Buffers,
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
        // A buffer for each slot: whoever has a slot has a buffer.
        let count = u32::try_from(core.recv_count().1).map_err(|_| rustix::io::Errno::NOMEM)?;
        Ok(Self {
            buffers: Buffers::new(count, max_send_size.max(MAX_PAYLOAD) as usize)?,
            shown: PendingRequests::default(),
            requests: VecDeque::new(),
            turns: VecDeque::new(),
        })
    }

    /// Frees the buffer of a slot that the program has returned. 0 stands for none.
    fn release(&mut self, slot: &'static Slot) {
        if let Some(buffer) = slot.payload.swap(0, Ordering::Relaxed).checked_sub(1) {
            self.buffers.give(u32::try_from(buffer).unwrap_or(u32::MAX));
        }
    }

    /// Frees the buffers of all slots that the program has returned.
    pub(crate) fn sweep(&mut self, core: &mut Core) {
        core.sweep_all_recv(|slot| self.release(slot));
    }

    /// A slot, and a buffer with these bytes.
    fn take(&mut self, core: &mut Core, bytes: &[u8]) -> Option<(&'static Slot, u32)> {
        let slot = core.take_recv(|slot| self.release(slot)).or_else(|| self.take_last(core))?;
        slot.payload.store(0, Ordering::Relaxed);
        let buffer = self.buffers.take().filter(|buffer| self.buffers.write(*buffer, 0, bytes));
        let Some(buffer) = buffer else {
            core.release(slot);
            return None;
        };
        slot.payload.store(u64::from(buffer) + 1, Ordering::Relaxed);
        Some((slot, buffer))
    }

    /// No slot was free. The return of an event is one store that calls nobody, unless the endpoint
    /// starves. So the endpoint says that it starves, and looks once more.
    fn take_last(&mut self, core: &mut Core) -> Option<&'static Slot> {
        if !core.is_starving() {
            core.set_starving(true);
            // Pairs with the light fence in the return of an event: either the return calls
            // `refill`, or this look finds its slot.
            core.endpoint().pairing.heavy_here();
        }
        self.sweep(core);
        core.take_recv(|slot| self.release(slot))
    }

    /// Queues a RECV event. False: no slot is free.
    pub(crate) fn show_message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        let Some((slot, buffer)) = self.take(core, bytes) else { return false };
        let len = u32::try_from(bytes.len()).unwrap_or(0);
        self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(bytes.len());
        core.push(slot);
        true
    }

    /// Queues CONNECT_REQUEST events of the requests that wait, as far as slots are free.
    pub(crate) fn show_requests(&mut self, core: &mut Core) {
        while let Some(request) = self.requests.pop_front() {
            let Some((slot, buffer)) = self.take(core, &request.payload) else {
                return self.requests.push_front(request);
            };
            // The facade marks an answered request here.
            slot.mark.store(0, Ordering::Relaxed);
            slot.connection.set(None);
            let len = u32::try_from(request.payload.len()).unwrap_or(0);
            let attribute = u64::from(request.attribute as u32);
            self.buffers.show(slot, EventKind::ConnectRequest as u32, buffer, len, attribute);
            self.shown.insert(slot, request);
            core.push(slot);
        }
    }

    /// Forgets the request of a client that has given up. An answer then finds no client.
    pub(crate) fn withdraw(&mut self, client: u64, number: u32) {
        let is_gone = |request: &Request| request.from.number == client && request.number == number;
        self.requests.retain(|request| !is_gone(request));
        self.shown.forget(is_gone);
    }
}
