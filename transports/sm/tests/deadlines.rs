//! Deadlines, handles and descriptors in `sm`: time counts from when an operation begins, whoever
//! sleeps on the handle is woken for it, and an endpoint without descriptors waits without losing
//! peers.

#![forbid(unsafe_code)]

use cci::__binding::{Contract, Flags, Threading, set_threading};
use cci::{
    Attribute, Connect, ConnectionOption, Endpoint, EventKind, Failure, Notify, PollError, Rights, Rma, RmaHandle,
    SharedMemory,
};
use cci_conformance::memory::{Bytes, Origin};
use cci_conformance::process::thread_time;
use cci_conformance::sm_raw::raw_connect;
use cci_conformance::{LIMIT, World, alone, drain, open, open_with, pattern, readable, sm_device, while_polled};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Memory of the program, registered.
fn registered(endpoint: &Endpoint, len: usize, rights: Rights) -> (Bytes, RmaHandle) {
    let bytes = Origin::Program.allocate(len);
    let handle = endpoint.register_memory(bytes.memory(), rights).expect("a registration");
    (bytes, handle)
}

/// Between the first bytes of two registrations.
fn rma<'a>(local: &'a RmaHandle, remote: &'a RmaHandle, len: usize) -> Rma<'a> {
    Rma::new(local, remote, len as u64)
}

/// Calls `poll` as long as the handle is readable: afterwards the endpoint is armed and relies on
/// being woken.
fn fall_asleep(handle: &OwnedFd, mut poll: impl FnMut()) {
    let begun = Instant::now();
    while readable(handle, Duration::ZERO) {
        assert!(begun.elapsed() < LIMIT, "the handle stays readable");
        poll();
    }
}

/// As a program that sleeps: polls an endpoint only when its handle is readable, until `done`.
fn sleep_until(world: &World<'_>, at: usize, handle: &OwnedFd, what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(readable(handle, LIMIT), "nothing wakes the endpoint for {what}");
        assert!(begun.elapsed() < LIMIT, "woken in vain for {what}");
        world.poll(at);
    }
}

/// No descriptor can be opened in this process while it lives.
struct NoDescriptors(Rlimit);

impl NoDescriptors {
    fn begin() -> Self {
        let before = getrlimit(Resource::Nofile);
        let none = Rlimit { current: Some(3), maximum: before.maximum };
        setrlimit(Resource::Nofile, none).expect("a lower limit is always allowed");
        Self(before)
    }
}

impl Drop for NoDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).expect("not above the maximum");
    }
}

/// The send timeout of an RMA counts from its call. It counted from the last time that the endpoint
/// was polled, so that an RMA after a pause ended at once, half copied.
#[test]
fn timeout_of_an_rma_counts_from_its_call() {
    let _alone = alone();
    const LEN: usize = 64 << 20;
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let (_source, local) = registered(&a, LEN, Rights::NONE);
    let (_target, remote) = registered(&b, LEN, Rights::READ_WRITE);
    let timeout = Duration::from_secs(2);
    a.set_option(connection, ConnectionOption::SendTimeout, Duration::from_secs(2)).expect("an option");
    // The program does something else for longer than the timeout: passing time is what is tested.
    std::thread::sleep(timeout + Duration::from_millis(200));
    a.rma(connection, &rma(&local, &remote, LEN), 1, Flags::WRITE).expect("an RMA");
    assert_eq!(world.sent(0), 1);
}

