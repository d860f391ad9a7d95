//! Partners that break the rules, byte by byte: they lose their link, and nothing else happens.

use crate::endpoint::Endpoint;
use crate::errors::Code;
use crate::options::Options;
use crate::partner::Control;
use crate::place::{Place, endpoint_options};
use crate::requests::Request;
use crate::types::{Address, Match, Status, buffer};
use crate::wire::{self, CONNECT, CONNECTED, CREDIT, DONE, EAGER, LARGE, ONE, REFUSED, SYNC};
use cci::{Connect, Connection, Memory, Notify, Registration, Rights};
use cci_conformance::{LIMIT, sm_device};
use cci_peers::Table;
use cci_rendezvous::Header;
use std::time::Instant;

const OWN: u64 = 9 << 32;
const LIAR: u64 = 9 << 32 | 1;
const SESSION: u32 = 5;
const WINDOW: u32 = 256;

/// An honest endpoint, and a bare endpoint of CCI that is linked to it.
struct Scene {
    honest: Endpoint,
    liar: cci::Endpoint,
    connection: Connection,
    /// What the honest endpoint has sent.
    seen: Vec<Vec<u8>>,
    is_closed: bool,
}

/// The payload of a request by which the liar is a partner.
fn hello() -> Vec<u8> {
    let name = |word: u64| [&[1, 8, 0][..], &word.to_le_bytes()].concat();
    [b"ccipeer1", &[7; 8][..], &1u32.to_le_bytes(), &0u32.to_le_bytes(), &name(OWN), &name(LIAR)].concat()
}

impl Scene {
    fn new() -> Self {
        let device = sm_device();
        let open = || cci::Endpoint::open(&device, &endpoint_options()).expect("an endpoint");
        let place = Place::of(open(), 9, 0, Box::new(Table::new()));
        let honest = Endpoint::open(place, 7, &Options::new()).expect("an endpoint");
        let liar = open();
        liar.connect(&Connect::to(honest.uri()).payload(&hello()).timeout(LIMIT)).expect("a URI");
        let begun = Instant::now();
        let connection = loop {
            assert!(begun.elapsed() < LIMIT && honest.progress().is_ok());
            match liar.get_event().expect("usable") {
                Some(cci::Event::Connected(at)) => break at.connection().expect("open"),
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        };
        let mut scene = Self { honest, liar, connection, seen: Vec::new(), is_closed: false };
        // Which process it is, and its introduction.
        scene.until("its introduction", |scene| scene.seen.len() == 2);
        scene
    }

    fn introduced() -> Self {
        let scene = Self::new();
        scene.say(&wire::ident(SESSION, WINDOW).emit());
        scene
    }

    fn say(&self, message: &[u8]) {
        self.liar.send(self.connection, message, Notify::OnFailure(0)).expect("room");
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            self.honest.progress().expect("usable");
            match self.liar.get_event().expect("usable") {
                Some(cci::Event::Received(message)) => self.seen.push(message.to_vec()),
                Some(cci::Event::Disconnected(_)) => self.is_closed = true,
                _ => {}
            }
        }
    }

    fn until_closed(&mut self, why: &str) {
        self.until(why, |scene| scene.is_closed);
        assert_eq!(self.honest.counts().broken, 1, "{why}");
    }

    fn end(&mut self, request: Request) -> Status {
        let mut found = None;
        self.until("the end of a request", |scene| {
            found = scene.honest.test(request).expect("a request");
            found.is_some()
        });
        found.expect("just found")
    }

    fn to_liar(&self, len: usize, is_sync: bool) -> Request {
        let to = Address::of(LIAR, SESSION);
        let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
        start(&self.honest, buffer(vec![3; len]), to, 1, 0).expect("room")
    }

    /// Memory of the liar, as the honest endpoint may read it, or not.
    fn own(&self, len: usize, rights: Rights) -> Registration<Vec<u8>> {
        self.liar.register(vec![8; len], rights).expect("room")
    }
}

fn eager(len: u32, bytes: &[u8]) -> Vec<u8> {
    [&Header::new(EAGER, 0, len, 1).emit(), bytes].concat()
}

