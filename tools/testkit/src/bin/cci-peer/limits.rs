//! Roles without enough of something, and one that does nothing.

use crate::traffic::connect;
use crate::{die_with_parent, hear, say};
use cci::__binding::{Contract, Flags};
use cci::{Attribute, Connect, Device, Endpoint, EndpointOptions, EventKind, Failure, Notify, Rights, Rma, Status};
use cci_conformance::memory::Origin;
use cci_conformance::process::{context_switches, descriptors, mappings, processor_time, threads};
use cci_conformance::sm_raw::{RawListener, raw_connect};
use cci_conformance::{LIMIT, World, device_of, drain, open, pattern, readable, sm_device};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Read;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Connects, waits on the handle for so many seconds, and reports what that has cost.
pub(crate) fn idle(device: &Device, uri: &str, seconds: u64) {
    let endpoint = open(device);
    let handle = endpoint.handle().expect("a handle");
    let connection = connect(&endpoint, uri);
    endpoint.send(connection, b"hello", Notify::OnFailure(0)).expect("a send");
    assert_eq!(World::new([&endpoint]).message(0), b"hello");
    // Whatever is left of the beginning: until the handle is quiet.
    let begun = Instant::now();
    while readable(&handle, Duration::from_millis(100)) {
        assert!(begun.elapsed() < LIMIT, "the handle is never quiet");
        drain(&endpoint);
    }
    let (time, switches, begun) = (processor_time(), context_switches(), Instant::now());
    let mut wakes = 0;
    while let Some(left) = Duration::from_secs(seconds).checked_sub(begun.elapsed()) {
        if readable(&handle, left) {
            wakes += 1;
            drain(&endpoint);
        }
    }
    let (time, switches) = (processor_time() - time, context_switches() - switches);
    say(&format!("{} {switches} {wakes} {}", time.as_micros(), threads()));
}

fn with_limit<T>(resource: Resource, limit: u64, act: impl FnOnce() -> T) -> T {
    let old = getrlimit(resource);
    setrlimit(resource, Rlimit { current: Some(limit), maximum: old.maximum }).expect("a lower limit");
    let result = act();
    setrlimit(resource, old).expect("the old limit");
    result
}

/// Leaves this process so many descriptors for all that is to come.
pub(crate) fn spare_descriptors(spare: u64) {
    let limit = Rlimit { current: Some(descriptors() as u64 + spare), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).expect("a lower limit");
}

/// Opens endpoints with 0, 1, 2, ... free descriptors: each failure is an error with a sentence,
/// and leaves nothing behind.
pub(crate) fn few_descriptors(device: &Device) {
    drop(open(device));
    let before = descriptors();
    let mut failures = 0;
    for free in 0.. {
        let opened =
            with_limit(Resource::Nofile, before as u64 + free, || Endpoint::open(device, &EndpointOptions::new()));
        match opened {
            Ok(endpoint) => {
                drop(endpoint);
                break;
            }
            Err(error) => {
                assert_eq!(error.status, Status::NoMem, "{error}");
                assert!(error.to_string().len() > 20, "{error}");
                failures += 1;
            }
        }
        assert_eq!(descriptors(), before, "descriptors left after a failure with {free} free");
        assert!(free < 100, "an endpoint that needs a hundred descriptors");
    }
    assert_eq!(descriptors(), before, "descriptors left after a close");
    assert!(failures > 0);
    let (a, b) = (open(device), open(device));
    World::new([&a, &b]).connect(0, 1, RO);
    say("refused well");
}

/// A socket that connects to an endpoint and says nothing.
fn stranger(uri: &str) -> OwnedFd {
    match uri.strip_prefix("tcp://") {
        Some(address) => TcpStream::connect(address).expect("it listens").into(),
        None => raw_connect(uri).expect("it listens"),
    }
}

/// Has no descriptor left when peers come: existing connections work, new ones fail or wait, and
/// work again later.
pub(crate) fn no_descriptors_later(device: &Device) {
    let (a, b, late) = (open(device), open(device), open(device));
    let world = World::new([&a, &b, &late]);
    let (connection, _) = world.connect(0, 1, RO);
    let raw: Vec<_> = (0..3).map(|_| stranger(b.uri())).collect();
    with_limit(Resource::Nofile, descriptors() as u64, || {
        // Numbers below the limit that are free.
        let _fillers: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        let began = late.connect(&Connect::to(b.uri()).context(5).timeout(Duration::from_millis(200)));
        for number in 0..2000u64 {
            a.send(connection, &number.to_ne_bytes(), number).expect("a send");
            assert_eq!((world.message(1), world.sent(0)), (number.to_ne_bytes().to_vec(), number));
        }
        if began.is_ok() {
            let event = world.next(2, EventKind::Connect);
            assert!(event.outcome().is_err(), "connected without descriptors");
            let reason = event.reason().unwrap_or_default();
            assert!(device.transport != "tcp" || reason.contains("raise the limit (ulimit -n)"), "{reason}");
        }
    });
    if device.transport == "tcp" {
        // They were accepted by the spare descriptor, and sent away.
        for stranger in raw {
            let mut stranger = TcpStream::from(stranger);
            stranger.set_read_timeout(Some(LIMIT)).expect("a socket");
            assert!(matches!(stranger.read(&mut [0; 100]), Ok(0)), "a stranger is kept waiting");
        }
    }
    world.connect(2, 1, RO);
    say("served on");
}