/// The timeout of an RMA that waits behind other operations wakes a sleeping program. The timer of
/// an armed endpoint was not set for it, and the program slept on.
#[test]
fn timeout_of_a_waiting_rma_wakes_a_sleeper() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let world = World::new([&a, &b]);
    let ((full, _), (timed, _)) = (world.connect(0, 1, RO), world.connect(0, 1, RO));
    let (_source, local) = registered(&a, 4096, Rights::NONE);
    let (_target, remote) = registered(&b, 4096, Rights::READ_WRITE);
    a.set_option(timed, ConnectionOption::SendTimeout, Duration::from_millis(200)).expect("an option");
    let handle = a.handle().expect("a handle");
    // More than a ring has entries, and B is not polled: the rest waits, in the queue that the RMA
    // joins.
    for number in 0..300 {
        a.send(full, b"x", Notify::OnFailure(number)).expect("a send");
    }
    // Asleep for longer than the second after which the endpoint may look at its lanes: no other
    // timer is left that could wake it.
    let begun = Instant::now();
    while readable(&handle, Duration::from_millis(1300)) {
        assert!(begun.elapsed() < LIMIT, "the endpoint does not fall asleep");
        drain(&a);
    }
    a.rma(timed, &rma(&local, &remote, 4096), 1, Flags::WRITE).expect("room to wait");
    sleep_until(&world, 0, &handle, "the timeout", || world.waiting(0, EventKind::Send) > 0);
    let event = world.next(0, EventKind::Send);
    assert_eq!((event.outcome(), event.context()), (Err(Failure::TimedOut), 1));
}

/// The keepalive of a connection that is accepted while the program sleeps wakes it when the peer
/// stays silent. Only the wake-up for the CONNECT event came; the timer was not set for the new
/// connection.
#[test]
fn keepalive_of_a_connection_accepted_meanwhile_wakes_a_sleeper() {
    let _alone = alone();
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let handle = a.handle().expect("a handle");
    let world = World::new([&a, &b]);
    world.connect(0, 1, RO);
    a.set_keepalive(Duration::from_millis(300)).expect("an option");
    a.connect(&Connect::to(b.uri()).context(1)).expect("a connect");
    let begun = Instant::now();
    while world.waiting(1, EventKind::ConnectRequest) == 0 {
        assert!(begun.elapsed() < LIMIT, "no request comes");
        world.poll(1);
    }
    let request = world.next(1, EventKind::ConnectRequest);
    fall_asleep(&handle, || {
        world.poll(0);
    });
    request.into_request().expect("a request").accept(1).expect("an accept");
    // B is not polled any more: it answers no PING.
    sleep_until(&world, 0, &handle, "the connection", || world.waiting(0, EventKind::Connect) > 0);
    let connection = world.next(0, EventKind::Connect).connection().expect("accepted");
    loop {
        sleep_until(&world, 0, &handle, "the keepalive", || world.waiting(0, EventKind::KeepaliveTimedOut) > 0);
        if world.next(0, EventKind::KeepaliveTimedOut).connection() == Some(connection) {
            return;
        }
    }
}

/// Events of a one-thread endpoint may be returned by other threads; when messages wait for the
/// buffers that this frees, the handle becomes readable. Its own thread slept on, although both
/// messages and buffers were there.
#[test]
fn buffers_returned_by_another_thread_wake_a_sleeper() {
    let _alone = alone();
    let b = open_with(&sm_device(), |options| {
        set_threading(options, Threading::One);
        options.recv_buffers = 16;
    });
    let a = open(&sm_device());
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let handle = b.handle().expect("a handle");
    for number in 0..20u64 {
        a.send(connection, &number.to_ne_bytes(), Notify::OnFailure(0)).expect("a send");
    }
    let mut events = Vec::new();
    fall_asleep(&handle, || match b.get_event() {
        Ok(event) => events.extend(event),
        Err(error) => assert_eq!(error, PollError::NoBuffers),
    });
    assert_eq!(events.len(), 16, "as many messages as there are buffers");
    std::thread::scope(|scope| scope.spawn(move || drop(events)).join()).expect("returned");
    let world = World::new([&b]);
    for number in 16..20u64 {
        sleep_until(&world, 0, &handle, "the buffers", || world.waiting(0, EventKind::Recv) > 0);
        assert_eq!(world.message(0), number.to_ne_bytes());
    }
}

