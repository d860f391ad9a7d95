//! Partners that break the rules, byte by byte: they lose their link, and nothing else happens.

use crate::errors::Error;
use crate::handles::Handle;
use crate::initiator::Target;
use crate::interface::Interface;
use crate::objects::{Match, Position, Unlink};
use crate::options;
use crate::place::{Place, endpoint_options};
use crate::types::{Descriptor, Event, EventKind, Limits, ProcessId, buffer};
use crate::wire::{self, ACK, Answer, DONE, FIN, GET, GETPUT, Head, OFFER, OFFERED, PUT, REPLY, Request};
use cci::{Connect, Connection, Endpoint, Memory, Notify};
use cci_conformance::{LIMIT, sm_device};
use cci_peers::Table;
use std::time::Instant;

const LIAR: ProcessId = ProcessId { nid: 9, pid: 1 };

/// An honest side with an entry, and a bare endpoint that is linked to it.
struct Scene {
    ni: Interface,
    queue: Handle,
    memory: Memory,
    liar: Endpoint,
    connection: Connection,
    /// What the honest side has sent.
    seen: Vec<Vec<u8>>,
    is_closed: bool,
}

/// The payload of a request by which the liar is a partner.
fn hello(serial: u32) -> Vec<u8> {
    let name = |id: ProcessId| [&[1, 8, 0][..], &id.word().to_le_bytes()].concat();
    let own = ProcessId { nid: 9, pid: 0 };
    [b"ccipeer1", &[7; 8][..], &serial.to_le_bytes(), &0u32.to_le_bytes(), &name(own), &name(LIAR)].concat()
}

impl Scene {
    fn new() -> Self {
        let device = sm_device();
        let own = ProcessId { nid: 9, pid: 0 };
        let open = || Endpoint::open(&device, &endpoint_options()).expect("an endpoint");
        let place = Place::of(open(), own, Box::new(Table::new()));
        let ni = Interface::new(place, 0, Limits::default()).expect("an interface");
        let queue = ni.queue(64, false).expect("room");
        let memory = buffer(vec![b'-'; 64]);
        let anything = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        let entry = ni.attach(4, anything, Unlink::Retain, Position::After).expect("room");
        let bits = options::OP_PUT | options::OP_GET | options::MANAGE_REMOTE;
        ni.attach_memory(entry, Descriptor::new(&memory).options(bits).events(queue), Unlink::Retain).expect("room");
        let liar = open();
        liar.connect(&Connect::to(ni.uri()).payload(&hello(1)).timeout(LIMIT)).expect("a URI");
        let begun = Instant::now();
        let connection = loop {
            assert!(begun.elapsed() < LIMIT && ni.status(0).is_ok());
            match liar.get_event().expect("usable") {
                Some(cci::Event::Connected(at)) => break at.connection().expect("open"),
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        };
        let mut scene = Self { ni, queue, memory, liar, connection, seen: Vec::new(), is_closed: false };
        // Who it is, and user and job.
        scene.until("its introduction", |scene| scene.seen.len() == 2);
        scene
    }

    fn introduced() -> Self {
        let scene = Self::new();
        scene.say(&wire::ident(0, 0));
        // Whatever its user is.
        let everybody = crate::access::AccessEntry { process: ProcessId::ANY, uid: crate::ANY, jid: 0, portal: 4 };
        scene.ni.access_entry(0, everybody).expect("an entry");
        scene
    }

    fn say(&self, message: &[u8]) {
        self.liar.send(self.connection, message, Notify::OnFailure(0)).expect("room");
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            self.ni.status(0).expect("usable");
            match self.liar.get_event().expect("usable") {
                Some(cci::Event::Received(message)) => self.seen.push(message.to_vec()),
                Some(cci::Event::Disconnected(_)) => self.is_closed = true,
                _ => {}
            }
        }
    }

    /// The operation of the newest request of the honest side.
    fn asked(&mut self, kind: u8) -> u64 {
        let number = self.seen.len();
        self.until("a request", |scene| scene.seen.len() > number);
        match wire::parse(self.seen.last().expect("a message")) {
            Some((Head::Request(request), _)) if request.kind == kind => request.operation,
            other => panic!("{other:?}"),
        }
    }

    fn until_closed(&mut self, why: &str) {
        self.until(why, |scene| scene.is_closed);
        assert_eq!(self.ni.counts(), (0, 1), "{why}");
    }

    fn events(&self) -> Vec<(EventKind, u32)> {
        let all = std::iter::from_fn(|| self.ni.event(self.queue).ok());
        all.map(|(Event { kind, failure, .. }, _)| (kind, failure)).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        assert!(self.memory.copy_out(0, &mut bytes));
        bytes
    }

    fn bind(&self, len: usize) -> Handle {
        self.ni.bind(Descriptor::new(&buffer(vec![0; len])).events(self.queue), Unlink::Retain).expect("room")
    }
}

fn request(kind: u8, length: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Request { kind, portal: 4, wants_ack: true, operation: 99, length, ..Request::default() }.emit(&mut bytes);
    bytes.extend(rest);
    bytes
}

