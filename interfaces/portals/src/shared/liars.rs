//! Programs that break the rules: they lose their engine, and others go on.

use super::client::Client;
use super::engine::Engine;
use super::frames::Command;
use super::rings::{AREA_AT, COMMANDS, EVENTS, Frame, In, Out, len_of};
use super::socket::{self, Hello};
use crate::errors::Error;
use crate::handles::Handle;
use crate::initiator::Target;
use crate::objects::{Match, Position, Unlink};
use crate::options;
use crate::place::Place;
use crate::types::{Described, EventKind, ProcessId};
use cci_conformance::{LIMIT, sm_device};
use cci_mem::barrier::Pairing;
use cci_mem::segment::Segment;
use cci_mem::sync::Ordering;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

const AREA: usize = 4096;

/// An honest program, which puts to itself.
struct Honest {
    client: Client,
    queue: Handle,
    source: Handle,
}

impl Honest {
    fn join(name: &str) -> Self {
        let mut client = Client::join(name, None, AREA).expect("an engine");
        let queue = client.queue(64).expect("room");
        let anything = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        let entry = client.attach(4, anything, Unlink::Retain, Position::After).expect("room");
        let bits = options::OP_PUT | options::MANAGE_REMOTE;
        let described = Described { start: 64, length: 8, options: bits, ..Described::default() };
        client.attach_memory(entry, described, Unlink::Retain).expect("room");
        let source = Described { length: 8, queue, ..Described::default() };
        let source = client.bind(source, Unlink::Retain).expect("room");
        Self { client, queue, source }
    }

    /// A put of its own, with its three events.
    fn goes_on(&mut self) {
        let to = Target::at(self.client.id(), 4);
        self.client.put(self.source, None, true, &to).expect("room");
        let mut next = || self.client.wait(self.queue, Some(LIMIT)).map(|(event, _)| (event.kind, event.failure));
        let kinds = [next(), next(), next()];
        assert_eq!(kinds, [EventKind::SendStart, EventKind::SendEnd, EventKind::Ack].map(|kind| Ok((kind, 0))));
    }
}

/// Runs an engine, and the test beside an honest program of it.
fn beside_an_honest_program(what: &str, test: impl FnOnce(&str, &mut Honest)) {
    let name = format!("{what} {}", std::process::id());
    let device = sm_device();
    let mut engine = Engine::open(&name, move |pid| Place::by_rule(&device, pid)).expect("a name of its own");
    let thread = std::thread::spawn(move || engine.serve());
    let mut honest = Honest::join(&name);
    honest.goes_on();
    test(&name, &mut honest);
    honest.goes_on();
    drop(honest);
    assert_eq!(thread.join().expect("no panic"), Ok(()));
}

fn segment() -> Segment {
    Segment::create("a liar", len_of(AREA).expect("little")).expect("memory")
}

fn hello(len: usize) -> Hello {
    Hello { pairing: Pairing::Symmetric, pid: None, len: len as u64 }
}

fn until_closed(socket: &OwnedFd, honest: &mut Honest, what: &str) {
    let begun = Instant::now();
    while socket::take_wakes(socket) {
        assert!(begun.elapsed() < LIMIT, "{what}: it is still served");
        honest.goes_on();
    }
}

/// A program whose rings can be written by hand.
struct Liar {
    socket: OwnedFd,
    segment: Arc<Segment>,
    commands: Out<COMMANDS>,
    events: In<EVENTS>,
}

impl Liar {
    fn join(name: &str) -> Self {
        let (socket, segment) = (socket::connect_to(name).expect("an engine"), segment());
        let file = segment.file_of().expect("open");
        socket::send_hello(&socket, &hello(segment.len()), file).expect("room");
        socket::take_welcome(&socket, LIMIT).expect("an answer").answer.expect("a place");
        let segment = Arc::new(segment);
        let (commands, events) = (Out::<COMMANDS>::of_commands(&segment), In::<EVENTS>::of_events(&segment));
        Self { socket, segment, commands, events }
    }

    /// Writes a line. False: the engine takes no more.
    fn say(&mut self, frame: &Frame) -> bool {
        let begun = Instant::now();
        while !self.commands.has_room().expect("the engine is honest") {
            if begun.elapsed() > LIMIT || !socket::take_wakes(&self.socket) {
                return false;
            }
        }
        self.commands.push(frame);
        if self.commands.must_wake(Pairing::Symmetric) {
            socket::wake(&self.socket);
        }
        true
    }
}

