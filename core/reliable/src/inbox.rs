//! The inbox: receive slots, payload buffers, and the messages that arrive in them.

use super::shares::{NOBODY, PAUSED, STRANGER, Shares};
use cci_mem::buffers::Buffers;
use cci_mem::ring::BODY;
use cci_mem::sync::Ordering;
use cci_proto::engine::{Index, MessageBuffer};
use cci_proto::{Address, Attribute, EventKind};
use cci_transport::{Connection, Core, PendingRequests, Slot, tag_event};

/// A message that arrives in parts.
#[derive(Clone, Copy)]
struct PartialMessage {
    slot: &'static Slot,
    buffer: u32,
    len: u32,
}

/// A connection request that the program has not answered.
#[derive(Clone, Copy)]
pub(super) struct PendingRequest {
    pub(super) index: Index,
    pub(super) attribute: Attribute,
}

/// The word in [`Slot::payload`]: the fairness class that the slot counts for, and its payload
/// buffer.
#[derive(Clone, Copy)]
struct Token(u64);

impl Token {
    const TAKEN: u64 = 1 << 63;

    fn new(who: u32, buffer: Option<u32>) -> Self {
        let who = u64::from(who & NOBODY);
        Self(Self::TAKEN | who << 33 | buffer.map_or(0, |buffer| 1 << 32 | u64::from(buffer)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "each field is cut out of the word")]
    fn parts(self) -> Option<(u32, Option<u32>)> {
        let buffer = (self.0 >> 32 & 1 == 1).then_some(self.0 as u32);
        (self.0 & Self::TAKEN != 0).then_some(((self.0 >> 33) as u32 & NOBODY, buffer))
    }
}

/// The receiving side of an endpoint's slots.
pub(super) struct Inbox {
    buffers: Buffers,
    /// By the slot's number.
    partial_messages: Vec<Option<PartialMessage>>,
    pub(super) pending_requests: PendingRequests<PendingRequest>,
    /// The slots of each fairness class.
    shares: Shares,
    /// A message or a request was queued for the program, which may answer it.
    pub(super) has_delivered: bool,
    /// The endpoint closes: no message is accepted.
    pub(super) closing: bool,
}

impl Inbox {
    pub(super) fn new(core: &Core, largest: usize) -> rustix::io::Result<Self> {
        let slots = u32::try_from(core.recv_slots()).map_err(|_| rustix::io::Errno::NOMEM)?;
        let buffers = Buffers::new(slots, largest)?;
        // Address space only until slots are used, so that no message allocates.
        let mut partial_messages = Vec::new();
        partial_messages.try_reserve_exact(slots as usize).map_err(|_| rustix::io::Errno::NOMEM)?;
        Ok(Self {
            buffers,
            partial_messages,
            pending_requests: PendingRequests::default(),
            shares: Shares::new(),
            has_delivered: false,
            closing: false,
        })
    }

    /// Attaches an open connection to the fairness class of the peer at this address.
    pub(super) fn attach(&mut self, cell: &'static Connection, address: &Address) {
        cell.lane.store(self.shares.attach(address), Ordering::Relaxed);
    }

    /// A connection is open no more, if it was.
    pub(super) fn detach(&mut self, cell: &'static Connection) {
        let peer = cell.lane.load(Ordering::Relaxed) & !PAUSED;
        cell.lane.store(NOBODY, Ordering::Relaxed);
        if peer != NOBODY {
            self.shares.detach(peer);
        }
    }

    /// Takes no message of an open connection.
    pub(super) fn pause(&self, cell: &'static Connection) {
        cell.lane.store(cell.lane.load(Ordering::Relaxed) | PAUSED, Ordering::Relaxed);
    }

    /// Takes messages again. False: the connection is not paused.
    pub(super) fn resume(&self, cell: &'static Connection) -> bool {
        let was_paused = is_paused(cell);
        cell.lane.store(cell.lane.load(Ordering::Relaxed) & !PAUSED, Ordering::Relaxed);
        was_paused
    }

