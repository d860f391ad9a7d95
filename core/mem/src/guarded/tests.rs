use super::*;
use crate::barrier::prepare;
use std::sync::Barrier;
use std::thread;

/// A value that this thread has on loan, if the kernel can end loans.
fn lent() -> Guarded<u64> {
    let value = Guarded::new(0, prepare());
    enter_often(&value, FIRST_STREAK);
    value
}

/// Adds one so many times and once more: with that entry a streak of `times` is complete.
fn enter_often(value: &Guarded<u64>, times: u32) {
    (0..=times).for_each(|_| *value.enter().expect("for many") += 1);
}

fn is_on_loan(value: &Guarded<u64>) -> bool {
    value.owner.load(Ordering::Relaxed) & !(ALIGNMENT - 1) != 0
}

fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().expect("ends"))
}

/// Where `membarrier` is missing there are no loans, and these tests are about nothing.
fn kernel_ends_loans() -> bool {
    prepare() == Pairing::Asymmetric
}

#[test]
fn a_thread_that_comes_alone_often_enough_needs_no_lock() {
    if !kernel_ends_loans() {
        return;
    }
    let value = Guarded::new(0, prepare());
    enter_often(&value, FIRST_STREAK - 1);
    assert!(!is_on_loan(&value));
    let guard = value.enter().expect("for many");
    assert!(guard.inside.is_some(), "the loan begins with the entry that earns it");
    drop(guard);
    let guard = value.enter().expect("for many");
    assert!(guard.inside.is_some());
    assert!(value.enter().is_err(), "two guards would alias the value");
}

#[test]
fn at_once_is_entered_what_needs_no_lock_and_is_not_entered_yet() {
    assert!(Guarded::new(0, prepare()).enter_at_once().is_err(), "the lock's");
    let value = lent();
    assert!(elsewhere(|| value.enter_at_once().is_err()), "another's loan");
    let guard = value.enter_at_once();
    assert_eq!(guard.is_ok(), kernel_ends_loans());
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
    for value in [Guarded::new(0, prepare()), lent()] {
        assert!(!value.is_busy());
        let guard = value.enter().expect("for many");
        assert!(elsewhere(|| value.is_busy()), "by the lock or on loan");
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
fn without_the_heavy_fence_there_is_no_loan() {
    let value = Guarded::new(0, Pairing::Symmetric);
    enter_often(&value, 10 * FIRST_STREAK);
    assert!(!is_on_loan(&value));
}

#[test]
fn another_thread_ends_the_loan_and_makes_the_next_harder() {
    if !kernel_ends_loans() {
        return;
    }
    let value = lent();
    assert!(is_on_loan(&value));
    elsewhere(|| *value.enter().expect("for many") += 1);
    assert!(!is_on_loan(&value));
    assert_eq!(value.enter().map(|value| *value), Ok(u64::from(FIRST_STREAK) + 2));
    enter_often(&value, FIRST_STREAK * HARDER - 2);
    assert!(!is_on_loan(&value));
    enter_often(&value, 0);
    assert!(is_on_loan(&value));
}

/// Who comes while the borrower is inside sleeps until it leaves, and sees what it wrote.
#[test]
fn a_borrower_inside_is_waited_for() {
    if !kernel_ends_loans() {
        return;
    }
    let value = lent();
    let mut inside = value.enter().expect("for many");
    thread::scope(|scope| {
        let other = scope.spawn(|| value.enter().map(|value| *value));
        while value.recalling.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        assert!(!other.is_finished());
        *inside = 7;
        drop(inside);
        assert_eq!(other.join().expect("ends"), Ok(7));
    });
}

/// Places are not passed on: a thread that finds none uses the lock.
#[test]
fn threads_beyond_the_places_use_the_lock() {
    if !kernel_ends_loans() {
        return;
    }
    let value = Guarded::new(0, prepare());
    let threads = LOANS as u64 + 2;
    // All live at the same time, so that no two have the same token; one after the other.
    let (all, turn) = (Barrier::new(LOANS + 2), AtomicU32::new(0));
    let (value, all, turn) = (&value, &all, &turn);
    let lent: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..=u32::try_from(LOANS + 1).expect("few"))
            .map(|number| {
                scope.spawn(move || {
                    while turn.load(Ordering::Acquire) != number {
                        thread::yield_now();
                    }
                    enter_often(value, LONGEST_STREAK);
                    let lent = is_on_loan(value);
                    turn.store(number + 1, Ordering::Release);
                    all.wait();
                    lent
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
    });
    assert_eq!(lent, [true, true, true, false, false]);
    assert_eq!(value.enter().map(|value| *value), Ok(threads * (u64::from(LONGEST_STREAK) + 1)));
}

/// Loans come and go while each thread adds in bursts.
#[test]
fn no_update_is_lost_between_borrowers() {
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

/// The endpoint's next life begins as the first, but for the places.
#[test]
fn a_value_handed_over_is_nobodys_loan() {
    let value = lent();
    elsewhere(|| *value.enter().expect("for many") += 1);
    enter_often(&value, 2 * FIRST_STREAK);
    assert!(!is_on_loan(&value), "more are wanted, and some are counted");
    value.enter().expect("for many").hand_over(Threading::Many);
    assert!(!is_on_loan(&value));
    enter_often(&value, FIRST_STREAK);
    assert_eq!(is_on_loan(&value), kernel_ends_loans());
    value.enter().expect("for many").hand_over(Threading::One);
    assert_eq!(elsewhere(|| value.enter().map(|_| ())), Ok(()), "the first that uses it");
    assert_eq!(value.enter().err(), Some(WrongThread));
}