fn answer(kind: u8, operation: u64, length: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Answer { kind, status: DONE, operation, length, offset: 0, own: 5 }.emit(&mut bytes);
    bytes.extend(rest);
    bytes
}

/// One part of this length, whose handle is of nothing.
fn part(len: u64) -> Vec<u8> {
    [&[1][..], &len.to_le_bytes(), &[0xab; 32]].concat()
}

#[test]
fn a_partner_that_breaks_the_format_loses_its_link() {
    let lies: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("a few bytes", vec![1, 2, 3]),
        ("an unknown kind", vec![0; 40]),
        ("a second introduction", wire::ident(0, 0).into()),
        ("a put without its header's end", request(PUT, 0, b"")[..20].into()),
        ("a get with bytes", request(GET, 8, b"x")),
        ("a swap of too many", request(GETPUT, 0, &[0; 65])),
        ("an offer without parts", request(OFFER, 8, b"")),
        ("an offer of less than it stands for", request(OFFER, 9, &part(8))),
        ("an offer of more parts than may be", request(OFFER, 8, &[&[17][..], &[0; 17 * 40]].concat())),
        ("an offer with a part cut off", request(OFFER, 8, &part(8)[..40])),
        ("an ack for nothing", answer(ACK, 3, 0, b"")),
        ("a reply to nothing", answer(REPLY, 3, 0, b"")),
        ("an end of nothing", answer(FIN, 3, 0, b"")),
        ("an ack for its own request", answer(ACK, 99, 0, b"")),
    ];
    for (what, lie) in lies {
        let mut scene = Scene::introduced();
        scene.say(&lie);
        scene.until_closed(what);
        assert_eq!((scene.events(), scene.bytes()), (vec![], vec![b'-'; 64]), "{what}");
    }
}

#[test]
fn a_request_before_the_introduction_is_not_served() {
    let mut scene = Scene::new();
    scene.say(&request(PUT, 0, b"early"));
    scene.until_closed("it has not said who it is");
    assert_eq!((scene.events(), scene.bytes()), (vec![], vec![b'-'; 64]));
}

/// Each lie about an operation of the honest side ends that operation, once, and the link.
#[test]
fn answers_that_do_not_fit_their_operation_end_the_link() {
    let to = Target::at(LIAR, 4);
    type Lie = fn(u64) -> Vec<u8>;
    let lies: [(u8, Lie); 10] = [
        (GET, |at| answer(REPLY, at, 9, b"123456789")),
        (GET, |at| answer(REPLY, at, 8, b"1234567")),
        (GET, |at| answer(OFFERED, at, 9, &part(9))),
        (GET, |at| answer(OFFERED, at, 0, &part(8))),
        (GET, |at| answer(OFFERED, at, 8, &part(7))),
        (GET, |at| answer(FIN, at, 8, b"")),
        (GET, |at| answer(ACK, at, 8, b"")),
        (GET, |at| answer(REPLY, at ^ 1 << 32, 0, b"")),
        (PUT, |at| answer(REPLY, at, 0, b"")),
        (PUT, |at| answer(FIN, at, 8, b"")),
    ];
    for (number, (kind, lie)) in lies.into_iter().enumerate() {
        let mut scene = Scene::introduced();
        let memory = scene.bind(8);
        let begun = if kind == GET { scene.ni.get(memory, None, &to) } else { scene.ni.put(memory, None, true, &to) };
        begun.expect("room");
        let at = scene.asked(kind);
        scene.say(&lie(at));
        scene.until_closed(&format!("lie {number}"));
        let events = scene.events();
        let failures: u32 = events.iter().filter(|(kind, _)| *kind != EventKind::ReplyStart).map(|(_, bad)| bad).sum();
        assert_eq!(failures, 1, "lie {number}: {events:?}");
        assert_eq!(scene.ni.unlink_memory(memory), Ok(()));
    }
}

/// A handle that is of nothing: the format is right, and the copy fails.
#[test]
fn memory_that_cannot_be_read_fails_its_operation_alone() {
    let mut scene = Scene::introduced();
    scene.say(&request(OFFER, 8, &part(8)));
    scene.until("the end", |scene| scene.seen.len() == 3);
    let Some((Head::Answer(fin), _)) = wire::parse(&scene.seen[2]) else { panic!("{:?}", scene.seen) };
    assert_eq!((fin.kind, fin.status, fin.operation), (FIN, wire::FAILED, 99));
    assert_eq!(scene.events(), [(EventKind::PutStart, 0), (EventKind::PutEnd, 1)]);
    assert_eq!((scene.bytes(), scene.ni.counts()), (vec![b'-'; 64], (0, 0)));
    // And of a get, whose target says so.
    let memory = scene.bind(8);
    scene.ni.get(memory, None, &Target::at(LIAR, 4)).expect("room");
    let at = scene.asked(GET);
    scene.say(&answer(OFFERED, at, 8, &part(8)));
    scene.until("the end", |scene| scene.seen.len() == 5);
    assert_eq!(scene.events(), [(EventKind::ReplyStart, 0), (EventKind::ReplyEnd, 1)]);
    assert!(!scene.is_closed);
}