fn offer(len: u32, parts: &[(u32, &cci::RmaHandle)]) -> Vec<u8> {
    let flags = if parts.len() == 1 { ONE } else { 0 };
    let mut message = Header::new(LARGE, flags, len, 1).emit().to_vec();
    message.extend(77_u64.to_le_bytes());
    wire::emit_parts(parts.iter().copied(), &mut message);
    message
}

#[test]
fn a_timer_of_a_request_that_has_ended_costs_later_calls_no_look_at_the_clock() {
    let mut scene = Scene::introduced();
    let has_timer = |scene: &Scene| scene.honest.core.lock().next_time().is_some();
    let request = scene.honest.receive(buffer(vec![0; 4]), Match::ANY, 0).expect("room");
    scene.honest.set_timeout(request, LIMIT).expect("open");
    scene.honest.progress().expect("usable");
    assert!(has_timer(&scene), "it is open");
    scene.say(&eager(4, b"late"));
    assert_eq!(scene.end(request).code, Code::Success);
    scene.honest.progress().expect("usable");
    assert!(!has_timer(&scene));
}

#[test]
fn a_malformed_message_ends_the_link() {
    let ident = wire::ident(SESSION, WINDOW);
    let handle = cci::RmaHandle::from_bytes(&[1; 32]).expect("a handle");
    let messages: [(&str, Vec<u8>); 14] = [
        ("no bytes", vec![]),
        ("half a header", vec![EAGER; 15]),
        ("an unknown kind", Header::new(99, 0, 0, 0).emit().to_vec()),
        ("shorter than stated", eager(5, b"1234")),
        ("longer than stated", eager(3, b"1234")),
        ("a number that is not there", {
            let header = Header::new(EAGER, SYNC, 4, 1);
            [&header.emit()[..], b"1234"].concat()
        }),
        ("a second introduction", ident.emit().to_vec()),
        ("credit for nothing", Header { credit: 1, ..Header::new(CREDIT, 0, 0, 0) }.emit().to_vec()),
        ("an offer without parts", offer(5, &[])),
        ("an offer of nothing", offer(0, &[])),
        ("half an offer", offer(5, &[(5, &handle)])[..40].to_vec()),
        ("parts of another length", offer(6, &[(5, &handle), (2, &handle)])),
        ("an answer with a word", Header::new(DONE, 0, 1, 0).emit().to_vec()),
        ("an unknown answer", Header::new(CONNECTED, 9, 0, 0).emit().to_vec()),
    ];
    for (why, message) in messages {
        let mut scene = Scene::introduced();
        let memory = buffer(vec![b'-'; 64]);
        let receive = scene.honest.receive(memory.clone(), Match::ANY, 0).expect("room");
        scene.say(&message);
        scene.until_closed(why);
        assert_eq!(scene.honest.cancel(receive), Ok(true), "{why}");
        let mut bytes = [0; 64];
        assert!(memory.copy_out(0, &mut bytes) && bytes == [b'-'; 64], "{why}");
    }
}

#[test]
fn what_comes_before_the_introduction_ends_the_link() {
    for message in
        [eager(2, b"12"), Header::new(CONNECT, 0, 7, 1).emit().to_vec(), Header::new(DONE, 0, 0, 1).emit().to_vec()]
    {
        let mut scene = Scene::new();
        scene.say(&message);
        scene.until_closed("no introduction");
        assert_eq!(scene.honest.pending(), (0, 0));
    }
}

/// A flood beyond the credit: what is kept is bounded, and the link ends.
#[test]
fn a_flood_without_credit_ends_the_link() {
    let mut scene = Scene::introduced();
    let message = eager(1_000, &[5; 1_000]);
    let mut sent = 0;
    while !scene.is_closed {
        if scene.liar.send(scene.connection, &message, Notify::OnFailure(0)).is_ok() {
            sent += 1;
        }
        scene.until("a turn", |_| true);
        scene.honest.progress().expect("usable");
        while let Some(event) = scene.liar.get_event().expect("usable") {
            scene.is_closed |= matches!(event, cci::Event::Disconnected(_));
        }
        assert!(sent < 20_000, "it goes on and on");
    }
    // 32,768 granules, 18 for each.
    assert_eq!((scene.honest.pending().1, scene.honest.counts().broken), (1_820, 1));
}

