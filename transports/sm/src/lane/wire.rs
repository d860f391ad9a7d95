//! A lane's segment, mapped: this side's two cursors and the words that both sides share.

use crate::format::layout::{
    ENTRIES, FIRST_SLOTS, GRANT_SHIFT, GRANTS, Geometry, HAZARD, HEAD, PAYLOAD, Parts, RNR, SLEEP, SLOTS, WAIT,
};
use crate::lane::state::{EndpointState, PayloadToken};
use crate::sys::Mapped;
use cci_mem::barrier::Pairing;
use cci_mem::hazard;
use cci_mem::memory::Memory;
use cci_mem::ring::{Consumer, Entry, GrantReader, GrantWriter, Producer, Violation};
use cci_mem::segment::Segment;
use cci_mem::slot::Access;
use cci_mem::source::{Source, Sources};
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
use cci_mem::view::View;
use cci_proto::EventKind;
use cci_transport::{Message, Slot};
use rustix::io::Result;
use std::sync::Arc;

/// Payloads beyond this length, bytes, take each other's place in the nearest cache where the first
/// slots of both directions are used in turn: 32 KiB.
const CROWDING: u32 = 2048;

/// The shared words of one direction. Borrowed from the segment of the [`Wire`] that holds it, and
/// never handed out.
pub(crate) struct Direction {
    pub(crate) head: &'static AtomicU32,
    pub(crate) sleep: &'static AtomicU32,
    pub(crate) rnr: &'static AtomicU32,
    pub(crate) hazard: &'static AtomicU64,
    pub(crate) wait: &'static AtomicU32,
    pub(crate) grants: &'static [AtomicU32],
    pub(crate) ring: &'static [Entry; ENTRIES],
    /// Offset of its payload slots in the lane.
    slots: usize,
}

impl Direction {
    fn new(segment: &Segment, parts: Parts) -> Self {
        // SAFETY: what is borrowed from it lies in the mapping, which stays where it is when the
        // `Segment` moves. The mapping and the references are fields of one `Wire`, which gives no
        // reference away and drops the mapping last.
        let segment: &'static Segment = unsafe { &*std::ptr::from_ref(segment) };
        let word = |offset| &segment.words32(parts.words + offset, 1)[0];
        Self {
            head: word(HEAD),
            sleep: word(SLEEP),
            rnr: word(RNR),
            hazard: &segment.words64(parts.words + HAZARD, 1)[0],
            wait: word(WAIT),
            grants: segment.words32(parts.words + GRANTS, 1 << GRANT_SHIFT),
            ring: segment.entries(parts.ring),
            slots: parts.slots,
        }
    }
}

/// A payload of the peer in a slot that was granted: made by [`Wire::inbound_slot`] only, and used
/// once.
pub(crate) struct InboundPayload {
    start: *mut u8,
    slot: u32,
    len: u32,
}

/// One side's view of a lane.
pub(crate) struct Wire {
    pub(crate) outbound: Direction,
    pub(crate) inbound: Direction,
    pub(crate) producer: Producer<ENTRIES>,
    pub(crate) consumer: Consumer<ENTRIES>,
    grant_writer: GrantWriter,
    grant_reader: GrantReader,
    /// Slots that the peer granted and this side has not filled.
    granted: Vec<u16>,
    /// A long payload has come since this side filled a slot: the peer has probably granted that
    /// one again.
    has_answer: bool,
    /// Which outbound slots are this side's to fill; a hostile peer may grant one twice.
    mine: u64,
    /// Which inbound slots the peer may fill.
    theirs: u64,
    /// Outbound slots that have memory: this side reserves it before it first fills a slot.
    reserved: u64,
    /// There was no memory for an outbound slot: the clock tries again.
    pub(crate) lacks_memory: bool,
    /// Inbound slots granted at least once.
    pub(crate) opened: u32,
    geometry: Geometry,
    pub(crate) pairing: Pairing,
    /// The mapping that the references above point into. Dropped after them, as the last field.
    segment: Arc<Segment>,
}

