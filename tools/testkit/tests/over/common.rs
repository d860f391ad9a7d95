//! What transports over the API of a library keep to between processes. Each process has two copies
//! of the library: its own, and the one beneath the library of that API.

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Device, EventKind, Failure, Notify, Rights, Rma, RmaHandle};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, Peer, World, alone, drain, most, open, open_with, pattern, process};
use std::process::Command;
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");
const RO: Attribute = Attribute::ReliableOrdered;

/// Messages of every length come back from a peer.
pub(crate) fn messages_come_back(device: &Device, peer: &str) {
    let _alone = alone();
    let mut peer = Peer::spawn(PROGRAM, "echo-over", &[peer]);
    let uri = peer.line();
    let endpoint = open(device);
    let world = World::new([&endpoint]);
    for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
        let connection = world.connect_to(0, &uri, attribute);
        for len in (0..=130).chain((131..most(connection)).step_by(997)).chain([most(connection)]) {
            endpoint.send(connection, &pattern(len as u64, len), len as u64).expect("a send");
            assert_eq!(world.message(0), pattern(len as u64, len));
            assert_eq!(world.sent(0), len as u64);
        }
        endpoint.disconnect(connection).expect("a disconnect");
    }
}

/// Long and short messages in flight together arrive in order, though their data may travel by
/// different ways.
pub(crate) fn messages_stay_in_order(device: &Device, peer: &str) {
    let _alone = alone();
    let mut peer = Peer::spawn(PROGRAM, "echo-over", &[peer]);
    let uri = peer.line();
    let endpoint = open(device);
    let world = World::new([&endpoint]);
    let connection = world.connect_to(0, &uri, RO);
    let message = |number: u64| {
        let len = if number.is_multiple_of(3) { most(connection) } else { 8 + (number % 40) as usize };
        pattern(number, len)
    };
    let (mut sent, mut got) = (0, 0);
    while got < 2_000 {
        while sent < 2_000
            && sent - got < 200
            && endpoint.send(connection, &message(sent), Notify::OnFailure(0)).is_ok()
        {
            sent += 1;
        }
        assert_eq!(world.message(0), message(got), "message {got}");
        got += 1;
    }
}

/// Memory of another process is written and read, and what lies outside of it is refused.
pub(crate) fn memory_is_written_and_read(device: &Device, peer: &str) {
    const LEN: usize = 4 << 20;
    let _alone = alone();
    let endpoint = open(device);
    let world = World::new([&endpoint]);
    let _peer = Peer::spawn(PROGRAM, "target-over", &[peer, endpoint.uri()]);
    let connection = world.accept(0);
    let remote = RmaHandle::from_bytes(&world.message(0)).expect("a handle");
    let memory = Origin::Program.allocate(LEN);
    let local = endpoint.register_memory(memory.memory(), Rights::NONE).expect("a registration");
    for (round, len) in [1, 8, 4096, 8193, 65_537, LEN].into_iter().enumerate() {
        let round = round as u64;
        memory.write(0, &pattern(round, len));
        let rma = Rma::new(&local, &remote, len as u64).remote_offset(3);
        endpoint.rma(connection, &rma, round, Flags::WRITE).expect("a write");
        assert_eq!(world.sent(0), round);
        memory.write(0, &vec![0; len]);
        endpoint.rma(connection, &rma, round, Flags::READ).expect("a read");
        assert_eq!(world.sent(0), round);
        assert!(memory.to_vec(0, len) == pattern(round, len), "{len} bytes");
    }
    let beyond = Rma::new(&local, &remote, LEN as u64).remote_offset(61 << 20);
    for flags in [Flags::WRITE, Flags::READ] {
        endpoint.rma(connection, &beyond, 9, flags).expect("an RMA");
        assert_eq!(world.next(0, EventKind::Send).outcome(), Err(Failure::RemoteHandle));
    }
}

/// The end of a killed peer ends each operation once.
pub(crate) fn a_killed_peer_ends_each_operation_once(device: &Device, peer: &str) {
    let _alone = alone();
    let endpoint = open_with(device, |options| options.disconnect_events = true);
    let world = World::new([&endpoint]);
    let mut peer = Peer::spawn(PROGRAM, "echo-over", &[peer]);
    let uri = peer.line_while(|| world.step());
    let connection = world.connect_to(0, &uri, RO);
    endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(0), b"hello");
    peer.kill();
    assert!(peer.wait().code().is_none(), "it was killed");
    let posted = (0..200).take_while(|context| endpoint.send(connection, &[1; 100], *context).is_ok()).count() as u64;
    for context in 0..posted {
        let event = world.next(0, EventKind::Send);
        assert_eq!((event.context(), event.outcome()), (context, Err(Failure::Disconnected)));
    }
    assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
    drop(world);
    assert_eq!(drain(&endpoint), 0, "more events than operations");
    endpoint.disconnect(connection).expect("it is still to be disconnected");
}

/// A forked child is refused, and starts afresh.
///
/// The library beneath uses shared memory, by this variable: other devices may have a thread, and a
/// process with threads cannot fork safely.
pub(crate) fn a_forked_child_starts_afresh(peer: &str, variable: &str) {
    let _alone = alone();
    let mut peer = Peer::spawn_with(PROGRAM, "fork-over", &[peer], &[(variable, "sm")]);
    assert_eq!(peer.line(), "undisturbed");
    assert!(peer.wait().success());
}

/// The last endpoint ends what both copies of the library have.
pub(crate) fn nothing_is_left(device: &Device) {
    let _alone = alone();
    let round = || {
        let (a, b) = (open(device), open(device));
        let handle = b.handle().expect("a handle");
        let (world, connection, _) = World::joined([&a, &b], RO);
        a.send(connection, b"sleeper", Notify::OnFailure(0)).expect("a send");
        // Its watcher has a thread from now on.
        while !cci_conformance::readable(&handle, LIMIT) || drain(&b) == 0 {}
        drop(world);
        a.close().and(b.close()).expect("closed");
    };
    round();
    let (descriptors, threads) = (process::descriptors(), process::threads());
    (0..5).for_each(|_| round());
    // A thread of the library beneath may end a moment later, also one of the first round.
    let begun = Instant::now();
    while process::descriptors() > descriptors || process::threads() > threads {
        assert!(begun.elapsed() < LIMIT, "{:?}", process::describe_descriptors());
        std::thread::yield_now();
    }
}

/// Runs a process with a configuration, and a variable that names the device of the library
/// beneath.
/// Returns what it says: its URI, or a sentence.
pub(crate) fn say(configuration: &str, variable: &str, beneath: Option<&str>) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("cci.ini");
    std::fs::write(&file, configuration).expect("a file");
    let mut command = Command::new(PROGRAM);
    command.arg("open-default").env("CCI_CONFIG", file).env_remove(variable);
    if let Some(name) = beneath {
        command.env(variable, name);
    }
    let output = command.output().expect("a process");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Why the device of a configuration is down.
pub(crate) fn reason(configuration: &str) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("cci.ini");
    std::fs::write(&file, configuration).expect("a file");
    cci::Context::from_file(&file).expect("a configuration").devices()[0].reason.clone()
}