/// A listener that cannot accept for want of descriptors rests. Without the rest, the socket that
/// waits keeps the handle readable, and a program that sleeps on it spins.
#[test]
fn listener_without_descriptors_rests() {
    let _alone = alone();
    let endpoint = open(&sm_device());
    let handle = endpoint.handle().expect("a handle");
    fall_asleep(&handle, || {
        drain(&endpoint);
    });
    let waiting = raw_connect(endpoint.uri()).expect("a socket that waits to be accepted");
    let none = NoDescriptors::begin();
    let (span, used, begun) = (Duration::from_secs(1), thread_time(), Instant::now());
    let mut wakes = 0;
    while begun.elapsed() < span {
        if readable(&handle, span.saturating_sub(begun.elapsed())) {
            wakes += 1;
            assert!(endpoint.get_event().expect("usable").is_none());
        }
    }
    let used = thread_time() - used;
    drop(none);
    assert!(wakes < 50 && used < span / 5, "woken {wakes} times in {span:?}, {used:?} of processor time");
    drop(waiting);
}

/// A listener that rests tries again by timer, so that a sleeping program misses nobody once there
/// are descriptors. When the accept failed within the tick of the last look, no timer was set, and
/// the program slept on for ever.
#[test]
fn listener_that_rests_wakes_a_sleeper_when_there_are_descriptors() {
    let _alone = alone();
    let (endpoint, client) = (open(&sm_device()), open(&sm_device()));
    let handle = endpoint.handle().expect("a handle");
    fall_asleep(&handle, || {
        drain(&endpoint);
    });
    client.connect(&Connect::to(endpoint.uri()).context(1)).expect("a connect");
    let none = NoDescriptors::begin();
    // The accepts that fail: until the listener rests.
    fall_asleep(&handle, || assert!(endpoint.get_event().expect("usable").is_none()));
    drop(none);
    let world = World::new([&endpoint]);
    while_polled(&client, || {
        sleep_until(&world, 0, &handle, "who waits", || world.waiting(0, EventKind::ConnectRequest) > 0);
    });
}

/// A descriptor that does not fit into the process costs direct copies, not the connection. The
/// endpoint took the packet whose descriptor the kernel had cut off for a broken one, and closed
/// the lane.
#[test]
fn segment_for_which_there_is_no_descriptor_does_not_close_the_lane() {
    let _alone = alone();
    const LEN: usize = 1 << 16;
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let (world, connection, _) = World::joined([&a, &b], RO);
    let target = SharedMemory::new(LEN).expect("memory of the library");
    let none = NoDescriptors::begin();
    let remote = b.register_memory(target.memory(), Rights::WRITE).expect("a registration");
    // Sockets are looked at every 1,024 empty calls at the latest: A has received what B sent.
    for _ in 0..5_000 {
        world.poll(1);
        world.poll(0);
    }
    drop(none);
    a.send(connection, b"alive", Notify::OnFailure(0)).expect("the connection lives");
    assert_eq!(world.message(1), b"alive");
    let (source, local) = registered(&a, LEN, Rights::NONE);
    source.write(0, &pattern(1, LEN));
    a.rma(connection, &rma(&local, &remote, LEN), 0, Flags::WRITE | Flags::BLOCKING).expect("another way");
    let mut arrived = vec![0; LEN];
    target.read(0, &mut arrived);
    assert!(arrived == pattern(1, LEN), "other bytes arrived");
}

/// Closing takes processor time in proportion to the connections, with generous room for noise.
/// Each connection was searched for among all, so that eight times as many took sixty times as
/// long.
#[test]
fn closing_takes_time_in_proportion_to_the_connections() {
    let _alone = alone();
    let few = processor_time_of_closing(2_000);
    let many = processor_time_of_closing(16_000);
    assert!(many < few * 40, "{few:?} for 2,000 connections, {many:?} for 16,000");
}

fn processor_time_of_closing(count: usize) -> Duration {
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let mut connected = 0;
    let begun = Instant::now();
    while connected < count {
        for _ in 0..count.min(1_000) {
            a.connect(&Connect::to(b.uri())).expect("a connect");
        }
        let round = connected + count.min(1_000);
        while connected < round {
            assert!(begun.elapsed() < LIMIT, "{connected} of {count} connections");
            while let Some(event) = b.get_event().expect("usable") {
                if event.kind() == EventKind::ConnectRequest {
                    event.into_request().expect("a request").accept(0).expect("an accept");
                }
            }
            while let Some(event) = a.get_event().expect("usable") {
                connected += usize::from(event.kind() == EventKind::Connect);
            }
        }
    }
    let before = thread_time();
    a.close().expect("a close");
    thread_time() - before
}

