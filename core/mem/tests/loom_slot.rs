//! Models of giving back: the payload of an event is not used again before the program has finished
//! with it.
#![cfg(loom)]
#![expect(clippy::arc_with_non_send_sync, reason = "loom watches the cells that threads share")]

use cci_mem::pool::Pool;
use cci_mem::slot::{Slot, State};
use cci_mem::sync::Ordering;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// Endpoints and connections have no part in these models.
type Plain = Slot<u8, u8>;

/// Slots live for ever in the library; here as long as the test's process.
fn slots(count: usize) -> &'static [Plain] {
    Box::leak((0..count).map(|_| Plain::default()).collect())
}

/// The library fills as many events as there are slots; one thread each reads its payload and gives
/// its event back as `give_back` does; the library sweeps until all are back, and fills each
/// payload again as soon as it has it.
fn returned_while_sweeping(count: usize, preemptions: usize, give_back: fn(&'static Plain)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let mut pool = Pool::new(slots(count), count).expect("memory");
        let payloads: Arc<Vec<UnsafeCell<usize>>> = Arc::new((0..count).map(|_| UnsafeCell::new(7)).collect());
        let programs: Vec<_> = (0..count)
            .map(|at| {
                let slot = pool.take().expect("a free slot");
                pool.hand_out(slot);
                let payloads = Arc::clone(&payloads);
                thread::spawn(move || {
                    // SAFETY: borrowed until given back; loom checks that nobody writes.
                    assert_eq!(payloads[at].with(|at| unsafe { *at }), 7, "used again too early");
                    give_back(slot);
                })
            })
            .collect();
        assert!(pool.take().is_none(), "handed out twice");

        let mut back = Vec::new();
        let mut released = |slot: &'static Plain| {
            let at = slot.index.load(Ordering::Relaxed) as usize;
            // SAFETY: given back; loom checks that the program has finished.
            payloads[at].with_mut(|at| unsafe { *at = 8 });
            back.push(at);
        };
        // No waiting between looks: loom would let the programs finish first.
        for _ in 0..2 * count {
            pool.sweep(1, &mut released);
        }
        programs.into_iter().for_each(|program| program.join().expect("the program ends"));
        pool.sweep(count, &mut released);
        back.sort_unstable();
        assert_eq!(back, (0..count).collect::<Vec<_>>(), "a slot came back twice");
        assert_eq!(pool.in_use(), 0);
        assert!((0..count).all(|_| pool.take().is_some()), "a slot was lost");
    });
}

#[test]
fn one_event_is_given_back_whole() {
    returned_while_sweeping(1, 4, |slot| assert!(slot.give_back()));
}

#[test]
fn two_threads_give_back_in_any_order() {
    returned_while_sweeping(2, 3, |slot| assert!(slot.give_back()));
}

/// The mutant: a state changed without release lets the next payload pass the program's last read.
#[test]
#[should_panic(expected = "Causality violation")]
fn giving_back_without_release_is_caught() {
    returned_while_sweeping(1, 4, |slot| slot.set_state(State::Returned));
}
