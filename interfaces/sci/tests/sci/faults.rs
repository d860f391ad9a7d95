//! Owners that are killed, stopped, forked, or withdraw, in other processes.

use crate::owner::{Owner, SIZE};
use crate::world::{host, published, refused, until, until_lost};
use cci_conformance::LIMIT;
use cci_sci::{Access, Direction, Error, QueueState, Reason, SequenceStatus};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Stores after the end of an owner fault no more than before, and the sequence says so.
#[test]
fn an_owner_that_is_killed_is_noticed_in_each_state() {
    // Before it has published.
    let mut owner = Owner::start();
    let own = host(8);
    assert_eq!(refused(own.connect(4, owner.segment, Some(LIMIT))), Error::NoSuchSegment);
    owner.kill();
    assert_eq!(refused(own.connect(4, owner.segment, Some(LIMIT))), Error::NoSuchSegment);

    // Connected, mapped, in a sequence.
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    let bell = own.connect_data_interrupt(4, owner.interrupt, Some(LIMIT)).expect("there");
    let window = connection.map(0..SIZE, Access::ReadWrite).expect("mapped");
    let sequence = window.sequence();
    assert_eq!(sequence.start(), SequenceStatus::Ok);
    window.store(0, 7_u64).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    assert_eq!(owner.tell("word"), "Some(7)");
    owner.kill();
    until_lost(&sequence);
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    // Each page, by stores, loads and copies.
    for at in (0..SIZE).step_by(4096) {
        window.store(at, 1_u64).expect("inside");
        assert_eq!(window.load::<u64>(at), Ok(1));
    }
    window.write(0, &vec![5; SIZE]).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::NotRetriable);
    assert_eq!(bell.trigger(b"x"), Err(Error::NotConnected));
    assert_eq!(refused(connection.map(0..1, Access::Read)), Error::SegmentNotConnected);
    assert_eq!(refused(own.connect(4, owner.segment, Some(LIMIT))), Error::NoSuchSegment);
    assert_eq!(refused(own.connect_data_interrupt(4, owner.interrupt, Some(LIMIT))), Error::NoSuchSegment);
}

#[test]
fn stores_during_the_death_of_an_owner_never_fault() {
    let own = host(8);
    for _ in 0..5 {
        let (mut owner, _connection, window, sequence) = Owner::mapped(&own);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while sequence.check() == SequenceStatus::Ok {
                    window.write(0, &[1; SIZE]).expect("inside");
                }
                // Once more, all of it.
                window.write(0, &[2; SIZE]).expect("inside");
            });
            owner.kill();
        });
        assert_eq!(window.load::<u8>(SIZE - 1), Ok(2));
    }
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
        assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost), "{how}");
        until_lost(&sequence);
        window.write(0, &vec![3; SIZE]).expect("inside");
        if how == "drop" {
            // Freed memory reads as whatever was stored since, and a fresh window is refused.
            assert_eq!(refused(own.connect(4, owner.segment, Some(LIMIT))), Error::NoSuchSegment);
        } else {
            assert_eq!(owner.tell("word"), "Some(217020518514230019)", "the pages are shared still");
        }
    }
    // Without windows and connections it goes quietly.
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    connection.disconnect().expect("no window");
    until("the owner has been told", || owner.tell("remove") == "Some(Ok(()))");
    assert_eq!(refused(own.connect(4, owner.segment, Some(LIMIT))), Error::NoSuchSegment);
}

#[test]
fn an_owner_that_is_stopped_holds_up_calls_and_no_stores() {
    let own = host(8);
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    let bell = own.connect_data_interrupt(4, owner.interrupt, Some(LIMIT)).expect("there");
    let window = connection.map(0..SIZE, Access::ReadWrite).expect("mapped");
    let sequence = window.sequence();
    owner.stop();
    window.store(0, 9_u64).expect("inside");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    // It takes nothing meanwhile: its queue fills, and that is said.
    for number in 0..16_u8 {
        bell.trigger(&[number]).expect("room");
    }
    assert_eq!(bell.trigger(b"x"), Err(Error::Overflow));
    let short = Some(Duration::from_millis(50));
    assert_eq!(refused(own.connect(4, owner.segment, short)), Error::Timeout);
    assert_eq!(refused(own.connect_data_interrupt(4, owner.interrupt, short)), Error::Timeout);
    kill_process(owner.pid, Signal::CONT).expect("a child");
    assert_eq!(owner.tell("word"), "Some(9)");
    for _ in 0..16 {
        assert_eq!(owner.tell("take"), "Some(Ok(()))");
    }
    until("room again", || bell.trigger(b"x").is_ok());
    // What was asked meanwhile has left nothing behind.
    drop((window, sequence));
    connection.disconnect().expect("no window");
    until("the owner has been told", || owner.tell("remove") == "Some(Ok(()))");
}

