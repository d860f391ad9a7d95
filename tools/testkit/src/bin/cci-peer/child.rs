//! Roles that fork and execute.

use crate::traffic::connect;
use crate::{hear, say};
use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connect, ConnectError, Context, Device, EndpointOptions, EventKind, LocalEndpoint, Notify, OptionError,
    PollError, RegisterError, RequestError, Rights, Rma, RmaError, SendError, Status, Unusable,
};
use cci_conformance::memory::Origin;
use cci_conformance::sys::{PrivateMemory, RawEvent, end_thread, fork as fork_process, inherit_descriptors};
use cci_conformance::{LIMIT, World, open, pattern, sm_device};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Connects, then executes another program in its place.
pub(crate) fn execute(uri: &str) {
    let endpoint = open(&sm_device());
    connect(&endpoint, uri);
    say("connected");
    hear();
    let error = Command::new(std::env::current_exe().expect("this program")).arg("wait").exec();
    panic!("cannot execute: {error}");
}

/// Where a target lies, and later memory of the program that is executed in its place.
const PLACE: (usize, usize) = (0x6000_0000_0000, 8 << 20);

/// Lets its peer write to memory at [`PLACE`], and executes another program that has memory there,
/// and either no descriptor of this one or all.
pub(crate) fn execute_over_target(uri: &str, inherits: bool) {
    let endpoint = open(&sm_device());
    let connection = connect(&endpoint, uri);
    let memory = PrivateMemory::at(PLACE.0, PLACE.1);
    let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
    endpoint.send(connection, &handle.to_bytes(), Notify::OnFailure(0)).expect("a send");
    say("connected");
    hear();
    if inherits {
        inherit_descriptors();
    }
    let error = Command::new(std::env::current_exe().expect("this program")).arg("look").exec();
    panic!("cannot execute: {error}");
}

/// Lets its peer write to memory, and ends its first thread; another one polls on.
pub(crate) fn lose_first_thread(uri: &str) {
    let endpoint: &'static _ = Box::leak(Box::new(open(&sm_device())));
    let connection = connect(endpoint, uri);
    let memory = PrivateMemory::new(1 << 16);
    let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
    endpoint.send(connection, &handle.to_bytes(), Notify::OnFailure(0)).expect("a send");
    say("connected");
    hear();
    std::thread::spawn(move || {
        let mut last = [0];
        while last == [0] {
            drop(endpoint.get_event().expect("usable"));
            memory.read(memory.len() - 1, &mut last);
        }
        say("written");
        std::mem::forget(memory);
    });
    end_thread();
}

/// Opens an endpoint, forks, closes it, and opens another one of the same name, again and again.
/// Says how often that went well, and how it failed.
pub(crate) fn fork_and_open_again(transport: &str) {
    const ROUNDS: u32 = 50;
    let device = match transport {
        "sm" => sm_device(),
        _ => cci_conformance::device_of(transport, &[("ip", "127.0.0.1")]),
    };
    let (mut well, mut badly) = (0, String::new());
    // On one processor a child does not run before its parent sleeps.
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).expect("a processor of its own");
    for _ in 0..ROUNDS {
        let first = open(&device);
        let uri = first.uri().to_owned();
        let name = match transport {
            "sm" => uri.split_once("://").expect("a name").1,
            _ => uri.rsplit_once(':').expect("a port").1,
        };
        let options = EndpointOptions::new().service(name);
        let Some(child) = fork_process() else { std::process::exit(0) };
        drop(first);
        match cci::Endpoint::open(&device, &options) {
            Ok(_) => well += 1,
            Err(error) => badly = error.to_string(),
        }
        waitpid(Some(child), WaitOptions::empty()).expect("an own child");
    }
    say(&format!("{well} of {ROUNDS} {badly}"));
}

/// Looks whether somebody writes to memory at [`PLACE`].
pub(crate) fn look() {
    let memory = PrivateMemory::at(PLACE.0, PLACE.1);
    let begun = Instant::now();
    let mut byte = [0];
    while begun.elapsed() < Duration::from_millis(50) {
        for at in (0..PLACE.1).step_by(64 << 10) {
            memory.read(at, &mut byte);
            if byte != [0] {
                return say("written");
            }
        }
    }
    say("untouched");
}

/// Where memory lies that one call of the kernel copies to, and later memory of the program that is
/// executed during the call. So long that executing takes less time than the call.
const UNDER_COPY: (usize, usize) = (0x6100_0000_0000, 128 << 20);