const _: () = assert!(SLOTS <= u64::BITS);

impl Wire {
    /// Makes a lane for a HELLO.
    pub(crate) fn create(geometry: Geometry) -> Result<Self> {
        let segment = Segment::create("cci-lane", geometry.lane())?;
        let wire = Self::new(segment, geometry, true);
        wire.reserve_start()?;
        Ok(wire)
    }

    /// Closes the descriptor of the lane once the peer has it; an old kernel needs it to reserve
    /// slots.
    pub(crate) fn close_file(&mut self) {
        if self.segment.populate(0, 1).is_ok()
            && let Some(segment) = Arc::get_mut(&mut self.segment)
        {
            segment.close_file();
        }
    }

    /// Attaches the lane of a HELLO.
    pub(crate) fn attach(fd: rustix::fd::OwnedFd, geometry: Geometry) -> Result<Self> {
        let mut wire = Self::new(Segment::attach(fd, geometry.lane())?, geometry, false);
        // The creator has reserved the start; asking again costs nothing and does not take its word
        // for it.
        wire.reserve_start()?;
        wire.close_file();
        Ok(wire)
    }

    fn new(segment: Segment, geometry: Geometry, creator: bool) -> Self {
        Self {
            outbound: Direction::new(&segment, geometry.parts(!creator)),
            inbound: Direction::new(&segment, geometry.parts(creator)),
            producer: Producer::new(),
            consumer: Consumer::new(),
            grant_writer: GrantWriter::new(GRANT_SHIFT),
            grant_reader: GrantReader::new(GRANT_SHIFT),
            granted: Vec::with_capacity(SLOTS as usize),
            has_answer: false,
            mine: 0,
            theirs: 0,
            reserved: 0,
            lacks_memory: false,
            opened: 0,
            geometry,
            pairing: Pairing::Symmetric,
            segment: Arc::new(segment),
        }
    }

    fn reserve_start(&self) -> Result<()> {
        self.segment.reserve(0, PAYLOAD)
    }

    /// Grants the first slots, when the lane becomes usable.
    pub(crate) fn grant_first(&mut self) {
        self.opened = FIRST_SLOTS;
        for slot in 0..FIRST_SLOTS {
            self.grant(slot);
        }
    }

    /// Whether the peer has used up half of what it was granted, and more could be.
    #[inline]
    pub(crate) fn wants_more(&self) -> bool {
        self.opened < SLOTS && self.theirs.count_ones() * 2 <= self.opened
    }

