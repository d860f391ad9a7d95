//! The transport `portals` between processes, each of which has two copies of the library: its own,
//! and the one beneath the library of Portals.

#![forbid(unsafe_code)]

use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connect, Connection, Device, Endpoint, EventKind, Failure, Notify, Rights, Rma, RmaHandle};
use cci_testkit::memory::Origin;
use cci_testkit::{LIMIT, Peer, World, alone, build, device_of, drain, most, open, open_with, pattern, process};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");
const RO: Attribute = Attribute::ReliableOrdered;
/// Interface ids of our library: the default one, and the accelerated one.
const INTERFACES: [&str; 2] = ["0", "257"];

/// Our own library, of the profile of this test.
static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let dir = build("cci-portals3", Path::new(env!("CARGO_TARGET_TMPDIR")));
    dir.join("libcci_portals3.so").display().to_string()
});

fn device(interface: &str) -> Device {
    device_of("portals", &[("library", &LIBRARY), ("interface", interface)])
}

/// The same for another process.
fn named(interface: &str) -> String {
    format!("portals library={} interface={interface}", *LIBRARY)
}

fn connect(world: &World<'_>, endpoint: &Endpoint, uri: &str, attribute: Attribute) -> Connection {
    endpoint.connect(&Connect::to(uri).attribute(attribute).context(1).timeout(LIMIT)).expect("a connect");
    let event = world.next(0, EventKind::Connect);
    assert_eq!(event.outcome(), Ok(()));
    event.connection().expect("one")
}

#[test]
fn messages_of_every_length_come_back_from_a_peer_of_either_mode() {
    let _alone = alone();
    for (own, peer) in [(0, 0), (0, 1), (1, 0)] {
        let mut peer = Peer::spawn(PROGRAM, "echo-over", &[&named(INTERFACES[peer])]);
        let uri = peer.line();
        let endpoint = open(&device(INTERFACES[own]));
        let world = World::new([&endpoint]);
        for attribute in [RO, Attribute::ReliableUnordered, Attribute::Unreliable] {
            let connection = connect(&world, &endpoint, &uri, attribute);
            for len in (0..=130).chain((131..most(connection)).step_by(997)).chain([most(connection)]) {
                endpoint.send(connection, &pattern(len as u64, len), len as u64).expect("a send");
                assert_eq!(world.message(0), pattern(len as u64, len));
                assert_eq!(world.sent(0), len as u64);
            }
            endpoint.disconnect(connection).expect("a disconnect");
        }
    }
}

/// Long and short messages in flight together arrive in order, though their data travel by
/// different ways.
#[test]
fn messages_of_all_lengths_stay_in_order() {
    let _alone = alone();
    let mut peer = Peer::spawn(PROGRAM, "echo-over", &[&named("0")]);
    let uri = peer.line();
    let endpoint = open(&device("0"));
    let world = World::new([&endpoint]);
    let connection = connect(&world, &endpoint, &uri, RO);
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

#[test]
fn memory_of_another_process_is_written_and_read() {
    const LEN: usize = 4 << 20;
    let _alone = alone();
    for interface in INTERFACES {
        let endpoint = open(&device(interface));
        let world = World::new([&endpoint]);
        let _peer = Peer::spawn(PROGRAM, "target-over", &[&named("0"), endpoint.uri()]);
        let request = world.next(0, EventKind::ConnectRequest);
        request.into_request().expect("a request").accept(1).expect("an accept");
        let connection = world.next(0, EventKind::Accept).connection().expect("one");
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
}

#[test]
fn the_end_of_a_killed_peer_ends_each_operation_once() {
    let _alone = alone();
    for interface in INTERFACES {
        let endpoint = open_with(&device(interface), |options| options.disconnect_events = true);
        let world = World::new([&endpoint]);
        let mut peer = Peer::spawn(PROGRAM, "echo-over", &[&named(interface)]);
        let uri = peer.line_while(|| world.step());
        let connection = connect(&world, &endpoint, &uri, RO);
        endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), b"hello");
        peer.kill();
        assert!(peer.wait().code().is_none(), "it was killed");
        let posted =
            (0..200).take_while(|context| endpoint.send(connection, &[1; 100], *context).is_ok()).count() as u64;
        for context in 0..posted {
            let event = world.next(0, EventKind::Send);
            assert_eq!((event.context(), event.outcome()), (context, Err(Failure::Disconnected)));
        }
        assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
        drop(world);
        assert_eq!(drain(&endpoint), 0, "more events than operations");
        endpoint.disconnect(connection).expect("it is still to be disconnected");
    }
}

