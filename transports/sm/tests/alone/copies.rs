//! Peers of `sm` that are in the midst of an RMA while the target closes, deregisters, or executes
//! another program.

use crate::program;
use cci::__binding::{Contract, Flags, deregister};
use cci::{
    CloseError, Connection, Endpoint, EventKind, Failure, RegisterError, Rights, Rma, RmaHandle, Unusable,
    wait_for_copies,
};
use cci_conformance::memory::{Bytes, Origin};
use cci_conformance::sm_raw::{ANNOUNCE, RawPeer, await_close, learn};
use cci_conformance::sys::{cell, close, process_write};
use cci_conformance::{LIMIT, Peer, World, alone, drain, open, sm_device};
use cci_proto::Registration;
use rustix::io::pread;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

const LEN: usize = 1 << 16;
/// What the quickest of several calls may take; 100 ms are promised. A machine that is busy with
/// other tests holds some up, not all.
const BOUND: Duration = Duration::from_millis(300);

/// An endpoint with a registration, and a peer that announces a copy of it and does not go on.
struct Stuck {
    endpoint: Endpoint,
    peer: RawPeer,
    memory: Bytes,
    handle: RmaHandle,
}

impl Stuck {
    fn new(id: u32) -> Self {
        let (endpoint, honest) = (open(&sm_device()), open(&sm_device()));
        let hello = learn(&honest, id);
        let peer = RawPeer::enter(endpoint.uri(), &hello, || {
            drain(&endpoint);
        });
        let memory = Origin::Program.allocate(LEN);
        let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
        let stuck = Self { endpoint, peer, memory, handle };
        stuck.announce(&handle);
        stuck
    }

    /// Has the peer announce a copy of this registration.
    fn announce(&self, handle: &RmaHandle) {
        let mut key = [0; 8];
        assert_eq!(pread(self.peer.registry(), &mut key, 0), Ok(8));
        let number = Registration::unmixed(u64::from_ne_bytes(key), handle.words()[0]);
        self.peer.write(ANNOUNCE, &number.word().to_ne_bytes());
    }

    fn announce_nothing(&self) {
        self.peer.write(ANNOUNCE, &[0; 8]);
    }
}

/// How the sentences name the peer, whose process is this one.
fn is_named(peer: &str) -> bool {
    peer.contains("sm://") && peer.contains(&format!("process {}", std::process::id()))
}

/// Close returned success after 1 s, though the peer would write later.
#[test]
fn close_tells_of_a_copy_that_is_not_over() {
    let _alone = alone();
    let quickest = (98_301..98_306).map(close_while_a_peer_copies).min().expect("some");
    assert!(quickest < BOUND, "{quickest:?}");
}

/// How long closing takes.
fn close_while_a_peer_copies(id: u32) -> Duration {
    let Stuck { endpoint, peer, memory, .. } = Stuck::new(id);
    let (closed, begun) = (cell(&endpoint), Instant::now());
    let Err(CloseError::Busy(name)) = endpoint.close() else { panic!("not busy") };
    let took = begun.elapsed();
    assert!(is_named(&name), "{name}");
    assert_eq!(close(closed), Err(Unusable::Closed.into()), "closed all the same");
    await_close(peer.socket.as_fd(), || ());
    assert_eq!(wait_for_copies(Duration::ZERO), Err(CloseError::Busy(name)));
    peer.write(ANNOUNCE, &[0; 8]);
    assert_eq!(wait_for_copies(LIMIT), Ok(()));
    drop(memory);
    took
}

