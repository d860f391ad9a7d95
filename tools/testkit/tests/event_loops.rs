//! Programs that sleep in every kind of event loop get all of their events, on every transport in
//! real time, with both sides asleep.

#![forbid(unsafe_code)]

use cci::__binding::{Contract, Flags};
use cci::{Connect, Connection, Device, Endpoint, Event, EventKind, Notify};
use cci_conformance::sys::select_readable;
use cci_conformance::{LIMIT, device_of, drain, open, readable, sm_device};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const CONNECTS: u32 = 1000;
const MESSAGES: u32 = 10_000;

fn sock() -> Device {
    device_of("sock", &[("ip", "127.0.0.1")])
}

/// How a program waits for its handle.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Edge,
    OneShot,
    Level,
    Select,
    Poll,
    /// Level-triggered for [`PHASE`] waits, then edge-triggered for as many.
    Changing,
}

/// Long enough for an endpoint to find out how its program waits.
const PHASE: u32 = 500;

struct Waiter {
    kind: Kind,
    handle: OwnedFd,
    epoll: OwnedFd,
    waits: Cell<u32>,
}

impl Waiter {
    fn new(endpoint: &Endpoint, kind: Kind) -> Self {
        let handle = endpoint.handle().expect("a handle");
        let epoll = epoll::create(CreateFlags::CLOEXEC).expect("an epoll");
        epoll::add(&epoll, &handle, EventData::new_u64(0), Self::flags(kind)).expect("registered");
        Self { kind, handle, epoll, waits: Cell::new(0) }
    }

    fn flags(kind: Kind) -> EventFlags {
        EventFlags::IN
            | match kind {
                Kind::Edge | Kind::Changing => EventFlags::ET,
                Kind::OneShot => EventFlags::ET | EventFlags::ONESHOT,
                _ => EventFlags::empty(),
            }
    }

    /// Waits until the handle tells something; false when the time is over.
    fn wait(&self, limit: Duration) -> bool {
        match self.kind {
            Kind::Poll => readable(&self.handle, limit),
            Kind::Select => select_readable(&self.handle, limit),
            Kind::OneShot => {
                // Registered anew after each wake-up, as one does who hands the endpoint to another
                // thread meanwhile.
                let flags = Self::flags(Kind::OneShot);
                epoll::modify(&self.epoll, &self.handle, EventData::new_u64(0), flags).expect("registered");
                self.epoll_wait(limit)
            }
            Kind::Edge | Kind::Level => self.epoll_wait(limit),
            Kind::Changing => {
                let waits = self.waits.replace(self.waits.get().wrapping_add(1));
                if (waits / PHASE).is_multiple_of(2) { readable(&self.handle, limit) } else { self.epoll_wait(limit) }
            }
        }
    }

    fn epoll_wait(&self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).expect("a time");
        let mut events = [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 1];
        loop {
            match epoll::wait(&self.epoll, &mut events[..], Some(&limit)) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("cannot wait: {error}"),
            }
        }
    }
}

/// What a side of the exchange does with an event. True: it has all that it wanted.
trait Side: Send {
    fn begin(&mut self, _: &Endpoint) {}
    fn on_event(&mut self, endpoint: &Endpoint, event: Event<'_>);
    fn is_done(&self) -> bool;
}

/// Connects again and again, then sends and awaits the echo again and again.
struct Client {
    uri: String,
    connects: u32,
    messages: u32,
    completions: u32,
}

impl Client {
    fn new(uri: &str) -> Self {
        Self { uri: uri.to_owned(), connects: CONNECTS, messages: MESSAGES, completions: 0 }
    }

    fn connect(&self, endpoint: &Endpoint) {
        endpoint.connect(&Connect::to(&self.uri)).expect("a connect");
    }

    fn send(&mut self, endpoint: &Endpoint, connection: Connection) {
        // Some tell of their end, some do not.
        let flags = if self.messages.is_multiple_of(3) { Flags::NONE } else { Flags::SILENT };
        self.completions += u32::from(flags == Flags::NONE);
        endpoint.send_flags(connection, &self.messages.to_ne_bytes(), 0, flags).expect("a send");
    }
}

impl Side for Client {
    fn begin(&mut self, endpoint: &Endpoint) {
        self.connect(endpoint);
    }

