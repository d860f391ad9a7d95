//! What all lanes of an endpoint share.

use crate::descriptors::Control;
use crate::lane::admission::Contention;
use crate::lane::table::Redirected;
use crate::memory::registry::Registry;
use cci_mem::address_space::Tag;
use cci_mem::barrier::Pairing;
use cci_mem::hints::{self, Hints};
use cci_mem::segment::Segment;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, MAX_REQUEST};
use cci_transport::{Connection, Core, ExpectedClients, PendingEvents, Slot};
use rustix::fd::BorrowedFd;

/// What all lanes of an endpoint share. The endpoint has it beside its lanes, so that a lane can be
/// held with it.
pub(crate) struct EndpointState {
    pub(crate) uri: String,
    /// Random number of this endpoint, so that a peer knows it from others.
    pub(crate) id: [u64; 2],
    pub(crate) max_send_size: u32,
    /// It is alive while its program makes no calls.
    pub(crate) is_present: bool,
    pub(crate) pairing: Pairing,
    pub(crate) registry: Registry,
    pub(crate) control: Control,
    /// By what peers know this process's address space; without it they do not use process_vm.
    pub(crate) tag: Option<Tag>,
    /// Bytes of memory that this machine has.
    pub(crate) physical_memory: u64,
    /// Milliseconds; sampled on empty polls.
    pub(crate) now: u64,
    /// Buffers of messages that waited, to be used again.
    pub(crate) buffers: Vec<Box<[u8]>>,
    /// What slots that the program has returned held.
    pub(crate) released: Released,
    /// Events for which no slot was free.
    pub(crate) pending_events: PendingEvents,
    /// With deadlines in milliseconds.
    pub(crate) expected: ExpectedClients<u64>,
    /// Clients of this endpoint that were sent to another one, to be asked for there.
    pub(crate) redirected: Vec<Redirected>,
    /// Lanes whose peer broke the protocol.
    pub(crate) protocol_errors: Vec<u32>,
    /// Lanes that the clock is to look at from now on.
    pub(crate) newly_timed: Vec<u32>,
    /// Lanes that calls are to poll from now on.
    pub(crate) newly_hot: Vec<u32>,
    /// This endpoint's ready bitmap: peers set the bits of cold lanes that hold something.
    pub(crate) ready_page: Segment,
    pub(crate) hints: Hints,
    /// A lane became usable, or ceased to be, or those that made way for another may go on.
    pub(crate) lanes_changed: bool,
    /// Why this endpoint does not use process_vm, should the configuration say so.
    pub(crate) no_process_vm: Option<String>,
    /// Payloads that were copied out of a lane short of slots, by the number in their token.
    pub(crate) spilled: Vec<Option<Box<[u8]>>>,
    pub(crate) spilled_free: Vec<u32>,
    /// Lanes that refuse what lies in their ring.
    pub(crate) refusing: u32,
    /// Who comes first where slots are few, and whether connections are paused.
    pub(crate) contention: Contention,
    /// Peers wait for memory for large messages.
    pub(crate) landings_wait: bool,
    /// Something that moves a deadline has happened since the timer was set.
    pub(crate) deadlines_moved: bool,
    /// The system has refused to set the timer to the next deadline.
    pub(crate) timer_refused: bool,
    /// Frames whose connection does not exist (any more).
    pub(crate) strays: u64,
}

impl EndpointState {
    /// Whether frames and packets have caused something that a call is to do.
    #[inline]
    pub(crate) fn has_deferred(&self) -> bool {
        let lists = self.newly_timed.len() | self.newly_hot.len() | self.protocol_errors.len() | self.redirected.len();
        lists != 0 || self.lanes_changed
    }

    /// The descriptors that every peer gets: registry and ready bitmap.
    pub(crate) fn files(&self) -> rustix::io::Result<[BorrowedFd<'_>; 2]> {
        Ok([self.registry.chunks().first().file_of()?, self.ready_page.file_of()?])
    }

    /// Whether a peer has set a hint since the last one was taken.
    #[inline(always)]
    pub(crate) fn has_new_hint(&self) -> bool {
        self.ready_page.words64(0, 1)[0].load(Ordering::Relaxed) != 0
    }

    /// The number of a lane that perhaps holds something.
    #[inline(always)]
    pub(crate) fn next_hint(&mut self) -> Option<u32> {
        self.hints.next(self.ready_page.words64(0, hints::WORDS))
    }

    /// A buffer for a message that waits.
    pub(crate) fn buffer(&mut self) -> Box<[u8]> {
        // One more for the zero byte of a message that a program may print. Connection requests fit
        // too.
        let size = (self.max_send_size as usize).max(MAX_REQUEST) + 1;
        self.buffers.pop().unwrap_or_else(|| vec![0; size].into_boxed_slice())
    }