/// Of a peer that has closed its socket nothing is waited for, whatever its announcement says: it
/// has executed another program.
#[test]
fn announcement_of_a_peer_that_is_gone_does_not_count() {
    let _alone = alone();
    let stuck = Stuck::new(98_310);
    assert_eq!(stuck.endpoint.deregister(&stuck.handle), Err(RegisterError::Busy));
    let Stuck { endpoint, peer, memory, handle } = stuck;
    drop(peer);
    assert_eq!(endpoint.deregister(&handle), Ok(()));
    assert_eq!(endpoint.close(), Ok(()));
    drop(memory);
    let Stuck { endpoint, peer, .. } = Stuck::new(98_320);
    assert!(matches!(endpoint.close(), Err(CloseError::Busy(_))));
    assert!(wait_for_copies(Duration::ZERO).is_err());
    drop(peer);
    assert_eq!(wait_for_copies(LIMIT), Ok(()));
}

/// Deregistration says whom it waits for, and the connection goes on meanwhile.
#[test]
fn deregistration_names_the_peer_that_copies() {
    let _alone = alone();
    let stuck = Stuck::new(98_330);
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        let refused = deregister(cell(&stuck.endpoint), &stuck.handle).expect_err("a peer copies");
        quickest = quickest.min(begun.elapsed());
        assert_eq!(refused.why, RegisterError::Busy);
        assert!(refused.peer.as_deref().is_some_and(is_named), "{refused:?}");
    }
    assert!(quickest < BOUND, "{quickest:?}");
    stuck.announce_nothing();
    assert_eq!(stuck.endpoint.deregister(&stuck.handle), Ok(()));
    assert_eq!(stuck.endpoint.close(), Ok(()));
    drop(stuck.memory);
}

/// A registration is dropped without waiting. Its memory stays with the endpoint until the copy is
/// over, and with the library where the endpoint closes first.
#[test]
fn memory_of_a_dropped_registration_stays_while_a_peer_copies() {
    let _alone = alone();
    let stuck = Stuck::new(98_340);
    let words: Arc<[AtomicU64]> = (0..64).map(AtomicU64::new).collect();
    let drop_one = || {
        let registration = stuck.endpoint.register(Arc::clone(&words), Rights::WRITE).expect("a registration");
        stuck.announce(registration.handle());
        let begun = Instant::now();
        drop(registration);
        begun.elapsed()
    };
    let quickest = (0..5).map(|_| drop_one()).min().expect("some");
    // Deregistering waits for 100 ms; a machine that is busy holds one of five up, and not all.
    assert!(quickest < Duration::from_millis(50), "a drop waits for {quickest:?}");
    // The others are not announced any more.
    assert_eq!(stuck.endpoint.kept_registrations(), Ok(1));
    assert!(Arc::strong_count(&words) > 1, "a peer copies memory that is free");
    stuck.announce_nothing();
    assert_eq!((stuck.endpoint.kept_registrations(), Arc::strong_count(&words)), (Ok(0), 1));
    drop_one();
    let Stuck { endpoint, peer, memory, .. } = stuck;
    assert!(matches!(endpoint.close(), Err(CloseError::Busy(_))));
    assert!(Arc::strong_count(&words) > 1, "a peer copies memory that is free");
    peer.write(ANNOUNCE, &[0; 8]);
    assert_eq!(wait_for_copies(LIMIT), Ok(()));
    assert_eq!(Arc::strong_count(&words), 1);
    drop(memory);
}

/// The kernel promises what the length of a call relies on: a call that is under way when its
/// target executes another program goes on in the old address space. Only the second call, which
/// begins afterwards, reaches the new program.
#[test]
fn call_under_way_stays_in_the_address_space_that_it_began_in() {
    let _alone = alone();
    let begin = Instant::now();
    let mut overlapped = false;
    while !overlapped && begin.elapsed() < LIMIT {
        let mut peer = Peer::spawn(program(), "execute-under-copy", &[]);
        let place: Vec<usize> = peer.line().split(' ').map(|word| word.parse().expect("a number")).collect();
        let (address, len, pid) = (place[0], place[1], peer.pid());
        let bytes = vec![0xff; 1 << 20];
        let call = || process_write(pid, address, &bytes, len / bytes.len());
        let (copied, ended, mapped) = std::thread::scope(|scope| {
            let first = scope.spawn(|| (call(), Instant::now()));
            assert_eq!(peer.line(), "mapped");
            let mapped = Instant::now();
            let (copied, ended) = first.join().expect("a call");
            (copied, ended, mapped)
        });
        assert_eq!(copied.expect("copied"), len);
        overlapped |= mapped < ended;
        peer.tell("look");
        assert_eq!(peer.line(), "untouched");
        assert_eq!(call().expect("copied"), len);
        peer.tell("look");
        assert_eq!(peer.line(), "written");
    }
    assert!(overlapped, "no call was under way while the new program ran");
}

