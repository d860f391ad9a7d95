//! Receive slots and payload buffers: who has how many, and what arrives in which.

use crate::{Connection, Core, Slot, name};
use cci_mem::buffers::Buffers;
use cci_mem::ring::BODY;
use cci_mem::sync::Ordering;
use cci_proto::engine::{Index, Place};
use cci_proto::{Address, Attribute, EventKind};

/// Classes that peers are sorted into by their address, so that the memory for them is bounded.
const CLASSES: usize = 64;

/// A message that arrives in parts.
#[derive(Clone, Copy)]
struct Arriving {
    slot: &'static Slot,
    buffer: u32,
    len: u32,
}

/// A connection request that the program has not answered.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) index: Index,
    pub(super) attribute: Attribute,
    pub(super) class: u32,
    slot: &'static Slot,
}

/// What stands in [`Slot::payload`]: the class that the slot counts for, and the buffer that it holds.
#[derive(Clone, Copy)]
struct Token(u64);

impl Token {
    const TAKEN: u64 = 1 << 63;

    fn new(class: u32, buffer: Option<u32>) -> Self {
        Self(Self::TAKEN | u64::from(class) << 33 | buffer.map_or(0, |buffer| 1 << 32 | u64::from(buffer)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "each field is cut out of the word")]
    fn parts(self) -> Option<(usize, Option<u32>)> {
        let buffer = (self.0 >> 32 & 1 == 1).then_some(self.0 as u32);
        (self.0 & Self::TAKEN != 0).then_some(((self.0 >> 33) as usize % CLASSES, buffer))
    }
}

/// The receiving side of an endpoint's slots.
pub(super) struct Inbox {
    buffers: Buffers,
    /// By the slot's number.
    arriving: Vec<Option<Arriving>>,
    asked: Vec<Option<Asked>>,
    /// Slots that each class has.
    lent: [u32; CLASSES],
    /// Connections that each class has.
    peers: [u32; CLASSES],
    /// Classes with a connection.
    crowd: u32,
    /// Of the classes.
    key: u64,
    /// A message or a request was shown to the program, which may answer it.
    pub(super) has_shown: bool,
    /// The endpoint closes: nothing is taken any more.
    pub(super) closing: bool,
}

impl Inbox {
    pub(super) fn new(core: &Core, largest: usize, key: u64) -> rustix::io::Result<Self> {
        let slots = u32::try_from(core.recv_count().1).map_err(|_| rustix::io::Errno::NOMEM)?;
        Ok(Self {
            buffers: Buffers::new(slots, largest)?,
            arriving: Vec::new(),
            asked: Vec::new(),
            lent: [0; CLASSES],
            peers: [0; CLASSES],
            crowd: 0,
            key,
            has_shown: false,
            closing: false,
        })
    }

    /// The class of a peer.
    pub(super) fn class(&self, address: &Address) -> u32 {
        let mut hash = self.key;
        for chunk in address.0.chunks_exact(8) {
            hash ^= chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            // The finalizer of SplitMix64: every bit reaches every other.
            hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            hash ^= hash >> 31;
        }
        u32::try_from(hash % CLASSES as u64).unwrap_or(0)
    }

    /// A connection to a peer of this class begins.
    pub(super) fn meet(&mut self, class: u32) {
        let peers = &mut self.peers[class as usize % CLASSES];
        self.crowd += u32::from(*peers == 0);
        *peers += 1;
    }

    /// One ends.
    pub(super) fn part(&mut self, class: u32) {
        let peers = &mut self.peers[class as usize % CLASSES];
        *peers = peers.saturating_sub(1);
        self.crowd = self.crowd.saturating_sub(u32::from(*peers == 0));
    }

    /// Takes back what a slot held that the program has returned.
    #[inline]
    pub(super) fn release(&mut self, slot: &'static Slot) {
        if let Some((class, buffer)) = Token(slot.payload.load(Ordering::Relaxed)).parts() {
            slot.payload.store(0, Ordering::Relaxed);
            self.lent[class] = self.lent[class].saturating_sub(1);
            if let Some(buffer) = buffer {
                self.buffers.give(buffer);
            }
        }
    }

