//! Each state of a mirror by each fault of its owner.

use crate::owner::{Owner, SIZE};
use crate::world::{host, until, until_is};
use cci_conformance::LIMIT;
use cci_sci::{Access, Reason, RemoteSegment, Sequence, SequenceStatus, Window};
use rustix::process::{Signal, kill_process};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a mirror is at when the fault comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// No window was mapped.
    Absent,
    /// All pages are protected.
    Quiet,
    /// Something was stored that nobody has flushed.
    Open,
    /// Passes follow each other.
    Sending,
    /// Reads follow each other.
    Reading,
}

const ALL: [At; 5] = [At::Absent, At::Quiet, At::Open, At::Sending, At::Reading];

/// Runs `fault` while a mirror of a new owner is at something, and then `then`.
fn during(at: At, fault: impl FnOnce(&mut Owner), then: impl FnOnce(&mut Owner, &RemoteSegment, Option<&Sequence>)) {
    let own = host(8);
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    if at == At::Absent {
        fault(&mut owner);
        return then(&mut owner, &connection, None);
    }
    let window = connection.map(0..SIZE, Access::ReadWrite).expect("mapped");
    let sequence = window.sequence();
    let (begun, ends) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let run = |act: &dyn Fn(&Window, u8)| {
            let mut round = 0_u8;
            while !ends.load(Ordering::Relaxed) {
                round = round.wrapping_add(1);
                act(&window, round);
                begun.store(true, Ordering::Relaxed);
            }
        };
        match at {
            At::Sending => drop(scope.spawn(move || {
                run(&|window, round| {
                    window.write(8, &vec![round; SIZE - 8]).expect("inside");
                    window.flush();
                });
            })),
            // It fails once the owner is gone, or late.
            At::Reading => drop(scope.spawn(move || run(&|window, _| _ = window.flush_reads()))),
            At::Open => window.store(8, 1_u64).expect("inside"),
            // Until its pages are protected.
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
        let is_running = || !matches!(at, At::Sending | At::Reading) || begun.load(Ordering::Relaxed);
        until("it has begun", is_running);
        fault(&mut owner);
        // Never a signal, whatever has become of the owner.
        window.store(0, 7_u64).expect("inside");
        ends.store(true, Ordering::Relaxed);
    });
    then(&mut owner, &connection, Some(&sequence));
    assert_eq!(window.load(0), Ok(7_u64), "{at:?}");
}

/// The connection is lost, and a sequence says so.
fn is_lost(_: &mut Owner, connection: &RemoteSegment, sequence: Option<&Sequence>) {
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    if let Some(sequence) = sequence {
        until_is(sequence, SequenceStatus::NotRetriable);
    }
    assert!(connection.map(0..8, Access::Read).is_err());
}

/// A connection that sends nothing does not notice it, so that one without a window is left out.
#[test]
fn an_owner_that_is_killed_in_any_state_is_lost() {
    ALL[1..].iter().for_each(|at| during(*at, Owner::kill, is_lost));
}

#[test]
fn a_segment_that_is_withdrawn_or_removed_in_any_state_is_lost() {
    for how in ["force", "drop"] {
        ALL.into_iter().for_each(|at| during(at, |owner| drop(owner.tell(how)), is_lost));
    }
}

/// A stopped owner loses nothing: the sequence is retriable until it goes on.
#[test]
fn an_owner_that_is_stopped_in_any_state_has_all_once_it_goes_on() {
    for at in ALL {
        let goes_on = |owner: &mut Owner, _: &RemoteSegment, sequence: Option<&Sequence>| {
            if let Some(sequence) = sequence {
                assert_eq!(sequence.check(), SequenceStatus::Retriable, "{at:?}");
            }
            kill_process(owner.pid, Signal::CONT).expect("a child");
            let Some(sequence) = sequence else { return };
            until_is(sequence, SequenceStatus::Ok);
            assert_eq!(owner.tell("word"), "Some(7)", "{at:?}");
        };
        during(at, |owner| owner.stop(), goes_on);
    }
}

/// A fork of the owner changes nothing for the one who stores.
#[test]
fn an_owner_that_forks_in_any_state_stays() {
    for at in ALL {
        let stays = |owner: &mut Owner, connection: &RemoteSegment, sequence: Option<&Sequence>| {
            if let Some(sequence) = sequence {
                until_is(sequence, SequenceStatus::Ok);
            }
            assert!(connection.map(0..8, Access::Read).is_ok(), "{at:?}");
            assert!(sequence.is_none() || owner.tell("word") == "Some(7)", "{at:?}");
        };
        during(at, |owner| assert!(owner.tell("fork").starts_with("forked true true")), stays);
    }
}
