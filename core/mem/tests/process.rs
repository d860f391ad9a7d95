//! Forks are noticed; values for one thread stay with it.
#![cfg(not(loom))]

use cci_mem::address_space::Tag;
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::{Mark, PerProcess};
use cci_mem::guarded::{Guarded, Threading, WrongThread};
use cci_mem::sync::{AtomicU32, Ordering};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;

/// Runs `child` in a forked child and says whether it returned true.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls `child`, which takes no lock that another thread could hold but the
    // allocator's, which the C library keeps usable, and then ends without running anything of the
    // parent.
    let id = unsafe { libc::fork() };
    if id == 0 {
        let code = i32::from(!child());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    assert!(id > 0, "no child");
    let mut status = -1;
    // SAFETY: `status` is ours; the child is ours and not waited for yet.
    let waited = unsafe { libc::waitpid(id, &raw mut status, 0) };
    assert_eq!(waited, id);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn a_mark_is_gone_in_a_forked_child() {
    let mark = Mark::new().expect("a page");
    assert!(mark.is_here());
    assert!(in_child(|| !mark.is_here()));
    assert!(mark.is_here(), "the parent's is untouched");
}

/// Writes to a pipe what lies at the address: a fault is an error there.
fn is_readable(address: usize) -> bool {
    let (_reader, writer) = rustix::pipe::pipe().expect("a pipe");
    // SAFETY: the kernel checks the address.
    let written = unsafe { libc::write(writer.as_raw_fd(), std::ptr::without_provenance(address), 8) };
    written == 8
}

#[test]
fn a_child_has_a_tag_of_its_own_and_not_its_parents() {
    let tag = Tag::of_this_process().expect("a tag");
    assert!(is_readable(tag.address));
    assert!(in_child(|| !is_readable(tag.address)));
    assert!(in_child(|| Tag::of_this_process().is_ok_and(|own| own != tag && is_readable(own.address))));
    assert_eq!(Tag::of_this_process(), Ok(tag));
}

#[test]
fn a_childs_own_mark_is_gone_in_its_child() {
    assert!(
        in_child(|| Mark::new().is_ok_and(|mark| mark.is_here() && in_child(|| !mark.is_here()) && mark.is_here()))
    );
}

#[test]
fn a_child_makes_the_processs_value_afresh() {
    static VALUE: PerProcess<AtomicU32> = PerProcess::new();
    let value = |fresh| VALUE.get(|| AtomicU32::new(fresh)).expect("memory");
    let (mark, first) = value(1);
    assert!(std::ptr::eq(first, &value(2).1), "made twice");
    assert!(in_child(|| {
        let (own, second) = value(3);
        let made = second.load(Ordering::Relaxed) == 3 && own.is_here() && !mark.is_here();
        second.store(4, Ordering::Relaxed);
        made && std::ptr::eq(second, &value(5).1)
    }));
    assert!(mark.is_here());
    assert_eq!(value(6).1.load(Ordering::Relaxed), 1, "the child touched the parent's value");
}

#[test]
fn threads_that_race_agree_on_one_value() {
    static VALUE: PerProcess<u64> = PerProcess::new();
    let threads: Vec<_> = (0..8)
        .map(|number| thread::spawn(move || std::ptr::from_ref(VALUE.get(|| number).expect("memory")).addr()))
        .collect();
    let found: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("ends")).collect();
    assert!(found.iter().all(|address| *address == found[0]));
}

fn guarded(threading: Threading) -> Guarded<u64> {
    let value = Guarded::new(0, prepare());
    value.enter().expect("for many").hand_over(threading);
    value
}

fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().expect("ends"))
}

#[test]
fn a_value_for_one_thread_belongs_to_the_first_that_uses_it() {
    let value = guarded(Threading::One);
    *value.enter().expect("the first") += 1;
    *value.enter().expect("again") += 1;
    assert_eq!(elsewhere(|| value.enter().map(|value| *value)), Err(WrongThread));
    assert_eq!(value.enter().map(|value| *value), Ok(2));

    let other = guarded(Threading::One);
    assert_eq!(elsewhere(|| other.enter().map(|_| other.enter().is_err())), Ok(true), "the first, and no re-entrance");
    let owned = elsewhere(|| {
        let fresh = guarded(Threading::One);
        drop(fresh.enter());
        fresh
    });
    assert_eq!(owned.enter().err(), Some(WrongThread));
}

#[test]
fn a_value_for_one_thread_refuses_a_second_guard() {
    let value = guarded(Threading::One);
    let first = value.enter().expect("the first");
    assert_eq!(value.enter().err(), Some(WrongThread), "two guards would alias the value");
    drop(first);
    assert!(value.enter().is_ok());
}

#[test]
fn a_value_changes_hands_with_its_guard() {
    let value = guarded(Threading::One);
    let mut first = value.enter().expect("the first");
    *first = 7;
    first.hand_over(Threading::Many);
    assert_eq!(elsewhere(|| value.enter().map(|value| *value)), Ok(7), "for many again");
    value.enter().expect("for many").hand_over(Threading::One);
    assert_eq!(elsewhere(|| value.enter().map(|value| *value)), Ok(7), "the next one's");
    assert_eq!(value.enter().err(), Some(WrongThread));
}

#[test]
fn a_value_for_many_threads_loses_no_update() {
    const EACH: u64 = if cfg!(miri) { 50 } else { 20_000 };
    for pairing in [prepare(), Pairing::Symmetric] {
        let value = Arc::new(Guarded::new(0u64, pairing));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let value = Arc::clone(&value);
                thread::spawn(move || (0..EACH).for_each(|_| *value.enter().expect("for many") += 1))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        assert_eq!(value.enter().map(|value| *value), Ok(4 * EACH));
    }
}

/// Waiters sleep while a holder is away for long, and each is woken.
#[test]
fn sleepers_behind_a_slow_holder_are_woken() {
    let value = Arc::new(Guarded::new(0u64, prepare()));
    let held = value.enter().expect("for many");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let value = Arc::clone(&value);
            thread::spawn(move || *value.enter().expect("for many") += 1)
        })
        .collect();
    // Until every thread has used up its turns of spinning and sleeps in the kernel, as the system
    // shows it.
    let asleep = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
        let waits = |path: std::path::PathBuf| std::fs::read_to_string(path.join("wchan")).unwrap_or_default();
        tasks.flatten().filter(|task| waits(task.path()).contains("futex")).count()
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while asleep() < 4 && std::time::Instant::now() < deadline {
        thread::yield_now();
    }
    drop(held);
    threads.into_iter().for_each(|thread| thread.join().expect("ends"));
    assert_eq!(value.enter().map(|value| *value), Ok(4));
}
