//! Where a filter refuses a system call, before an endpoint opens or later: opening says so, or
//! every operation ends, nothing hangs and nothing spins. The peer is a process without a filter.

#![forbid(unsafe_code)]

use cci::__binding::{Contract, Flags};
use cci::{
    Connect, ConnectError, Connection, ConnectionOption, Context, Endpoint, EndpointOptions, Event, EventKind, Failure,
    Rights, Rma, RmaHandle, SharedMemory,
};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, readable, sys};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What names the part of a child: transport, numbers of the calls, errno, when, the peer's URI.
const PART: &str = "CCI_TEST_PART";
/// Bytes of an RMA: more than a stream takes at once.
const LEN: usize = 4 << 20;
/// How long a connect may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Processor time that a child may use, much less than one that spins until the limit.
const WORK: Duration = Duration::from_secs(8);

/// The calls by which endpoints send, receive, wait and copy.
const CALLS: [(&str, libc::c_long); 12] = [
    ("sendto", libc::SYS_sendto),
    ("sendmsg", libc::SYS_sendmsg),
    ("sendmmsg", libc::SYS_sendmmsg),
    ("recvfrom", libc::SYS_recvfrom),
    ("recvmsg", libc::SYS_recvmsg),
    ("recvmmsg", libc::SYS_recvmmsg),
    ("epoll_wait", libc::SYS_epoll_wait),
    ("epoll_pwait", libc::SYS_epoll_pwait),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("timerfd_settime", libc::SYS_timerfd_settime),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
];

/// The calls among them that carry frames.
const FRAMES: usize = 6;

/// When the filter is installed. Then sends have no timeout, and only the refusal ends them.
const UNLIMITED: &str = "unlimited";

/// When an endpoint that has nothing to do is asleep.
const IDLE: &str = "idle";

/// The calls that each endpoint is opened by; a child that only opens one names the call.
const OPENED_BY: [(&str, libc::c_long); 6] = [
    ("socket", libc::SYS_socket),
    ("bind", libc::SYS_bind),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("timerfd_create", libc::SYS_timerfd_create),
    ("eventfd2", libc::SYS_eventfd2),
];
const OPENING: &str = "opening";

/// The devices for a transport; `auto+sock+tcp` is the transport auto with these ways.
fn context(transport: &str) -> Result<Context, String> {
    let Some(ways) = transport.strip_prefix("auto+") else {
        return Context::new().map_err(|error| error.to_string());
    };
    let path = std::env::temp_dir().join(format!("cci-refused-{}.conf", std::process::id()));
    let text = format!("[ways]\ntransport = auto\nways = {}\n", ways.replace('+', ","));
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    let context = Context::from_file(&path).map_err(|error| error.to_string());
    let _ = std::fs::remove_file(&path);
    context
}

/// An endpoint that reports disconnects.
fn open(transport: &str) -> Result<Endpoint, String> {
    let context = context(transport)?;
    let name = transport.split('+').next().unwrap_or_default();
    let device = context.devices().iter().find(|device| device.transport == name).ok_or("no device")?;
    let mut options = EndpointOptions::new();
    options.disconnect_events = true;
    Endpoint::open(device, &options).map_err(|error| error.to_string())
}

/// Serves until it is told to end: accepts who asks, tells of its memory, and takes messages.
fn serve(server: &Endpoint, handle: &RmaHandle, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        match server.get_event() {
            Ok(Some(Event::Request(request))) => drop(request.accept(1)),
            Ok(Some(Event::Accepted(accepted))) => {
                if let Some(connection) = accepted.connection() {
                    let _ = server.send(connection, &handle.to_bytes(), 2);
                }
            }
            Ok(Some(event)) => drop(event),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => {}
        }
    }
}

/// Operations that have begun: the context of each, and what it is.
struct Open<'e> {
    endpoint: &'e Endpoint,
    all: Vec<(u64, &'static str)>,
    last: u64,
    /// What was refused, or has failed, in words.
    failed: Vec<String>,
    /// The reason of the event of the lost peer.
    lost: Option<String>,
}

