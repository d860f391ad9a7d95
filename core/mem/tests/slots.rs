//! Slots, pools and queues against oracles.
#![cfg(not(loom))]

use cci_mem::pool::{Pool, Queue};
use cci_mem::region::Regions;
use cci_mem::ring::{BODY, BODY_WORDS};
use cci_mem::slot::{Access, State};
use cci_mem::sync::Ordering;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Endpoints and connections have no part in these tests.
type Slot = cci_mem::slot::Slot<u8, u8>;

static SLOTS: Regions<Slot> = Regions::new();

/// An array of fresh slots, given back when the test case ends.
struct Array(&'static [Slot]);

impl Array {
    fn new(count: usize) -> Self {
        Self(SLOTS.take(count).expect("address space"))
    }

    fn slots(&self, count: usize) -> &'static [Slot] {
        &self.0[..count]
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        SLOTS.give(self.0);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take,
    Renew,
    /// Hands one of the taken slots to the program.
    HandOut(prop::sample::Index),
    /// Gives back one of the taken slots, as the program does.
    GiveBack(prop::sample::Index),
    /// Releases one of the taken slots, as the library does.
    Release(prop::sample::Index),
    Sweep(usize),
    SweepAll,
    SetLimit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Take),
        2 => Just(Step::Renew),
        3 => any::<prop::sample::Index>().prop_map(Step::GiveBack),
        1 => any::<prop::sample::Index>().prop_map(Step::Release),
        3 => any::<prop::sample::Index>().prop_map(Step::HandOut),
        2 => (0usize..40).prop_map(Step::Sweep),
        1 => Just(Step::SweepAll),
        1 => (0usize..40).prop_map(Step::SetLimit),
    ];
    // Miri takes a thousand times as long.
    prop::collection::vec(step, 0..if cfg!(miri) { 30 } else { 200 })
}

/// What a pool should look like from outside.
struct Oracle {
    pool: Pool<u8, u8>,
    taken: BTreeMap<u32, &'static Slot>,
    returned: BTreeSet<u32>,
    limit: usize,
}

impl Oracle {
    fn take(&mut self) -> Result<(), TestCaseError> {
        let taken = self.pool.take();
        prop_assert_eq!(taken.is_some(), self.taken.len() + self.returned.len() < self.limit);
        if let Some(slot) = taken {
            let index = slot.index.load(Ordering::Relaxed);
            prop_assert_eq!(slot.state(), State::Taken);
            prop_assert!(!self.returned.contains(&index), "taken before it was swept");
            prop_assert!(self.taken.insert(index, slot).is_none(), "taken twice");
        }
        Ok(())
    }

    fn renew(&mut self) -> Result<(), TestCaseError> {
        let within = self.pool.in_use() <= self.limit;
        let mut seen = Vec::new();
        let renewed = self.pool.renew(|slot| seen.push(slot.index.load(Ordering::Relaxed)));
        prop_assert_eq!(renewed.is_some(), !seen.is_empty());
        prop_assert!(seen.len() <= 2, "one used again, and one freed");
        prop_assert!(within || seen.is_empty(), "one more than the limit");
        let first = seen.first().copied();
        self.freed(seen)?;
        if let Some(slot) = renewed {
            let index = slot.index.load(Ordering::Relaxed);
            prop_assert_eq!(Some(index), first, "the one used again is shown first");
            prop_assert_eq!(slot.state(), State::Taken);
            prop_assert!(self.taken.insert(index, slot).is_none(), "taken twice");
        }
        Ok(())
    }

    fn pick_taken(&self, at: prop::sample::Index) -> Option<(u32, &'static Slot)> {
        let nth = (!self.taken.is_empty()).then(|| at.index(self.taken.len()))?;
        self.taken.iter().nth(nth).map(|(index, slot)| (*index, *slot))
    }

    fn sweep(&mut self, steps: usize) -> Result<(), TestCaseError> {
        let mut freed = Vec::new();
        self.pool.sweep(steps, |slot| freed.push(slot.index.load(Ordering::Relaxed)));
        prop_assert!(freed.len() <= steps);
        self.freed(freed)?;
        let all_back_or_held = self.taken.values().all(|slot| slot.state() == State::Borrowed);
        prop_assert!(
            steps < self.pool.capacity() || !all_back_or_held || self.returned.is_empty(),
            "a returned slot was passed over although the library used none"
        );
        Ok(())
    }

    fn sweep_all(&mut self) -> Result<(), TestCaseError> {
        let mut freed = Vec::new();
        self.pool.sweep_all(|slot| freed.push(slot.index.load(Ordering::Relaxed)));
        self.freed(freed)?;
        prop_assert!(self.returned.is_empty(), "a full sweep left a returned slot");
        Ok(())
    }

