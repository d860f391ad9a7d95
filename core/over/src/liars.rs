//! Peers that break the rules, and ends of messages, over a network that is a list.

use crate::network::{Arrival, Buffer, Class, Ended, Event, Fate, Goal, Network, Part, Put, Sent, Way, Words};
use crate::sides::MOST_CONNECTIONS;
use crate::transport::{NEAR, UNHEARD};
use crate::wire::{Opening, Verb, header};
use crate::{Header, Over, Parts, Registrations};
use cci_mem::arena::SharedMemory;
use cci_mem::guarded::Threading;
use cci_mem::memory::Memory;
use cci_proto::{Access, Atomic, Attribute, EventKind, MAX_REQUEST, Rights, RmaHandle};
use cci_transport::{
    Connect, Connection, Core, CoreOptions, Endpoint, Message, Posted, Rma, Slot, Transport, monotonic,
};
use std::collections::VecDeque;
use std::time::Duration;

const OPTIONS: CoreOptions =
    CoreOptions { recv_count: 8, send_count: 8, rma_count: 8, disconnect_events: true, ..CoreOptions::DEFAULT };
const LONGEST: u32 = 256;
/// The peer: its place, and its number of the connection.
const LIAR: u32 = 7;
const REMOTE: u32 = 3;
const TAG: u64 = 0x1234_5678_9abc;

/// A network of which both ends are the test: what has come, and what was sent.
#[derive(Default)]
struct Net {
    arrivals: VecDeque<(Arrival<u32>, Vec<u8>)>,
    sent: Vec<(Header, Vec<u8>)>,
    buffers: Vec<Vec<u8>>,
    /// What was begun and has not ended, and whether a message ends as it is sent.
    begun: VecDeque<Goal>,
    ends_at_once: bool,
    /// Messages of operations that it takes, if not all.
    room: Option<usize>,
    /// Transfers that it has begun, and writes of which the peer was asked what has become.
    moved: Vec<Goal>,
    doubted: Vec<u64>,
}

impl Network for Net {
    type Place = u32;
    type Origin = u32;
    type Bound = ();

    const WORDS: Words = Words { name: "list", messages: "entries", rma: "none" };

    fn own(&self) -> u32 {
        0
    }

    fn number(&self) -> u32 {
        0
    }

    fn of_uri(uri: &str) -> Option<u32> {
        uri.parse().ok()
    }

    fn uri(place: u32) -> String {
        place.to_string()
    }

    fn at(&self, origin: u32, _: u32) -> u32 {
        origin
    }

    fn is_from(place: u32, origin: u32) -> bool {
        place == origin
    }

    fn next(&mut self, _: &Registrations<()>, bytes: &mut Vec<u8>) -> Option<Event<u32, u32>> {
        if let Some(goal) = self.begun.pop_front() {
            return Some(Event::Ended(Ended { goal, fate: Fate::Done }));
        }
        let (arrival, payload) = self.arrivals.pop_front()?;
        // Whole, however long it is.
        *bytes = payload;
        Some(Event::Arrival(arrival))
    }

    fn progress(&mut self) {}

    fn has_room(&self) -> bool {
        self.room != Some(0)
    }

    fn unsent(&self) -> usize {
        0
    }

