//! Lookups of names: within their limits, by few threads, and in a forked child.
//!
//! The pool is the process's: one test at a time.

use cci_mem::lookup::{LookupError, THREADS, Wait, threads};
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static ALONE: Mutex<()> = Mutex::new(());
/// Whether the name servers are silent, and what ends that.
static SILENT: Mutex<bool> = Mutex::new(false);
static SPOKEN: Condvar = Condvar::new();
/// Lookups that have begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Longer than a test takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);
/// Names whose servers are silent, beside others that have answers.
const SILENT_NAMES: usize = 8;

fn alone() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    BEGUN.store(0, Ordering::SeqCst);
    *SILENT.lock().expect("a lock") = true;
    alone
}

/// Ends the silence, and waits until no lookup is under way.
fn speak() {
    *SILENT.lock().expect("a lock") = false;
    SPOKEN.notify_all();
    let begun = Instant::now();
    while threads() > 0 {
        assert!(begun.elapsed() < LONG, "threads stay although no name waits");
        std::thread::yield_now();
    }
}

fn answers(_: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok(vec![(Ipv4Addr::LOCALHOST, port).into()])
}

/// As a name server that is silent for a while.
fn silent(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    BEGUN.fetch_add(1, Ordering::SeqCst);
    drop(SPOKEN.wait_while(SILENT.lock().expect("a lock"), |silent| *silent).expect("a lock"));
    answers(host, port)
}

fn short() -> Wait<'static> {
    Wait { limit: SHORT, ..Wait::default() }
}

/// Why a wait for the silent server has ended, which it does long before the server speaks.
fn ends(wait: &Wait<'_>) -> LookupError {
    let begun = Instant::now();
    let why = wait.addresses_by(silent, "a-host", 1).expect_err("nobody answers");
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    why
}

/// As many lookups at once as there are threads, which the silent server keeps.
fn take_all_threads() {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| assert!(matches!(ends(&short()), LookupError::TimedOut)));
        }
    });
}

#[test]
fn a_lookup_ends_at_its_limit_or_its_deadline_or_when_it_is_cancelled() {
    let _alone = alone();
    assert!(matches!(ends(&short()), LookupError::TimedOut));
    assert!(matches!(ends(&Wait::from(Instant::now() + SHORT)), LookupError::TimedOut));
    let is_over = AtomicBool::new(false);
    let cancelled = || is_over.swap(true, Ordering::SeqCst);
    let wait = Wait { limit: LONG, is_over: Some(&cancelled), ..Wait::default() };
    assert!(matches!(ends(&wait), LookupError::Cancelled));
    assert_eq!(Error::from(LookupError::TimedOut).kind(), ErrorKind::TimedOut);
    speak();
}

#[test]
fn silent_names_keep_no_other_one_from_its_answer() {
    let _alone = alone();
    (0..SILENT_NAMES).for_each(|_| drop(ends(&short())));
    let found = Wait { limit: LONG / 2, ..Wait::default() }.addresses_by(answers, "a-host", 7);
    assert_eq!(found.expect("an answer"), [([127, 0, 0, 1], 7).into()]);
    assert_eq!(BEGUN.load(Ordering::SeqCst), SILENT_NAMES, "they are under way");
    speak();
}

#[test]
fn silent_lookups_hold_no_later_one_up_beyond_its_limit_and_no_more_than_their_threads() {
    let _alone = alone();
    for _ in 0..3 {
        take_all_threads();
        assert!(threads() <= THREADS);
    }
    assert_eq!(BEGUN.load(Ordering::SeqCst), THREADS, "a lookup began without a thread");
    // A later one waits for its turn.
    std::thread::scope(|scope| {
        let late = scope.spawn(|| Wait { limit: LONG, ..Wait::default() }.addresses_by(answers, "a-host", 7));
        while !late.is_finished() {
            *SILENT.lock().expect("a lock") = false;
            SPOKEN.notify_all();
            std::thread::yield_now();
        }
        assert_eq!(late.join().expect("no panic").expect("an answer"), [([127, 0, 0, 1], 7).into()]);
    });
    speak();
    assert_eq!(BEGUN.load(Ordering::SeqCst), THREADS, "what nobody waits for was looked up");
}

#[test]
fn addresses_are_read_without_a_lookup() {
    let _alone = alone();
    // No lookup would have an answer in no time.
    let now = Wait::from(Instant::now());
    for (host, address) in [("127.0.0.1", "127.0.0.1:7"), ("::1", "[::1]:7")] {
        assert_eq!(now.addresses_by(silent, host, 7).expect(host), [address.parse().expect("an address")]);
    }
    assert_eq!(BEGUN.load(Ordering::SeqCst), 0);
}

#[test]
fn a_lookup_that_panics_is_an_error_and_its_thread_is_counted_no_longer() {
    fn fails(_: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        panic!("as a test wants it")
    }
    let _alone = alone();
    for _ in 0..2 * THREADS {
        let why = Wait { limit: LONG, ..Wait::default() }.addresses_by(fails, "a-host", 1).expect_err("it has failed");
        assert!(matches!(&why, LookupError::Failed(_)), "{why}");
    }
    speak();
}

#[test]
fn a_forked_child_looks_up_although_its_parents_threads_are_all_taken() {
    let _alone = alone();
    take_all_threads();
    // SAFETY: the child makes lookups only, and ends without running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let found = Wait { limit: LONG, ..Wait::default() }.addresses_by(answers, "a-host", 7);
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(found.is_err())) };
    }
    assert!(child > 0, "a child");
    let mut status = -1;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has an answer");
    speak();
}