/// A connect that has been sent, and whose owner is stopped and then killed, ends.
#[test]
fn a_connect_ends_with_its_owner() {
    let own = host(8);
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    owner.stop();
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| own.connect(4, owner.segment, None));
        kill_process(owner.pid, Signal::KILL).expect("a child");
        let end = refused(connecting.join().expect("no panic"));
        assert!(matches!(end, Error::NodeNotResponding | Error::NoSuchSegment), "{end}");
    });
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
    owner.kill();
}

/// The child of a fork has no part in the objects of its parent, and does not keep their names.
#[test]
fn an_owner_that_forks_goes_on_and_its_child_keeps_nothing() {
    let own = host(8);
    let (mut owner, _connection, window, sequence) = Owner::mapped(&own);
    assert_eq!(owner.tell("fork"), "forked true true true");
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    until("the child's store", || window.load::<u64>(0) == Ok(77));
    window.store(0, 78_u64).expect("inside");
    assert_eq!(owner.tell("word"), "Some(78)");
    drop(owner.connect(&own));
    // The child lives on; the names are free all the same.
    owner.process.kill().expect("a child");
    until_lost(&sequence);
    until("the name is free", || host(4).create(owner.segment, 8).is_ok());
}

#[test]
fn transfers_to_an_owner_that_is_killed_end() {
    let own = host(8);
    let mut owner = Owner::published();
    let connection = owner.connect(&own);
    let segment = published(&own, SIZE);
    let queue = own.dma_queue(64).expect("room");
    for _ in 0..64 {
        queue.enqueue((&segment, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
    }
    queue.post().expect("it has transfers");
    owner.kill();
    let end = queue.wait(Some(LIMIT)).expect("it ends");
    assert!(matches!(end, QueueState::Done | QueueState::Error), "{end:?}");
    assert_eq!(connection.wait(Some(LIMIT)), Ok(Reason::Lost));
}

/// The owner is told when one that is connected is killed.
#[test]
fn a_connection_that_is_killed_is_noticed_by_the_owner() {
    // The roles are changed: this process owns, and the child connects by its own host.
    let own = host(4);
    let segment = published(&own, 64);
    let mut child = Connector::start(segment.id());
    let event = segment.wait(Some(LIMIT)).expect("it connects");
    assert_eq!((event.reason, event.node), (Reason::Connect, 8));
    child.0.kill().expect("a child");
    child.0.wait().expect("its end");
    assert_eq!(segment.wait(Some(LIMIT)).map(|event| event.reason), Ok(Reason::Lost));
    segment.remove().expect("nobody is connected");
}

struct Connector(std::process::Child);

impl Connector {
    fn start(segment: u32) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "faults::connector", "--nocapture"]).env(CONNECTOR, segment.to_string());
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a child"))
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        // Killed before, in the test that passes.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const CONNECTOR: &str = "CCI_SCI_CONNECTOR";

/// Runs only as the child of the last test.
#[test]
fn connector() {
    let Ok(segment) = std::env::var(CONNECTOR) else { return };
    let own = host(8);
    let connection = own.connect(4, segment.parse().expect("a number"), Some(LIMIT)).expect("published");
    let _window = connection.map(0..64, Access::ReadWrite).expect("mapped");
    // Until it is killed.
    let _ = std::io::stdin().lines().count();
}

/// Processor time of a process, hundredths of a second.
fn processor_ticks(pid: Pid) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).expect("/proc");
    let (_, rest) = stat.rsplit_once(") ").expect("a name");
    rest.split(' ').skip(11).take(2).map(|word| word.parse::<u64>().expect("a number")).sum()
}

/// Somebody asks for its name while it may open no descriptor.
#[test]
fn without_descriptors_an_owner_sleeps_and_answers_afterwards() {
    let (owner, own) = (Owner::published(), host(8));
    let limit = getrlimit(Resource::Nofile);
    prlimit(Some(owner.pid), Resource::Nofile, Rlimit { current: Some(3), ..limit }).expect("a lower limit");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| own.connect(4, owner.segment, Some(LIMIT)).map(drop));
        // It has asked by then, or the test sees nothing.
        std::thread::sleep(Duration::from_millis(100));
        let before = processor_ticks(owner.pid);
        std::thread::sleep(Duration::from_secs(1));
        let taken = processor_ticks(owner.pid) - before;
        prlimit(Some(owner.pid), Resource::Nofile, limit).expect("the old limit");
        assert!(asking.join().expect("no panic").is_ok(), "it is answered");
        assert!(taken < 10, "{taken} hundredths of a second");
    });
}