    fn write_message(&mut self, message: &Message<'_>) -> Option<Buffer> {
        let mut bytes = vec![0; message.len()];
        message.copy_to(&mut bytes);
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Option<Buffer> {
        self.buffers.push(bytes.to_vec());
        Some((self.buffers.len() as u32 - 1, bytes.len()))
    }

    fn give(&mut self, _: u32) {}

    fn put(&mut self, goal: Goal, put: &Put<u32>) -> Sent {
        let bytes = put.bytes.map(|(buffer, _)| std::mem::take(&mut self.buffers[buffer as usize]));
        self.sent.extend(Header::of(put.header).map(|header| (header, bytes.unwrap_or_default())));
        let is_message = matches!(goal, Goal::Message { .. });
        if is_message && let Some(room) = &mut self.room {
            *room -= 1;
        }
        if self.ends_at_once {
            return Sent::Over;
        }
        if is_message {
            self.begun.push_back(goal);
        }
        Sent::Begun
    }

    fn ask(&mut self, _: u32, _: u32, _: u64, _: &[u8]) -> bool {
        true
    }

    fn transfer(&mut self, goal: Goal, _: &Way<u32>, _: Part) -> bool {
        self.moved.push(goal);
        true
    }

    fn doubt(&mut self, _: u32, serial: u64, _: &Way<u32>, _: &Part) -> bool {
        self.doubted.push(serial);
        true
    }

    fn on_own(&mut self, _: &Way<u32>, _: &Registrations<()>, _: Header, _: &[u8]) -> Option<Ended> {
        None
    }

    fn cancel(&mut self, _: impl Fn(Goal) -> bool) {}

    fn attach(&mut self, _: u64, _: &Memory, _: Rights) -> Option<()> {
        Some(())
    }

    fn release(&mut self, (): ()) -> Result<(), ()> {
        Ok(())
    }

    fn watch(&mut self) -> bool {
        true
    }

    fn unwatch(&mut self) {}

    fn end(&mut self, _: Vec<()>) {}
}

/// The peer's word of a connection.
fn opening(attribute: Attribute, tag: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    Opening { endpoint: 0, number: REMOTE, attribute, max_send_size: 64, window: 8, tag, token: 0 }.emit(&mut bytes);
    bytes
}

/// An endpoint whose peer is the test.
struct End {
    core: Core,
    over: Over<Net>,
}

impl End {
    fn new() -> Self {
        let mut core = None;
        let _ = Endpoint::open(Threading::Many, |endpoint| {
            core = Core::new(endpoint, &OPTIONS).ok();
            None
        });
        let core = core.expect("memory for slots");
        let parts = Parts::new(&core, LONGEST).expect("a descriptor");
        Self { core, over: Over::new(Net::default(), parts) }
    }

    /// A message of the peer.
    fn come(&mut self, origin: u32, class: Class, word: u64, bytes: &[u8]) {
        let arrival = Arrival { origin, header: word, class, from: 0, len: bytes.len(), has_failed: false };
        self.over.net.arrivals.push_back((arrival, bytes.to_vec()));
    }

    /// A message of the peer, which is handled at once.
    fn hear(&mut self, origin: u32, class: Class, word: u64, bytes: &[u8]) {
        self.come(origin, class, word, bytes);
        assert!(self.over.make_progress(&mut self.core));
    }

    fn request(&mut self, tag: u64) {
        self.request_of(Attribute::ReliableOrdered, tag);
    }

    fn request_of(&mut self, attribute: Attribute, tag: u64) {
        self.request_with(attribute, tag, &[]);
    }

    fn request_with(&mut self, attribute: Attribute, tag: u64, payload: &[u8]) {
        let mut bytes = opening(attribute, tag);
        bytes.extend(payload);
        self.hear(LIAR, Class::Setup, header(0, Verb::Request, 0, tag), &bytes);
    }

    fn event(&mut self, kind: EventKind) -> &'static Slot {
        let slot = self.core.pop().expect("an event");
        assert_eq!(slot.kind(), kind as u32);
        slot
    }

    /// An open connection: its cell, and its number here.
    fn connected() -> (Self, &'static Connection, u32) {
        Self::connected_by(Attribute::ReliableOrdered)
    }

    fn connected_by(attribute: Attribute) -> (Self, &'static Connection, u32) {
        let mut end = Self::new();
        end.request_of(attribute, TAG);
        let (cell, number) = end.accept();
        (end, cell, number)
    }

    /// Accepts the next request: the cell of the connection, and its number here.
    fn accept(&mut self) -> (&'static Connection, u32) {
        let request = self.event(EventKind::ConnectRequest);
        self.over.accept(&mut self.core, request, 0).expect("an accept");
        assert!(request.give_back());
        let accepted = self.event(EventKind::Accept);
        let cell = accepted.connection.get().expect("accepted");
        assert!(accepted.give_back());
        let (_, bytes) = self.over.net.sent.pop().expect("an answer");
        let (opening, _) = Opening::parse(&bytes).expect("an opening");
        (cell, opening.number)
    }

    fn register(&mut self) -> RmaHandle {
        let memory = SharedMemory::new(4096).expect("memory").memory();
        self.over.register(&mut self.core, memory, Rights::NONE, None).expect("a registration")
    }

