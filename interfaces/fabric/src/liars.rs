//! Partners that break the rules, byte by byte: they lose their link, and nothing else happens.

use crate::wire::{self, ASK, CREDIT, DONE, EAGER, Front, GIVEN, Given, HEADER, IS_INLINE, OFFER, WRITTEN};
use crate::{
    AddressVector, Code, Counter, Domain, Endpoint, EndpointOptions, Entry, NOT_AVAILABLE, Queue, QueueOptions,
    Receive, Record, Remote, Segments, Send, Space, What, bits,
};
use cci::{Connect, Connection, HeapBytes, Memory, Notify, RmaHandle};
use cci_conformance::{LIMIT, sm_device};
use cci_rendezvous::Header;
use std::sync::Arc;
use std::time::Instant;

const WINDOW: u32 = 256;

/// An honest endpoint, and a bare endpoint of CCI that is linked to it.
struct Scene {
    honest: Endpoint,
    queue: Queue,
    counter: Counter,
    /// The liar's number at the honest endpoint.
    liar_at: u64,
    liar: cci::Endpoint,
    connection: Connection,
    /// What the honest endpoint has sent.
    seen: Vec<Vec<u8>>,
    ended: Vec<(Entry, Option<Code>)>,
    is_closed: bool,
}

fn name(record: &Record) -> Vec<u8> {
    [&[3, 48, 0][..], &record.to_bytes()[..48]].concat()
}

fn memory(len: usize) -> Memory {
    Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])))
}

fn eager(flags: u8, len: usize, tag: u64, number: Option<u32>) -> Vec<u8> {
    let front = Front::eager(Header::new(EAGER, flags, len as u32, tag), number, None);
    [front.as_bytes(), &vec![7; len]].concat()
}

impl Scene {
    fn new() -> Self {
        let domain = Domain::on(sm_device());
        let (vector, queue) = (AddressVector::open(&domain), Queue::open(&domain, QueueOptions::default()));
        let queue = queue.expect("a queue");
        let honest = Endpoint::new(&domain, EndpointOptions { source: true, ..EndpointOptions::default() });
        honest.bind_vector(&vector).expect("a vector");
        honest.bind_queue(&queue, bits::TRANSMIT | bits::RECV).expect("a queue");
        let counter = Counter::open(&domain);
        honest.bind_counter(&counter, bits::REMOTE_WRITE).expect("a counter");
        honest.enable().expect("an endpoint");
        let own = Record::from_bytes(&honest.address().expect("enabled")).expect("a record");
        let liar = cci::Endpoint::open(&sm_device(), &cci::EndpointOptions::new().disconnect_events(true));
        let liar = liar.expect("an endpoint");
        let record = Record::of_uri(liar.uri(), 13).expect("short");
        let liar_at = vector.insert(&record.to_bytes()).expect("a record");
        let hello = [b"ccipeer1", &[7; 8][..], &1_u32.to_le_bytes(), &0_u32.to_le_bytes(), &name(&own), &name(&record)];
        let uri = own.uri().expect("a record");
        liar.connect(&Connect::to(&uri).payload(&hello.concat()).timeout(LIMIT)).expect("a URI");
        let (begun, mut ended) = (Instant::now(), Vec::new());
        let connection = loop {
            assert!(begun.elapsed() < LIMIT);
            assert_eq!(queue.read(1, |entry| ended.push((*entry, None))), Err(Code::Again));
            match liar.get_event().expect("usable") {
                Some(cci::Event::Connected(at)) => break at.connection().expect("open"),
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        };
        let seen = Vec::new();
        let mut scene = Self { honest, queue, counter, liar_at, liar, connection, seen, ended, is_closed: false };
        // Which process it is, and its introduction.
        scene.until("its introduction", |scene| scene.seen.len() == 2);
        scene
    }

    fn introduced() -> Self {
        let scene = Self::new();
        scene.say(&wire::ident(WINDOW).emit());
        scene
    }

    fn say(&self, message: &[u8]) {
        self.liar.send(self.connection, message, Notify::OnFailure(0)).expect("room");
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            self.turn();
        }
    }

    fn turn(&mut self) {
        let ended = &mut self.ended;
        if self.queue.read(1, |entry| ended.push((*entry, None))) == Err(Code::Available) {
            let failed = self.queue.read_failed().expect("a failure");
            self.ended.push((failed.entry, Some(failed.code)));
        }
        match self.liar.get_event().expect("usable") {
            Some(cci::Event::Received(message)) => self.seen.push(message.to_vec()),
            Some(cci::Event::Disconnected(_)) => self.is_closed = true,
            _ => {}
        }
    }

    /// The link ends, and nothing else has.
    fn until_closed(&mut self, why: &str) {
        self.until(why, |scene| scene.is_closed);
    }