/// Executes another program that has memory at [`UNDER_COPY`] as soon as somebody has begun to copy
/// there.
pub(crate) fn execute_under_copy() {
    let memory = PrivateMemory::at(UNDER_COPY.0, UNDER_COPY.1);
    say(&format!("{} {}", UNDER_COPY.0, UNDER_COPY.1));
    let mut byte = [0];
    while byte == [0] {
        // Another process writes it: no compiler may read it once for all rounds.
        std::thread::yield_now();
        memory.read(0, &mut byte);
    }
    let error = Command::new(std::env::current_exe().expect("this program")).arg("look-twice").exec();
    panic!("cannot execute: {error}");
}

/// Says twice, each time when asked, whether any page at [`UNDER_COPY`] has been written.
pub(crate) fn look_twice() {
    let memory = PrivateMemory::at(UNDER_COPY.0, UNDER_COPY.1);
    say("mapped");
    for _ in 0..2 {
        hear();
        let is_written = |at| {
            let mut byte = [0];
            memory.read(at, &mut byte);
            byte != [0]
        };
        let written = (0..UNDER_COPY.1).step_by(4096).any(is_written);
        say(if written { "written" } else { "untouched" });
    }
}

/// Does nothing with CCI.
pub(crate) fn wait() {
    say("another program");
    hear();
}

/// Connects, forks a child that keeps every descriptor, says its number, and waits.
pub(crate) fn leave_child(device: &Device, uri: &str) {
    // Of one thread, so that the process has no other one.
    let endpoint = LocalEndpoint::open(device, &EndpointOptions::new()).expect("an endpoint");
    endpoint.connect(&Connect::to(uri).timeout(LIMIT)).expect("a connect");
    let connected = loop {
        if let Some(event) = endpoint.get_event().expect("usable") {
            break event;
        }
    };
    assert_eq!((connected.kind(), connected.outcome()), (EventKind::Connect, Ok(())));
    let Some(child) = fork_process() else {
        // Lives on when its parent is killed: until the test closes the pipe, which it has
        // inherited.
        set_parent_process_death_signal(None).expect("no signal");
        cci_conformance::sys::alarm(20);
        hear();
        std::process::exit(0);
    };
    say(&format!("child {}", child.as_raw_pid()));
    hear();
}

/// In the child: every call on what was inherited is refused with one clear error.
fn inherited_is_refused(site: &Site<'_>) {
    let Site { endpoint, connection, handle, .. } = site;
    let forked = Unusable::Forked;
    assert_eq!(endpoint.get_event().err(), Some(PollError::Unusable(forked)));
    for flags in [Flags::NONE, Flags::SILENT, Flags::BLOCKING] {
        assert_eq!(endpoint.send_flags(*connection, b"x", 1, flags), Err(SendError::Unusable(forked).into()));
    }
    let parts = [std::io::IoSlice::new(b"x")];
    assert_eq!(endpoint.send_vectored(*connection, &parts, 1), Err(SendError::Unusable(forked)));
    let connected = endpoint.connect(&Connect::to(endpoint.uri()).context(1));
    assert_eq!(connected, Err(ConnectError::Unusable(forked)));
    assert_eq!(endpoint.disconnect(*connection), Err(OptionError::Unusable(forked)));
    let registered = endpoint.register_memory(site.memory.memory(), Rights::READ);
    assert_eq!(registered, Err(RegisterError::Unusable(forked)));
    assert_eq!(endpoint.deregister(handle), Err(RegisterError::Unusable(forked)));
    let rma = Rma::new(handle, handle, 8);
    assert_eq!(endpoint.rma(*connection, &rma, 1, Flags::WRITE), Err(RmaError::Unusable(forked).into()));
    assert_eq!(endpoint.handle().map(|_| ()).map_err(|error| error.status), Err(Status::DeviceDead));
    assert!(rustix::io::fcntl_getfd(endpoint.as_fd()).is_ok(), "the inherited descriptor is open");
    assert_eq!(endpoint.set_send_timeout(Duration::from_micros(1)), Err(OptionError::Unusable(forked)));
    assert_eq!(endpoint.keepalive(), Err(OptionError::Unusable(forked)));
    assert_eq!(endpoint.recv_buffers(), Err(OptionError::Unusable(forked)));
    assert_eq!(endpoint.alignment(), Err(OptionError::Unusable(forked)));
    assert_eq!(endpoint.report(*connection), Err(OptionError::Unusable(forked)));
    let option = cci::ConnectionOption::SendTimeout;
    assert_eq!(endpoint.option(*connection, option), Err(OptionError::Unusable(forked)));
    assert_eq!(endpoint.set_option(*connection, option, Duration::from_micros(1)), Err(OptionError::Unusable(forked)));
    for status in [PollError::Unusable(forked).status(), SendError::Unusable(forked).status(), forked.status()] {
        assert_eq!(status, Status::DeviceDead);
    }
}