    fn on_event(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match event.kind() {
            EventKind::Connect => {
                event.outcome().expect("a connection");
                let connection = event.connection().expect("a connection");
                self.connects -= 1;
                if self.connects > 0 {
                    endpoint.disconnect(connection).expect("open");
                    self.connect(endpoint);
                } else {
                    self.send(endpoint, connection);
                }
            }
            EventKind::Recv => {
                let bytes = event.received().expect("a message").to_vec();
                assert_eq!(bytes, self.messages.to_ne_bytes());
                self.messages -= 1;
                if self.messages > 0 {
                    self.send(endpoint, event.connection().expect("its connection"));
                }
            }
            EventKind::Send => {
                event.outcome().expect("delivered");
                self.completions -= 1;
            }
            other => panic!("{other:?}"),
        }
    }

    fn is_done(&self) -> bool {
        self.messages == 0 && self.completions == 0
    }
}

/// Accepts, and sends every message back.
struct Server {
    messages: u32,
}

impl Side for Server {
    fn on_event(&mut self, endpoint: &Endpoint, event: Event<'_>) {
        match event.kind() {
            EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).expect("an accept"),
            EventKind::Recv => {
                let bytes = event.received().expect("a message").to_vec();
                let connection = event.connection().expect("its connection");
                endpoint.send(connection, &bytes, Notify::OnFailure(0)).expect("an echo");
                self.messages -= 1;
            }
            // The client may have gone away before it heard of its connection.
            EventKind::Accept => {}
            other => panic!("{other:?}"),
        }
    }

    fn is_done(&self) -> bool {
        self.messages == 0
    }
}

/// The loop of a program: takes all events, then sleeps.
fn run(endpoint: &Endpoint, side: &mut dyn Side, kind: Kind) {
    let waiter = Waiter::new(endpoint, kind);
    side.begin(endpoint);
    loop {
        while let Some(event) = endpoint.get_event().expect("an open endpoint") {
            side.on_event(endpoint, event);
        }
        if side.is_done() {
            return;
        }
        assert!(waiter.wait(LIMIT), "asleep for ever");
    }
}

fn both_asleep(device: &Device, kind: Kind) {
    let (server, client) = (open(device), open(device));
    std::thread::scope(|scope| {
        scope.spawn(|| run(&server, &mut Server { messages: MESSAGES }, kind));
        run(&client, &mut Client::new(server.uri()), kind);
    });
}

/// A program that sleeps first, and takes one event at most each time that the handle is readable.
fn run_by_readiness(endpoint: &Endpoint, side: &mut dyn Side, kind: Kind) {
    let waiter = Waiter::new(endpoint, kind);
    side.begin(endpoint);
    while !side.is_done() {
        assert!(waiter.wait(LIMIT), "asleep for ever");
        if let Some(event) = endpoint.get_event().expect("an open endpoint") {
            side.on_event(endpoint, event);
        }
    }
}

fn one_event_a_wait(device: &Device) {
    let (server, client) = (open(device), open(device));
    std::thread::scope(|scope| {
        scope.spawn(|| run_by_readiness(&server, &mut Server { messages: MESSAGES }, Kind::Level));
        run_by_readiness(&client, &mut Client::new(server.uri()), Kind::Level);
    });
}

/// As a program of tokio is written ordinarily.
#[allow(deprecated, reason = "programs use this call; the handle outlives its registration here")]
async fn run_async(endpoint: &Endpoint, side: &mut dyn Side) {
    use tokio::io::unix::AsyncFd;
    let handle = endpoint.handle().expect("a handle");
    let handle = AsyncFd::with_interest(handle, tokio::io::Interest::READABLE).expect("a reactor");
    side.begin(endpoint);
    while !side.is_done() {
        let mut guard = handle.readable().await.expect("readiness");
        let event = guard.try_io(|_| {
            let event = endpoint.get_event().expect("an open endpoint");
            event.ok_or_else(|| std::io::ErrorKind::WouldBlock.into())
        });
        if let Ok(event) = event {
            side.on_event(endpoint, event.expect("an event"));
        }
    }
}