#[test]
fn a_program_that_does_not_say_hello_is_not_taken_in() {
    beside_an_honest_program("hellos", |name, honest| {
        let right = len_of(AREA).expect("little");
        let unsealed = rustix::fs::memfd_create("unsealed", rustix::fs::MemfdFlags::CLOEXEC).expect("a descriptor");
        rustix::fs::ftruncate(&unsealed, right as u64).expect("a file");
        let (pipe, _write) = rustix::pipe::pipe().expect("descriptors");
        let sealed = segment();
        let file = sealed.file_of().expect("open");
        for (what, len, file) in [
            ("a segment that may shrink", right, unsealed.as_fd()),
            ("a pipe", right, pipe.as_fd()),
            ("a wrong length", right + 4096, file),
            ("no room for rings", AREA_AT - 1, file),
            ("nothing", 0, file),
            ("more than there is", usize::MAX, file),
        ] {
            let socket = socket::connect_to(name).expect("an engine");
            socket::send_hello(&socket, &hello(len), file).expect("room");
            let answer = socket::take_welcome(&socket, LIMIT).expect("an answer").answer;
            assert!(answer.is_err(), "{what}");
            until_closed(&socket, honest, what);
        }
        for bytes in [&[][..], &[1; 8], &[0; 32], &[7; 33]] {
            let socket = socket::connect_to(name).expect("an engine");
            send(&socket, bytes, SendFlags::NOSIGNAL).expect("room");
            if !bytes.is_empty() {
                // Not closed alone, as where there is no place: then it would ask again.
                let answer = socket::take_welcome(&socket, LIMIT).expect("an answer").answer;
                assert_eq!(answer, Err(Error::Failed));
            }
            until_closed(&socket, honest, "no hello");
        }
    });
}

#[test]
fn a_program_asks_a_false_engine_once() {
    let name = format!("false {}", std::process::id());
    let listener = socket::listen_at(&name).expect("a name of its own");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            let socket = loop {
                match socket::accept(&listener) {
                    Ok(Some(socket)) => break socket,
                    _ => assert!(begun.elapsed() < LIMIT, "nobody comes"),
                }
                std::thread::yield_now();
            };
            send(&socket, &[7; 32], SendFlags::NOSIGNAL).expect("room");
            while socket::take_wakes(&socket) {
                assert!(begun.elapsed() < LIMIT, "the program stays");
                std::thread::yield_now();
            }
        });
        let why = Client::join(&name, None, AREA).expect_err("no engine").to_string();
        assert!(why.contains("Protocol error"), "{why}");
    });
}

/// Who says nothing has its place for a while, and no more than a place.
#[test]
fn silence_holds_nobody_up() {
    beside_an_honest_program("silence", |name, honest| {
        let silent: Vec<_> = (0..20).filter_map(|_| socket::connect_to(name).ok()).collect();
        honest.goes_on();
        drop(silent);
    });
}

/// Strangers that are silent and come again take no place for long, and do not hold the end up.
#[test]
fn silent_strangers_keep_no_program_out() {
    let mut silent = VecDeque::new();
    let mut fill = |name: &str| {
        for _ in 0..64 {
            silent.extend(socket::connect_to(name).ok());
        }
        // Of more the older ones make room.
        silent.drain(..silent.len().saturating_sub(64));
    };
    beside_an_honest_program("silent strangers", |name, honest| {
        let mut join = || {
            fill(name);
            let begun = Instant::now();
            let mut other = Honest::join(name);
            let taken = begun.elapsed();
            other.goes_on();
            honest.goes_on();
            taken
        };
        // Each stranger has 5 s. On a loaded machine a program may wait for another turn now and
        // then, but not each one for the end of some of them.
        let taken: Vec<_> = (0..5).map(|_| join()).collect();
        assert!(taken.iter().any(|taken| *taken < Duration::from_secs(3)), "{taken:?}");
        fill(name);
    });
    assert!(!silent.is_empty(), "they stay until the engine has ended");
}

#[test]
fn a_program_that_breaks_the_format_loses_its_engine() {
    beside_an_honest_program("lies", |name, honest| {
        for kind in [0, 11, 255] {
            let mut liar = Liar::join(name);
            assert!(liar.say(&Frame { kind, word: 0, body: [0; 7] }));
            until_closed(&liar.socket, honest, "an unknown command");
        }
        // It has read more than was written: the engine looks once half of the ring is full.
        let mut liar = Liar::join(name);
        liar.segment.words32(128, 1)[0].store(5_000, Ordering::Relaxed);
        while liar.say(&Command::Status(0).frame()) {}
        until_closed(&liar.socket, honest, "a head that runs ahead");
        // It reads nothing: its answers wait, and it can say no more after a while.
        let mut liar = Liar::join(name);
        for _ in 0..EVENTS {
            assert!(liar.say(&Command::Status(0).frame()));
        }
        honest.goes_on();
        let begun = Instant::now();
        let mut answers = 0;
        while answers < EVENTS {
            assert!(begun.elapsed() < LIMIT);
            answers += usize::from(liar.events.take().is_some());
        }
    });
}

/// Lines of random words, in the ring and over the whole segment.
#[test]
fn random_words_harm_nobody() {
    let mut random = fastrand::Rng::with_seed(22);
    beside_an_honest_program("random words", |name, honest| {
        for round in 0..20 {
            let mut liar = Liar::join(name);
            for _ in 0..200 {
                // Small numbers lead further than large ones.
                let word = |random: &mut fastrand::Rng| random.u64(..) >> random.u32(..64);
                let body = std::array::from_fn(|_| word(&mut random));
                let frame = Frame { kind: random.u8(1..=10), word: word(&mut random) as u32, body };
                if !liar.say(&frame) {
                    break;
                }
                while liar.events.take().is_some() {}
            }
            if round % 2 == 0 {
                let words = liar.segment.words64(0, liar.segment.len() / 8);
                words.iter().for_each(|word| word.store(random.u64(..), Ordering::Relaxed));
                socket::wake(&liar.socket);
            }
            honest.goes_on();
        }
    });
}