/// What the child inherits.
struct Site<'e> {
    endpoint: &'e cci::Endpoint,
    connection: cci::Connection,
    handle: cci::RmaHandle,
    memory: &'e cci_conformance::memory::Bytes,
}

/// Messages and an RMA between two endpoints of this process.
fn exchange(world: &World<'_>, endpoints: [&cci::Endpoint; 2], connection: cci::Connection, rounds: u64) {
    let (source, target) = (Origin::Library.allocate(5000), Origin::Program.allocate(5000));
    let local = endpoints[0].register_memory(source.memory(), Rights::NONE).expect("a registration");
    let remote = endpoints[1].register_memory(target.memory(), Rights::WRITE).expect("a registration");
    for round in 0..rounds {
        for len in [8, 300] {
            endpoints[0].send(connection, &pattern(round, len), round).expect("a send");
            assert_eq!((world.message(1), world.sent(0)), (pattern(round, len), round));
        }
        source.write(0, &pattern(round, 5000));
        let rma = Rma::new(&local, &remote, 5000);
        endpoints[0].rma(connection, &rma, round, Flags::WRITE).expect("a write");
        assert_eq!((world.sent(0), target.to_vec(0, 5000)), (round, pattern(round, 5000)));
    }
    endpoints[0].deregister(&local).expect("own registration");
    endpoints[1].deregister(&remote).expect("own registration");
}

/// A fresh start in this process: a context, two endpoints, traffic.
fn start_afresh(device: &Device) {
    let context = Context::new().expect("a context of the child's own");
    assert!(!context.devices().is_empty());
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    exchange(&world, [&a, &b], connection, 50);
}

/// Waits for a child of this process; whether it ended well.
fn ended_well(child: Pid) -> bool {
    let (_, status) = waitpid(Some(child), WaitOptions::empty()).expect("an own child").expect("it has ended");
    status.exit_status() == Some(0)
}

/// Forks with everything open: the child is refused and starts afresh, the parent goes on
/// undisturbed.
pub(crate) fn fork(device: &Device) {
    let (a, b) = (open(device), open(device));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let memory = Origin::Program.allocate(64);
    let handle = a.register_memory(memory.memory(), Rights::READ_WRITE).expect("a registration");
    let os_handle = b.handle().expect("a handle");
    for round in 0..5 {
        // An event that is borrowed, one that is queued, and a request, all across the fork.
        a.send(connection, &pattern(7, 200), 1).expect("a send");
        a.connect(&Connect::to(b.uri()).payload(b"across").context(2).timeout(LIMIT)).expect("a connect");
        let received = world.next(1, EventKind::Recv);
        let request = world.next(1, EventKind::ConnectRequest);
        let Some(child) = fork_process() else {
            set_parent_process_death_signal(Some(Signal::KILL)).expect("a valid signal");
            inherited_is_refused(&Site { endpoint: &a, connection, handle, memory: &memory });
            let forked = Err(RequestError::Unusable(Unusable::Forked));
            let request = RawEvent::of(request);
            assert_eq!((request.accept(1), request.reject()), (forked, forked));
            assert_eq!(RawEvent::of(received).give_back(), forked);
            start_afresh(device);
            // Destructors of everything that was inherited run here: they must touch nothing.
            drop(os_handle);
            drop(world);
            drop((a, b));
            std::process::exit(0);
        };
        assert_eq!(world.sent(0), 1);
        exchange(&world, [&a, &b], connection, 50);
        assert!(ended_well(child), "the child of round {round}");
        assert_eq!(received.received().expect("a message").to_vec(), pattern(7, 200));
        request.into_request().expect("a request").accept(3).expect("an accept");
        assert_eq!(world.next(0, EventKind::Connect).outcome(), Ok(()));
        exchange(&world, [&a, &b], connection, 50);
        start_afresh(device);
    }
    assert!(cci::Endpoint::open(device, &EndpointOptions::new()).is_ok());
    say("undisturbed");
}

/// Forks children that exit at once, by every way out, while messages flow: the parent does not
/// notice.
pub(crate) fn fork_silently() {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    for round in 0..30 {
        let Some(child) = fork_process() else {
            match round % 3 {
                0 => std::process::exit(0),
                // All destructors of what was inherited.
                1 => return,
                _ => {
                    let program = std::env::current_exe().expect("this program");
                    let error = Command::new(program).arg("wait").stdin(std::process::Stdio::null()).exec();
                    panic!("cannot execute: {error}");
                }
            }
        };
        exchange(&world, [&a, &b], connection, 5);
        let (_, status) = waitpid(Some(child), WaitOptions::empty()).expect("an own child").expect("it has ended");
        assert!(status.exit_status().is_some(), "the child of round {round} ended by {status:?}");
        exchange(&world, [&a, &b], connection, 5);
    }
    say("undisturbed");
}