/// A partner that takes nothing may ask for 65,536 answers, and be owed any number.
#[test]
fn answers_that_are_owed_end_no_link_and_those_that_are_asked_for_do() {
    let mut scene = Scene::introduced();
    let is_ready =
        |scene: &mut Scene| scene.honest.core.lock().partners.iter().flatten().any(|of| of.ready().is_some());
    scene.until("both introductions", is_ready);
    // More than 65,536 wait, beside those that CCI has taken.
    let post = |count, control| {
        let mut state = scene.honest.core.lock();
        let number = state.partners.iter().position(Option::is_some).expect("the liar") as u32;
        (0..count).for_each(|_| state.post(scene.honest.core.endpoint(), number, control));
        let partner = state.partner(number).expect("the liar");
        (partner.outbox.controls().count(), state.counts.broken)
    };
    let (waiting, broken) = post(100_000, Control::Answer(DONE, 0, 0));
    assert!(waiting > 65_536 && broken == 0, "{waiting} wait");
    assert_eq!(post(65_536, Control::Answer(CONNECTED, 0, 0)), (waiting + 65_536, 0));
    assert_eq!(post(1, Control::Answer(CONNECTED, 0, 0)), (0, 1));
    scene.until_closed("a flood");
}

#[test]
fn answers_for_nothing_are_ignored_and_those_of_others_end_nothing() {
    let mut scene = Scene::introduced();
    let receive = scene.honest.receive(buffer(vec![0; 8]), Match::exact(9), 0).expect("room");
    let own = scene.honest.address();
    let to_self = scene.honest.send_sync(buffer(vec![0; 8]), own, 4, 0).expect("room");
    for number in [0, 1 << 63, receive.bits(), to_self.bits()] {
        for kind in [DONE, CONNECTED] {
            for flags in [0, REFUSED] {
                scene.say(&Header::new(kind, flags, 0, number).emit());
            }
        }
    }
    // They have been taken before this one.
    scene.say(&eager(2, b"12"));
    scene.until("the message", |scene| scene.honest.pending().1 == 2);
    assert_eq!((scene.honest.test(receive), scene.honest.test(to_self)), (Ok(None), Ok(None)));
    assert!(!scene.is_closed);
}

#[test]
fn a_liar_ends_its_own_requests_and_gets_what_it_is_offered_alone() {
    let mut scene = Scene::introduced();
    // Done without having read, and failed.
    for (len, flags, code) in
        [(100_000, 0, Code::Success), (100_000, REFUSED, Code::Aborted), (8, REFUSED, Code::Aborted)]
    {
        let request = scene.to_liar(len, true);
        let number = scene.seen.len();
        scene.until("its message", |scene| scene.seen.len() > number);
        scene.say(&Header::new(DONE, flags, 0, request.bits()).emit());
        assert_eq!(scene.end(request).code, code);
    }
    let number = scene.seen.len();
    let request = scene.honest.start_connect((9, 1), 7, 0, 0).expect("room");
    scene.until("its message", |scene| scene.seen.len() > number);
    scene.say(&Header::new(CONNECTED, REFUSED, 0, request.bits()).emit());
    assert_eq!(scene.end(request).code, Code::BadKey);
    // Memory that may not be read, and memory that is shorter than stated.
    let shut = scene.own(100, Rights::NONE);
    let short = scene.own(50, Rights::READ);
    let unknown = cci::RmaHandle::from_bytes(&[6; 32]).expect("a handle");
    for handle in [*shut.handle(), *short.handle(), unknown] {
        let memory = buffer(vec![b'-'; 200]);
        let receive = scene.honest.receive(memory.clone(), Match::ANY, 0).expect("room");
        let number = scene.seen.len();
        scene.say(&offer(100, &[(100, &handle)]));
        let status = scene.end(receive);
        assert_eq!((status.code, status.copied), (Code::Aborted, 0));
        scene.until("an answer", |scene| scene.seen.len() > number);
        let answer = wire::parse(&scene.seen[number], 16).expect("an answer").header;
        assert_eq!((answer.kind, answer.flags, answer.long), (DONE, REFUSED, 77));
        let mut bytes = [0; 100];
        assert!(memory.copy_out(100, &mut bytes) && bytes == [b'-'; 100], "beyond what was stated");
    }
    assert!(!scene.is_closed);
    drop::<Memory>(buffer(Vec::new()));
}