    /// Keeps a payload in a buffer of the endpoint, and says under which number.
    pub(crate) fn spill(&mut self, fill: impl FnOnce(&mut [u8])) -> u32 {
        let mut buffer = self.buffer();
        fill(&mut buffer);
        let at = match self.spilled_free.pop() {
            Some(at) => at as usize,
            None => {
                self.spilled.push(None);
                self.spilled.len() - 1
            }
        };
        self.spilled[at] = Some(buffer);
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Address of a spilled payload.
    pub(crate) fn spilled_at(&mut self, number: u32) -> *mut u8 {
        let buffer = self.spilled.get_mut(number as usize).and_then(Option::as_mut);
        buffer.map_or(std::ptr::null_mut(), |buffer| buffer.as_mut_ptr())
    }

    /// Takes back a spilled payload's buffer.
    pub(crate) fn unspill(&mut self, number: u32) {
        if let Some(buffer) = self.spilled.get_mut(number as usize).and_then(Option::take) {
            self.spilled_free.push(number);
            self.buffers.push(buffer);
        }
    }

    /// Queues an event about a connection, now or as soon as a slot is free.
    pub(crate) fn queue_event(&mut self, core: &mut Core, kind: EventKind, cell: &'static Connection) {
        self.deadlines_moved |= !self.pending_events.queue(core, kind, cell);
    }
}

/// Small messages of one lane that are given back together, at the latest.
const TOGETHER: u32 = 16;

/// What slots that the program has returned held: tokens of [`PayloadToken`], to be given back to
/// their lanes. Most are those of small messages of one lane, which are only counted.
#[derive(Default)]
pub(crate) struct Released {
    tokens: Vec<u64>,
    same: u64,
    count: u32,
}

impl Released {
    pub(crate) fn new() -> Self {
        Self { tokens: Vec::with_capacity(1024), same: 0, count: 0 }
    }

    /// Adds what a returned slot held.
    #[inline]
    pub(crate) fn add(&mut self, slot: &'static Slot) {
        let token = slot.payload.load(Ordering::Relaxed);
        if token == self.same && token != 0 {
            self.count += 1;
        } else if token != 0 {
            self.add_other(token);
        }
    }

    fn add_other(&mut self, token: u64) {
        if self.count == 0 && matches!(PayloadToken::from_token(token), Some(PayloadToken::Lane(_, None))) {
            (self.same, self.count) = (token, 1);
        } else {
            self.tokens.push(token);
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.tokens.is_empty()
    }

    /// Whether it is time to give back: what others may wait for, or so many small messages that it
    /// costs little for each.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.count >= TOGETHER || !self.tokens.is_empty()
    }

    /// Takes something that was held, and how many times.
    pub(crate) fn take(&mut self) -> Option<(PayloadToken, u32)> {
        let (token, count) = match std::mem::take(&mut self.count) {
            0 => (self.tokens.pop()?, 1),
            count => (self.same, count),
        };
        Some((PayloadToken::from_token(token)?, count))
    }
}

/// What a receive slot holds, to be given back when the program has returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadToken {
    /// A lane and one of its payload slots, or only the lane: all receive slots count for the lane
    /// that they came by.
    Lane(u32, Option<u32>),
    /// A lane and a buffer of [`EndpointState::spilled`].
    Spill(u32, u32),
}

const LANE: u64 = 1 << 63;
const SPILL: u64 = 1 << 62;
const TOKEN_NO_SLOT: u64 = 0xffff;

impl PayloadToken {
    /// As it stands in the slot; never 0, which stands for nothing.
    pub(crate) fn token(self) -> u64 {
        match self {
            Self::Lane(lane, slot) => LANE | u64::from(lane) << 16 | slot.map_or(TOKEN_NO_SLOT, u64::from),
            Self::Spill(lane, number) => SPILL | u64::from(lane) << 24 | u64::from(number),
        }
    }

    /// From a slot.
    #[expect(clippy::cast_possible_truncation, reason = "each field is cut out of the word")]
    pub(crate) fn from_token(token: u64) -> Option<Self> {
        if token & LANE != 0 {
            let slot = token & TOKEN_NO_SLOT;
            Some(Self::Lane((token >> 16) as u32, (slot != TOKEN_NO_SLOT).then_some(slot as u32)))
        } else {
            (token & SPILL != 0).then_some(Self::Spill((token >> 24) as u32, token as u32 & 0xff_ffff))
        }
    }
}
