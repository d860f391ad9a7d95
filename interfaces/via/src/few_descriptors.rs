//! Servers in a process that has no free descriptor: they sleep, and serve who has asked once there
//! is one.

use crate::attributes::{Reliability, ViAttributes};
use crate::liars::{attributes, connect, name};
use crate::nic::Nic;
use crate::question::{NO_DESCRIPTOR, Question};
use crate::rendezvous::{Accept, Address, Answer, ports, read_frame, sleep_on};
use crate::vi::{Connected, Idle, Vi};
use cci_conformance::{LIMIT, device_of};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::{Duration, Instant};

/// Whoever asks. The names of servers are smaller.
const CLIENT: &[u8] = b"client";

/// Runs the rest of a test in a process of its own. False: this is that process.
fn in_a_child(test: &str) -> bool {
    const CHILD: &str = "CCI_VIA_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return false;
    }
    let program = std::env::current_exe().expect("this program");
    let test = format!("few_descriptors::{test}");
    let output =
        Command::new(program).args([&test, "--exact", "--nocapture"]).env(CHILD, "1").output().expect("a child");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    true
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("a time")
}

/// Returns once the listener at this port has accepted a stranger and has ended it.
pub(crate) fn until_listening(port: u16) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "nobody listens");
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
        stream.shutdown(Shutdown::Write).expect("a listener");
        if stream.read(&mut [0]).is_ok_and(|count| count == 0) {
            return;
        }
    }
}

/// Takes the last descriptor for a client that asks, and looks for how long the process works
/// meanwhile. Then there are descriptors again. Returns the answer, and the stream.
fn ask_without_descriptors(question: &Question, port: u16) -> (Accept, TcpStream) {
    let limit = getrlimit(Resource::Nofile);
    let next_free = File::open("/dev/null").expect("a descriptor").as_raw_fd() as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(next_free + 1), ..limit }).expect("a lower limit");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a listener");
    assert!(File::open("/dev/null").is_err(), "a descriptor is left");
    stream.write_all(&question.frame()).expect("room");
    let before = processor_time();
    std::thread::sleep(Duration::from_secs(1));
    let taken = processor_time().saturating_sub(before);
    // A wait that spins takes a second, or what a loaded machine gives it.
    assert!(taken < Duration::from_millis(100), "{taken:?} of a second");
    stream.set_nonblocking(true).expect("a socket");
    let early = stream.peek(&mut [0]).map_err(|why| why.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "it was served without a descriptor");
    setrlimit(Resource::Nofile, limit).expect("the old limit");
    let (begun, mut buffer) = (Instant::now(), Vec::new());
    let frame = loop {
        assert!(begun.elapsed() < LIMIT, "not served once there are descriptors");
        if let Some(frame) = read_frame(&mut stream, &mut buffer).expect("a server") {
            break frame;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    match Answer::parse(&frame) {
        Some(Answer::Accept(accept)) => (accept, stream),
        _ => panic!("{frame:?}"),
    }
}

/// A server waits by `serve`; a client asks it where no descriptor is free.
fn serves_afterwards(is_peer: bool, serve: impl FnOnce(&Nic, Vi<Idle>, &Address) -> Vi<Connected> + Send) {
    let device = device_of("sm", &[]);
    let nic = Nic::open(&device).expect("a NIC");
    let attributes = attributes(Reliability::Delivery);
    let tag = nic.protection().expect("a tag");
    let vi = Vi::new(&nic, &ViAttributes { tag, ..attributes }, None, None).expect("a VI");
    let at = Address::new(nic.host(), &name());
    let (own, port) = (Address::new(nic.host(), CLIENT), ports(&at.discriminator)[0]);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&nic, vi, &at));
        until_listening(port);
        let accept = ask_without_descriptors(&Question::new(&at, &own, &attributes, is_peer), port);
        let (liar, connection) = connect(&device, &accept);
        assert!(server.join().expect("the server").is_connected());
        drop((liar, connection));
    });
}

#[test]
fn a_server_without_descriptors_sleeps_and_serves_afterwards() {
    if !in_a_child("a_server_without_descriptors_sleeps_and_serves_afterwards") {
        serves_afterwards(false, |nic, vi, at| {
            nic.listen(at, Some(3 * LIMIT)).expect("a client").accept(vi).expect("agreed")
        });
    }
}