impl<'e> Open<'e> {
    fn at(endpoint: &'e Endpoint) -> Self {
        Self { endpoint, all: Vec::new(), last: 100, failed: Vec::new(), lost: None }
    }

    /// Begins one.
    fn begin<E: std::fmt::Display>(&mut self, what: &'static str, begin: impl FnOnce(&Endpoint, u64) -> Result<(), E>) {
        self.last += 1;
        match begin(self.endpoint, self.last) {
            Ok(()) => self.all.push((self.last, what)),
            Err(error) => self.failed.push(format!("{what}: {error}")),
        }
    }

    /// Takes an event.
    fn take(&mut self) -> Option<Event<'e>> {
        let event = self.endpoint.get_event().expect("usable")?;
        if event.kind() == EventKind::Disconnect {
            self.lost = event.reason().or_else(|| Some(String::new()));
        }
        Some(event)
    }

    /// Sleeps on the handle until all have ended. Which connection opened.
    fn wait(&mut self) -> Option<Connection> {
        let (handle, begun) = (self.endpoint.handle().expect("a handle"), Instant::now());
        let mut opened = None;
        while !self.all.is_empty() {
            assert!(begun.elapsed() < LIMIT, "open for ever: {:?}", self.all);
            let Some(event) = self.take() else {
                readable(&handle, LIMIT);
                continue;
            };
            let Some(at) = self.all.iter().position(|(context, _)| *context == event.context()) else { continue };
            let (_, what) = self.all.remove(at);
            match event.outcome() {
                Ok(()) => opened = event.connection().filter(|_| event.kind() == EventKind::Connect),
                Err(failure) => {
                    let reason = event.reason().unwrap_or_default();
                    // A refused call is named, wherever the transport knows of one.
                    let is_named = reason.contains("(os error") || failure == Failure::TimedOut;
                    assert!(event.kind() != EventKind::Connect || is_named, "{what}: {failure:?}: {reason}");
                    self.failed.push(format!("{what}: {failure:?} {reason}"));
                }
            }
        }
        opened
    }
}

fn connect(uri: &str) -> impl FnOnce(&Endpoint, u64) -> Result<(), ConnectError> {
    move |endpoint, context| endpoint.connect(&Connect::to(uri).context(context).timeout(TIMEOUT))
}

/// Connects, and takes the peer's word of its memory. `None`: the connect has ended otherwise.
fn connected(endpoint: &Endpoint, uri: &str, when: &str) -> Option<(Connection, RmaHandle)> {
    let mut open = Open::at(endpoint);
    open.begin("connect", connect(uri));
    let connection = open.wait()?;
    if when != UNLIMITED {
        endpoint.set_option(connection, ConnectionOption::SendTimeout, TIMEOUT).expect("an option");
    }
    let begun = Instant::now();
    while begun.elapsed() < 4 * TIMEOUT {
        if let Some(Event::Received(received)) = endpoint.get_event().expect("usable") {
            return Some((connection, RmaHandle::from_bytes(&received.to_vec()).expect("a handle")));
        }
    }
    None
}

/// Begins operations of each kind, and waits for their ends. A connection that breaks reports which
/// call is refused.
fn operations(endpoint: &Endpoint, (connection, remote): (Connection, RmaHandle), uri: &str) {
    let memory = [Origin::Library, Origin::Program].map(|origin| origin.allocate(LEN));
    let own = memory.each_ref().map(|memory| endpoint.register_memory(memory.memory(), Rights::NONE));
    let own = own.map(|own| own.expect("a registration"));
    let mut open = Open::at(endpoint);
    open.begin("send", |endpoint, context| endpoint.send(connection, b"hello", context));
    for local in &own {
        let rma = Rma::new(local, &remote, LEN as u64);
        open.begin("write", |endpoint, context| endpoint.rma(connection, &rma, context, Flags::WRITE));
        open.begin("read", |endpoint, context| endpoint.rma(connection, &rma, context, Flags::READ));
    }
    open.begin("large", |endpoint, context| endpoint.send_large(connection, &memory[0].memory(), context));
    open.begin("connect", connect(uri));
    open.wait();
    open.begin("late send", |endpoint, context| endpoint.send(connection, b"hello", context));
    open.wait();
    let is_broken = open.failed.iter().any(|failed| failed.starts_with("late send"));
    let why = endpoint.report(connection).map(|report| report.why).unwrap_or_default();
    assert!(!is_broken || why.contains("(os error"), "{why}: {:?}", open.failed);
    let begun = Instant::now();
    while is_broken && open.lost.is_none() {
        assert!(begun.elapsed() < LIMIT, "no event of the lost peer");
        open.take();
    }
    assert!(open.lost.is_none_or(|reason| reason.contains("(os error")), "the event names the call: {why}");
}

