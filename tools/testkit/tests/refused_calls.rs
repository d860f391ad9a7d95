//! Where a filter of system calls refuses timers, endpoints work and end all the same, and sleepers
//! see their timeouts. Where it refuses threads, a connect says so.

#![forbid(unsafe_code)]

use cci::__binding::{Contract, Flags};
use cci::{
    Attribute, Connect, Device, Endpoint, EndpointFor, EndpointOptions, Event, EventKind, Failure, LocalEndpoint,
    Notify, Rights, Rma, SharedMemory,
};
use cci_conformance::{World, device_of, open, sys};
use rustix::event::{PollFd, PollFlags, poll};
use std::time::{Duration, Instant};

/// Much longer than an end takes, and much shorter than for ever.
const LIMIT: Duration = Duration::from_secs(10);

/// Tests run again in a process of their own: a filter stays for ever.
fn in_own_process(name: &str) -> bool {
    const CHILD: &str = "CCI_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(CHILD, "1")
        .spawn()
        .expect("the child runs");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("an own child") {
            break status;
        }
        if begun.elapsed() > 2 * LIMIT {
            child.kill().expect("an own child");
            panic!("it waits for ever");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    false
}

fn close(endpoint: Endpoint) {
    let begun = Instant::now();
    endpoint.close().expect("closed");
    assert!(begun.elapsed() < LIMIT, "closing took {:?}", begun.elapsed());
}

#[test]
fn endpoints_end_where_no_timer_can_be_set() {
    if !in_own_process("endpoints_end_where_no_timer_can_be_set") {
        return;
    }
    for transport in transports() {
        end_where_no_timer_can_be_set(&device_of(transport, &[("ip", "127.0.0.1")]));
    }
}

/// The transports with sockets.
fn transports() -> &'static [&'static str] {
    &["sock", "tcp"]
}

fn end_where_no_timer_can_be_set(device: &Device) {
    // One whose thread runs already, and has set its alarm.
    let before = open(device);
    let memory = SharedMemory::new(4096).expect("memory");
    before.register_memory(memory.memory(), Rights::READ_WRITE).expect("registered");
    sys::refuse_call(libc::SYS_timerfd_settime);
    let (a, b) = (open(device), open(device));
    let (to_b, _) = World::new([&a, &b]).connect(0, 1, Attribute::ReliableOrdered);
    a.send(to_b, b"hello", Notify::OnFailure(0)).expect("a send");
    assert_eq!(World::new([&a, &b]).message(1), b"hello");
    let (source, target) = (SharedMemory::new(4096).expect("memory"), SharedMemory::new(4096).expect("memory"));
    let local = a.register_memory(source.memory(), Rights::NONE).expect("registered");
    let remote = b.register_memory(target.memory(), Rights::WRITE).expect("registered");
    let rma = Rma::new(&local, &remote, 4096);
    a.rma(to_b, &rma, 7, Flags::WRITE).expect("started");
    // `b` makes no call: the progress thread does.
    let world = World::new([&a]);
    assert_eq!(world.next(0, EventKind::Send).context(), 7);
    drop(world);
    for endpoint in [before, a, b] {
        close(endpoint);
    }
}

/// Connects to an endpoint that makes no calls, and sleeps on the handle until that has failed.
fn see_a_timeout_asleep<T>(client: &EndpointFor<T>, server: &Endpoint) {
    let begun = Instant::now();
    client.connect(&Connect::to(server.uri()).timeout(Duration::from_millis(300))).expect("a connect");
    loop {
        match client.get_event().expect("usable") {
            Some(Event::ConnectFailed(failed)) => return assert_eq!(failed.failure(), Failure::TimedOut),
            Some(event) => panic!("{event:?}"),
            None => {}
        }
        let mut handle = [PollFd::new(client, PollFlags::IN)];
        assert_eq!(poll(&mut handle, Some(&LIMIT.try_into().expect("short"))), Ok(1), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_sleeper_sees_its_timeout_where_no_timer_can_be_set() {
    if !in_own_process("a_sleeper_sees_its_timeout_where_no_timer_can_be_set") {
        return;
    }
    sys::refuse_call(libc::SYS_timerfd_settime);
    let over_sockets = transports().iter().map(|transport| device_of(transport, &[("ip", "127.0.0.1")]));
    for device in [device_of("sm", &[])].into_iter().chain(over_sockets) {
        let server = open(&device);
        see_a_timeout_asleep(&open(&device), &server);
        let local = LocalEndpoint::open(&device, &EndpointOptions::new()).expect("an endpoint");
        see_a_timeout_asleep(&local, &server);
    }
}

#[test]
fn a_connect_to_a_name_says_that_no_thread_can_be_had() {
    if !in_own_process("a_connect_to_a_name_says_that_no_thread_can_be_had") {
        return;
    }
    let open_over = |transport: &&'static str| (*transport, open(&device_of(transport, &[("ip", "127.0.0.1")])));
    let endpoints: Vec<_> = transports().iter().map(open_over).collect();
    [libc::SYS_clone, libc::SYS_clone3].into_iter().for_each(sys::refuse_call);
    for (transport, endpoint) in endpoints {
        let to = |host: &str| endpoint.connect(&Connect::to(&format!("{transport}://{host}:5000")));
        let error = to("localhost").expect_err("a name needs a thread");
        assert_eq!(error.status(), cci::Status::NoMem);
        assert!(error.to_string().contains("no thread to look up the host's name"), "{error}");
        assert!(error.to_string().contains("connect to an IP address"), "{error}");
        to("127.0.0.1").expect("an address needs no thread");
        close(endpoint);
    }
}