    /// What was sent with this verb.
    fn sent(&self, verb: Verb) -> usize {
        self.over.net.sent.iter().filter(|(header, _)| header.verb == verb).count()
    }
}

#[test]
fn who_sends_more_than_its_window_loses_the_connection_and_what_it_left() {
    let (mut end, _, number) = End::connected();
    let window = end.over.sides.get(number).expect("open").window as usize;
    // Out of their turn, so that all of them wait.
    for sequence in 1..=window as u8 {
        end.hear(LIAR, Class::Reliable, header(number, Verb::Message, sequence, TAG), b"early");
    }
    assert_eq!((end.over.sides.get(number).expect("open").early.len(), end.over.strays), (window, 0));
    end.hear(LIAR, Class::Reliable, header(number, Verb::Message, 1, TAG), b"again");
    end.hear(LIAR, Class::Reliable, header(number, Verb::Message, 1, TAG), b"again");
    assert!(end.over.sides.get(number).is_none_or(|side| side.early.len() <= window + 1) && end.over.strays > 0);
    end.event(EventKind::Disconnect);
}

#[test]
fn requests_that_nobody_answers_are_bounded() {
    let mut end = End::new();
    for tag in 0..(MOST_CONNECTIONS + end.core.recv_slots()) as u64 {
        end.request(tag);
    }
    assert_eq!((end.over.inbox.requests.len(), end.sent(Verb::Reject)), (MOST_CONNECTIONS, 0));
    end.request(u64::MAX);
    assert_eq!((end.over.inbox.requests.len(), end.sent(Verb::Reject)), (MOST_CONNECTIONS, 1));
}

#[test]
fn a_request_that_is_too_long_blocks_no_other() {
    let mut end = End::new();
    let too_long = vec![1; MAX_REQUEST + 1];
    for (tag, len) in [(1, MAX_REQUEST), (2, MAX_REQUEST + 1)] {
        end.request_with(Attribute::ReliableOrdered, tag, &too_long[..len]);
    }
    end.request_with(Attribute::ReliableOrdered, 3, &[1; 8 << 10]);
    end.request(4);
    for tag in [1, 4] {
        let slot = end.event(EventKind::ConnectRequest);
        assert_eq!(end.over.inbox.shown.get(slot).map(|request| request.opening.tag), Some(tag));
    }
    assert_eq!((end.core.pop().is_none(), end.over.inbox.requests.len(), end.over.strays), (true, 0, 2));
}

#[test]
fn a_message_that_is_too_long_ends_its_connection_and_blocks_no_other() {
    for len in [LONGEST as usize + 1, 8 << 10] {
        let (mut end, _, number) = End::connected();
        end.hear(LIAR, Class::Reliable, header(number, Verb::Message, 0, TAG), &vec![1; LONGEST as usize]);
        assert!(end.event(EventKind::Recv).give_back());
        end.request(TAG + 1);
        let (_, other) = end.accept();
        end.hear(LIAR, Class::Reliable, header(number, Verb::Message, 1, TAG), &vec![1; len]);
        end.event(EventKind::Disconnect);
        end.hear(LIAR, Class::Reliable, header(other, Verb::Message, 0, TAG + 1), b"of another connection");
        end.event(EventKind::Recv);
        assert_eq!((end.over.sides.get(number).is_none(), end.over.strays), (true, 1));
    }
}

#[test]
fn what_is_too_long_and_may_be_lost_is_lost() {
    let (mut end, _, number) = End::connected_by(Attribute::Unreliable);
    for len in [LONGEST as usize + 1, 8 << 10] {
        end.hear(LIAR, Class::Unreliable, header(number, Verb::Message, 0, TAG), &vec![1; len]);
    }
    assert_eq!((end.core.pop().is_none(), end.over.strays), (true, 2));
    end.hear(LIAR, Class::Unreliable, header(number, Verb::Message, 0, TAG), b"short");
    end.event(EventKind::Recv);
}