    fn freed(&mut self, freed: Vec<u32>) -> Result<(), TestCaseError> {
        for index in freed {
            prop_assert!(self.returned.remove(&index), "freed although nobody returned it");
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Take => self.take()?,
            Step::Renew => self.renew()?,
            Step::HandOut(at) => {
                if let Some((_, slot)) = self.pick_taken(at)
                    && slot.state() == State::Taken
                {
                    self.pool.hand_out(slot);
                }
            }
            Step::GiveBack(at) => {
                if let Some((index, slot)) = self.pick_taken(at) {
                    let borrowed = slot.state() == State::Borrowed;
                    prop_assert!(borrowed || !slot.give_back(), "given back without having been handed to the program");
                    if !borrowed {
                        self.pool.hand_out(slot);
                    }
                    prop_assert!(slot.give_back());
                    prop_assert!(!slot.give_back(), "given back twice");
                    self.taken.remove(&index);
                    self.returned.insert(index);
                }
            }
            Step::Release(at) => {
                if let Some((index, slot)) = self.pick_taken(at) {
                    self.pool.release(slot);
                    self.taken.remove(&index);
                    self.returned.insert(index);
                }
            }
            Step::Sweep(steps) => self.sweep(steps)?,
            Step::SweepAll => self.sweep_all()?,
            Step::SetLimit(limit) => {
                self.pool.set_limit(limit);
                self.limit = limit.min(self.pool.capacity());
                prop_assert_eq!(self.pool.limit(), self.limit);
            }
        }
        prop_assert_eq!(self.pool.in_use(), self.taken.len() + self.returned.len());
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_pool_hands_out_each_slot_once_and_loses_none(capacity in 1usize..32, limit in 0usize..40, steps in steps()) {
        let array = Array::new(capacity);
        let slots = array.slots(capacity);
        let limit_now = limit.min(capacity);
        let pool = Pool::new(slots, limit).expect("memory");
        let mut oracle = Oracle { pool, taken: BTreeMap::new(), returned: BTreeSet::new(), limit: limit_now };
        for step in steps {
            oracle.step(step)?;
        }
        // At quiescence every slot is there again.
        for slot in std::mem::take(&mut oracle.taken).into_values() {
            if slot.state() != State::Borrowed {
                oracle.pool.hand_out(slot);
            }
            prop_assert!(slot.give_back());
            oracle.returned.insert(slot.index.load(Ordering::Relaxed));
        }
        oracle.sweep_all()?;
        prop_assert_eq!(oracle.pool.in_use(), 0);
        oracle.step(Step::SetLimit(capacity))?;
        for _ in 0..=capacity {
            oracle.take()?;
        }
        prop_assert_eq!(oracle.taken.len(), capacity);
    }

    #[test]
    fn a_queue_is_first_in_first_out(steps in prop::collection::vec(any::<Option<prop::sample::Index>>(), 0..200)) {
        let array = Array::new(16);
        let slots = array.slots(16);
        let mut queue = Queue::new(slots);
        let mut oracle = VecDeque::new();
        let mut idle: Vec<usize> = (0..slots.len()).collect();
        for step in steps {
            match step {
                Some(at) if !idle.is_empty() => {
                    let number = idle.swap_remove(at.index(idle.len()));
                    queue.push(&slots[number]);
                    oracle.push_back(number);
                }
                _ => {
                    let popped = queue.pop().map(|slot| slots.iter().position(|other| std::ptr::eq(other, slot)));
                    let expected = oracle.pop_front();
                    prop_assert_eq!(popped, expected.map(Some));
                    idle.extend(expected);
                }
            }
            prop_assert_eq!(queue.is_empty(), oracle.is_empty());
        }
    }

    /// A body of every length arrives in a slot, ends with a zero byte whatever stood behind it,
    /// and a length that no sender of this library writes is cut.
    #[test]
    fn an_inline_body_arrives_and_ends_with_zero(body in any::<[u64; BODY_WORDS]>(), third in any::<u64>(), long in 57usize..300) {
        let array = Array::new(1);
        let slot = &array.slots(1)[0];
        let bytes: Vec<u8> = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
        for asked in (0..=BODY).chain([long]) {
            let len = asked.min(BODY);
            let asked_for: [Cell<u32>; BODY_WORDS] = std::array::from_fn(|_| Cell::new(0));
            slot.fill_inline(2, asked, third, |at| {
                asked_for[at].set(asked_for[at].get() + 1);
                body[at]
            });
            // The words are a peer's to change at any time.
            for (at, times) in asked_for.iter().enumerate() {
                prop_assert_eq!(times.get(), u32::from(8 * at < len), "word {} of {} bytes", at, len);
            }
            prop_assert_eq!((slot.kind(), slot.detail() as usize, slot.words()[1]), (2, len, third));
            let mut copy = [0xaa; BODY + 8];
            // SAFETY: the payload is in this slot, which no other thread fills.
            prop_assert_eq!(unsafe { slot.copy_payload(&mut copy) }, len);
            prop_assert_eq!(&copy[..len], &bytes[..len]);
            prop_assert!(copy[len..].iter().all(|byte| *byte == 0xaa), "copied more than the message");
            let mut part = [0xaa; 5];
            // SAFETY: as above.
            prop_assert_eq!(unsafe { slot.copy_payload(&mut part) }, len.min(5));
            // SAFETY: the payload is in this slot, and nobody writes.
            prop_assert_eq!(unsafe { slot.private_payload() }, Some(&bytes[..len]));
            let address = usize::try_from(slot.words()[0]).expect("an address");
            prop_assert_eq!(address % 8, 0, "programs are told that payload is aligned");
            // SAFETY: the byte after the payload is in this slot too, by `fill_inline`.
            let end = unsafe { std::ptr::with_exposed_provenance::<u8>(address + len).read() };
            prop_assert_eq!(end, 0, "no zero after {} bytes", len);
        }
    }
}

/// A program that holds every slot is told so; a slot in the queue, or one that is back already, is
/// not held.
#[test]
fn all_slots_are_borrowed_when_the_program_holds_them() {
    let array = Array::new(3);
    let mut pool = Pool::new(array.slots(3), 2).expect("memory");
    assert!(!pool.all_borrowed());
    let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
    assert_eq!(taken.len(), 2);
    assert!(!pool.all_borrowed(), "both are still the library's");
    taken.iter().for_each(|slot| pool.hand_out(slot));
    assert!(pool.all_borrowed());
    pool.set_limit(3);
    assert!(!pool.all_borrowed(), "one more may be taken");
    pool.set_limit(1);
    assert!(pool.all_borrowed());
    assert!(taken[1].give_back());
    assert!(!pool.all_borrowed(), "not swept yet, but back");
}

/// The slot freed last is in cache: it is used first.
#[test]
fn the_slot_freed_last_is_used_first() {
    let array = Array::new(4);
    let mut pool = Pool::new(array.slots(4), 4).expect("memory");
    let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
    assert_eq!(taken.len(), 4);
    for slot in [taken[2], taken[0]] {
        pool.release(slot);
        pool.sweep_all(|_| ());
    }
    assert!(pool.take().is_some_and(|slot| std::ptr::eq(slot, taken[0])));
    assert!(pool.take().is_some_and(|slot| std::ptr::eq(slot, taken[2])));
}

/// A program that returns what it gets keeps using the oldest.
#[test]
fn the_oldest_is_used_again_once_it_is_back() {
    let array = Array::new(4);
    let mut pool = Pool::new(array.slots(4), 4).expect("memory");
    let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
    assert!(pool.renew(|_| ()).is_none(), "nobody has returned anything");
    taken.iter().for_each(|slot| pool.hand_out(slot));
    assert!(taken[1].give_back());
    assert!(pool.renew(|_| ()).is_none(), "the oldest is still the program's");
    assert!(taken[0].give_back());
    let mut released = Vec::new();
    let renewed = pool.renew(|slot| released.push(std::ptr::from_ref(slot))).expect("the oldest is back");
    assert!(std::ptr::eq(renewed, taken[0]) && renewed.state() == State::Taken);
    assert_eq!(released, [std::ptr::from_ref(taken[0])]);
    assert_eq!((pool.in_use(), pool.borrowed()), (4, 3));
    pool.set_limit(2);
    assert!(pool.renew(|_| ()).is_none(), "more are taken than may be");
}

/// What a burst has taken is freed by the way, until few are left.
#[test]
fn many_become_few_again() {
    const MANY: usize = if cfg!(miri) { 60 } else { 1000 };
    let array = Array::new(MANY);
    let mut pool = Pool::new(array.slots(MANY), MANY).expect("memory");
    let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
    taken.iter().for_each(|slot| pool.hand_out(slot));
    assert!(taken.iter().all(|slot| slot.give_back()));
    for _ in 0..MANY {
        let slot = pool.renew(|_| ()).expect("the oldest is back");
        pool.hand_out(slot);
        assert!(slot.give_back());
    }
    assert_eq!(pool.in_use(), 16);
}

/// Memory of slots that were never taken stays untouched: the pool makes new ones only when none
/// was freed.
#[test]
fn a_pool_reuses_before_it_touches_fresh_memory() {
    let array = Array::new(1000);
    let mut pool = Pool::new(array.slots(1000), 1000).expect("memory");
    for _ in 0..100 {
        let slot = pool.take().expect("a slot");
        assert_eq!(slot.index.load(Ordering::Relaxed), 0);
        pool.release(slot);
        pool.sweep(2, |_| ());
    }
}

#[test]
fn the_public_part_of_a_slot_is_where_programs_read_it() {
    let array = Array::new(1);
    let slot = &array.slots(1)[0];
    slot.fill(7, 9, [11, 13]);
    assert_eq!((slot.kind(), slot.detail(), slot.words()), (7, 9, [11, 13]));
    let start = std::ptr::from_ref(slot).cast::<u32>();
    // SAFETY: the first 24 bytes of a slot are its event, and nobody writes now.
    let event: [u32; 6] = std::array::from_fn(|at| unsafe { start.add(at).read() });
    let words = [11u64, 13].map(u64::to_ne_bytes).concat();
    assert_eq!(event[..2], [7, 9]);
    assert_eq!(event[2..].iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>(), words);
}

/// A slot that is alone may be filled again without the pool; one beside it, a limit of 0, or a
/// program that still has it forbids that.
#[test]
fn only_a_sole_slot_that_was_returned_is_handed_out_again() {
    let array = Array::new(4);
    let mut pool = Pool::new(array.slots(4), 4).expect("memory");
    assert!(pool.sole().is_none() && pool.sole_returned().is_none(), "nothing is taken");
    let first = pool.take().expect("a slot");
    pool.hand_out(first);
    assert!(pool.sole().is_some_and(|slot| std::ptr::eq(slot, first)));
    assert!(pool.sole_returned().is_none(), "the program has it");
    assert!(first.give_back());
    for _ in 0..3 {
        let again = pool.sole_returned().expect("it is back");
        assert!(std::ptr::eq(again, first));
        again.hand_out_again();
        assert_eq!((again.state(), pool.in_use(), pool.borrowed()), (State::Borrowed, 1, 1));
        assert!(pool.sole_returned().is_none() && again.give_back());
    }
    let second = pool.take().expect("a slot");
    assert!(pool.sole().is_none() && pool.sole_returned().is_none(), "two are taken");
    pool.hand_out(second);
    assert!(second.give_back());
    pool.sweep(1, |_| ());
    assert!(pool.sole_returned().is_some_and(|slot| std::ptr::eq(slot, second)), "the other one was freed");
    pool.set_limit(0);
    assert!(pool.sole_returned().is_none(), "none may be taken");
    pool.set_limit(4);
    assert!(pool.renew(|_| ()).is_some_and(|slot| std::ptr::eq(slot, second)));
    pool.release(second);
    assert!(pool.sole_returned().is_some_and(|slot| std::ptr::eq(slot, second)), "renewed: the last again");
    pool.sweep_all(|_| ());
    assert!(pool.sole().is_none() && pool.sole_returned().is_none(), "all are free");
}

/// An address comes only from who answers for it: an event that safe code fills never has one.
#[test]
fn safe_code_gives_no_event_an_address() {
    let array = Array::new(1);
    let slot = &array.slots(1)[0];
    let secret = [7_u8; 64];
    let address = secret.as_ptr().expose_provenance() as u64;
    for kind in [2, 4] {
        slot.fill(kind, 64, [address, 0]);
        let mut copy = [0; 64];
        // SAFETY: the event has no payload.
        assert_eq!((unsafe { slot.copy_payload(&mut copy) }, copy), (0, [0; 64]), "kind {kind}");
        // SAFETY: the event has no payload.
        assert_eq!(unsafe { slot.private_payload() }, Some(&[][..]));
    }
    // An address of another kind of event is that of a connection.
    slot.fill(1, 64, [address, 0]);
    // SAFETY: as above.
    assert_eq!(unsafe { slot.copy_payload(&mut [0; 64]) }, 0);
}

#[test]
fn only_private_payload_is_shown_as_a_slice() {
    let array = Array::new(1);
    let slot = &array.slots(1)[0];
    let mut bytes = *b"elsewhere\0";
    for (access, shown) in [(Access::Private, Some(&b"elsewhere"[..])), (Access::Shared, None)] {
        // SAFETY: the bytes outlive the slot's use.
        unsafe { slot.fill_payload(2, bytes.as_mut_ptr(), access, 9, 0) };
        // SAFETY: nobody returns the event or writes the bytes.
        assert_eq!(unsafe { slot.private_payload() }, shown);
        // SAFETY: as above.
        assert_eq!(unsafe { slot.view() }.to_vec(), b"elsewhere");
    }
    // What stood elsewhere before makes no difference to a message in the slot.
    slot.fill_inline(2, 8, 0, |_| u64::from_ne_bytes(*b"in place"));
    // SAFETY: as above.
    assert_eq!(unsafe { slot.private_payload() }, Some(&b"in place"[..]));
}
