//! The receive slots: what arrives becomes an event in a slot.
//!
//! A message of a reliable connection has a grant, which stands for a slot. Everything else takes
//! slots beyond those of the grants that are out.

use cci_mem::buffers::Buffers;
use cci_mem::ring::BODY;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, MAX_REQUEST};
use cci_transport::{Connection, Core, PendingRequests, Slot, tag_event};

/// A connection request that the program has not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Its lane.
    pub(crate) lane: u32,
    /// The client's number of the connection.
    pub(crate) number: u32,
    pub(crate) attribute: Attribute,
}

pub(crate) struct Inbox {
    /// Memory of payloads, never unmapped, so that a program's stale pointer can be read.
    buffers: Buffers,
    pub(crate) requests: PendingRequests<Request>,
    /// Messages that peers may still send: each has its slot.
    granted: usize,
    /// Something was queued for the program, which may answer it.
    pub(crate) has_delivered: bool,
}

impl Inbox {
    pub(crate) fn new(core: &Core, max_send_size: u32) -> rustix::io::Result<Self> {
        // A buffer for each slot: whoever has a slot has a buffer.
        let count = u32::try_from(core.recv_count().1).map_err(|_| rustix::io::Errno::NOMEM)?;
        Ok(Self {
            buffers: Buffers::new(count, (max_send_size as usize).max(MAX_REQUEST))?,
            requests: PendingRequests::default(),
            granted: 0,
            has_delivered: false,
        })
    }

    /// Frees the buffer of a slot that the program has returned. 0 stands for none.
    #[inline]
    fn release(&mut self, slot: &'static Slot) {
        if let Some(buffer) = slot.payload.load(Ordering::Relaxed).checked_sub(1) {
            slot.payload.store(0, Ordering::Relaxed);
            self.buffers.give(u32::try_from(buffer).unwrap_or(u32::MAX));
        }
    }

    /// Frees all slots that the program has returned.
    pub(crate) fn sweep(&mut self, core: &mut Core) {
        core.sweep_all_recv(|slot| self.release(slot));
    }

    /// Frees a few of the slots that the program has returned.
    #[inline]
    pub(crate) fn sweep_some(&mut self, core: &mut Core) {
        core.sweep_recv(|slot| self.release(slot));
    }

    /// Slots that no grant stands for.
    pub(crate) fn spare(&mut self, core: &mut Core) -> usize {
        if core.recv_free() <= self.granted {
            self.sweep(core);
        }
        core.recv_free().saturating_sub(self.granted)
    }

    /// Grants messages to a lane: so many slots are spoken for.
    pub(crate) fn grant(&mut self, messages: u32) {
        self.granted += messages as usize;
    }

    /// Grants that were used, or given back, or whose lane has ended.
    #[inline]
    pub(crate) fn ungrant(&mut self, messages: u32) {
        self.granted = self.granted.saturating_sub(messages as usize);
    }

    /// Whether every slot is taken or granted.
    pub(crate) fn is_short(&mut self, core: &mut Core) -> bool {
        self.spare(core) == 0
    }

    /// Has the program's next return of an event call the endpoint, since slots are short. True: to
    /// be tried once more.
    #[cold]
    pub(crate) fn starve(&mut self, core: &mut Core) -> bool {
        if core.is_starving() {
            return false;
        }
        core.set_starving(true);
        // Pairs with the light fence in the return of an event: either the return calls `refill`,
        // or the next look finds its slot.
        core.endpoint().pairing.heavy_here();
        self.sweep(core);
        true
    }

    /// A slot with a buffer that has these bytes.
    fn take_with_buffer(&mut self, core: &mut Core, bytes: &[u8]) -> Option<(&'static Slot, u32)> {
        let slot = self.take_bare(core)?;
        let buffer = self.buffers.take();
        let Some(buffer) = buffer.filter(|buffer| self.buffers.write(*buffer, 0, bytes)) else {
            buffer.into_iter().for_each(|buffer| self.buffers.give(buffer));
            core.release(slot);
            return None;
        };
        slot.payload.store(u64::from(buffer) + 1, Ordering::Relaxed);
        Some((slot, buffer))
    }

    /// A slot for what has its own memory.
    #[inline]
    pub(crate) fn take_bare(&mut self, core: &mut Core) -> Option<&'static Slot> {
        let slot = core.take_recv(|slot| self.release(slot))?;
        slot.payload.store(0, Ordering::Relaxed);
        Some(slot)
    }

    /// Delivers a message. False: no slot is free.
    #[inline]
    pub(crate) fn message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        let slot = if bytes.len() <= BODY {
            let Some(slot) = self.take_bare(core) else { return false };
            slot.fill_inline(EventKind::Recv as u32, bytes.len(), cell.address(), |at| word(bytes, at));
            slot
        } else {
            let Some((slot, buffer)) = self.take_with_buffer(core, bytes) else { return false };
            let len = u32::try_from(bytes.len()).unwrap_or(0);
            self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
            slot
        };
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(bytes.len());
        core.push(slot);
        self.has_delivered = true;
        true
    }

    /// Queues a connection request. False: strangers have their quarter of the slots, or none is
    /// free.
    pub(crate) fn request(&mut self, core: &mut Core, request: Request, payload: &[u8]) -> bool {
        let (limit, _) = core.recv_count();
        if self.requests.len() >= (limit / 4).max(1) || self.spare(core) == 0 {
            return false;
        }
        let Some((slot, buffer)) = self.take_with_buffer(core, payload) else { return false };
        // The facade marks an answered request here.
        slot.mark.store(0, Ordering::Relaxed);
        slot.connection.set(None);
        let len = u32::try_from(payload.len()).unwrap_or(0);
        let attribute = u64::from(request.attribute as u32);
        self.buffers.show(slot, EventKind::ConnectRequest as u32, buffer, len, attribute);
        self.requests.insert(slot, request);
        core.push_request(slot, payload);
        self.has_delivered = true;
        true
    }
}

/// A word of a small message as a slot takes it.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[8 * at..];
    u64::from_ne_bytes(rest.first_chunk().copied().unwrap_or_else(|| {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last
    }))
}