    fn receive(&self, len: usize, context: u64) {
        let segments = Segments::from(memory(len));
        let space = Space::Message;
        let receive = Receive { segments, from: NOT_AVAILABLE, space, tag: 0, ignore: 0, context, flags: 0 };
        self.honest.receive(receive).expect("a receive");
    }

    /// Has the honest endpoint send, and returns what the liar sees.
    fn sent(&mut self, len: usize, flags: u64, context: u64) -> Vec<u8> {
        let (what, to) = (What::Memory(Segments::from(memory(len))), self.liar_at);
        let seen = self.seen.len();
        self.honest.send(Send { what, to, space: Space::Message, tag: 0, data: None, context, flags }).expect("a send");
        self.until("a message", |scene| scene.seen.len() > seen);
        self.seen[seen].clone()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // The honest endpoint would wait for it.
        let _ = self.liar.disconnect(self.connection);
    }
}

#[test]
fn who_does_not_introduce_itself_or_does_twice_loses_its_link() {
    let mut scene = Scene::new();
    scene.say(&eager(0, 1, 0, None));
    scene.until_closed("no introduction");
    let mut scene = Scene::introduced();
    scene.say(&wire::ident(WINDOW).emit());
    scene.until_closed("two introductions");
    let mut scene = Scene::new();
    scene.say(&wire::ident(wire::MOST_WINDOW + 1).emit());
    scene.until_closed("too large a window");
}

#[test]
fn a_malformed_message_ends_its_link_and_receives_stay() {
    for message in [
        vec![],
        vec![0; HEADER],
        vec![9; HEADER],
        Header::new(CREDIT, 0, 0, 1).emit().to_vec(),
        Header { credit: 1, ..Header::new(CREDIT, 0, 0, 0) }.emit().to_vec(),
        eager(IS_INLINE, 33, 0, None),
        eager(0, 5, 0, None)[..20].to_vec(),
        [&Header::new(OFFER, 4, 5, 0).emit()[..], &[0; 8]].concat(),
        Header::new(DONE, 0, 1, 0).emit().to_vec(),
        [&Header::new(DONE, 0, 1, 0).emit()[..], &0_u32.to_le_bytes()].concat(),
        Header::new(GIVEN, 1, 0, 7).emit().to_vec(),
        [&Header::new(WRITTEN, 0, 0, 7).emit()[..], &[0; 9]].concat(),
    ] {
        let mut scene = Scene::introduced();
        scene.receive(8, 1);
        scene.say(&message);
        scene.until_closed(&format!("{message:?}"));
        assert_eq!(scene.ended, [], "{message:?}");
        assert_eq!(scene.honest.cancel(1), Ok(()), "the receive is there: {message:?}");
    }
}

#[test]
fn who_sends_more_than_its_window_loses_its_link() {
    let mut scene = Scene::introduced();
    let window = u64::from_le_bytes(*scene.seen[1][8..].first_chunk().expect("an introduction"));
    let granules = scene.connection.max_send_size().expect("open") as usize / 64 - 1;
    let message = eager(0, (granules - 2) * 64, 0, None);
    // Nobody receives them.
    for _ in 0..=window as usize / granules {
        let sent = |scene: &mut Scene| {
            scene.is_closed || scene.liar.send(scene.connection, &message, Notify::OnFailure(0)).is_ok()
        };
        scene.until("room", sent);
    }
    scene.until_closed("more than its window");
}

#[test]
fn what_is_done_that_was_not_sent_ends_the_link() {
    // A send that asks for it, and its number.
    let mut scene = Scene::introduced();
    let message = scene.sent(100, bits::DELIVERY_COMPLETE, 5);
    let number = u32::from_le_bytes(*message[HEADER..].first_chunk().expect("a number"));
    let done = |flags, number: u32| {
        let mut bytes = Vec::new();
        wire::emit_done(Header::new(DONE, flags, 0, 0), &[number], &mut bytes);
        bytes
    };
    scene.say(&done(0, number));
    scene.until("its end", |scene| !scene.ended.is_empty());
    assert_eq!((scene.ended[0].0.context, scene.ended[0].1), (5, None));
    scene.say(&done(0, number));
    scene.until_closed("done twice");
    assert_eq!(scene.ended.len(), 1);
    // An offer that the peer cannot read, or says so.
    let mut scene = Scene::introduced();
    let message = scene.sent(100_000, 0, 6);
    let number = u32::from_le_bytes(*message[HEADER..].first_chunk().expect("a number"));
    scene.say(&done(1, number));
    scene.until("its end", |scene| !scene.ended.is_empty());
    assert_eq!((scene.ended[0].0.context, scene.ended[0].1), (6, Some(Code::Other)));
    assert!(!scene.is_closed, "it has not broken a rule");
}