/// Sleeps on the handle of an endpoint with nothing to do for a second.
fn sleep(endpoint: &Endpoint) {
    let (handle, begun, before) = (endpoint.handle().expect("a handle"), Instant::now(), processor_time());
    let mut calls = 0;
    while let Some(left) = Duration::from_secs(1).checked_sub(begun.elapsed()) {
        assert!(endpoint.get_event().expect("usable").is_none());
        calls += 1;
        readable(&handle, left);
    }
    let used = processor_time() - before;
    // It looks again each 10 ms; one that spins makes hundreds of thousands.
    assert!(calls < 1_000 && used < Duration::from_millis(300), "{calls} calls, {used:?} of a second");
}

fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

/// A child: what it does with the filter.
fn play(part: &str) {
    let words: Vec<&str> = part.split(' ').collect();
    let [transport, numbers, error, when, uri] = words[..] else { panic!("{part}") };
    let refuse = || {
        for number in numbers.split(',') {
            sys::refuse_call_with(number.parse().expect("a number"), error.parse().expect("an errno"));
        }
    };
    if when == "before" || when == OPENING {
        refuse();
    }
    if when == OPENING {
        let number: libc::c_long = numbers.parse().expect("one number");
        let call = OPENED_BY.iter().find(|(_, other)| *other == number).expect("a call").0;
        let error = open(transport).map(|_| ()).expect_err("it needs this call");
        return assert!(error.contains(call) && error.contains("(os error"), "{call}: {error}");
    }
    let endpoint = match open(transport) {
        Ok(endpoint) => endpoint,
        Err(error) => return assert!(when == "before" && error.contains("(os error"), "{error}"),
    };
    if when == IDLE {
        refuse();
        return sleep(&endpoint);
    }
    match connected(&endpoint, uri, when) {
        Some(peer) => {
            if when != "before" {
                refuse();
            }
            operations(&endpoint, peer, uri);
        }
        None => assert_eq!(when, "before"),
    }
    let begun = Instant::now();
    endpoint.close().expect("closed");
    assert!(begun.elapsed() < LIMIT, "closing took {:?}", begun.elapsed());
    assert!(processor_time() < WORK, "it spins");
}

/// Plays a part in a child. What is wrong.
fn run(test: &str, part: &str) -> Option<String> {
    let output = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(PART, part)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("the child runs");
    let text = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| format!("{part}: {}", String::from_utf8_lossy(&text)))
}

/// Refuses these calls in children, each in these ways: the numbers, when, and with which error.
fn refuse(test: &str, transport: &str, refusals: &[(String, &str, libc::c_int)]) {
    if let Some(part) = std::env::var_os(PART) {
        return play(part.to_str().expect("text"));
    }
    let server = open(transport).expect("an endpoint");
    let memory = SharedMemory::new(LEN).expect("memory");
    let handle = server.register_memory(memory.memory(), Rights::READ_WRITE).expect("a registration");
    let is_over = AtomicBool::new(false);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| serve(&server, &handle, &is_over));
        let part = |(numbers, when, error): &(String, &str, libc::c_int)| {
            format!("{transport} {numbers} {error} {when} {}", server.uri())
        };
        let wrong = refusals.iter().filter_map(|how| run(test, &part(how))).collect();
        is_over.store(true, Ordering::Relaxed);
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Refuses each call, before an endpoint opens and later.
fn refuse_each(test: &str, transport: &str) {
    let each = CALLS.iter().flat_map(|(_, number)| {
        [("before", libc::ENOSYS), ("after", libc::EPERM)].map(|(when, error)| (number.to_string(), when, error))
    });
    refuse(test, transport, &each.collect::<Vec<_>>());
}

