//! Peers that break the rules, byte by byte: their own VI breaks, and nothing else.

use crate::attributes::{Access, Reliability, ViAttributes};
use crate::errors::{FaultCode, Status};
use crate::nic::Nic;
use crate::question::Question;
use crate::region::Work;
use crate::rendezvous::{Accept, Address};
use crate::task::Remote;
use crate::vi::{Connected, Done, Vi};
use crate::wire::{self, Header};
use cci::{Connect, Connection, Device, Endpoint, EndpointOptions, Event};
use cci_conformance::{LIMIT, device_of};
use cci_mem::sync::{AtomicBool, AtomicU32, Ordering};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// An honest server with one VI, and the bare endpoint that is connected to it.
struct Scene {
    nic: Nic,
    vi: Vi<Connected>,
    liar: Endpoint,
    connection: Connection,
    tag: crate::Tag,
}

pub(crate) fn name() -> Vec<u8> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // What differs comes first: names that differ in their last byte often have the same ports.
    format!("{}.{}.liar", LAST.fetch_add(1, Ordering::Relaxed), std::process::id()).into_bytes()
}

pub(crate) fn attributes(reliability: Reliability) -> ViAttributes {
    ViAttributes { reliability, access: Access { write: true, read: false }, ..ViAttributes::default() }
}

/// Asks until somebody waits. The invitation is good as long as the question lives.
fn ask(at: &Address, attributes: &ViAttributes) -> (Accept, Question) {
    let own = Address::new(at.host, b"liar");
    let begun = Instant::now();
    loop {
        let mut question = Question::new(at, &own, attributes, false);
        loop {
            assert!(begun.elapsed() < LIMIT, "nobody invites");
            match question.poll() {
                Ok(Some(accept)) => return (accept, question),
                Ok(None) => std::thread::yield_now(),
                Err(_) => break,
            }
        }
    }
}

pub(crate) fn connect<S>(device: &Device, (accept, _stream): &(Accept, S)) -> (Endpoint, Connection) {
    let liar = Endpoint::open(device, &EndpointOptions::new()).expect("an endpoint");
    liar.connect(&Connect::to(&accept.uri).payload(&wire::ticket(accept.ticket)).timeout(LIMIT)).expect("a URI");
    let connection = match liar.wait(Some(LIMIT)).expect("usable") {
        Some(Event::Connected(at)) => at.connection().expect("open"),
        other => panic!("{other:?}"),
    };
    (liar, connection)
}

impl Scene {
    fn new(reliability: Reliability) -> Self {
        let device = device_of("sm", &[]);
        let nic = Nic::open(&device).expect("a NIC");
        let tag = nic.protection().expect("a tag");
        let attributes = attributes(reliability);
        let vi = Vi::new(&nic, &ViAttributes { tag, ..attributes }, None, None).expect("a VI");
        let at = Address::new(nic.host(), &name());
        let (vi, (liar, connection)) = std::thread::scope(|scope| {
            let accepted = scope.spawn(|| nic.listen(&at, Some(LIMIT)).expect("a client").accept(vi).expect("agreed"));
            let liar = connect(&device, &ask(&at, &attributes));
            (accepted.join().expect("the server"), liar)
        });
        Self { nic, vi, liar, connection, tag }
    }

    fn say(&self, message: &[u8]) {
        self.liar.send(self.connection, message, 0).expect("room");
    }

    fn post(&mut self, len: usize) {
        let region = self.nic.register(vec![0; len], self.tag, Access::default()).expect("memory");
        self.vi.post_receive(Work::of(region)).expect("room");
    }

    fn until<R>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Option<R>) -> R {
        let begun = Instant::now();
        loop {
            if let Some(result) = done(self) {
                return result;
            }
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            let _ = self.liar.get_event();
        }
    }

    fn received(&mut self) -> Done {
        self.until("a receive", |scene| scene.vi.received().expect("a VI"))
    }

    fn until_broken(&mut self) {
        self.until("the end of the VI", |scene| (!scene.vi.is_connected()).then_some(()));
        assert_eq!(self.nic.fault().map(|fault| fault.code), Some(FaultCode::ConnectionLost));
    }
}

fn header(kind: u8, length: u32, value: u64, rest: &[u8]) -> Vec<u8> {
    [&Header { kind, flags: 0, length, value }.emit()[..], rest].concat()
}