#[test]
fn a_peer_that_listens_without_descriptors_sleeps_and_connects_afterwards() {
    if !in_a_child("a_peer_that_listens_without_descriptors_sleeps_and_connects_afterwards") {
        serves_afterwards(true, |nic, vi, at| {
            // The smaller discriminator listens.
            let remote = Address::new(nic.host(), CLIENT);
            let pending = vi.peer(at, &remote, 3 * LIMIT).map_err(|(_, why)| why).expect("a port");
            pending.wait().map_err(|(_, why)| why).expect("a peer")
        });
    }
}

/// What both models of connecting answer who has no descriptor to ask with.
#[test]
fn a_client_without_descriptors_learns_that_it_has_none() {
    if in_a_child("a_client_without_descriptors_learns_that_it_has_none") {
        return;
    }
    let nic = Nic::open(&device_of("sm", &[])).expect("a NIC");
    let attributes = attributes(Reliability::Delivery);
    let tag = nic.protection().expect("a tag");
    let new = || Vi::new(&nic, &ViAttributes { tag, ..attributes }, None, None).expect("a VI");
    let (client, peer) = (new(), new());
    // The larger discriminator of two peers asks.
    let (own, remote) = (Address::new(nic.host(), b"b"), Address::new(nic.host(), b"a"));
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..limit }).expect("a lower limit");
    let refused = client.request(&own, &remote, LIMIT).err().map(|(_, why)| why);
    assert_eq!(refused, Some(NO_DESCRIPTOR));
    let pending = peer.peer(&own, &remote, Duration::from_secs(2)).map_err(|(_, why)| why).expect("no question yet");
    let begun = Instant::now();
    assert_eq!(pending.wait().err().map(|(_, why)| why), Some(NO_DESCRIPTOR));
    assert!(begun.elapsed() < LIMIT);
    setrlimit(Resource::Nofile, limit).expect("the old limit");
}

/// A silent port has the only descriptor: the ports after it are asked once there is another one,
/// and where there is none the want of it is the reason.
#[test]
fn a_client_with_one_descriptor_asks_the_next_port_once_it_has_another() {
    if in_a_child("a_client_with_one_descriptor_asks_the_next_port_once_it_has_another") {
        return;
    }
    let device = device_of("sm", &[]);
    let [server, client] = [(); 2].map(|()| Nic::open(&device).expect("a NIC"));
    let new = |nic: &Nic| {
        let tag = nic.protection().expect("a tag");
        Vi::new(nic, &ViAttributes { tag, ..attributes(Reliability::Delivery) }, None, None).expect("a VI")
    };
    let (at, own) = (Address::new(server.host(), &name()), Address::new(server.host(), CLIENT));
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, ports(&at.discriminator)[0])).expect("a free port");
    let (limit, short) = (getrlimit(Resource::Nofile), Duration::from_secs(1));
    let leave_one = || {
        let next_free = File::open("/dev/null").expect("a descriptor").as_raw_fd() as u64;
        setrlimit(Resource::Nofile, Rlimit { current: Some(next_free + 1), ..limit }).expect("a lower limit");
    };
    let vi = new(&client);
    leave_one();
    let begun = Instant::now();
    let (vi, why) = vi.request(&own, &at, short).expect_err("no server");
    assert!(why == NO_DESCRIPTOR && begun.elapsed() >= short, "{why}");
    setrlimit(Resource::Nofile, limit).expect("the old limit");
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| server.listen(&at, Some(LIMIT)).expect("a client").accept(new(&server)));
        until_listening(ports(&at.discriminator)[1]);
        drop(silent.accept().expect("the first question"));
        leave_one();
        let asked = scope.spawn(|| vi.request(&own, &at, LIMIT).map_err(|(_, why)| why));
        // It has the descriptor for the silent port. Looking takes none.
        sleep_on(std::iter::once(silent.as_fd()), Some(LIMIT));
        setrlimit(Resource::Nofile, limit).expect("the old limit");
        let client = asked.join().expect("a thread").expect("a server");
        let accepted = accepted.join().expect("a thread").expect("agreed");
        assert!(client.is_connected() && accepted.is_connected());
    });
    drop(silent);
}