fn tokio_both_asleep(device: &Device) {
    let (server, client) = (open(device), open(device));
    let run = |endpoint: &Endpoint, side: &mut dyn Side| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let limit = runtime.block_on(async { tokio::time::timeout(LIMIT, run_async(endpoint, side)).await });
        limit.expect("asleep for ever");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(&server, &mut Server { messages: MESSAGES }));
        run(&client, &mut Client::new(server.uri()));
    });
}

/// Wakes the threads of a test when one of them has seen the end, or has failed.
struct Over(OwnedFd);

impl Over {
    fn tell(&self) {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).expect("an eventfd");
    }
}

struct TellsOver<'a>(&'a Over);

impl Drop for TellsOver<'_> {
    fn drop(&mut self) {
        self.0.tell();
    }
}

/// An edge-triggered thread a side, and one more that takes events of the same endpoint.
fn two_threads(device: &Device) {
    let (server, client) = (open(device), open(device));
    let ends = [(); 2].map(|()| Over(eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd")));
    let share = |endpoint: &Endpoint, side: &Mutex<&mut dyn Side>, over: &Over, first: bool| {
        let _tells = TellsOver(over);
        let waiter = Waiter::new(endpoint, Kind::Edge);
        epoll::add(&waiter.epoll, &over.0, EventData::new_u64(1), EventFlags::IN).expect("registered");
        let lock = || side.lock().unwrap_or_else(PoisonError::into_inner);
        if first {
            lock().begin(endpoint);
        }
        while !lock().is_done() {
            while let Some(event) = endpoint.get_event().expect("an open endpoint") {
                lock().on_event(endpoint, event);
            }
            assert!(lock().is_done() || waiter.wait(LIMIT), "asleep for ever");
        }
    };
    let mut sides = (Server { messages: MESSAGES }, Client { messages: MESSAGES, ..Client::new(server.uri()) });
    let (serves, asks) = (Mutex::new(&mut sides.0 as &mut dyn Side), Mutex::new(&mut sides.1 as &mut dyn Side));
    std::thread::scope(|scope| {
        scope.spawn(|| share(&server, &serves, &ends[0], true));
        scope.spawn(|| share(&server, &serves, &ends[0], false));
        scope.spawn(|| share(&client, &asks, &ends[1], false));
        share(&client, &asks, &ends[1], true);
    });
}

/// Two endpoints of this thread, connected.
fn connected(device: &Device) -> (Endpoint, Endpoint, Connection) {
    let (server, client) = (open(device), open(device));
    client.connect(&Connect::to(server.uri())).expect("a connect");
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "no connection");
        if let Some(event) = server.get_event().expect("open") {
            match event.kind() {
                EventKind::ConnectRequest => event.into_request().expect("a request").accept(0).expect("an accept"),
                other => assert_eq!(other, EventKind::Accept),
            }
        }
        let opened = client.get_event().expect("open").map(|event| event.connection().expect("a connection"));
        if let Some(connection) = opened {
            drain(&server);
            return (server, client, connection);
        }
    }
}

/// How late an edge may come (`cci.h`): after polling without a pause, and the first one after
/// waiting level-triggered.
const AFTER_SPINNING: Duration = Duration::from_millis(1);
const AFTER_WAITING: Duration = Duration::from_millis(16);

/// The median of the times from a send to the edge that tells of it is near what `cci.h` promises.
/// A busy machine holds up some.
fn assert_in_time(mut late: Vec<Duration>, promised: Duration) {
    late.sort();
    let median = late[late.len() / 2];
    assert!(median < 20 * promised, "edges come after {median:?}, and {promised:?} is promised");
}