/// Waits for the last third of a millisecond: a clock that is read in whole milliseconds is then
/// furthest behind.
fn late_in_a_millisecond() {
    loop {
        let nanos = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec % 1_000_000;
        if (650_000..800_000).contains(&nanos) {
            return;
        }
        std::hint::spin_loop();
    }
}

/// A connect never times out early. Its deadline counted from the millisecond that had begun, up to
/// 1 ms before the call.
#[test]
fn timeout_of_a_connect_is_never_early() {
    let _alone = alone();
    let (endpoint, deaf) = (open(&sm_device()), open(&sm_device()));
    let world = World::new([&endpoint]);
    for round in 0..150 {
        let timeout = Duration::from_millis(1 + round % 5);
        late_in_a_millisecond();
        let begun = Instant::now();
        endpoint.connect(&Connect::to(deaf.uri()).context(round).timeout(timeout)).expect("a connect");
        let event = world.next(0, EventKind::Connect);
        assert_eq!((event.outcome(), event.context()), (Err(Failure::TimedOut), round));
        assert!(begun.elapsed() >= timeout, "{:?} instead of {timeout:?}", begun.elapsed());
    }
}

/// Nor does a send. Its time counted from the last tick of the coarse clock, up to 4 ms before the
/// call.
#[test]
fn timeout_of_a_send_is_never_early() {
    let _alone = alone();
    const ROUNDS: u64 = 40;
    let (a, b) = (open(&sm_device()), open(&sm_device()));
    let world = World::new([&a, &b]);
    let timed: Vec<_> = (0..ROUNDS).map(|_| world.connect(0, 1, RO).0).collect();
    let (full, _) = world.connect(0, 1, RO);
    drop(world);
    // More than a ring has entries, and B is not polled any more.
    for number in 0..300 {
        a.send(full, b"x", Notify::OnFailure(number)).expect("a send");
    }
    let world = World::new([&a]);
    for (round, connection) in (0..).zip(timed) {
        let timeout = Duration::from_millis(5 + round % 4);
        let micros = u32::try_from(timeout.as_micros()).expect("small");
        a.set_option(connection, ConnectionOption::SendTimeout, Duration::from_micros(u64::from(micros)))
            .expect("an option");
        late_in_a_millisecond();
        let begun = Instant::now();
        a.send(connection, b"late", round).expect("room to wait");
        let event = world.next(0, EventKind::Send);
        assert_eq!((event.outcome(), event.context()), (Err(Failure::TimedOut), round));
        assert!(begun.elapsed() >= timeout, "{:?} instead of {timeout:?}", begun.elapsed());
    }
}

/// What an endpoint expects and takes back leaves nothing: its one send buffer is free again, and
/// no event comes.
#[test]
fn expectation_that_is_taken_back_leaves_nothing() {
    let _alone = alone();
    let deaf = open(&sm_device());
    let worker = open_with(&sm_device(), |options| options.send_buffers = 1);
    let connect = || worker.connect(&Connect::to(deaf.uri()).context(1).timeout(Duration::from_millis(1)));
    for token in 1..100 {
        let limit = Duration::from_secs(10);
        let expected =
            cci_conformance::sys::cell(&worker).with(|core, transport| transport.expect(core, token, 7, limit));
        assert_eq!(expected, Ok(Ok(())));
        assert_eq!(connect(), Err(cci::ConnectError::NoBuffers), "an expectation has the buffer");
        cci_conformance::sys::cell(&worker)
            .with(|core, transport| transport.forget_expected(core, token))
            .expect("open");
        // Another one's token changes nothing.
        cci_conformance::sys::cell(&worker)
            .with(|core, transport| transport.forget_expected(core, token))
            .expect("open");
    }
    assert_eq!(drain(&worker), 0, "an event of what was taken back");
    connect().expect("the buffer is free");
}