    /// Takes back what a slot held that the program has returned.
    #[inline]
    pub(super) fn release(&mut self, slot: &'static Slot) {
        if let Some((who, buffer)) = Token(slot.payload.load(Ordering::Relaxed)).parts() {
            slot.payload.store(0, Ordering::Relaxed);
            self.shares.give_back(who);
            if let Some(buffer) = buffer {
                self.buffers.give(buffer);
            }
        }
    }

    /// Messages that would be taken now, whoever sends them.
    pub(super) fn room(&self, core: &Core) -> u32 {
        let kept = self.shares.reserve(core.recv_count().0);
        if self.closing { 0 } else { u32::try_from(core.recv_free().saturating_sub(kept)).unwrap_or(u32::MAX) }
    }

    /// A slot for what this one has sent.
    #[inline]
    fn take(&mut self, core: &mut Core, who: u32) -> Option<&'static Slot> {
        if self.closing {
            return None;
        }
        match self.take_fair(core, who) {
            Some(slot) => Some(slot),
            None => self.take_last(core, who),
        }
    }

    #[inline]
    fn take_fair(&mut self, core: &mut Core, who: u32) -> Option<&'static Slot> {
        let (limit, _) = core.recv_count();
        if !self.shares.may_take(who, core.recv_free(), limit) {
            return None;
        }
        core.take_recv(|slot| self.release(slot))
    }

    /// No slot was free: makes the program's next return call the endpoint, and checks once more.
    #[cold]
    fn take_last(&mut self, core: &mut Core, who: u32) -> Option<&'static Slot> {
        if who & PAUSED != 0 {
            // A returned event changes nothing for it.
            return None;
        }
        core.starve();
        self.sweep(core);
        self.take_fair(core, who)
    }

    /// Frees all slots that the program has returned.
    pub(super) fn sweep(&mut self, core: &mut Core) {
        core.sweep_all_recv(|slot| self.release(slot));
    }

    /// Frees a few of the slots that the program has returned.
    #[inline]
    pub(super) fn sweep_some(&mut self, core: &mut Core) {
        core.sweep_recv(|slot| self.release(slot));
    }

    /// Records the class and the buffer of a slot.
    #[inline]
    fn hold(&mut self, slot: &'static Slot, who: u32, buffer: Option<u32>) {
        self.shares.hold(who);
        slot.payload.store(Token::new(who, buffer).0, Ordering::Relaxed);
    }

    /// A slot for a message that has its own memory.
    pub(super) fn take_bare(&mut self, core: &mut Core, cell: &'static Connection) -> Option<&'static Slot> {
        let who = cell.lane.load(Ordering::Relaxed);
        let slot = self.take(core, who)?;
        self.hold(slot, who, None);
        Some(slot)
    }

    /// Frees a slot that the program has not received.
    pub(super) fn give_back(&mut self, core: &mut Core, slot: &'static Slot) {
        self.release(slot);
        core.release(slot);
    }

    /// A slot and a buffer.
    fn take_with_buffer(&mut self, core: &mut Core, who: u32) -> Option<(&'static Slot, u32)> {
        let slot = self.take(core, who)?;
        self.with_buffer(core, slot, who)
    }

    /// A slot and a buffer for a connection request, which has slots of its own, and its share of
    /// the others beyond them.
    fn take_for_request(&mut self, core: &mut Core) -> Option<(&'static Slot, u32)> {
        if self.closing {
            return None;
        }
        let slot = core.take_recv_for_request(|slot| self.release(slot));
        let slot = slot.or_else(|| self.take(core, STRANGER))?;
        self.with_buffer(core, slot, STRANGER)
    }

    /// Adds a buffer to a slot.
    fn with_buffer(&mut self, core: &mut Core, slot: &'static Slot, who: u32) -> Option<(&'static Slot, u32)> {
        slot.payload.store(0, Ordering::Relaxed);
        // There are as many buffers as slots.
        let Some(buffer) = self.buffers.take() else {
            core.release(slot);
            return None;
        };
        self.hold(slot, who, Some(buffer));
        Some((slot, buffer))
    }

    /// Delivers a message in one piece. False: no slot is free.
    #[inline]
    pub(super) fn message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        let who = cell.lane.load(Ordering::Relaxed);
        let slot = if bytes.len() <= BODY {
            let Some(slot) = self.take(core, who) else { return false };
            self.hold(slot, who, None);
            slot.fill_inline_bytes(EventKind::Recv as u32, bytes, cell.address());
            slot
        } else {
            let Ok(len) = u32::try_from(bytes.len()) else { return false };
            let Some((slot, buffer)) = self.take_with_buffer(core, who) else { return false };
            if !self.buffers.write(buffer, 0, bytes) {
                self.give_back(core, slot);
                return false;
            }
            self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
            slot
        };
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(bytes.len());
        self.show(core, slot);
        true
    }

    /// Queues a filled slot for the program.
    #[inline]
    fn show(&mut self, core: &mut Core, slot: &'static Slot) {
        self.has_delivered = true;
        core.push(slot);
    }

    /// Reserves a slot and a buffer for a message that arrives in parts.
    pub(super) fn begin(&mut self, core: &mut Core, cell: &'static Connection, len: u32) -> Option<MessageBuffer> {
        if len as usize > self.buffers.capacity() {
            return None;
        }
        let (slot, buffer) = self.take_with_buffer(core, cell.lane.load(Ordering::Relaxed))?;
        let number = slot.index.load(Ordering::Relaxed);
        put(&mut self.partial_messages, number, PartialMessage { slot, buffer, len });
        Some(MessageBuffer(number))
    }

    #[inline]
    pub(super) fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        let Some(Some(message)) = self.partial_messages.get(buffer.0 as usize) else { return };
        if at as usize + bytes.len() <= message.len as usize {
            // Inside, since the whole message is.
            let _ = self.buffers.write(message.buffer, at as usize, bytes);
        }
    }

    /// Delivers a message whose parts have all arrived.
    pub(super) fn deliver(&mut self, core: &mut Core, cell: &'static Connection, buffer: MessageBuffer) {
        let Some(PartialMessage { slot, buffer, len }) =
            self.partial_messages.get_mut(buffer.0 as usize).and_then(Option::take)
        else {
            return;
        };
        self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
        tag_event(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(len as usize);
        self.show(core, slot);
    }

    pub(super) fn abandon(&mut self, core: &mut Core, buffer: MessageBuffer) {
        if let Some(message) = self.partial_messages.get_mut(buffer.0 as usize).and_then(Option::take) {
            self.give_back(core, message.slot);
        }
    }

    /// Queues a connection request for the program. False: no slot is free.
    pub(super) fn show_request(&mut self, core: &mut Core, index: Index, attribute: Attribute, payload: &[u8]) -> bool {
        let Some((slot, buffer)) = self.take_for_request(core) else { return false };
        let Some(len) = u32::try_from(payload.len()).ok().filter(|_| self.buffers.write(buffer, 0, payload)) else {
            self.give_back(core, slot);
            return false;
        };
        slot.mark.store(0, Ordering::Relaxed);
        slot.connection.set(None);
        self.buffers.show(slot, EventKind::ConnectRequest as u32, buffer, len, u64::from(attribute as u32));
        self.pending_requests.insert(slot, PendingRequest { index, attribute });
        self.has_delivered = true;
        core.push_request(slot, payload);
        true
    }
}

/// Whether the program takes no message of a connection.
pub(super) fn is_paused(cell: &Connection) -> bool {
    cell.lane.load(Ordering::Relaxed) & PAUSED != 0
}

/// Stores an entry by a slot's number. The list has room for all.
fn put<T: Copy>(list: &mut Vec<Option<T>>, number: u32, entry: T) {
    let at = number as usize;
    if at >= list.len() {
        list.resize(at + 1, None);
    }
    list[at] = Some(entry);
}