#[test]
fn what_others_send_and_what_is_malformed_does_nothing() {
    let (mut end, _, number) = End::connected();
    let message = |tag| header(number, Verb::Message, 0, tag);
    end.hear(LIAR + 1, Class::Reliable, message(TAG), b"of another process");
    end.hear(LIAR, Class::Reliable, message(TAG + 1), b"of another connection");
    end.hear(LIAR, Class::Reliable, header(number + 1, Verb::Message, 0, TAG), b"for nobody");
    end.hear(LIAR, Class::Reliable, 15 << 36, b"no verb");
    end.hear(LIAR, Class::Setup, header(0, Verb::Request, 0, TAG), b"no opening");
    assert!(end.core.pop().is_none());
    assert_eq!(end.over.strays, 5);
    for (verb, bytes) in [(Verb::Atomic, &b"too short"[..]), (Verb::AtomicDone, b""), (Verb::Accept, b"twice")] {
        end.hear(LIAR, Class::Reliable, header(number, verb, 0, TAG), bytes);
    }
    assert!(end.core.pop().is_none() && end.over.sides.get(number).is_some());
}

/// An RMA of 8 bytes; as far as this side can tell the handle is the peer's too.
fn rma(handle: &RmaHandle, access: Access, fence: bool) -> Rma<'_> {
    Rma { local: handle, local_offset: 0, remote: handle, remote_offset: 0, len: 8, access, fence, message: None }
}

#[test]
fn a_write_that_begins_late_is_asked_about_too() {
    let (mut end, cell, number) = End::connected();
    let local = end.register();
    end.over.rma(&mut end.core, cell, &rma(&local, Access::Read, false), Posted::Event(1)).expect("a read");
    // It waits for the read.
    end.over.rma(&mut end.core, cell, &rma(&local, Access::Write, true), Posted::Event(2)).expect("a write");
    let read = Goal::Read { side: number, serial: 0 };
    assert_eq!(end.over.net.moved, [read]);
    let until = |end: &mut End, is_over: &dyn Fn(&End) -> bool| {
        let limit = monotonic() + Duration::from_secs(10);
        while !is_over(end) {
            assert!(monotonic() < limit, "{:?} of {:?}", end.over.net.doubted, end.over.net.moved);
            end.over.make_progress(&mut end.core);
        }
    };
    until(&mut end, &|end| end.over.alarm.is_none());
    end.over.net.begun.push_back(read);
    until(&mut end, &|end| end.over.net.moved.len() == 2);
    until(&mut end, &|end| end.over.net.doubted == [1]);
}

#[test]
fn what_finds_no_room_after_an_atomic_operation_gets_its_turn() {
    let (mut end, cell, number) = End::connected();
    let local = end.register();
    let access = Access::Atomic(Atomic::FetchAdd(1));
    end.over.rma(&mut end.core, cell, &rma(&local, access, false), Posted::Event(1)).expect("an operation");
    // It waits for the operation.
    end.over.rma(&mut end.core, cell, &rma(&local, Access::Write, true), Posted::Event(2)).expect("a write");
    end.over.net.room = Some(0);
    let words = [0, 1, 40].map(u64::to_le_bytes).concat();
    end.hear(LIAR, Class::Reliable, header(number, Verb::AtomicDone, 0, TAG), &words);
    assert!(end.event(EventKind::Send).give_back() && end.over.net.moved.is_empty());
    end.over.net.room = None;
    end.over.make_progress(&mut end.core);
    assert_eq!(end.over.net.moved, [Goal::Write { side: number, serial: 1 }]);
}

#[test]
fn an_answer_to_what_was_not_asked_yet_ends_nothing() {
    let (mut end, cell, number) = End::connected();
    let local = end.register();
    let rma = rma(&local, Access::Atomic(Atomic::FetchAdd(1)), false);
    for context in 0..3 {
        end.over.rma(&mut end.core, cell, &rma, Posted::Event(context)).expect("an operation");
    }
    // Two at most are under way.
    assert_eq!(end.sent(Verb::Atomic), 2);
    let answer = |end: &mut End, serial: u64| {
        let words = [serial, 1, 40].map(u64::to_le_bytes).concat();
        end.hear(LIAR, Class::Reliable, header(number, Verb::AtomicDone, 0, TAG), &words);
    };
    answer(&mut end, 2);
    answer(&mut end, 1);
    answer(&mut end, 0);
    assert_eq!(end.sent(Verb::Atomic), 3, "the third is asked once the others have ended");
    for _ in 0..2 {
        assert!(end.event(EventKind::Send).give_back());
    }
    assert!(end.core.pop().is_none(), "it was not answered since");
    answer(&mut end, 2);
    assert!(end.event(EventKind::Send).give_back());
}