#[test]
fn an_offer_that_cannot_be_read_fails_its_receive_alone() {
    let mut scene = Scene::introduced();
    scene.receive(1_000, 1);
    let handle = RmaHandle::from_bytes(&[9; 32]).expect("a handle");
    let mut offer = Vec::new();
    wire::emit_offer(Header::new(OFFER, 0, 0, 0), (1_000, 77, None), [(1_000, &handle)].into_iter(), &mut offer);
    scene.say(&offer);
    scene.until("its end", |scene| !scene.ended.is_empty());
    assert_eq!((scene.ended[0].0.context, scene.ended[0].1), (1, Some(Code::Other)));
    // And it is told.
    scene.until("a refusal", |scene| {
        scene.seen.iter().any(|message| message[..2] == [DONE, 1] && message[HEADER..] == 77_u32.to_le_bytes())
    });
    scene.receive(8, 2);
    scene.say(&eager(0, 8, 0, None));
    scene.until("the next message", |scene| scene.ended.len() == 2);
    assert_eq!((scene.ended[1].0.context, scene.ended[1].1), (2, None));
}

#[test]
fn a_key_that_was_not_asked_for_ends_the_link_and_a_wrong_handle_the_access() {
    let handle = RmaHandle::from_bytes(&[9; 32]).expect("a handle");
    let given = |key| {
        let memory = Given { life: 1, len: 100, may_read: true, may_write: true, handle };
        let mut bytes = Vec::new();
        wire::emit_given(Header::new(GIVEN, 0, 0, key), Some(&memory), &mut bytes);
        bytes
    };
    let mut scene = Scene::introduced();
    scene.say(&given(3));
    scene.until_closed("an answer without a question");
    // It is asked for once more, and then rejected.
    let mut scene = Scene::introduced();
    let (segments, to) = (Segments::from(memory(8)), scene.liar_at);
    let remote = Remote { segments, to, pieces: vec![(0, 8, 3)], is_write: true, data: None, context: 4, flags: 0 };
    scene.honest.remote(remote).expect("it begins");
    for round in 1..=2 {
        let is_asked = |scene: &Scene| scene.seen.iter().filter(|message| message[0] == ASK).count() == round;
        scene.until("a question", |scene| is_asked(scene));
        scene.say(&given(3));
    }
    scene.until("its end", |scene| !scene.ended.is_empty());
    assert_eq!((scene.ended[0].0.context, scene.ended[0].1), (4, Some(Code::KeyRejected)));
    assert!(!scene.is_closed);
}

/// A program that looks at a counter alone makes progress, and reads no entry.
#[test]
fn a_queue_that_nobody_reads_has_a_bound() {
    let scene = Scene::introduced();
    scene.honest.keep_at_most(50 * size_of::<Entry>() as u64);
    let written = [&Header::new(WRITTEN, 0, 0, 5).emit()[..], &8_u64.to_le_bytes()].concat();
    let nothing = || {
        let (segments, space) = (Segments::None, Space::Message);
        let flags = bits::DISCARD;
        scene.honest.receive(Receive { segments, from: NOT_AVAILABLE, space, tag: 0, ignore: 0, context: 0, flags })
    };
    for count in 1..=50 {
        scene.say(&written);
        let begun = Instant::now();
        while scene.counter.read() < count {
            assert!(begun.elapsed() < LIMIT, "an entry is missing");
        }
        assert_eq!(nothing(), Err(Code::Invalid), "after {count}");
    }
    for _ in 0..2 {
        scene.say(&written);
    }
    let begun = Instant::now();
    while nothing() != Err(Code::NoMemory) {
        assert!(begun.elapsed() < LIMIT, "the queue grows");
        let _ = scene.counter.read();
    }
}

#[test]
fn the_end_of_a_link_ends_each_operation_once_whatever_it_waits_for() {
    let mut scene = Scene::introduced();
    scene.sent(100, bits::DELIVERY_COMPLETE, 1);
    scene.sent(100_000, 0, 2);
    let (segments, to) = (Segments::from(memory(8)), scene.liar_at);
    let remote = Remote { segments, to, pieces: vec![(0, 8, 3)], is_write: true, data: None, context: 3, flags: 0 };
    scene.honest.remote(remote).expect("it begins");
    scene.receive(8, 4);
    scene.until("a question", |scene| scene.seen.iter().any(|message| message[0] == ASK));
    scene.liar.disconnect(scene.connection).expect("it was open");
    scene.until("the ends", |scene| scene.ended.len() == 3);
    let mut ended: Vec<_> = scene.ended.iter().map(|(entry, code)| (entry.context, *code)).collect();
    ended.sort_by_key(|(context, _)| *context);
    assert_eq!(ended, [1, 2, 3].map(|context| (context, Some(Code::ConnectionReset))));
    assert_eq!(scene.honest.cancel(4), Ok(()), "a receive of any source stays");
}