/// What a program does before it falls asleep, as often as it is told.
fn after_empty_calls(device: &Device, waits: bool) {
    let (server, client, connection) = connected(device);
    let waiter = Waiter::new(&server, Kind::Edge);
    let messages = AtomicU32::new(0);
    let take = || {
        while let Some(event) = server.get_event().expect("open") {
            assert_eq!(event.kind(), EventKind::Recv);
            messages.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (mut sent, mut late) = (0, Vec::new());
    for empties in (0..100).chain([200, 500, 1000, 2000, 10_000, 3, 70, 0, 10_000, 100_000]) {
        for _ in 0..empties {
            take();
            if waits {
                waiter.wait(Duration::ZERO);
            }
        }
        take();
        if waits {
            // What has come before is told; nothing is there.
            while waiter.wait(Duration::ZERO) && empties < 20_000 {
                take();
                if messages.load(Ordering::Relaxed) != sent {
                    break;
                }
            }
            take();
        }
        client.send(connection, b"wake up", Notify::OnFailure(0)).expect("a send");
        let begin = Instant::now();
        sent += 1;
        while messages.load(Ordering::Relaxed) < sent {
            assert!(waiter.wait(LIMIT), "asleep for ever after {empties} empty calls");
            take();
        }
        late.push(begin.elapsed());
        drain(&client);
    }
    assert_in_time(late, if waits { AFTER_WAITING } else { AFTER_SPINNING });
}

/// Has the server's last empty call leave an edge to a timer: its handle stays readable, and tells
/// nothing edge-triggered. `prepare` is what the program does before that call, again and again.
fn rely_on_timer(server: &Endpoint, waiter: &Waiter, mut prepare: impl FnMut()) {
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "each empty call gives an edge at once");
        prepare();
        waiter.wait(Duration::ZERO);
        assert_eq!(drain(server), 0);
        if readable(&waiter.handle, Duration::ZERO) && !waiter.wait(Duration::ZERO) {
            return;
        }
    }
}

/// Messages without a pause, and a few empty calls between them: the server's handle is in adaptive
/// spin, and its program needs no edge.
fn stream(server: &Endpoint, client: &Endpoint, connection: Connection) {
    for _ in 0..20 {
        client.send(connection, b"soon", Notify::OnFailure(0)).expect("a send");
        let begin = Instant::now();
        while drain(server) == 0 {
            assert!(begin.elapsed() < LIMIT, "no message");
        }
        for _ in 0..3 {
            drain(server);
        }
    }
    drain(client);
}

/// While the handle is in adaptive spin, or its program spins, nothing but a timer tells an
/// edge-triggered program what comes. `then`: what another thread of the program does meanwhile.
fn after_relying_on_timer(device: &Device, spins: bool, then: impl Fn(&Endpoint)) {
    let (server, client, connection) = connected(device);
    let waiter = Waiter::new(&server, Kind::Edge);
    let mut late = Vec::new();
    for round in 0..50 {
        rely_on_timer(&server, &waiter, || {
            if spins {
                assert_eq!((0..1000).map(|_| drain(&server)).sum::<usize>(), 0);
            } else {
                stream(&server, &client, connection);
            }
        });
        client.send(connection, b"wake up", Notify::OnFailure(0)).expect("a send");
        let begin = Instant::now();
        then(&server);
        let mut events = 0;
        while events == 0 {
            assert!(waiter.wait(LIMIT), "round {round}: asleep for ever");
            events = drain(&server);
        }
        late.push(begin.elapsed());
        drain(&client);
    }
    assert_in_time(late, if spins { AFTER_SPINNING } else { AFTER_WAITING });
}

// Over `sock` an arrival gives an edge by itself in adaptive spin.

#[test]
fn an_edge_after_adaptive_spin() {
    after_relying_on_timer(&sm_device(), false, |_| ());
}

#[test]
fn arming_keeps_an_edge_of_adaptive_spin() {
    after_relying_on_timer(&sm_device(), false, |server| server.arm().expect("open"));
}

fn an_edge_of_spinning_comes_in_time(device: &Device) {
    after_relying_on_timer(device, true, |_| ());
}

fn arming_keeps_an_edge_of_spinning(device: &Device) {
    after_relying_on_timer(device, true, |server| server.arm().expect("open"));
}

/// The template of a link has no timer for edges: each empty call of a program that spins gives
/// one.
mod after_spinning {
    use super::*;

    #[test]
    fn sm() {
        an_edge_of_spinning_comes_in_time(&sm_device());
        arming_keeps_an_edge_of_spinning(&sm_device());
    }

    #[test]
    fn sock() {
        an_edge_of_spinning_comes_in_time(&super::sock());
        arming_keeps_an_edge_of_spinning(&super::sock());
    }

    #[cfg(feature = "template")]
    #[test]
    fn template() {
        an_edge_of_spinning_comes_in_time(&device_of("template", &[]));
        arming_keeps_an_edge_of_spinning(&device_of("template", &[]));
    }
}