#[test]
fn a_message_that_has_left_ends_at_once_but_not_before_an_earlier_one() {
    let (mut end, cell, _) = End::connected_by(Attribute::Unreliable);
    let send = |end: &mut End, posted| {
        let sent = end.over.send(&mut end.core, cell, Message::One(b"x"[..].into()), posted);
        assert!(matches!(sent, Ok(None)), "nobody waits");
    };
    let context = |slot: &'static Slot| {
        let context = slot.words()[1];
        assert!(slot.give_back());
        context
    };
    end.over.net.ends_at_once = true;
    // More than there are slots, so each is back.
    for _ in 0..2 * OPTIONS.send_count {
        send(&mut end, Posted::Silent(1));
    }
    assert!(end.core.pop().is_none());
    send(&mut end, Posted::Event(2));
    assert_eq!(context(end.event(EventKind::Send)), 2);
    end.over.net.ends_at_once = false;
    send(&mut end, Posted::Event(3));
    end.over.net.ends_at_once = true;
    send(&mut end, Posted::Event(4));
    assert!(end.core.pop().is_none(), "the first of the two is under way");
    assert!(end.over.make_progress(&mut end.core));
    assert_eq!([context(end.event(EventKind::Send)), context(end.event(EventKind::Send))], [3, 4]);
    assert_eq!((end.sent(Verb::Message), end.core.pop().is_none()), (2 * OPTIONS.send_count + 3, true));
}

#[test]
fn a_message_that_has_left_ends_though_the_next_one_finds_no_room() {
    let (mut end, cell, _) = End::connected_by(Attribute::Unreliable);
    (end.over.net.ends_at_once, end.over.net.room) = (true, Some(0));
    for context in [1, 2] {
        let sent = end.over.send(&mut end.core, cell, Message::One(b"x"[..].into()), Posted::Event(context));
        assert!(matches!(sent, Ok(None)), "nobody waits");
    }
    for context in [1, 2] {
        end.over.net.room = Some(1);
        end.over.make_progress(&mut end.core);
        assert_eq!(end.event(EventKind::Send).words()[1], context);
        assert!(end.core.pop().is_none(), "there was room for one");
    }
}

#[test]
fn who_only_sends_answers_its_peer_and_hears_of_its_end() {
    let (mut end, cell, number) = End::connected_by(Attribute::Unreliable);
    end.over.net.ends_at_once = true;
    let mut send_until = |verb, is_over: &dyn Fn(&End, bool) -> bool| {
        end.come(LIAR, Class::Reliable, header(number, verb, 0, TAG), b"");
        (0..=UNHEARD).any(|_| {
            let sent = end.over.send(&mut end.core, cell, Message::One(b"x"[..].into()), Posted::Silent(0));
            is_over(&end, sent.is_err())
        })
    };
    assert!(send_until(Verb::Ping, &|end, has_failed| !has_failed && end.sent(Verb::Pong) == 1));
    assert!(send_until(Verb::Close, &|_, has_failed| has_failed));
}

#[test]
fn the_limits_of_accepted_connects_are_forgotten_together() {
    let mut end = End::new();
    let attribute = Attribute::ReliableOrdered;
    let timeout = Some(Duration::from_secs(3600));
    let uri = LIAR.to_string();
    for context in 0..2 {
        end.over
            .begin_connect(&mut end.core, &Connect { uri: &uri, payload: &[], attribute, context, timeout })
            .expect("a connect");
    }
    let before = monotonic();
    for number in end.over.sides.numbers() {
        let tag = end.over.sides.get(number).expect("it waits").tag;
        end.hear(LIAR, Class::Reliable, header(number, Verb::Accept, 0, tag), &opening(attribute, tag));
        assert!(end.event(EventKind::Connect).give_back());
        assert!(end.over.alarm.is_none_or(|alarm| alarm >= before + NEAR), "not a look at all of them for each");
    }
    while end.over.alarm.is_some() {
        assert!(monotonic() < before + Duration::from_secs(10), "nothing is due");
        end.over.make_progress(&mut end.core);
    }
}