#[test]
fn a_peer_that_breaks_the_format_loses_its_connection() {
    let one = |lie| vec![lie];
    let lies = [
        one(vec![]),
        one(vec![1, 2, 3]),
        one(header(0, 0, 0, b"")),
        one(header(99, 0, 0, b"")),
        // A part of nothing; too much in the first part; too much later; parts that say nothing.
        one(header(wire::PART, 8, 0, b"8 bytes!")),
        one(header(wire::SEND, 7, 0, b"8 bytes!")),
        vec![header(wire::SEND, 9, 0, b"8 bytes!"), header(wire::PART, 9, 0, b"8 bytes!")],
        vec![header(wire::SEND, 9, 0, b"8 bytes!"), header(wire::PART, 9, 0, b"")],
        one(header(wire::SEND, 9, 0, b"")),
        // Something else amid parts.
        vec![header(wire::SEND, 9, 0, b"8 bytes!"), header(wire::SEND, 8, 0, b"8 bytes!")],
        vec![header(wire::SEND, 9, 0, b"8 bytes!"), header(wire::NOTE, 8, 0, b"")],
        // Longer than both VIs have agreed on.
        one(header(wire::SEND, 65_537, 0, b"8 bytes!")),
        one(header(wire::SEND, u32::MAX, 0, b"8 bytes!")),
        // Answers to nothing.
        one(header(wire::RECEIVED, 0, 1, b"")),
        one(header(wire::RECEIVED, 0, u64::MAX, b"")),
        one(header(wire::RESOLVED, 0, 7, &[0; 48])),
    ];
    for lie in lies {
        let mut scene = Scene::new(Reliability::Reception);
        scene.post(100_000);
        scene.post(100_000);
        lie.iter().for_each(|message| scene.say(message));
        scene.until_broken();
        let first = scene.received();
        assert!(first.status.has(Status::FLUSHED | Status::PARTIAL), "{lie:?}: {:?}", first.status);
        assert!(scene.received().status.has(Status::FLUSHED));
    }
}

#[test]
fn a_message_whose_rest_never_comes_is_partial() {
    let mut scene = Scene::new(Reliability::Unreliable);
    scene.post(100);
    scene.post(100);
    scene.say(&header(wire::SEND, 16, 0, b"8 bytes!"));
    scene.liar.disconnect(scene.connection).expect("open");
    let first = scene.received();
    assert_eq!(first.status, Status::DONE | Status::PARTIAL | Status::OP_RECEIVE);
    assert_eq!(first.length, 0);
    assert_eq!(scene.received().status, Status::DONE | Status::FLUSHED | Status::OP_RECEIVE);
}

#[test]
fn invented_memory_of_the_peer_ends_the_write_alone() {
    for rest in [vec![0xFF; 48], vec![0; 48], vec![1; 40], vec![], [vec![0; 8], vec![0xFF; 40]].concat()] {
        let mut scene = Scene::new(Reliability::Unreliable);
        let region = scene.nic.register(vec![1; 64], scene.tag, Access::default()).expect("memory");
        scene.vi.post_write(Work::of(region), Remote { address: 0, handle: 7 }, None).expect("room");
        let begun = Instant::now();
        let status = loop {
            assert!(begun.elapsed() < LIMIT, "waited in vain for the end of the write");
            // The liar answers each question with nonsense.
            let asked = match scene.liar.get_event().expect("usable") {
                Some(Event::Received(message)) => message.view().array(0).map(|bytes| Header::parse(&bytes)),
                _ => None,
            };
            if asked.is_some_and(|asked| asked.kind == wire::RESOLVE) {
                let (kind, flags) = (wire::RESOLVED, wire::MAY_WRITE | wire::MAY_READ);
                let answer = Header { kind, flags, length: 0, value: 7 }.emit();
                scene.say(&[&answer[..], &rest].concat());
            }
            if let Some(done) = scene.vi.sent().expect("a VI") {
                break done.status;
            }
        };
        assert!(status.has(Status::RDMA_PROTECTION | Status::TRANSPORT), "{status:?}");
    }
}

/// Memory of one tag is no memory of a VI of another: the handle that a peer was given on one
/// connection is refused on the other.
#[test]
fn a_handle_of_one_vi_is_none_of_another() {
    let scene = Scene::new(Reliability::Delivery);
    let open = Access { write: true, read: false };
    let region = scene.nic.register(vec![0; 64], scene.tag, open).expect("memory");
    scene.say(&header(wire::RESOLVE, 0, region.handle().into(), b""));
    let begun = Instant::now();
    let answer = loop {
        assert!(begun.elapsed() < LIMIT);
        let _ = scene.vi.is_connected();
        if let Some(Event::Received(message)) = scene.liar.get_event().expect("usable") {
            break message.to_vec();
        }
    };
    let stolen = cci::RmaHandle::from_bytes(&answer[wire::HEADER + 16..]).expect("a handle");

    // A second VI of the same NIC, with a tag of its own.
    let other = attributes(Reliability::Delivery);
    let tag = scene.nic.protection().expect("a tag");
    let vi = Vi::new(&scene.nic, &ViAttributes { tag, ..other }, None, None).expect("a VI");
    let at = Address::new(scene.nic.host(), &name());
    let local = scene.liar.register(vec![9; 8], cci::Rights::NONE).expect("memory");
    std::thread::scope(|scope| {
        let accepted =
            scope.spawn(|| scene.nic.listen(&at, Some(LIMIT)).expect("a client").accept(vi).expect("agreed"));
        let (accept, _question) = ask(&at, &other);
        let ticket = wire::ticket(accept.ticket);
        scene.liar.connect(&Connect::to(&accept.uri).payload(&ticket).timeout(LIMIT)).expect("a URI");
        let second = match scene.liar.wait(Some(LIMIT)).expect("usable") {
            Some(Event::Connected(at)) => at.connection().expect("open"),
            other => panic!("{other:?}"),
        };
        let rma = cci::Rma::new(local.handle(), &stolen, 8);
        assert!(scene.liar.write_blocking(second, &rma).is_err());
        assert_eq!(region.to_vec(0, 8), Some(vec![0; 8]));
        // Where it was given, it is good.
        scene.liar.write_blocking(scene.connection, &rma).expect("granted");
        assert_eq!(region.to_vec(0, 8), Some(vec![9; 8]));
        drop(accepted.join().expect("the server"));
    });
}