#[cfg(feature = "template")]
#[test]
fn an_edge_of_the_template_after_adaptive_spin() {
    after_relying_on_timer(&device_of("template", &[]), false, |_| ());
}

/// An endpoint whose program sleeps after an adaptive spin does not wake it for an edge that nobody
/// needs any more.
#[test]
fn a_sleeper_is_not_woken_by_the_timer_of_an_edge() {
    let (server, client, connection) = connected(&sm_device());
    let waiter = Waiter::new(&server, Kind::Edge);
    // Whoever opens a connection has timers of its own for a while.
    let mut in_vain = 0;
    for _ in 0..20 {
        rely_on_timer(&server, &waiter, || stream(&server, &client, connection));
        let begin = Instant::now();
        while readable(&waiter.handle, Duration::ZERO) {
            assert!(begin.elapsed() < LIMIT, "it never sleeps");
            assert_eq!(drain(&server), 0);
        }
        in_vain += u32::from(readable(&waiter.handle, Duration::from_millis(20)));
    }
    assert!(in_vain < 5, "{in_vain} of 20 sleeps");
}

/// After `arm` an endpoint sleeps, whatever its program did before.
fn arm_ends_spinning(device: &Device) {
    let (server, client, connection) = connected(device);
    let waiter = Waiter::new(&server, Kind::Level);
    for round in 0..20 {
        for _ in 0..1000 {
            drain(&server);
        }
        // Something may have come that is no event; the second time nothing is left of it.
        let slept = (0..1000).any(|_| {
            server.arm().expect("open");
            let quiet = !waiter.wait(Duration::ZERO);
            drain(&server);
            quiet
        });
        assert!(slept, "round {round}: the handle stays readable");
        server.arm().expect("open");
        client.send(connection, b"wake up", Notify::OnFailure(0)).expect("a send");
        let mut events = 0;
        while events == 0 {
            assert!(waiter.wait(LIMIT), "round {round}: asleep for ever");
            events = drain(&server);
        }
        drain(&client);
    }
}

macro_rules! on_each {
    ($($name:ident: $check:expr;)+) => {
        mod sm {
            use super::*;
            $(#[test] fn $name() { ($check)(&sm_device()); })+
        }
        mod sock {
            use super::*;
            $(#[test] fn $name() { ($check)(&super::sock()); })+
        }
        mod auto_by_sm {
            use super::*;
            $(#[test] fn $name() { ($check)(&device_of("auto", &[("ways", "sm,sock")])); })+
        }
        mod auto_by_sock {
            use super::*;
            $(#[test] fn $name() { ($check)(&device_of("auto", &[("ways", "sock,sm")])); })+
        }
        mod tcp {
            use super::*;
            $(#[test] fn $name() { ($check)(&device_of("tcp", &[])); })+
        }
        #[cfg(feature = "template")]
        mod template {
            use super::*;
            $(#[test] fn $name() { ($check)(&device_of("template", &[])); })+
        }
        #[cfg(feature = "template_link")]
        mod template_link {
            use super::*;
            $(#[test] fn $name() { ($check)(&device_of("template-link", &[])); })+
        }
    };
}

on_each! {
    edge_triggered: |device: &Device| both_asleep(device, Kind::Edge);
    one_shot: |device: &Device| both_asleep(device, Kind::OneShot);
    level_triggered: |device: &Device| both_asleep(device, Kind::Level);
    selected: |device: &Device| both_asleep(device, Kind::Select);
    polled: |device: &Device| both_asleep(device, Kind::Poll);
    tokio_async_fd: |device: &Device| tokio_both_asleep(device);
    changing_its_mind: |device: &Device| both_asleep(device, Kind::Changing);
    one_event_for_each_readiness: |device: &Device| one_event_a_wait(device);
    two_threads_of_one_endpoint: |device: &Device| two_threads(device);
    an_edge_after_any_number_of_empty_calls: |device: &Device| after_empty_calls(device, true);
    an_edge_after_spinning: |device: &Device| after_empty_calls(device, false);
    arming_ends_spinning: |device: &Device| arm_ends_spinning(device);
}
