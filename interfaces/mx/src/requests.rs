//! The table of requests, and the lists of those that are finished.

use crate::errors::{Code, Error};
use crate::types::{Match, Segments};
use cci_matching::Ticket;
use cci_mem::sync::{AtomicU32, Ordering};

/// A request, until it is consumed.
///
/// # Example
///
/// ```
/// # fn seen(request: cci_mx::Request) {
/// assert_eq!(cci_mx::Request::from_bits(request.bits()), request);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    index: u32,
    life: u32,
}

impl Request {
    /// Returns the request as a number.
    #[must_use]
    pub const fn bits(self) -> u64 {
        (self.life as u64) << 32 | self.index as u64
    }

    /// Returns the request of a number. One that was never given out is refused where it is used.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, life: (bits >> 32) as u32 }
    }

    pub(crate) const fn index(self) -> u32 {
        self.index
    }
}

/// Lives between those with which the requests of two endpoints begin that are opened one after the
/// other: 2^32 / 1.618. Of n endpoints no two begin closer to each other than 2^32 / (5.3 n), where
/// the table that a close leaves counts too: a request of one that was closed names none of its
/// successor's.
const STEP: u32 = 0x9e37_79b9;

/// The life of the first requests of an endpoint that is opened now. A forked child goes on with
/// it: a request of its parent's names nothing there.
fn first_life() -> u32 {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    // Publishes nothing.
    OPENED.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP).wrapping_add(1)
}

/// No request.
pub(crate) const NONE: u32 = u32::MAX;
/// Requests at most.
pub(crate) const MOST_REQUESTS: usize = 1 << 24;
/// In place of the number of a partner: this endpoint itself.
pub(crate) const OWN: u32 = u32::MAX;

/// The ends of a list of finished requests, whose links are pairs: before and behind.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// How a request has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Code,
    /// The number of the partner, or [`OWN`], and its session.
    pub(crate) peer: u32,
    pub(crate) session: u32,
    pub(crate) length: u32,
    pub(crate) copied: u32,
}

/// A receive that reads.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// The index of its request.
    pub(crate) index: u32,
    pub(crate) session: u32,
    /// The partner's request, and the bytes of its message.
    pub(crate) sender: u64,
    pub(crate) length: u32,
}

pub(crate) enum Stage<B> {
    Free { next: u32 },
    Posted { segments: Segments<B>, ticket: Ticket },
    Queued { segments: Segments<B>, peer: u32, session: u32, is_sync: bool },
    Sent { peer: u32, session: u32, length: u32 },
    Offered { peer: u32, session: u32, length: u32, offer: u32 },
    Reading,
    Connecting { peer: u32, key: u32 },
    Done { all: [u32; 2], own: [u32; 2], outcome: Outcome },
}

pub(crate) struct Slot<B> {
    life: u32,
    /// Nobody will ask for it.
    pub(crate) is_forgotten: bool,
    /// Only who has its name asks for it: it is in no list.
    pub(crate) is_hidden: bool,
    pub(crate) has_timer: bool,
    pub(crate) context: u64,
    pub(crate) bits: u64,
    pub(crate) stage: Stage<B>,
}

impl<B> Slot<B> {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done { .. })
    }

    fn links(&mut self, is_all: bool) -> Option<&mut [u32; 2]> {
        match &mut self.stage {
            Stage::Done { all, .. } if is_all => Some(all),
            Stage::Done { own, .. } => Some(own),
            _ => None,
        }
    }
}

/// Context ids: so many bits of the match information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContextBits {
    pub(crate) count: u32,
    pub(crate) shift: u32,
}

impl ContextBits {
    fn id(self, bits: u64) -> usize {
        (bits >> self.shift) as usize & ((1 << self.count) - 1)
    }

    /// Whether a mask compares the whole context id.
    pub(crate) fn check(self, wanted: Match) -> Result<(), Error> {
        if wanted.bits & !wanted.mask != 0 {
            return Err(Error::BadMask);
        }
        let id = if self.count == 0 { 0 } else { ((1_u64 << self.count) - 1) << self.shift };
        if wanted.mask & id == id { Ok(()) } else { Err(Error::BadContextMask) }
    }
}

pub(crate) struct Requests<B> {
    slots: Vec<Slot<B>>,
    /// The life of a new slot.
    first_life: u32,
    free: u32,
    pub(crate) open: usize,
    /// All that are finished, oldest first, but for the last one.
    done: List,
    /// The one that has finished last, if it is in no list yet, or [`NONE`]. Most programs ask for
    /// it next: it is consumed without being entered and taken out again.
    newest: u32,
    /// The same by context id, where there are context ids.
    by_context: Vec<List>,
    pub(crate) context_bits: ContextBits,
    /// Counts requests that finish, for those who sleep.
    pub(crate) changes: u64,
}

impl<B> Requests<B> {
    pub(crate) fn new(context_bits: ContextBits) -> Self {
        let by_context = if context_bits.count == 0 { Vec::new() } else { vec![EMPTY; 1 << context_bits.count] };
        Self {
            slots: Vec::new(),
            first_life: first_life(),
            free: NONE,
            open: 0,
            done: EMPTY,
            newest: NONE,
            by_context,
            context_bits,
            changes: 0,
        }
    }