/// A device of `tcp` on this host whose lanes have four streams.
pub(crate) fn device_of_streams() -> Device {
    device_of("tcp", &[("ip", "127.0.0.1"), ("streams", "4")])
}

/// Connects with descriptors for a lane and one further stream: it goes on with these, and the
/// report names the reason.
pub(crate) fn few_streams() {
    const LEN: u64 = 8 << 20;
    let device = device_of_streams();
    let (a, b) = (open(&device), open(&device));
    let world = World::new([&a, &b]);
    let areas = [(); 2].map(|()| Origin::Program.allocate(8 << 20));
    let register = |end: &Endpoint, at: usize| end.register_memory(areas[at].memory(), Rights::READ_WRITE);
    let (local, remote) = (register(&a, 0).expect("a registration"), register(&b, 1).expect("a registration"));
    with_limit(Resource::Nofile, descriptors() as u64 + 8, || {
        // Both ends of each stream are in this process: so many numbers are free.
        let mut fillers: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        fillers.truncate(fillers.len() - 5);
        let (connection, _) = world.connect(0, 1, RO);
        let path = || a.report(connection).expect("a report").path;
        let names_reason =
            |path: &str| path.contains("raise the limit (ulimit -n)") || path.contains("the peer closes it");
        world.until("a reason", || path().contains(", 2 of 4 streams: ") && names_reason(&path()));
        areas[0].write(0, &pattern(3, 8 << 20));
        a.rma(connection, &Rma::new(&local, &remote, LEN), 7, Flags::WRITE).expect("a write");
        assert_eq!(world.sent(0), 7);
        assert!(areas[1].to_vec(0, 8 << 20) == pattern(3, 8 << 20), "what was written");
    });
    say("served on");
}

fn address_space() -> u64 {
    let ranges = mappings();
    let sizes = ranges.lines().filter_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(end, 16).ok()? - u64::from_str_radix(start, 16).ok()?)
    });
    sizes.sum()
}

/// Opens endpoints with little address space left: each failure is an error with a sentence, and
/// leaves no descriptor behind.
pub(crate) fn little_memory(device: &Device) {
    drop(open(device));
    // The heap keeps room for small things, which is not what this is about.
    drop((0..4000).map(|_| vec![0u8; 1000]).collect::<Vec<_>>());
    let before = descriptors();
    let mut failures = 0;
    for step in 0..64 {
        let limit = address_space() + step * (256 << 10);
        let options = EndpointOptions::new().recv_buffers(60_000);
        match with_limit(Resource::As, limit, || Endpoint::open(device, &options)) {
            Ok(endpoint) => drop(endpoint),
            Err(error) => {
                assert_eq!(error.status, Status::NoMem, "{error}");
                assert!(error.to_string().len() > 20, "{error}");
                failures += 1;
            }
        }
        assert_eq!(descriptors(), before, "descriptors left at {step} quarters of a MiB");
    }
    assert!(failures > 0, "never refused");
    let (a, b) = (open(device), open(device));
    World::new([&a, &b]).connect(0, 1, RO);
    say("refused well");
}

/// Takes the name of an endpoint, fills its own backlog, and never accepts.
pub(crate) fn backlog(id: u32) {
    let listener = RawListener::bind(id, 0);
    let mut waiting = Vec::new();
    while let Ok(socket) = raw_connect(listener.uri()) {
        waiting.push(socket);
        assert!(waiting.len() < 10_000, "the backlog has no end");
    }
    say(listener.uri());
    hear();
}

/// Becomes another user: may neither connect to the test's endpoint nor be connected to.
pub(crate) fn nobody(uri: &str) {
    cci_conformance::sys::become_user(65_534);
    die_with_parent();
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    endpoint.connect(&Connect::to(uri).payload(b"let me in").context(1).timeout(LIMIT)).expect("a connect");
    let ended = world.next(0, EventKind::Connect);
    assert_eq!(ended.outcome(), Err(Failure::Refused));
    say(endpoint.uri());
    // The test tries the other direction now.
    let begun = Instant::now();
    let mut requests = 0;
    while begun.elapsed() < Duration::from_millis(500) {
        world.step();
        requests += world.waiting(0, EventKind::ConnectRequest);
    }
    say(&format!("requests {requests}"));
    hear();
}

/// As a server that begins as root and goes on as another user: accepts everybody of that user.
pub(crate) fn serve_as_nobody() {
    let endpoint = open(&sm_device());
    cci_conformance::sys::become_user(65_534);
    die_with_parent();
    say(endpoint.uri());
    loop {
        drain(&endpoint);
        std::thread::yield_now();
    }
}

/// Connects as another user, and says why that fails.
pub(crate) fn connect_as_nobody(uri: &str) {
    cci_conformance::sys::become_user(65_534);
    die_with_parent();
    let endpoint = open(&sm_device());
    endpoint.connect(&Connect::to(uri).context(1).timeout(LIMIT)).expect("a connect");
    let ended = World::new([&endpoint]).next(0, EventKind::Connect);
    say(&format!("{:?} {}", ended.outcome(), ended.reason().unwrap_or_default()));
}

/// The first handles of a fresh process.
pub(crate) fn handles() {
    let endpoint = open(&sm_device());
    let memory = Origin::Program.allocate(4096);
    for _ in 0..4 {
        let handle = endpoint.register_memory(memory.memory(), Rights::READ).expect("a registration");
        say(&format!("{:016x} {:016x}", handle.words()[0], handle.words()[1]));
    }
}
