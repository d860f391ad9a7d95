//! Domains whose endpoints go on by a thread of the library.

use crate::world::{LONG, Side, bytes, domain, memory, of};
use cci_fabric::{Remote, Segments, bits};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The threads of drivers are those of the process: one test has some at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The drivers of this process, as `/proc` has them.
fn drivers() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").expect("threads").filter_map(|task| Some(task.ok()?.path()));
    tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "cci-fabric\n")).collect()
}

/// Drivers end with their domains, which the ends of endpoints hold for a while.
fn wait_for_their_end() {
    let begun = Instant::now();
    while !drivers().is_empty() {
        assert!(begun.elapsed() < LONG, "a thread goes on");
        std::thread::yield_now();
    }
}

/// The target makes no call from the post of its receive on, until the source has seen that all is
/// there.
#[test]
fn a_target_without_calls_receives_is_read_and_is_written() {
    let _alone = alone();
    for transport in ["sm", "sock", "tcp", "auto"] {
        let (calls, driven) = (domain(transport), domain(transport));
        driven.drive().expect("a thread");
        let (here, there) = (Side::new(&calls), Side::new(&driven));
        let (to, window, large) = (here.meet(&there), memory(64), memory(1 << 20));
        there.meet(&here);
        let _region = driven.register(window.clone(), 7, bits::REMOTE_WRITE).expect("a region");
        there.receive(&large, 1, 10).expect("a receive");

        here.send(to, &of(vec![9; 1 << 20]), 1, 1, 0).expect("a send");
        assert_eq!(here.next().map(|entry| entry.context), Ok(1), "{transport}");
        let (segments, pieces) = (Segments::from(of(vec![8; 64])), vec![(0, 64, 7)]);
        let write = Remote { segments, to, pieces, is_write: true, data: None, context: 2, flags: 0 };
        here.endpoint.remote(write).expect("a write");
        assert_eq!(here.next().map(|entry| entry.context), Ok(2), "{transport}");

        assert!(bytes(&large) == vec![9; 1 << 20] && bytes(&window) == [8; 64], "{transport}");
        let mut found = None;
        assert_eq!(there.queue.read(1, |entry| found = Some((entry.context, entry.len))), Ok(1), "{transport}");
        assert_eq!(found, Some((10, 1 << 20)), "{transport}");
    }
    wait_for_their_end();
}

#[test]
fn the_thread_sleeps_while_nothing_comes_and_ends_with_its_domain() {
    let _alone = alone();
    let begun = Instant::now();
    let domain = domain("sm");
    domain.drive().expect("a thread");
    domain.drive().expect("the same one");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    let (to, received) = (here.meet(&there), memory(8));
    there.receive(&received, 1, 10).expect("a receive");
    here.send(to, &of(vec![1; 8]), 1, 1, 0).expect("a send");
    there.next().expect("the message");

    let of_domain = loop {
        // A thread has its name when it first runs.
        let found = drivers();
        if !found.is_empty() {
            break found;
        }
        assert!(begun.elapsed() < LONG, "there is no thread");
    };
    assert_eq!(of_domain.len(), 1);
    let switches = || {
        let status = fs::read_to_string(of_domain[0].join("status")).expect("a thread");
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).map(str::to_owned);
        line.expect("a count")
    };
    loop {
        let before = switches();
        std::thread::sleep(Duration::from_millis(100));
        if switches() == before {
            break;
        }
        assert!(begun.elapsed() < LONG, "it goes on looking");
    }

    drop((here, there, domain));
    wait_for_their_end();
}