    /// Whether the program holds so many slots of this lane that the peer would soon have none.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.opened == SLOTS && self.theirs.count_ones() * 4 < self.opened
    }

    /// Grants twice as many slots. The peer reserves the memory of those that it fills.
    #[cold]
    pub(crate) fn grow(&mut self) {
        let target = (self.opened * 2).min(SLOTS);
        let first = self.opened;
        self.opened = target;
        for slot in first..target {
            self.grant(slot);
        }
    }

    /// Copies a payload and a zero byte out of an inbound slot.
    fn copy_payload(&self, payload: *const u8, len: u32, buffer: &mut [u8]) {
        let len = len as usize;
        assert!(len < buffer.len(), "buffers hold a largest message and a zero byte");
        // SAFETY: `inbound_slot` gave `payload` for `len` bytes, and no reference covers them. The
        // peer may write them meanwhile.
        unsafe { View::new(payload, len) }.copy_to(0, &mut buffer[..len]);
        buffer[len] = 0;
    }

    /// Copies the first bytes of a payload, as many as both have.
    pub(crate) fn copy_head(&self, payload: &InboundPayload, head: &mut [u8]) {
        // SAFETY: as in `copy_payload`: `inbound_slot` gave the payload.
        unsafe { View::new(payload.start, payload.len as usize) }.copy_to(0, head);
    }

    /// Copies a message and a zero byte into an outbound slot that `take_granted` gave, and returns
    /// how many bytes the message has.
    #[inline(always)]
    pub(crate) fn fill_slot(&self, slot: u32, message: Message<'_>) -> u32 {
        match message {
            Message::One(bytes) => self.fill_slot_with(slot, bytes),
            Message::Many(parts, len) => self.fill_slot_gathered(slot, parts, len),
        }
    }

    /// As [`Wire::fill_slot`], with the bytes of several places.
    #[inline(never)]
    fn fill_slot_gathered(&self, slot: u32, parts: Sources<'_>, len: usize) -> u32 {
        assert!(len <= self.payload_capacity() as usize, "the facade checks lengths");
        let target = self.outbound_slot(slot);
        let (mut at, mut left) = (0, len);
        // A program that changes its list meanwhile gets no more than it asked for.
        let fits = |part: &Source<'_>| {
            let rest = left.checked_sub(part.len());
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        parts.iter().take_while(fits).for_each(|bytes| {
            // SAFETY: the parts so far and this one are at most `len` bytes, which fit the slot;
            // the slot is ours to fill until the entry that names it is published; a program sends
            // nothing that lies in a slot that its library may fill.
            unsafe { bytes.copy_to_shared(target.add(at)) };
            at += bytes.len();
        });
        self.end_message(slot, len);
        u32::try_from(len).unwrap_or(0)
    }

    /// As [`Wire::fill_slot`], with the bytes of one place.
    #[inline(always)]
    pub(crate) fn fill_slot_with(&self, slot: u32, bytes: Source<'_>) -> u32 {
        let len = bytes.len();
        assert!(len < self.geometry.stride, "the facade checks lengths");
        let target = self.outbound_slot(slot);
        // SAFETY: the bytes and one more fit the slot, which is ours to fill until the entry that
        // names it is published; a program sends nothing that lies in a slot that its library may
        // fill.
        unsafe {
            bytes.copy_to_shared(target);
            target.add(len).write(0);
        }
        u32::try_from(len).unwrap_or(0)
    }

    /// Writes the zero byte after a message in an outbound slot.
    #[inline]
    pub(crate) fn end_message(&self, slot: u32, len: usize) {
        assert!(len <= self.payload_capacity() as usize, "the facade checks lengths");
        // SAFETY: the stride leaves room for this byte, and the slot is ours to fill.
        unsafe { self.outbound_slot(slot).add(len).write(0) };
    }

    /// Lets the peer fill an inbound slot.
    #[inline]
    pub(crate) fn grant(&mut self, slot: u32) {
        self.theirs |= 1 << slot;
        #[expect(clippy::cast_possible_truncation, reason = "a slot's number is below SLOTS")]
        self.grant_writer.grant(self.inbound.grants, slot as u16);
    }

    /// Takes an outbound slot to fill, if the peer has granted one.
    #[inline]
    pub(crate) fn take_granted(&mut self) -> std::result::Result<Option<u32>, Violation> {
        self.look_for_grants()?;
        let Some(slot) = self.granted.pop() else { return Ok(None) };
        if self.reserved & 1 << slot == 0 && !self.reserve_slot(slot) {
            return Ok(None);
        }
        self.mine &= !(1 << slot);
        Ok(Some(u32::from(slot)))
    }

    /// Whether [`Wire::take_at_hand`] has a slot: one that the peer has granted, by what is known
    /// without a look at the grants, and that has memory.
    #[inline(always)]
    pub(crate) fn has_slot_at_hand(&self) -> bool {
        self.granted.last().is_some_and(|slot| self.reserved & 1 << slot != 0)
    }

    /// Takes an outbound slot to fill; the caller has asked [`Wire::has_slot_at_hand`].
    #[inline(always)]
    pub(crate) fn take_at_hand(&mut self) -> std::result::Result<Option<u32>, Violation> {
        if std::mem::take(&mut self.has_answer) {
            self.read_grants()?;
        }
        let Some(slot) = self.granted.pop() else { return Ok(None) };
        // What was granted just now may lack memory.
        let slot = if self.reserved & 1 << slot == 0 { self.exchange_for_reserved(slot) } else { Some(slot) };
        let Some(slot) = slot else { return Ok(None) };
        self.mine &= !(1 << slot);
        Ok(Some(u32::from(slot)))
    }

    /// Puts a slot without memory back, and takes the last one that has some. `None`: none has.
    #[cold]
    #[inline(never)]
    fn exchange_for_reserved(&mut self, slot: u16) -> Option<u16> {
        self.granted.push(slot);
        let at = self.granted.iter().rposition(|slot| self.reserved & 1 << slot != 0);
        at.map(|at| self.granted.remove(at))
    }

    /// Looks at the peer's grants if no slot is left to fill, or if a long payload has come since
    /// the last one was filled. Then the next message goes into the slot of the last one: its
    /// lines are in the caches of both sides, where several slots in turn take each other's place.
    #[inline(always)]
    pub(crate) fn look_for_grants(&mut self) -> std::result::Result<(), Violation> {
        if std::mem::take(&mut self.has_answer) || self.granted.is_empty() { self.read_grants() } else { Ok(()) }
    }

    /// Takes note of the outbound slots that the peer has granted since the last look.
    #[inline]
    fn read_grants(&mut self) -> std::result::Result<(), Violation> {
        while let Some(slot) = self.grant_reader.take(self.outbound.grants) {
            let bit = 1u64.checked_shl(u32::from(slot)).filter(|_| u32::from(slot) < SLOTS).ok_or(Violation)?;
            if self.mine & bit != 0 {
                return Err(Violation);
            }
            self.mine |= bit;
            self.granted.push(slot);
        }
        Ok(())
    }

    /// Takes an outbound slot for a program to fill, if another stays for what else is sent.
    pub(crate) fn take_room(&mut self) -> std::result::Result<Option<(u32, Memory)>, Violation> {
        if self.granted.len() < 2 {
            self.read_grants()?;
        }
        if self.granted.len() < 2 {
            return Ok(None);
        }
        let Some(slot) = self.take_granted()? else { return Ok(None) };
        Ok(self.filled(slot, self.geometry.stride - 1).map(|memory| (slot, memory)))
    }

    /// Puts back an outbound slot that was taken and not filled.
    #[expect(clippy::cast_possible_truncation, reason = "a slot's number is below SLOTS")]
    pub(crate) fn put_back(&mut self, slot: u32) {
        // A hostile peer may have granted it again meanwhile.
        if self.mine & 1 << slot == 0 {
            self.mine |= 1 << slot;
            self.granted.push(slot as u16);
        }
    }

    /// The first bytes of a slot that a program fills.
    pub(crate) fn filled(&self, slot: u32, len: usize) -> Option<Memory> {
        let offset = self.outbound.slots + self.geometry.stride * slot as usize;
        Memory::of_peer(Arc::clone(&self.segment), offset, len)
    }

    /// Reserves the memory of an outbound slot that is filled for the first time. False: there is
    /// none, and the slot stays for another time.
    #[cold]
    fn reserve_slot(&mut self, slot: u16) -> bool {
        let at = self.outbound.slots + self.geometry.stride * usize::from(slot);
        let is_reserved = self.segment.populate(at, self.geometry.stride).is_ok();
        if is_reserved {
            self.reserved |= 1 << slot;
        } else {
            self.granted.push(slot);
        }
        self.lacks_memory = !is_reserved;
        is_reserved
    }

    /// Address of an outbound slot that `take_granted` gave: room for a largest message and a zero
    /// byte.
    #[inline]
    pub(crate) fn outbound_slot(&self, slot: u32) -> *mut u8 {
        self.segment.bytes(self.outbound.slots + self.geometry.stride * slot as usize, self.geometry.stride)
    }

    /// The first bytes of such a slot.
    pub(crate) fn outbound_bytes(&self, slot: u32, len: usize) -> Mapped<'_> {
        let len = len.min(self.geometry.stride);
        Mapped::of(&self.segment, self.outbound.slots + self.geometry.stride * slot as usize, len)
    }

    /// The bytes of a payload.
    pub(crate) fn inbound_bytes(&self, payload: &InboundPayload) -> Mapped<'_> {
        let offset = self.inbound.slots + self.geometry.stride * payload.slot as usize;
        Mapped::of(&self.segment, offset, payload.len as usize)
    }

    /// The payload in an inbound slot that a frame names, which must have been granted and hold at
    /// least `len` bytes and a zero.
    #[inline]
    pub(crate) fn inbound_slot(&mut self, slot: u32, len: u32) -> std::result::Result<InboundPayload, Violation> {
        let bit = 1u64.checked_shl(slot).ok_or(Violation)?;
        if slot >= SLOTS || self.theirs & bit == 0 || len as usize >= self.geometry.stride {
            return Err(Violation);
        }
        self.theirs &= !bit;
        if len > CROWDING {
            // The peer writes it once its program has returned what this side has sent, and this
            // side reads it before it sends again.
            self.has_answer = true;
            self.grant_reader.prefetch(self.outbound.grants);
        }
        let start = self.segment.bytes(self.inbound.slots + self.geometry.stride * slot as usize, self.geometry.stride);
        Ok(InboundPayload { start, slot, len })
    }

    /// Fills in an event whose payload this is: in place, or copied where the lane is short of
    /// slots. `third`: its third word.
    #[inline(always)]
    pub(crate) fn show(
        &mut self,
        state: &mut EndpointState,
        lane: u32,
        (slot, kind, third): (&Slot, EventKind, u64),
        payload: InboundPayload,
    ) {
        let InboundPayload { start, slot: index, len } = payload;
        let kind = kind as u32;
        if self.is_short() {
            let buffer = state.spill(|buffer| self.copy_payload(start, len, buffer));
            // SAFETY: the buffer has room for `len` bytes and a zero, and stays until the token's
            // release.
            unsafe { slot.fill_payload(kind, state.spilled_at(buffer), Access::Private, len, third) };
            slot.payload.store(PayloadToken::Spill(lane, buffer).token(), Ordering::Relaxed);
            self.grant(index);
        } else {
            // SAFETY: `inbound_slot` has checked that `len` bytes and one more are inside the
            // mapping, which stays until the token's release; no other event has the slot, because
            // it leaves `theirs` there and is granted again only on release.
            unsafe { slot.fill_payload(kind, start, Access::Shared, len, third) };
            slot.payload.store(PayloadToken::Lane(lane, Some(index)).token(), Ordering::Relaxed);
            if self.wants_more() {
                self.grow();
            }
        }
    }

    /// Largest message that a slot holds.
    pub(crate) fn payload_capacity(&self) -> u32 {
        u32::try_from(self.geometry.stride - 1).unwrap_or(0)
    }

    /// Whether a frame lies in the inbound ring.
    #[inline]
    pub(crate) fn has_frame(&self) -> bool {
        self.consumer.peek(self.inbound.ring).is_some()
    }

    /// Whether the peer copies to or from the registration that this word names.
    pub(crate) fn is_protected(&self, word: u64) -> bool {
        hazard::is_protected(self.inbound.hazard, word)
    }

    /// Whether the peer copies to or from any registration.
    pub(crate) fn is_copying(&self) -> bool {
        hazard::is_any_protected(self.inbound.hazard)
    }

    /// The segment, to be sent to the peer.
    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }
}