#[test]
fn a_ticket_is_good_once_and_none_is_guessed() {
    let scene = Scene::new(Reliability::Delivery);
    let device = device_of("sm", &[]);
    for payload in [&b""[..], b"VIA1", &wire::ticket(0), &wire::ticket(u64::MAX)] {
        let stranger = Endpoint::open(&device, &EndpointOptions::new()).expect("an endpoint");
        stranger.connect(&Connect::to(scene.nic.uri()).payload(payload).timeout(LIMIT)).expect("a URI");
        let begun = Instant::now();
        let refused = loop {
            assert!(begun.elapsed() < LIMIT);
            let _ = scene.vi.is_connected();
            match stranger.get_event().expect("usable") {
                Some(Event::ConnectFailed(failed)) => break failed.failure(),
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        };
        assert_eq!(refused, cci::Failure::Refused);
    }
    assert!(scene.vi.is_connected());
}

#[test]
fn strangers_at_the_port_keep_nobody_waiting() {
    let device = device_of("sm", &[]);
    let nic = Nic::open(&device).expect("a NIC");
    let tag = nic.protection().expect("a tag");
    let attributes = attributes(Reliability::Delivery);
    let vi = Vi::new(&nic, &ViAttributes { tag, ..attributes }, None, None).expect("a VI");
    let at = Address::new(nic.host(), &name());
    // A stranger has the first port, and takes what comes without a word, until it is told to end.
    let port = crate::rendezvous::ports(&at.discriminator)[0];
    let taken = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    std::thread::scope(|scope| {
        let stranger = scope.spawn(move || {
            let (mut stream, _) = taken.accept().expect("somebody");
            stream.write_all(&[2, 0, 77, 77]).expect("nonsense");
        });
        let accepted = scope.spawn(|| nic.listen(&at, Some(LIMIT)).expect("a client").accept(vi).expect("agreed"));
        let second = crate::rendezvous::ports(&at.discriminator)[1];
        let begun = Instant::now();
        let knock = || loop {
            assert!(begun.elapsed() < LIMIT, "nobody listens");
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", second)) {
                return stream;
            }
        };
        // One is silent, one sends nonsense, one announces too much, one asks for another name.
        let silent = knock();
        for nonsense in [&[3, 0, 1, 2, 3][..], &[0xFF, 0xFF, 1], &[0, 0]] {
            let mut stream = knock();
            stream.write_all(nonsense).expect("a listener");
        }
        let other = Question::new(&Address::new(at.host, b"another"), &at, &attributes, false);
        let mut stream = knock();
        stream.write_all(&other.frame()).expect("a listener");
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, [1, 0, 0]);
        let (liar, connection) = connect(&device, &ask(&at, &attributes));
        assert!(accepted.join().expect("the server").is_connected());
        stranger.join().expect("the stranger");
        drop((silent, liar, connection));
    });
}

#[test]
fn a_vi_that_waits_takes_no_processor_time() {
    let mut scene = Scene::new(Reliability::Delivery);
    scene.post(8);
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanoseconds = |time: rustix::time::Timespec| time.tv_sec * 1_000_000_000 + time.tv_nsec;
    let (before, limit) = (used(), Duration::from_millis(500));
    assert_eq!(scene.vi.wait_received(Some(limit)).err(), Some(crate::Error::Timeout));
    let taken = nanoseconds(used()) - nanoseconds(before);
    assert!(taken < 50_000_000, "{taken} ns of 500 ms");
}