/// Refuses what carries frames, with an error that does not pass: each call, then all of them.
fn refuse_for_ever(test: &str, transport: &str) {
    let numbers: Vec<String> = CALLS[..FRAMES].iter().map(|(_, number)| number.to_string()).collect();
    let all = numbers.join(",");
    let refusals: Vec<_> = numbers.into_iter().chain([all]).map(|numbers| (numbers, UNLIMITED, libc::ENOSYS)).collect();
    refuse(test, transport, &refusals);
}

#[test]
fn operations_end_on_tcp_whichever_call_is_refused() {
    refuse_each("operations_end_on_tcp_whichever_call_is_refused", "tcp");
}

#[test]
fn operations_end_on_sock_whichever_call_is_refused() {
    refuse_each("operations_end_on_sock_whichever_call_is_refused", "sock");
}

#[test]
fn operations_end_on_sm_whichever_call_is_refused() {
    refuse_each("operations_end_on_sm_whichever_call_is_refused", "sm");
}

#[test]
fn operations_end_on_auto_whichever_call_is_refused() {
    refuse_each("operations_end_on_auto_whichever_call_is_refused", "auto");
}

#[test]
fn operations_without_a_timeout_end_on_sock_where_frames_are_refused_for_ever() {
    refuse_for_ever("operations_without_a_timeout_end_on_sock_where_frames_are_refused_for_ever", "sock");
}

#[test]
fn operations_end_on_auto_over_sock_and_tcp_whichever_call_is_refused() {
    refuse_each("operations_end_on_auto_over_sock_and_tcp_whichever_call_is_refused", "auto+sock+tcp");
}

#[test]
fn operations_without_a_timeout_end_on_auto_over_sock_and_tcp() {
    refuse_for_ever("operations_without_a_timeout_end_on_auto_over_sock_and_tcp", "auto+sock+tcp");
}

/// Who cannot receive sleeps, and tries again now and then.
fn refuse_to_receive(test: &str, transport: &str) {
    let receives = [libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg].map(|number| number.to_string());
    refuse(test, transport, &[libc::EPERM, libc::ENOSYS, libc::EINVAL].map(|error| (receives.join(","), IDLE, error)));
}

#[test]
fn an_idle_endpoint_sleeps_on_sock_where_receives_are_refused() {
    refuse_to_receive("an_idle_endpoint_sleeps_on_sock_where_receives_are_refused", "sock");
}

#[test]
fn an_idle_endpoint_sleeps_on_auto_where_receives_are_refused() {
    refuse_to_receive("an_idle_endpoint_sleeps_on_auto_where_receives_are_refused", "auto+sock+tcp");
}

fn refuse_to_open(test: &str, transport: &str) {
    let each = OPENED_BY.iter().map(|(_, number)| (number.to_string(), OPENING, libc::ENOSYS));
    refuse(test, transport, &each.collect::<Vec<_>>());
}

#[test]
fn an_error_of_opening_names_the_call_on_sock() {
    refuse_to_open("an_error_of_opening_names_the_call_on_sock", "sock");
}

#[test]
fn an_error_of_opening_names_the_call_on_tcp() {
    refuse_to_open("an_error_of_opening_names_the_call_on_tcp", "tcp");
}

#[test]
fn an_error_of_opening_names_the_call_on_sm() {
    refuse_to_open("an_error_of_opening_names_the_call_on_sm", "sm");
}

#[test]
fn an_error_of_opening_names_the_call_on_auto() {
    refuse_to_open("an_error_of_opening_names_the_call_on_auto", "auto+sock+tcp");
}