/// RMA into a process that executes another program ends with its endpoint. It went on by the
/// process's number into whatever the new program had at these addresses.
#[test]
fn program_that_a_peer_executes_is_not_written() {
    let _alone = alone();
    for round in 0..12 {
        write_until_refused("execute-over-target", &format!("round {round}"));
    }
}

/// The program may even have inherited the socket by which the connection is known to live.
#[test]
fn program_that_has_the_peers_descriptors_is_not_written() {
    let _alone = alone();
    write_until_refused("execute-over-target-with-descriptors", "with descriptors");
}

/// A process of one of the program's roles that offers memory, and a write to all of it.
struct Target {
    peer: Peer,
    connection: Connection,
    source: Bytes,
    local: RmaHandle,
    remote: RmaHandle,
}

impl Target {
    fn new(endpoint: &Endpoint, world: &World<'_>, role: &str, len: usize) -> Self {
        let source = Origin::Program.allocate(len);
        source.write(0, &vec![0xff; len]);
        let local = endpoint.register_memory(source.memory(), Rights::NONE).expect("a registration");
        let mut peer = Peer::spawn(program(), role, &[endpoint.uri()]);
        let connection = world.accept(0);
        let remote = RmaHandle::from_bytes(&world.message(0)).expect("a handle");
        assert_eq!(peer.line(), "connected");
        Self { peer, connection, source, local, remote }
    }

    fn write(&self) -> Rma<'_> {
        Rma::new(&self.local, &self.remote, self.source.memory().len())
    }
}

/// The kernel copies nothing to a process whose first thread has ended. Such a peer lives, and RMA
/// goes another way.
#[test]
fn peer_whose_first_thread_has_ended_is_written() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let mut target = Target::new(&endpoint, &world, "lose-first-thread", LEN);
    assert!(endpoint.report(target.connection).expect("open").rma_path.contains("process_vm"));
    target.peer.tell("end");
    let has_ended = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/stat", target.peer.pid().as_raw_nonzero())).expect("a process");
        status.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    };
    world.until("a first thread that has ended", has_ended);
    endpoint.rma(target.connection, &target.write(), 0, Flags::WRITE).expect("an RMA");
    assert_eq!(world.next(0, EventKind::Send).outcome(), Ok(()));
    assert_eq!(target.peer.line(), "written");
    let report = endpoint.report(target.connection).expect("open");
    assert!(report.rma_path.contains("slots") && report.why.contains("refuses process_vm"), "{report:?}");
}

/// Writes to a peer of this role, which executes another program meanwhile, until the connection
/// breaks.
fn write_until_refused(role: &str, round: &str) {
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    let mut target = Target::new(&endpoint, &world, role, 8 << 20);
    let (mut over, mut told) = (false, false);
    while !over {
        if endpoint.rma(target.connection, &target.write(), 0, Flags::WRITE).is_err() {
            break;
        }
        over = world.next(0, EventKind::Send).outcome() == Err(Failure::Disconnected);
        if !std::mem::replace(&mut told, true) {
            target.peer.tell("go");
        }
    }
    assert_eq!(target.peer.line(), "untouched", "{round}");
    world.until("a connection that is broken", || {
        endpoint.rma(target.connection, &target.write(), 0, Flags::WRITE).is_err()
    });
    endpoint.disconnect(target.connection).expect("still to be disconnected");
}
