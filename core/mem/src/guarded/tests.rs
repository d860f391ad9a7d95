use super::*;
use crate::barrier::prepare;
use std::sync::Barrier;
use std::thread;

/// A value to which this thread has the bias, if the kernel can revoke one.
fn biased() -> Guarded<u64> {
    let value = Guarded::new(0, prepare());
    enter_often(&value, FIRST_STREAK);
    value
}

/// Adds one so many times and once more: with that entry a streak of `times` is complete.
fn enter_often(value: &Guarded<u64>, times: u32) {
    (0..=times).for_each(|_| *value.enter().expect("for many") += 1);
}

fn is_biased(value: &Guarded<u64>) -> bool {
    value.owner.load(Ordering::Relaxed) & !(ALIGNMENT - 1) != 0
}

fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().expect("ends"))
}

/// Without `membarrier` there is no bias, and these tests have no subject.
fn kernel_revokes() -> bool {
    prepare() == Pairing::Asymmetric
}

#[test]
fn a_thread_that_enters_alone_often_enough_needs_no_lock() {
    if !kernel_revokes() {
        return;
    }
    let value = Guarded::new(0, prepare());
    enter_often(&value, FIRST_STREAK - 1);
    assert!(!is_biased(&value));
    let guard = value.enter().expect("for many");
    assert!(guard.slot.is_some(), "the bias begins with the entry that earns it");
    drop(guard);
    let guard = value.enter().expect("for many");
    assert!(guard.slot.is_some());
    assert!(value.enter().is_err(), "two guards would alias the value");
}

#[test]
fn at_once_is_entered_what_needs_no_lock_and_is_not_entered_yet() {
    assert!(Guarded::new(0, prepare()).enter_at_once().is_err(), "the lock's");
    let value = biased();
    assert!(elsewhere(|| value.enter_at_once().is_err()), "another thread has the bias");
    let guard = value.enter_at_once();
    assert_eq!(guard.is_ok(), kernel_revokes());
    assert!(value.enter_at_once().is_err(), "two guards would alias the value");
    drop(guard);
    value.enter().expect("for many").hand_over(Threading::One);
    assert!(value.enter_at_once().is_err(), "nobody's so far");
    *value.enter().expect("the first") += 1;
    assert!(value.enter_at_once().is_ok());
    assert!(elsewhere(|| value.enter_at_once().is_err()), "another's");
}

#[test]
fn it_is_busy_while_somebody_is_inside() {
    for value in [Guarded::new(0, prepare()), biased()] {
        assert!(!value.is_busy());
        let guard = value.enter().expect("for many");
        assert!(elsewhere(|| value.is_busy()), "by the lock or by the bias");
        drop(guard);
        assert!(!value.is_busy());
    }
    let value = Guarded::new(0, prepare());
    value.enter().expect("for many").hand_over(Threading::One);
    assert!(!value.is_busy(), "nobody's so far");
    let guard = value.enter().expect("the first");
    assert!(elsewhere(|| value.is_busy()));
    drop(guard);
    assert!(!value.is_busy());
}

#[test]
fn without_the_heavy_fence_there_is_no_bias() {
    let value = Guarded::new(0, Pairing::Symmetric);
    enter_often(&value, 10 * FIRST_STREAK);
    assert!(!is_biased(&value));
}

#[test]
fn another_thread_revokes_the_bias_and_makes_the_next_harder_to_earn() {
    if !kernel_revokes() {
        return;
    }
    let value = biased();
    assert!(is_biased(&value));
    elsewhere(|| *value.enter().expect("for many") += 1);
    assert!(!is_biased(&value));
    assert_eq!(value.enter().map(|value| *value), Ok(u64::from(FIRST_STREAK) + 2));
    enter_often(&value, FIRST_STREAK * STREAK_FACTOR - 2);
    assert!(!is_biased(&value));
    enter_often(&value, 0);
    assert!(is_biased(&value));
}

/// A thread that enters while the owner is inside sleeps until it leaves, and reads what it wrote.
#[test]
fn a_revoking_thread_waits_for_the_owner_inside() {
    if !kernel_revokes() {
        return;
    }
    let value = biased();
    let mut inside = value.enter().expect("for many");
    thread::scope(|scope| {
        let other = scope.spawn(|| value.enter().map(|value| *value));
        while value.revoking.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        assert!(!other.is_finished());
        *inside = 7;
        drop(inside);
        assert_eq!(other.join().expect("ends"), Ok(7));
    });
}

/// Owner slots are never passed on: a thread that finds none free uses the lock.
#[test]
fn threads_beyond_the_owner_slots_use_the_lock() {
    if !kernel_revokes() {
        return;
    }
    let value = Guarded::new(0, prepare());
    let threads = BIASED_OWNERS as u64 + 2;
    // All live at the same time, so that no two have the same token; one after the other.
    let (all, turn) = (Barrier::new(BIASED_OWNERS + 2), AtomicU32::new(0));
    let (value, all, turn) = (&value, &all, &turn);
    let biased: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..=u32::try_from(BIASED_OWNERS + 1).expect("few"))
            .map(|number| {
                scope.spawn(move || {
                    while turn.load(Ordering::Acquire) != number {
                        thread::yield_now();
                    }
                    enter_often(value, LONGEST_STREAK);
                    let biased = is_biased(value);
                    turn.store(number + 1, Ordering::Release);
                    all.wait();
                    biased
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
    });
    assert_eq!(biased, [true, true, true, false, false]);
    assert_eq!(value.enter().map(|value| *value), Ok(threads * (u64::from(LONGEST_STREAK) + 1)));
}

/// Threads earn and revoke the bias while each adds in bursts.
#[test]
fn no_update_is_lost_between_biased_owners() {
    // 513 entries each, of which Miri does some thousands a minute.
    const BURSTS: u64 = if cfg!(miri) { 2 } else { 40 };
    let value = Guarded::new(0, prepare());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..BURSTS {
                    enter_often(&value, 2 * FIRST_STREAK);
                    thread::yield_now();
                }
            });
        }
    });
    assert_eq!(value.enter().map(|value| *value), Ok(3 * BURSTS * u64::from(2 * FIRST_STREAK + 1)));
}

/// The endpoint's next life begins as the first, except for the owner slots.
#[test]
fn a_value_handed_over_has_no_bias() {
    let value = biased();
    elsewhere(|| *value.enter().expect("for many") += 1);
    enter_often(&value, 2 * FIRST_STREAK);
    assert!(!is_biased(&value), "a longer streak is needed, and part of it is counted");
    value.enter().expect("for many").hand_over(Threading::Many);
    assert!(!is_biased(&value));
    enter_often(&value, FIRST_STREAK);
    assert_eq!(is_biased(&value), kernel_revokes());
    value.enter().expect("for many").hand_over(Threading::One);
    assert_eq!(elsewhere(|| value.enter().map(|_| ())), Ok(()), "the first that uses it");
    assert_eq!(value.enter().err(), Some(WrongThread));
}
