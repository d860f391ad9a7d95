//! Which slots of an endpoint are free, and the queue of events. Private to the holder of the
//! endpoint's lock.

use crate::slot::{Slot, State};
use crate::sync::Ordering;
use std::collections::TryReserveError;

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots that are taken again and again before those that a burst has left are freed: about two
/// bursts of messages.
const FEW: usize = 16;

/// Numbers of slots, first in, first out; room for all of a pool, of which at most twice as much
/// memory is touched as was ever in use. Each message turns it over: a few instructions.
struct Turns {
    /// A power of two of places.
    numbers: Vec<u32>,
    head: usize,
    len: usize,
}

impl Turns {
    fn new(count: usize) -> Result<Self, TryReserveError> {
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(count.next_power_of_two())?;
        numbers.push(NONE);
        Ok(Self { numbers, head: 0, len: 0 })
    }

    #[inline(always)]
    fn at(&mut self, place: usize) -> &mut u32 {
        let mask = self.numbers.len() - 1;
        &mut self.numbers[place & mask]
    }

    #[inline(always)]
    fn front(&mut self) -> Option<u32> {
        if self.len == 0 { None } else { Some(*self.at(self.head)) }
    }

    #[inline]
    fn pop_front(&mut self) -> Option<u32> {
        let number = self.front()?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(number)
    }

    #[inline]
    fn push_back(&mut self, number: u32) {
        if self.len == self.numbers.len() {
            self.grow();
        }
        *self.at(self.head.wrapping_add(self.len)) = number;
        self.len += 1;
    }

    /// Twice as many places, within what `new` has reserved.
    #[cold]
    fn grow(&mut self) {
        let size = self.numbers.len();
        self.numbers.rotate_left(self.head & (size - 1));
        self.head = 0;
        self.numbers.resize(2 * size, NONE);
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let mask = self.numbers.len() - 1;
        (0..self.len).map(move |nth| self.numbers[self.head.wrapping_add(nth) & mask])
    }

    /// Takes those out of the first `count` that were replaced by [`NONE`]. The order of the others
    /// stays.
    fn close_gaps(&mut self, count: usize) {
        let mut to = count;
        for place in (0..count).rev() {
            let number = *self.at(self.head.wrapping_add(place));
            if number != NONE {
                to -= 1;
                *self.at(self.head.wrapping_add(to)) = number;
            }
        }
        self.head = self.head.wrapping_add(to);
        self.len -= to;
    }

    /// The first becomes the last.
    #[inline(always)]
    fn turn(&mut self) {
        let number = *self.at(self.head);
        *self.at(self.head.wrapping_add(self.len)) = number;
        self.head = self.head.wrapping_add(1);
    }
}

/// A class of slots with a limit: those for receiving, those for sending.
pub struct Pool<C: 'static, E: 'static> {
    slots: &'static [Slot<C, E>],
    /// The first that was never taken; its memory is still untouched.
    fresh: usize,
    free: Vec<u32>,
    /// Taken slots, oldest first as far as the sweep has not turned them over.
    taken: Turns,
    /// Slots that the program borrows, or has returned and the sweep has not found: without any,
    /// there is nothing to sweep.
    borrowed: usize,
    limit: usize,
    /// Up to this many taken slots [`Pool::renew`] finds one: the limit, or none.
    renewable: usize,
    /// [`FEW`], or the limit if that is less.
    few: usize,
    /// The one taken last, until it is freed, and unless more than `few` are taken. Where one slot
    /// is taken, that one or none.
    last: Option<&'static Slot<C, E>>,
}

impl<C: Sync, E: Sync> Pool<C, E> {
    /// All slots are free; `limit` of them may be taken at a time.
    ///
    /// # Errors
    ///
    /// No memory for the lists, which never grow later.
    pub fn new(slots: &'static [Slot<C, E>], limit: usize) -> Result<Self, TryReserveError> {
        let (mut free, taken) = (Vec::new(), Turns::new(slots.len())?);
        free.try_reserve_exact(slots.len())?;
        let limit = limit.min(slots.len());
        Ok(Self { slots, fresh: 0, free, taken, borrowed: 0, limit, renewable: limit, few: FEW.min(limit), last: None })
    }

    /// How many may be taken at a time.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The most that `set_limit` allows.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Whether a slot is one of this class.
    #[must_use]
    pub fn has(&self, slot: &Slot<C, E>) -> bool {
        self.slots.as_ptr_range().contains(&std::ptr::from_ref(slot))
    }