/// Frames that are none: a length of nothing, alone and with what follows it, and lengths beyond
/// the longest frame.
const FALSE_FRAMES: [&[u8]; 6] =
    [&[0, 0], &[0, 0, 1], &[0, 0, 0, 0, 0], &[0xFF, 0xFF, 1], &[0xFF, 0x07, 9], &[1, 0, 2, 1, 0, 2]];

#[test]
fn a_frame_of_no_length_ends_its_sender_alone() {
    let device = device_of("sm", &[]);
    let nic = Nic::open(&device).expect("a NIC");
    let attributes = attributes(Reliability::Delivery);
    let vi = Vi::new(&nic, &ViAttributes { tag: nic.protection().expect("a tag"), ..attributes }, None, None);
    let (vi, at) = (vi.expect("a VI"), Address::new(nic.host(), &name()));
    let port = crate::rendezvous::ports(&at.discriminator)[0];
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| nic.listen(&at, Some(LIMIT)).expect("a client").accept(vi).expect("agreed"));
        for frame in FALSE_FRAMES {
            let begun = Instant::now();
            let mut stream = loop {
                assert!(begun.elapsed() < LIMIT, "nobody listens");
                if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                    break stream;
                }
            };
            stream.write_all(frame).expect("a listener");
            // The listener closes it, at once or at its end.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 1]);
        }
        let (liar, connection) = connect(&device, &ask(&at, &attributes));
        assert!(accepted.join().expect("the server").is_connected());
        drop((liar, connection));
    });
}

#[test]
fn a_false_server_ends_nobodys_question() {
    let device = device_of("sm", &[]);
    let nic = Nic::open(&device).expect("a NIC");
    let tag = nic.protection().expect("a tag");
    let attributes = ViAttributes { tag, ..attributes(Reliability::Delivery) };
    for frame in FALSE_FRAMES {
        // A question goes on to the other ports of its discriminator. Listeners of other tests,
        // which answer seldom, have none of them.
        let is_free = |port: &u16| TcpStream::connect(("127.0.0.1", *port)).is_err();
        let (remote, port) = std::iter::repeat_with(name)
            .map(|name| (Address::new(nic.host(), &name), crate::rendezvous::ports(&name)))
            .find_map(|(remote, ports)| ports.iter().all(is_free).then_some((remote, ports[0])))
            .expect("a name");
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.write_all(frame).expect("a client");
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let vi = Vi::new(&nic, &attributes, None, None).expect("a VI");
            let refused = vi.request(&Address::new(nic.host(), b"client"), &remote, LIMIT);
            assert_eq!(refused.err().map(|(_, why)| why), Some(crate::Error::NoMatch), "{frame:?}");
            server.join().expect("the server");
        });
    }
}

/// Whether the server has not closed this connection.
fn has_a_place(mut stranger: &TcpStream) -> bool {
    !matches!(stranger.read(&mut [0; 64]), Ok(0)) && stranger.take_error().is_ok_and(|error| error.is_none())
}

/// More silent strangers than places; each that is put out comes again. A client connects before
/// More silent strangers than places; each that is put out comes again. A client that waited for
/// their times to end would wait for two of them.
#[test]
fn silent_strangers_keep_no_client_out() {
    const STRANGERS: usize = 180;
    let device = device_of("sm", &[]);
    let (nic, other) = (Nic::open(&device).expect("a NIC"), Nic::open(&device).expect("another"));
    let vi_of = |nic: &Nic| {
        let tag = nic.protection().expect("a tag");
        Vi::new(nic, &ViAttributes { tag, ..attributes(Reliability::Delivery) }, None, None).expect("a VI")
    };
    let (vi, client) = (vi_of(&nic), vi_of(&other));
    let at = Address::new(nic.host(), &name());
    let port = crate::rendezvous::ports(&at.discriminator)[0];
    let (count, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| nic.listen(&at, Some(3 * LIMIT)).expect("a client").accept(vi).expect("agreed"));
        let crowd = scope.spawn(|| {
            let mut crowd = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                crowd.retain(has_a_place);
                let address = (std::net::Ipv4Addr::LOCALHOST, port).into();
                if crowd.len() >= STRANGERS {
                    std::thread::sleep(Duration::from_millis(2));
                } else if let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(20)) {
                    stream.set_nonblocking(true).expect("a socket");
                    crowd.push(stream);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let begun = Instant::now();
        while count.load(Ordering::Relaxed) < STRANGERS as u32 && begun.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (own, begun) = (Address::new(other.host(), &name()), Instant::now());
        let connected = client.request(&own, &at, 2 * LIMIT).map_err(|(_, why)| why);
        let taken = begun.elapsed();
        is_over.store(true, Ordering::Relaxed);
        crowd.join().expect("no panic");
        assert!(connected.is_ok(), "{:?}", connected.err());
        assert!(accepted.join().expect("the server").is_connected());
        assert!(taken < 3 * crate::rendezvous::PATIENCE / 2, "{taken:?}");
    });
}