    /// Makes room for a request, and returns its index; `None`: there is none.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Option<u32> {
        if self.free == NONE { self.reserve_new() } else { Some(self.free) }
    }

    #[cold]
    #[inline(never)]
    fn reserve_new(&mut self) -> Option<u32> {
        let has_room = self.slots.len() < MOST_REQUESTS && self.slots.try_reserve(1).is_ok();
        has_room.then_some(self.slots.len() as u32)
    }

    /// Enters a request where [`Requests::reserve`] has made room. Inlined, so that its stage is
    /// written once, where it stays.
    #[inline(always)]
    pub(crate) fn insert(&mut self, context: u64, bits: u64, stage: Stage<B>) -> Request {
        let index = self.free;
        let Some(slot) = self.slots.get_mut(index as usize) else { return self.insert_new(context, bits, stage) };
        // All of this list are free.
        let Stage::Free { next } = slot.stage else { return self.insert_new(context, bits, stage) };
        (self.free, self.open) = (next, self.open + 1);
        (slot.is_forgotten, slot.is_hidden, slot.has_timer) = (false, false, false);
        (slot.context, slot.bits, slot.stage) = (context, bits, stage);
        Request { index, life: slot.life }
    }

    #[cold]
    #[inline(never)]
    fn insert_new(&mut self, context: u64, bits: u64, stage: Stage<B>) -> Request {
        self.open += 1;
        let index = self.slots.len() as u32;
        let (is_forgotten, is_hidden, has_timer) = (false, false, false);
        let life = self.first_life;
        self.slots.push(Slot { life, is_forgotten, is_hidden, has_timer, context, bits, stage });
        Request { index, life }
    }

    /// Takes a request out of the lists: only who has its name asks for it.
    pub(crate) fn hide(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let (bits, is_done) = (slot.bits, slot.is_done());
        slot.is_hidden = true;
        if is_done {
            self.unlink_done(index, bits);
        }
    }

    /// Enters a request that is finished already.
    #[inline(always)]
    pub(crate) fn insert_done(&mut self, context: u64, bits: u64, outcome: Outcome) -> Request {
        let request = self.insert(context, bits, Stage::Done { all: [NONE; 2], own: [NONE; 2], outcome });
        self.changes += 1;
        self.enter_done(request.index);
        request
    }

    /// A request is finished: the newest one.
    #[inline]
    fn enter_done(&mut self, index: u32) {
        let before = std::mem::replace(&mut self.newest, index);
        if before != NONE {
            self.link_done(before);
        }
    }

    #[inline(never)]
    fn link_done(&mut self, index: u32) {
        let Some(bits) = self.slots.get(index as usize).map(|slot| slot.bits) else { return };
        link(&mut self.slots, &mut self.done, index, true);
        if let Some(list) = self.by_context.get_mut(self.context_bits.id(bits)) {
            link(&mut self.slots, list, index, false);
        }
    }

    /// Takes a finished request out of the lists.
    fn unlink_done(&mut self, index: u32, bits: u64) {
        if index == self.newest {
            self.newest = NONE;
            return;
        }
        unlink(&mut self.slots, &mut self.done, index, true);
        if let Some(list) = self.by_context.get_mut(self.context_bits.id(bits)) {
            unlink(&mut self.slots, list, index, false);
        }
    }

    #[inline]
    pub(crate) fn get(&mut self, request: Request) -> Option<&mut Slot<B>> {
        let slot = self.slots.get_mut(request.index as usize)?;
        (slot.life == request.life && !matches!(slot.stage, Stage::Free { .. })).then_some(slot)
    }

    /// Whether it has not ended.
    pub(crate) fn is_open(&self, request: Request) -> bool {
        let slot = self.slots.get(request.index as usize);
        let slot = slot.filter(|slot| slot.life == request.life && !matches!(slot.stage, Stage::Free { .. }));
        slot.is_some_and(|slot| !slot.is_done())
    }

    /// As [`Requests::get`], unless the program has forgotten it.
    #[inline]
    pub(crate) fn named(&mut self, request: Request) -> Result<&mut Slot<B>, Error> {
        self.get(request).filter(|slot| !slot.is_forgotten).ok_or(Error::BadRequest)
    }

    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> Option<&mut Slot<B>> {
        self.slots.get_mut(index as usize)
    }

    pub(crate) fn name(&self, index: u32) -> Request {
        Request { index, life: self.slots.get(index as usize).map_or(0, |slot| slot.life) }
    }

    /// All that are there, for slow work.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Request, &Slot<B>)> {
        let open = self.slots.iter().enumerate().filter(|(_, slot)| !matches!(slot.stage, Stage::Free { .. }));
        open.map(|(index, slot)| (Request { index: index as u32, life: slot.life }, slot))
    }

    /// Takes a request out, and returns what it was.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Stage<B>> {
        let slot = self.slots.get_mut(index as usize)?;
        let stage = std::mem::replace(&mut slot.stage, Stage::Free { next: self.free });
        slot.life = slot.life.wrapping_add(1);
        self.free = index;
        self.open -= 1;
        Some(stage)
    }

    /// A request has ended: it joins the finished ones, or is gone if it was forgotten. Returns
    /// what it was.
    pub(crate) fn finish(&mut self, index: u32, outcome: Outcome) -> Option<Stage<B>> {
        self.changes += 1;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.is_forgotten {
            return self.remove(index);
        }
        let is_hidden = slot.is_hidden;
        let before = std::mem::replace(&mut slot.stage, Stage::Done { all: [NONE; 2], own: [NONE; 2], outcome });
        if !is_hidden {
            self.enter_done(index);
        }
        Some(before)
    }

    /// Puts a message with these bits into the posted receive at an index, which ends as `fill`
    /// tells.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, index: u32, bits: u64, fill: impl FnOnce(&Segments<B>) -> Outcome) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let Stage::Posted { segments, .. } = &slot.stage else { return };
        let outcome = fill(segments);
        slot.bits = bits;
        if slot.is_forgotten | slot.is_hidden {
            self.finish(index, outcome);
            return;
        }
        slot.stage = Stage::Done { all: [NONE; 2], own: [NONE; 2], outcome };
        self.changes += 1;
        self.enter_done(index);
    }

    /// Whether a request has ended: its index then.
    #[inline]
    pub(crate) fn find_ended(&self, request: Request) -> Option<Result<u32, Error>> {
        let slot = self.slots.get(request.index as usize).filter(|slot| slot.life == request.life);
        match slot {
            Some(slot) if slot.is_forgotten || matches!(slot.stage, Stage::Free { .. }) => Some(Err(Error::BadRequest)),
            Some(slot) if slot.is_done() => Some(Ok(request.index)),
            Some(_) => None,
            None => Some(Err(Error::BadRequest)),
        }
    }

    /// Consumes a finished request: how it has ended, its context and its match bits.
    #[inline(always)]
    pub(crate) fn consume(&mut self, index: u32) -> Option<(Outcome, u64, u64)> {
        let is_newest = index == self.newest;
        if !is_newest {
            self.leave_lists(index);
        }
        let slot = self.slots.get_mut(index as usize)?;
        let Stage::Done { outcome, .. } = slot.stage else { return None };
        let ended = (outcome, slot.context, slot.bits);
        slot.stage = Stage::Free { next: self.free };
        slot.life = slot.life.wrapping_add(1);
        (self.free, self.open) = (index, self.open - 1);
        if is_newest {
            self.newest = NONE;
        }
        Some(ended)
    }

    /// Takes a finished request out of the lists, unless it is hidden.
    #[inline(never)]
    fn leave_lists(&mut self, index: u32) {
        if let Some(slot) = self.slots.get(index as usize).filter(|slot| slot.is_done() && !slot.is_hidden) {
            self.unlink_done(index, slot.bits);
        }
    }

    /// The oldest finished request.
    pub(crate) fn oldest(&self) -> Option<Request> {
        let oldest = if self.done.first == NONE { self.newest } else { self.done.first };
        (oldest != NONE).then(|| self.name(oldest))
    }

    /// The oldest finished request that matches; the mask compares the context id.
    #[inline(always)]
    pub(crate) fn find_done(&mut self, wanted: Match) -> Option<u32> {
        if self.done.first == NONE { self.find_newest(wanted) } else { self.find_older(wanted) }
    }

    #[inline(always)]
    fn find_newest(&self, wanted: Match) -> Option<u32> {
        let newest = self.slots.get(self.newest as usize)?;
        wanted.covers(newest.bits).then_some(self.newest)
    }

    #[inline(never)]
    fn find_older(&mut self, wanted: Match) -> Option<u32> {
        let has_contexts = !self.by_context.is_empty();
        let list = if has_contexts { self.by_context[self.context_bits.id(wanted.bits)] } else { self.done };
        let mut at = list.first;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            if wanted.covers(slot.bits) {
                return Some(at);
            }
            at = slot.links(!has_contexts)?[1];
        }
        self.find_newest(wanted)
    }
}

fn link<B>(slots: &mut [Slot<B>], list: &mut List, index: u32, is_all: bool) {
    let before = std::mem::replace(&mut list.last, index);
    if let Some(own) = slots.get_mut(index as usize).and_then(|slot| slot.links(is_all)) {
        *own = [before, NONE];
    }
    match slots.get_mut(before as usize).and_then(|slot| slot.links(is_all)) {
        Some(links) => links[1] = index,
        None => list.first = index,
    }
}

fn unlink<B>(slots: &mut [Slot<B>], list: &mut List, index: u32, is_all: bool) {
    let Some([prev, next]) = slots.get_mut(index as usize).and_then(|slot| slot.links(is_all)).copied() else { return };
    match slots.get_mut(prev as usize).and_then(|slot| slot.links(is_all)) {
        Some(links) => links[1] = next,
        None => list.first = next,
    }
    match slots.get_mut(next as usize).and_then(|slot| slot.links(is_all)) {
        Some(links) => links[0] = prev,
        None => list.last = prev,
    }
}
