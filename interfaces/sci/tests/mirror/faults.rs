//! Owners that are killed, stopped, forked, or withdraw, in other processes.

use crate::owner::{Owner, SIZE};
use crate::world::{host, until, until_is};
use cci_conformance::LIMIT;
use cci_sci::{Access, Error, Reason, SequenceStatus};
use rustix::process::{Signal, kill_process};
use std::time::Duration;

#[test]
fn an_owner_that_is_killed_is_noticed_and_no_store_faults() {
    let own = host(8);
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    let window = connection.map(0..SIZE, Access::ReadWrite).expect("mapped");
    let bell = own.connect_data_interrupt(4, owner.interrupt, Some(LIMIT)).expect("there");
    let sequence = window.sequence();
    assert_eq!(sequence.start(), SequenceStatus::Ok);
    window.store(0, 7_u64).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    assert_eq!(owner.tell("word"), "Some(7)");
    owner.kill();
    // Stores go on meanwhile, to protected pages too.
    until("the loss", || {
        window.write(0, &vec![1; SIZE]).expect("inside");
        sequence.check() == SequenceStatus::NotRetriable
    });
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    window.write(0, &vec![5; SIZE]).expect("inside");
    assert_eq!(
        (window.load(SIZE - 8), sequence.check()),
        (Ok(u64::from_ne_bytes([5; 8])), SequenceStatus::NotRetriable)
    );
    assert_eq!(bell.trigger(b"x"), Err(Error::NotConnected));
    assert_eq!(window.flush_reads(), Err(Error::SegmentNotConnected));
    assert_eq!(connection.map(0..1, Access::Read).err(), Some(Error::SegmentNotConnected));
}

/// Nothing is stored, and no call is made.
#[test]
fn an_owner_that_is_killed_while_all_is_quiet_is_noticed() {
    let own = host(8);
    let (mut owner, connection, window, sequence) = Owner::mapped(&own);
    owner.kill();
    assert_eq!(connection.wait(Some(Duration::from_secs(20))), Ok(Reason::Lost));
    assert_eq!(sequence.check(), SequenceStatus::NotRetriable);
    drop(window);
}

/// It has stored nothing, and neither side makes a call meanwhile.
#[test]
fn a_connected_process_that_is_killed_lets_go() {
    let own = host(8);
    let mut other = Owner::start();
    let segment = own.create(other.segment, SIZE).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    assert_eq!(other.tell("connect"), "Some(Ok(()))");
    assert_eq!(segment.wait(Some(LIMIT)).map(|event| event.reason), Ok(Reason::Connect));
    other.kill();
    assert_eq!(segment.wait(Some(LIMIT)).map(|event| event.reason), Ok(Reason::Lost));
    assert_eq!(segment.remove(), Ok(()));

    let mut other = Owner::start();
    let plain = own.interrupt(Some(other.interrupt)).expect("free");
    assert_eq!(other.tell("attach"), "Some(Ok(()))");
    other.kill();
    until("nobody is attached", || plain.remove() != Err(Error::Busy));

    let mut other = Owner::start();
    let with_bytes = own.data_interrupt(Some(other.interrupt)).expect("free");
    assert_eq!(other.tell("attach data"), "Some(Ok(()))");
    other.kill();
    until("nobody is attached", || with_bytes.remove() != Err(Error::Busy));
}

#[test]
fn an_owner_that_is_stopped_makes_sequences_retriable() {
    let own = host(8);
    let (mut owner, connection, window, sequence) = Owner::mapped(&own);
    owner.stop();
    window.store(0, 9_u64).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::Retriable);
    assert_eq!(window.flush_reads(), Err(Error::Timeout));
    kill_process(owner.pid, Signal::CONT).expect("a child");
    // The store was not lost: nobody stores it again.
    until_is(&sequence, SequenceStatus::Ok);
    assert_eq!(owner.tell("word"), "Some(9)");
    drop((window, sequence));
    connection.disconnect().expect("no window");
    until("the owner has been told", || owner.tell("remove") == "Some(Ok(()))");
}

#[test]
fn an_owner_that_withdraws_or_removes_is_noticed() {
    let own = host(8);
    for how in ["force", "drop"] {
        let (mut owner, connection, window, sequence) = Owner::mapped(&own);
        assert_eq!(owner.tell("remove"), "Some(Err(Busy))");
        assert_eq!(owner.tell("notice"), "Some(Ok(()))");
        assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Disconnect));
        assert_eq!(sequence.check(), SequenceStatus::Ok);
        owner.tell(how);
        until_is(&sequence, SequenceStatus::NotRetriable);
        window.write(0, &vec![3; SIZE]).expect("inside");
        assert_eq!(window.load(SIZE - 1), Ok(3_u8));
    }
}

/// Both sides fork: the children keep nothing, and the parents go on.
#[test]
#[expect(unsafe_code, reason = "the process is forked")]
fn forked_children_have_no_part_in_a_mirror() {
    let own = host(8);
    let (mut owner, _connection, window, sequence) = Owner::mapped(&own);
    assert_eq!(owner.tell("fork"), "forked true true true");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    // Until its pages are protected: those of the child are not.
    std::thread::sleep(std::time::Duration::from_millis(5));
    // SAFETY: the child stores, and takes no lock that another thread may hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_lost = sequence.check() == SequenceStatus::NotRetriable;
        let is_stored = window.store(8, 5_u64).is_ok();
        window.flush();
        let is_refused = window.flush_reads().is_err();
        // SAFETY: ends at once.
        unsafe { libc::_exit(i32::from(!(is_lost && is_stored && is_refused))) };
    }
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(window.load(8), Ok(0_u64), "the child's pages are its own");
    window.store(0, 78_u64).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    assert_eq!(owner.tell("word"), "Some(78)");
}