    /// As [`Pool::set_limit`], while some slots are not for whoever comes next: [`Pool::renew`]
    /// finds none then.
    pub fn set_limit_without_renewal(&mut self, limit: usize) {
        self.set_limit(limit);
        self.renewable = 0;
    }

    /// Changes the limit; slots above it that are taken stay so until returned.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.slots.len());
        self.renewable = self.limit;
        self.few = FEW.min(self.limit);
        if self.taken.len > self.few {
            self.last = None;
        }
    }

    /// Slots that are taken, as far as the sweep knows.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.taken.len
    }

    /// Slots that the program borrows, or has returned and the sweep has not found.
    #[must_use]
    pub fn borrowed(&self) -> usize {
        self.borrowed
    }

    /// Counts every taken slot as borrowed, for a pool whose slots another one may have handed out:
    /// what is counted too often costs a sweep, what is missed is never found.
    pub fn suppose_borrowed(&mut self) {
        self.borrowed = self.taken.len;
    }

    /// Takes a slot: the one freed last, whose memory is in cache.
    #[inline]
    pub fn take(&mut self) -> Option<&'static Slot<C, E>> {
        if self.taken.len >= self.limit {
            return None;
        }
        let at = match self.free.pop() {
            Some(at) => at as usize,
            None => {
                let at = self.fresh;
                self.slots.get(at)?;
                self.fresh += 1;
                at
            }
        };
        let slot = self.slots.get(at)?;
        let number = u32::try_from(at).ok()?;
        slot.index.store(number, Ordering::Relaxed);
        slot.set_state(State::Taken);
        self.taken.push_back(number);
        self.last = Some(slot).filter(|_| self.taken.len <= self.few);
        Some(slot)
    }

    /// Takes the oldest taken slot once more, if the program has returned it: shown to `released`,
    /// and the youngest from now on. That is the usual case of a program that returns events as
    /// they come, and less work than freeing and taking. Where many are taken, the next oldest is
    /// freed if it was returned too, so that they become few again.
    #[inline(always)]
    pub fn renew(&mut self, mut released: impl FnMut(&'static Slot<C, E>)) -> Option<&'static Slot<C, E>> {
        if self.borrowed == 0 || self.taken.len > self.renewable {
            return None;
        }
        let at = self.taken.front()?;
        let slot = &self.slots[at as usize];
        if slot.state() != State::Returned {
            return None;
        }
        released(slot);
        slot.set_state(State::Taken);
        self.borrowed -= 1;
        if self.taken.len > 1 {
            self.taken.turn();
        }
        if self.taken.len > FEW {
            self.sweep(1, released);
        } else {
            self.last = Some(slot);
        }
        Some(slot)
    }

    /// Checks the oldest taken slots, `steps` at most. Shows each returned slot to `released` and
    /// frees it. A slot that the program borrows goes to the back. A slot that the library still
    /// uses ends the sweep: operations end in order, so the slots behind it are mostly in use too.
    #[inline]
    pub fn sweep(&mut self, steps: usize, mut released: impl FnMut(&'static Slot<C, E>)) {
        for _ in 0..steps.min(self.borrowed) {
            let Some(at) = self.taken.front() else { return };
            let slot = &self.slots[at as usize];
            match slot.state() {
                State::Returned => {
                    self.taken.pop_front();
                    self.free_slot(at, slot, &mut released);
                }
                State::Borrowed => {
                    self.taken.turn();
                }
                State::Free | State::Taken | State::Ended => return,
            }
        }
    }

    /// Takes the slot that was taken last once more, if the program has returned it: the usual case
    /// where few are taken. What it held is nothing that others wait for, since older ones may stay
    /// unseen as long as this goes on.
    #[inline(always)]
    pub fn take_last(&mut self) -> Option<&'static Slot<C, E>> {
        let slot = self.last?;
        if slot.state() != State::Returned {
            return None;
        }
        slot.set_state(State::Taken);
        self.borrowed -= 1;
        Some(slot)
    }

    /// The slot that was taken last, if it is the only one: in whatever state it is.
    #[inline(always)]
    #[must_use]
    pub fn sole(&self) -> Option<&'static Slot<C, E>> {
        self.last.filter(|_| self.taken.len == 1)
    }

    /// [`Pool::sole`], if the program has returned it. A caller that fills it and hands it to the
    /// program at once, by [`Slot::hand_out_again`], has taken and handed out a slot; the pool's
    /// counts stay right.
    #[inline(always)]
    #[must_use]
    pub fn sole_returned(&self) -> Option<&'static Slot<C, E>> {
        let slot = self.last?;
        (slot.state() == State::Returned && self.taken.len == 1).then_some(slot)
    }

    /// Frees all slots that were returned, wherever they are. The order of the others stays:
    /// operations end in order, and a slot out of place would have to be looked for again and
    /// again.
    #[cold]
    pub fn sweep_all(&mut self, released: impl FnMut(&'static Slot<C, E>)) {
        let count = self.free_returned(released);
        self.taken.close_gaps(count);
    }

    /// Frees all slots that were returned, and leaves a gap for each among those that are taken.
    /// Returns at how many it has looked: it ends at the last that the program has or had, because
    /// a program that takes events one by one, while thousands wait, has the oldest.
    fn free_returned(&mut self, mut released: impl FnMut(&'static Slot<C, E>)) -> usize {
        let mut left = self.borrowed;
        for place in 0..self.taken.len {
            if left == 0 {
                return place;
            }
            let place = self.taken.head.wrapping_add(place);
            let at = *self.taken.at(place);
            let slot = &self.slots[at as usize];
            match slot.state() {
                State::Returned => {
                    left -= 1;
                    *self.taken.at(place) = NONE;
                    self.free_slot(at, slot, &mut released);
                }
                State::Borrowed => left -= 1,
                State::Free | State::Taken | State::Ended => {}
            }
        }
        self.taken.len
    }

    #[inline]
    fn free_slot(&mut self, at: u32, slot: &'static Slot<C, E>, released: &mut impl FnMut(&'static Slot<C, E>)) {
        released(slot);
        slot.set_state(State::Free);
        if self.last.is_some_and(|last| std::ptr::eq(last, slot)) {
            self.last = None;
        }
        self.free.push(at);
        self.borrowed = self.borrowed.saturating_sub(1);
    }

    /// Whether all slots that may be taken are with the program.
    #[must_use]
    pub fn all_borrowed(&self) -> bool {
        self.taken.len >= self.limit && self.taken_are_borrowed()
    }

    /// Whether all taken slots are with the program.
    #[must_use]
    pub fn taken_are_borrowed(&self) -> bool {
        self.taken.iter().all(|at| self.slots[at as usize].state() == State::Borrowed)
    }

    /// Hands a slot to the program, which borrows it.
    #[inline]
    pub fn hand_out(&mut self, slot: &'static Slot<C, E>) {
        slot.set_state(State::Borrowed);
        self.borrowed += 1;
    }

    /// Returns a slot that never reached the program, or whose waiting thread has seen its end.
    pub fn release(&mut self, slot: &'static Slot<C, E>) {
        slot.set_state(State::Returned);
        self.borrowed += 1;
    }
}