#[test]
fn a_forked_child_is_refused_and_starts_afresh() {
    let _alone = alone();
    let mut peer = Peer::spawn(PROGRAM, "fork-over", &[&named("0")]);
    assert_eq!(peer.line(), "undisturbed");
    assert!(peer.wait().success());
}

/// The last endpoint ends what both copies of the library have.
#[test]
fn nothing_is_left_of_an_endpoint_that_is_closed() {
    let _alone = alone();
    let device = device("0");
    let round = || {
        let (a, b) = (open(&device), open(&device));
        let handle = b.handle().expect("a handle");
        let world = World::new([&a, &b]);
        let (connection, _) = world.connect(0, 1, RO);
        a.send(connection, b"sleeper", Notify::OnFailure(0)).expect("a send");
        // Its watcher has a thread from now on.
        while !cci_testkit::readable(&handle, LIMIT) || drain(&b) == 0 {}
        drop(world);
        a.close().and(b.close()).expect("closed");
    };
    round();
    let before = (process::descriptors(), process::threads());
    (0..5).for_each(|_| round());
    assert_eq!((process::descriptors(), process::threads()), before, "{:?}", process::describe_descriptors());
}

/// Runs a process with a configuration, and gives what it says.
fn say(configuration: &str, beneath: Option<&str>) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("cci.ini");
    std::fs::write(&file, configuration.replace("LIBRARY", &LIBRARY)).expect("a file");
    let mut command = Command::new(PROGRAM);
    command.arg("open-default").env("CCI_CONFIG", file).env_remove("CCI_PORTALS_DEVICE");
    if let Some(name) = beneath {
        command.env("CCI_PORTALS_DEVICE", name);
    }
    let output = command.output().expect("a process");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

#[test]
fn the_library_beneath_takes_its_device_by_name_and_never_one_over_portals() {
    const OVER: &str = "[over]\ntransport = portals\nlibrary = LIBRARY\ndefault = 1\n";
    assert!(say(OVER, None).starts_with("portals://127.0.0.1:"), "its own section is ignored");
    assert!(say(OVER, Some("sm")).starts_with("portals://"), "{}", say(OVER, Some("sm")));
    let with_another = format!("{OVER}[mine]\ntransport = sm\n");
    assert!(say(&with_another, Some("mine")).starts_with("portals://"));
    let refused = say(OVER, Some("over"));
    assert!(
        refused.contains(
            "would use the transport portals in its turn (PTL_IFACE_CYCLE); name another device by CCI_PORTALS_DEVICE"
        ),
        "{refused}"
    );
    let by_ways = format!("{OVER}[ways]\ntransport = auto\nways = portals,sm\n");
    assert!(say(&by_ways, Some("ways")).contains("PTL_IFACE_CYCLE"), "{}", say(&by_ways, Some("ways")));
    assert!(say(OVER, Some("nothing")).contains("PTL_FAIL"), "{}", say(OVER, Some("nothing")));
}

#[test]
fn a_library_that_is_none_is_refused_with_a_sentence() {
    let missing = say("[over]\ntransport = portals\nlibrary = /nowhere/libportals3.so\ndefault = 1\n", None);
    assert!(missing.contains("no usable device"), "{missing}");
    let devices = |library: &str| {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("cci.ini");
        std::fs::write(&file, format!("[over]\ntransport = portals\nlibrary = {library}\n")).expect("a file");
        cci::Context::from_file(&file).expect("a configuration").devices()[0].reason.clone()
    };
    assert!(devices("/nowhere/libportals3.so").starts_with("cannot load a library of Portals: "));
    let other = devices("libc.so.6");
    assert_eq!(other, "the library libc.so.6 has no PtlInit; name another one by the key library");
}