/// Offsets and lengths that are right in form and lie outside of what is matched: nothing is
/// written, the request is counted, and the link stays.
#[test]
fn requests_beyond_the_memory_that_they_match_are_dropped() {
    let mut scene = Scene::introduced();
    let beyond = |kind, offset, length| {
        let mut bytes = Vec::new();
        Request { kind, portal: 4, operation: 99, offset, length, ..Request::default() }.emit(&mut bytes);
        bytes
    };
    let put = |offset| [&beyond(PUT, offset, 0)[..], b"12345678"].concat();
    let lies = [
        put(57),
        put(u64::MAX),
        put(u64::MAX - 7),
        [beyond(OFFER, 0, 65), part(65)].concat(),
        [beyond(OFFER, u64::MAX, u64::MAX), part(u64::MAX)].concat(),
        beyond(GET, 0, 65),
        beyond(GET, u64::MAX, 1),
        beyond(GET, 1, u64::MAX),
        [&beyond(GETPUT, 60, 0)[..], b"12345678"].concat(),
    ];
    let count = lies.len() as u64;
    for lie in lies {
        scene.say(&lie);
    }
    scene.until("the count", |scene| scene.ni.status(0) == Ok(count));
    assert_eq!((scene.events(), scene.bytes(), scene.ni.counts()), (vec![], vec![b'-'; 64], (0, 0)));
    assert!(!scene.is_closed);
}

/// The partner goes in each state of a put: with its message not taken, with an ack due, and while
/// it reads what is offered. The operation ends once, and nothing is pending then.
#[test]
fn a_put_ends_once_in_whatever_state_its_partner_goes() {
    let (start, end, ack) = (EventKind::SendStart, EventKind::SendEnd, EventKind::Ack);
    for (len, is_delivered, expected) in [
        (8, true, vec![(start, 0), (end, 0), (ack, 1)]),
        (100_000, true, vec![(start, 0), (end, 1)]),
        (100_000, false, vec![(start, 0), (end, 1)]),
    ] {
        let mut scene = Scene::introduced();
        let memory = scene.bind(len);
        scene.ni.put(memory, None, true, &Target::at(LIAR, 4)).expect("room");
        if is_delivered {
            scene.asked(if len == 8 { PUT } else { OFFER });
        }
        let mut seen = Vec::new();
        // A short one is delivered, and its send ends.
        scene.until("its state", |scene| {
            seen.extend(scene.events());
            len > 8 || seen.contains(&(end, 0))
        });
        scene.liar.disconnect(scene.connection).expect("open");
        scene.until("the end", |scene| scene.ni.counts().0 == 0);
        seen.extend(scene.events());
        assert_eq!(seen, expected, "{len} bytes, delivered: {is_delivered}");
        assert_eq!(scene.ni.unlink_memory(memory), Ok(()));
    }
}

/// It asks, and never says that it has read: the descriptor is in use until its link ends.
#[test]
fn a_reader_that_never_ends_holds_a_descriptor_until_its_link_does() {
    let mut scene = Scene::introduced();
    let long = buffer(vec![7; 100_000]);
    let entry = scene.ni.attach(4, Match { source: LIAR, bits: 0, ignore: 0 }, Unlink::Retain, Position::Before);
    let descriptor = Descriptor::new(&long).options(options::OP_GET).events(scene.queue);
    let memory = scene.ni.attach_memory(entry.expect("room"), descriptor, Unlink::Retain).expect("room");
    scene.say(&request(GET, 100_000, b""));
    scene.until("the offer", |scene| scene.seen.len() == 3);
    assert_eq!(scene.ni.unlink_memory(memory), Err(Error::MemoryInUse));
    scene.liar.disconnect(scene.connection).expect("open");
    scene.until("the end", |scene| scene.ni.counts().0 == 0);
    assert_eq!(scene.events(), [(EventKind::GetStart, 0), (EventKind::GetEnd, 1)]);
    assert_eq!(scene.ni.unlink_memory(memory), Ok(()));
}

/// Further requests are dropped; the link and other partners live on.
#[test]
fn a_partner_has_so_many_requests_open_and_no_more() {
    let mut scene = Scene::introduced();
    let long = buffer(vec![7; 40_000]);
    let entry = scene.ni.attach(4, Match { source: LIAR, bits: 0, ignore: 0 }, Unlink::Retain, Position::Before);
    let bits = options::OP_GET | options::MANAGE_REMOTE;
    scene.ni.attach_memory(entry.expect("room"), Descriptor::new(&long).options(bits), Unlink::Retain).expect("room");
    for number in 0..4_100 {
        scene.say(&request(GET, 40_000, b""));
        scene.until("the answer", |scene| scene.seen.len() == 3 + number);
    }
    assert_eq!((scene.ni.status(0), scene.ni.counts(), scene.is_closed), (Ok(4), (4_096, 0), false));
    let Some((Head::Answer(refused), _)) = wire::parse(&scene.seen[4_101]) else { panic!("no answer") };
    assert_eq!((refused.kind, refused.status), (REPLY, wire::DROPPED));
}