/// Events in the order in which they came, linked through their slots.
pub struct Queue<C: 'static, E: 'static> {
    first: Option<&'static Slot<C, E>>,
    last: Option<&'static Slot<C, E>>,
    slots: &'static [Slot<C, E>],
}

impl<C: Sync, E: Sync> Queue<C, E> {
    /// Empty, over all slots of an endpoint; `Slot::next` counts in these, of which there are fewer
    /// than 2^32 - 1.
    #[must_use]
    pub fn new(slots: &'static [Slot<C, E>]) -> Self {
        Self { first: None, last: None, slots }
    }

    /// Whether no event waits.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The event that was appended last, if one waits.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<&'static Slot<C, E>> {
        self.last
    }

    /// Appends an event.
    #[inline]
    pub fn push(&mut self, slot: &'static Slot<C, E>) {
        slot.next.store(NONE, Ordering::Relaxed);
        match self.last {
            Some(last) => last.next.store(self.number(slot), Ordering::Relaxed),
            None => self.first = Some(slot),
        }
        self.last = Some(slot);
    }

    /// Inserts an event behind one that waits, or as the oldest if that one does not wait.
    pub fn insert_behind(&mut self, before: Option<&'static Slot<C, E>>, slot: &'static Slot<C, E>) {
        let waits = |other: &&'static Slot<C, E>| self.iter().any(|queued| std::ptr::eq(queued, *other));
        let Some(before) = before.filter(waits) else {
            let next = self.first.map_or(NONE, |first| self.number(first));
            slot.next.store(next, Ordering::Relaxed);
            self.last = self.last.or(Some(slot));
            self.first = Some(slot);
            return;
        };
        slot.next.store(before.next.load(Ordering::Relaxed), Ordering::Relaxed);
        before.next.store(self.number(slot), Ordering::Relaxed);
        if self.last.is_some_and(|last| std::ptr::eq(last, before)) {
            self.last = Some(slot);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &'static Slot<C, E>> + '_ {
        let next = |slot: &&'static Slot<C, E>| self.slots.get(slot.next.load(Ordering::Relaxed) as usize);
        std::iter::successors(self.first, next)
    }

    #[expect(clippy::cast_possible_truncation, reason = "`new` says how many there are")]
    fn number(&self, slot: &Slot<C, E>) -> u32 {
        let offset = std::ptr::from_ref(slot).addr() - self.slots.as_ptr().addr();
        (offset / size_of::<Slot<C, E>>()) as u32
    }

    /// Takes the oldest event.
    #[inline]
    pub fn pop(&mut self) -> Option<&'static Slot<C, E>> {
        let slot = self.first?;
        match slot.next.load(Ordering::Relaxed) {
            NONE => (self.first, self.last) = (None, None),
            next => self.first = self.slots.get(next as usize),
        }
        Some(slot)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::region::Regions;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn an_event_is_inserted_behind_one_that_waits_or_as_the_oldest() {
        static SLOTS: Regions<Slot<u8, u8>> = Regions::new();
        let slots = SLOTS.take(6).expect("address space");
        let mut queue = Queue::new(slots);
        queue.insert_behind(None, &slots[2]);
        queue.push(&slots[4]);
        queue.insert_behind(Some(&slots[2]), &slots[3]);
        queue.insert_behind(Some(&slots[4]), &slots[5]);
        // The last one does not wait.
        queue.insert_behind(Some(&slots[0]), &slots[1]);
        queue.push(&slots[0]);
        for number in [1, 2, 3, 4, 5, 0] {
            assert!(queue.pop().is_some_and(|slot| std::ptr::eq(slot, &raw const slots[number])), "{number}");
        }
        assert!(queue.is_empty() && queue.last().is_none() && queue.pop().is_none());
    }

    /// Of a program that takes one of many events, returns it, and takes the next.
    #[test]
    fn a_sweep_of_all_looks_at_what_the_program_had_and_not_at_what_waits() {
        const MANY: usize = 1000;
        static SLOTS: Regions<Slot<u8, u8>> = Regions::new();
        let slots = SLOTS.take(MANY).expect("address space");
        let mut pool = Pool::new(slots, MANY).expect("memory");
        let waiting: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        for (nth, slot) in waiting[..100].iter().enumerate() {
            pool.hand_out(slot);
            assert!(slot.give_back());
            let count = pool.free_returned(|freed| assert!(std::ptr::eq(freed, *slot)));
            pool.taken.close_gaps(count);
            assert_eq!((count, pool.in_use(), pool.borrowed()), (1, MANY - 1, 0));
            assert!(pool.taken.iter().take(MANY - 1 - nth).eq((nth as u32 + 1)..MANY as u32), "in their order");
            assert!(pool.take().is_some(), "the one that was freed");
        }
        assert_eq!(pool.free_returned(|_| panic!("none was returned")), 0);
        SLOTS.give(slots);
    }

    proptest! {
        /// In the order of a queue, wherever it wraps and grows, and without more memory than it
        /// began with.
        #[test]
        fn turns_are_a_queue(count in 0usize..20, steps in prop::collection::vec(0u8..4, 0..300)) {
            let mut turns = Turns::new(count).expect("memory");
            let capacity = turns.numbers.capacity();
            let mut oracle = VecDeque::new();
            for (number, step) in (0u32..).zip(steps) {
                match step {
                    0 | 1 if oracle.len() < count => {
                        turns.push_back(number);
                        oracle.push_back(number);
                    }
                    2 => prop_assert_eq!(turns.pop_front(), oracle.pop_front()),
                    _ if !oracle.is_empty() => {
                        turns.turn();
                        oracle.rotate_left(1);
                    }
                    _ => {}
                }
                prop_assert_eq!(turns.front(), oracle.front().copied());
                prop_assert_eq!(turns.iter().collect::<VecDeque<_>>(), oracle.clone());
            }
            prop_assert_eq!(turns.numbers.capacity(), capacity);
        }
    }
}