    /// Whether peers of this class have a quarter of the slots and the last sixteenth is to stay for others.
    #[inline]
    fn is_over_share(&self, core: &Core, class: u32) -> bool {
        if self.crowd < 2 {
            return false;
        }
        let (limit, _) = core.recv_count();
        self.lent[class as usize % CLASSES] as usize * 4 >= limit && core.recv_free() * 16 <= limit && limit >= 16
    }

    /// Messages that would be taken now, whoever sends them.
    pub(super) fn room(&self, core: &Core) -> u32 {
        let (limit, _) = core.recv_count();
        let kept = if self.crowd < 2 { 0 } else { limit / 16 };
        if self.closing { 0 } else { u32::try_from(core.recv_free().saturating_sub(kept)).unwrap_or(u32::MAX) }
    }

    /// A slot for what a peer of this class has sent.
    #[inline]
    fn take(&mut self, core: &mut Core, class: u32) -> Option<&'static Slot> {
        if self.closing {
            return None;
        }
        match self.take_fair(core, class) {
            Some(slot) => Some(slot),
            None => self.take_last(core, class),
        }
    }

    #[inline]
    fn take_fair(&mut self, core: &mut Core, class: u32) -> Option<&'static Slot> {
        if self.is_over_share(core, class) {
            return None;
        }
        core.take_recv(|slot| self.release(slot))
    }

    /// No slot was free: has the program's next return tell us, and looks once more.
    #[cold]
    fn take_last(&mut self, core: &mut Core, class: u32) -> Option<&'static Slot> {
        if !core.is_starving() {
            core.set_starving(true);
            // Against the light fence in giving an event back: either it tells us, or this look finds its slot.
            core.endpoint().pairing.heavy_here();
        }
        self.sweep(core);
        self.take_fair(core, class)
    }

    /// Takes back what the program has returned.
    pub(super) fn sweep(&mut self, core: &mut Core) {
        core.sweep_all_recv(|slot| self.release(slot));
    }

    /// Takes back a little of what the program has returned.
    #[inline]
    pub(super) fn sweep_some(&mut self, core: &mut Core) {
        core.sweep_recv(|slot| self.release(slot));
    }

    /// Notes what a slot holds.
    #[inline]
    fn hold(&mut self, slot: &'static Slot, class: u32, buffer: Option<u32>) {
        self.lent[class as usize % CLASSES] += 1;
        slot.payload.store(Token::new(class, buffer).0, Ordering::Relaxed);
    }

    /// Gives back a slot that no event has shown.
    fn give_back(&mut self, core: &mut Core, slot: &'static Slot) {
        self.release(slot);
        core.release(slot);
    }

    /// A slot and a buffer.
    fn take_with_buffer(&mut self, core: &mut Core, class: u32) -> Option<(&'static Slot, u32)> {
        let slot = self.take(core, class)?;
        slot.payload.store(0, Ordering::Relaxed);
        // As many as slots.
        let Some(buffer) = self.buffers.take() else {
            core.release(slot);
            return None;
        };
        self.hold(slot, class, Some(buffer));
        Some((slot, buffer))
    }

    /// A message in one piece. False: no slot is free.
    #[inline]
    pub(super) fn message(&mut self, core: &mut Core, cell: &'static Connection, bytes: &[u8]) -> bool {
        let class = cell.lane.load(Ordering::Relaxed);
        let slot = if bytes.len() <= BODY {
            let Some(slot) = self.take(core, class) else { return false };
            self.hold(slot, class, None);
            slot.fill_inline(EventKind::Recv as u32, bytes.len(), cell.address(), |at| word(bytes, at));
            slot
        } else {
            let Ok(len) = u32::try_from(bytes.len()) else { return false };
            let Some((slot, buffer)) = self.take_with_buffer(core, class) else { return false };
            if !self.buffers.write(buffer, 0, bytes) {
                self.give_back(core, slot);
                return false;
            }
            self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
            slot
        };
        name(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(bytes.len());
        self.show(core, slot);
        true
    }

    /// Shows a filled slot to the program.
    #[inline]
    fn show(&mut self, core: &mut Core, slot: &'static Slot) {
        self.has_shown = true;
        core.push(slot);
    }

    /// A place for a message that comes in parts.
    pub(super) fn begin(&mut self, core: &mut Core, cell: &'static Connection, len: u32) -> Option<Place> {
        if len as usize > self.buffers.capacity() {
            return None;
        }
        let (slot, buffer) = self.take_with_buffer(core, cell.lane.load(Ordering::Relaxed))?;
        let number = slot.index.load(Ordering::Relaxed);
        put(&mut self.arriving, number, Arriving { slot, buffer, len });
        Some(Place(number))
    }

    #[inline]
    pub(super) fn fill(&mut self, place: Place, at: u32, bytes: &[u8]) {
        let Some(Some(arriving)) = self.arriving.get(place.0 as usize) else { return };
        if at as usize + bytes.len() <= arriving.len as usize {
            // Inside, since the whole message is.
            let _ = self.buffers.write(arriving.buffer, at as usize, bytes);
        }
    }

    /// A message has come as a whole.
    pub(super) fn deliver(&mut self, core: &mut Core, cell: &'static Connection, place: Place) {
        let Some(Arriving { slot, buffer, len }) = self.arriving.get_mut(place.0 as usize).and_then(Option::take)
        else {
            return;
        };
        self.buffers.show(slot, EventKind::Recv as u32, buffer, len, cell.address());
        name(slot, cell);
        cell.counters.on_received();
        core.counters().on_received(len as usize);
        self.show(core, slot);
    }

    pub(super) fn abandon(&mut self, core: &mut Core, place: Place) {
        if let Some(arriving) = self.arriving.get_mut(place.0 as usize).and_then(Option::take) {
            self.give_back(core, arriving.slot);
        }
    }

    /// Shows a request to the program. False: no slot is free.
    pub(super) fn ask(
        &mut self,
        core: &mut Core,
        index: Index,
        (attribute, class): (Attribute, u32),
        payload: &[u8],
    ) -> bool {
        let Some((slot, buffer)) = self.take_with_buffer(core, class) else { return false };
        let Some(len) = u32::try_from(payload.len()).ok().filter(|_| self.buffers.write(buffer, 0, payload)) else {
            self.give_back(core, slot);
            return false;
        };
        slot.mark.store(0, Ordering::Relaxed);
        slot.connection.set(None);
        self.buffers.show(slot, EventKind::ConnectRequest as u32, buffer, len, u64::from(attribute as u32));
        let number = slot.index.load(Ordering::Relaxed);
        put(&mut self.asked, number, Asked { index, attribute, class, slot });
        self.show(core, slot);
        true
    }

    /// Takes the request that a slot shows; none when its client is gone.
    pub(super) fn take_request(&mut self, slot: &'static Slot) -> Option<Asked> {
        let asked = self.asked.get_mut(slot.index.load(Ordering::Relaxed) as usize)?;
        asked.take_if(|asked| std::ptr::eq(asked.slot, slot))
    }

    /// Puts a request back that could not be answered now.
    pub(super) fn put_back(&mut self, asked: Asked) {
        put(&mut self.asked, asked.slot.index.load(Ordering::Relaxed), asked);
    }

    /// The client of a request is gone. False: there is no such request.
    pub(super) fn forget_request(&mut self, index: Index) -> bool {
        let found = self.asked.iter_mut().find(|asked| asked.is_some_and(|asked| asked.index == index));
        found.is_some_and(|asked| asked.take().is_some())
    }

    /// The unanswered requests.
    pub(super) fn requests(&self) -> impl Iterator<Item = Index> + '_ {
        self.asked.iter().flatten().map(|asked| asked.index)
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

/// Enters something by a slot's number; the list grows while slots are used for the first time.
fn put<T: Copy>(list: &mut Vec<Option<T>>, number: u32, entry: T) {
    let at = number as usize;
    if at >= list.len() {
        list.resize(at + 1, None);
    }
    list[at] = Some(entry);
}
