//! Receive slots, and the memory of payloads that do not fit into one.

use crate::{Connection, Core, Slot, tag_event};
use cci_mem::buffers::Buffers;
use cci_mem::ring::BODY;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, MAX_REQUEST};

/// The receiving side of an endpoint's slots, for a transport that copies each payload: what
/// arrives becomes an event in a slot. [`Slot::payload`] holds the payload's buffer plus one, or 0.
///
/// # Example
///
/// ```
/// use cci_transport::{Connection, Core, ReceiveSlots};
///
/// /// Delivers a message. False: no slot is free, and the next return of an event calls `refill`.
/// fn deliver(slots: &mut ReceiveSlots, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
///     slots.message(core, cell, bytes) || slots.starve(core) && slots.message(core, cell, bytes)
/// }
/// ```
pub struct ReceiveSlots {
    /// Memory of payloads, never unmapped, so that a program's stale pointer can be read.
    buffers: Buffers,
}

impl ReceiveSlots {
    /// A buffer for each receive slot of this endpoint: whoever has a slot has a buffer.
    ///
    /// # Errors
    ///
    /// Out of address space.
    pub fn new(core: &Core, max_send_size: u32) -> rustix::io::Result<Self> {
        let count = u32::try_from(core.recv_slots()).map_err(|_| rustix::io::Errno::NOMEM)?;
        Ok(Self { buffers: Buffers::new(count, (max_send_size as usize).max(MAX_REQUEST))? })
    }

    /// Frees the buffer of a slot that the program has returned.
    #[inline]
    fn release(&mut self, slot: &'static Slot) {
        if let Some(buffer) = slot.payload.load(Ordering::Relaxed).checked_sub(1) {
            slot.payload.store(0, Ordering::Relaxed);
            self.buffers.give(u32::try_from(buffer).unwrap_or(u32::MAX));
        }
    }

    /// Frees all slots that the program has returned.
    pub fn sweep(&mut self, core: &mut Core) {
        core.sweep_all_recv(|slot| self.release(slot));
    }

    /// Frees a few of the slots that the program has returned.
    #[inline]
    pub fn sweep_some(&mut self, core: &mut Core) {
        core.sweep_recv(|slot| self.release(slot));
    }

    /// Has the program's next return of an event call the endpoint, because no slot was free: the
    /// return is one store, and calls nobody otherwise. True: to be tried once more.
    #[cold]
    pub fn starve(&mut self, core: &mut Core) -> bool {
        if !core.starve() {
            return false;
        }
        self.sweep(core);
        true
    }

    /// A slot for what has its own memory. `None`: no slot is free.
    #[inline]
    pub fn take(&mut self, core: &mut Core) -> Option<&'static Slot> {
        let slot = core.take_recv(|slot| self.release(slot))?;
        slot.payload.store(0, Ordering::Relaxed);
        Some(slot)
    }

    /// The buffer of a slot, with these bytes. `None`: the slot is given back.
    fn with_buffer(&mut self, core: &mut Core, slot: &'static Slot, bytes: &[u8]) -> Option<u32> {
        slot.payload.store(0, Ordering::Relaxed);
        let buffer = self.buffers.take();
        let Some(buffer) = buffer.filter(|buffer| self.buffers.write(*buffer, 0, bytes)) else {
            buffer.into_iter().for_each(|buffer| self.buffers.give(buffer));
            core.release(slot);
            return None;
        };
        slot.payload.store(u64::from(buffer) + 1, Ordering::Relaxed);
        Some(buffer)
    }

    /// Queues the RECV event of a message. False: no slot is free.
    #[inline]
    pub fn message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        let slot = if bytes.len() <= BODY {
            let Some(slot) = self.take(core) else { return false };
            slot.fill_inline_bytes(EventKind::Recv as u32, bytes, cell.address());
            slot
        } else {
            let Some(slot) = self.take(core) else { return false };
            let Some(buffer) = self.with_buffer(core, slot, bytes) else { return false };
            let len = u32::try_from(bytes.len()).unwrap_or(0);
            self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
            slot
        };
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(bytes.len());
        core.push(slot);
        true
    }

    /// Queues the CONNECT_REQUEST event of a request, and returns the slot by which the program
    /// answers it. `None`: no slot is free. `has_spare`: it may have a slot of messages where all
    /// slots for requests are taken.
    pub fn request(
        &mut self,
        core: &mut Core,
        attribute: Attribute,
        payload: &[u8],
        has_spare: bool,
    ) -> Option<&'static Slot> {
        let slot = match core.take_recv_for_request(|slot| self.release(slot)) {
            None if has_spare => self.take(core)?,
            slot => slot?,
        };
        let buffer = self.with_buffer(core, slot, payload)?;
        // The facade marks an answered request here.
        slot.mark.store(0, Ordering::Relaxed);
        slot.connection.set(None);
        let len = u32::try_from(payload.len()).unwrap_or(0);
        let attribute = u64::from(attribute as u32);
        self.buffers.show(slot, EventKind::ConnectRequest as u32, buffer, len, attribute);
        core.push_request(slot, payload);
        Some(slot)
    }
}
