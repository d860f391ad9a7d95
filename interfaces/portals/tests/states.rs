//! A partner that is killed, stopped or forked in each state of an operation. Every operation ends
//! once, and nothing is written after its end. The table in `docs/design/portals.md` has the
//! states. This is a program of one thread, because the partner forks.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the partner answers by lines, and it counts itself among the tests")]

#[expect(dead_code, reason = "this program needs a part of it")]
#[path = "portals/world.rs"]
mod world;

use cci::{Endpoint, Memory};
use cci_conformance::{LIMIT, Peer, sm_device, sys};
use cci_peers::{Name, Table};
use cci_portals::EventKind::{self, Ack, GetEnd, GetStart, PutEnd, PutStart, ReplyEnd, ReplyStart, SendEnd};
use cci_portals::{Event, Handle, Target, buffer, endpoint_options, options};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, WaitOptions, waitpid};
use std::time::Instant;
use world::{GET, PUT, Side, bits, bytes, other, put, side_of_mode, zeroes};

/// The role of the partner.
const PARTNER: &str = "partner";
/// Longer than what a few calls copy, 1 MiB each: with an engine the answer may come while the
/// partner is still in the call that asked, which copies then.
const LONG: usize = 16 << 20;
const SHORT: usize = 8;
/// Calls after an end, in which nothing more happens.
const CALLS: usize = 200;

/// In which state of an operation the partner is when something happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The requests are with its library, and its program has made no call: of a short put the ack
    /// is due.
    Sent,
    /// It has matched a long put, and reads.
    Reads,
    /// It has matched a long get, and is read.
    IsRead,
    /// Its own long put is matched here, and is read.
    Puts,
    /// Its own long get is matched here, and it has not begun to read.
    Gets,
    /// The same, and it reads.
    GetsNow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Stop,
    StopAndKill,
    Fork,
    ForkAndKill,
}

impl Fault {
    const ALL: [Self; 5] = [Self::Kill, Self::Stop, Self::StopAndKill, Self::Fork, Self::ForkAndKill];

    fn is_survived(self) -> bool {
        matches!(self, Self::Stop | Self::Fork)
    }
}

impl State {
    const ALL: [Self; 6] = [Self::Sent, Self::Reads, Self::IsRead, Self::Puts, Self::Gets, Self::GetsNow];

    /// Whether calls of this program alone take the operation on, so that it may end while the
    /// partner is stopped.
    fn is_own_work(self) -> bool {
        matches!(self, Self::IsRead | Self::Puts)
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some(PARTNER) {
        return partner(&std::env::args().nth(2).expect("a URI"));
    }
    for state in State::ALL {
        for fault in Fault::ALL {
            Scene::new(false).play(state, fault);
            // An engine does at once what is its own work. It is the same code, so that one fault
            // of each kind is enough.
            if !state.is_own_work() && matches!(fault, Fault::Stop | Fault::ForkAndKill) {
                Scene::new(true).play(state, fault);
            }
        }
    }
    println!("test result: ok. 1 passed; 0 failed;");
}

fn filled(byte: u8) -> Memory {
    buffer(vec![byte; LONG])
}

/// Obeys lines.
fn partner(uri: &str) {
    let mut table = Table::new();
    table.insert(Name::Number(9 << 32), uri);
    let endpoint = Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let side = side_of_mode(endpoint, 1, &table, false);
    side.post(bits(1), &filled(5), PUT | options::MANAGE_REMOTE);
    side.post(bits(2), &filled(6), GET | options::MANAGE_REMOTE);
    side.post(bits(3), &zeroes(SHORT), PUT | GET | options::MANAGE_REMOTE);
    let sides = [side];
    put(&sides, 0, b"here", &other(0));
    let own = sides[0].bind(&filled(7));
    let to = |bits| Target { bits, ..other(0) };
    for line in std::io::stdin().lines() {
        match line.expect("text").as_str() {
            "step" => {}
            "put" => sides[0].ni.put(own, None, true, &to(1)).expect("room"),
            "get" => sides[0].ni.get(own, None, &to(2)).expect("room"),
            "fork" => {
                if sys::fork().is_none() {
                    // Behind the events that it has inherited.
                    let refused = (0..).find_map(|_| sides[0].ni.wait(sides[0].queue).err());
                    println!("child {refused:?}");
                    // Until the test has ended: lines are the parent's.
                    let input = std::io::stdin();
                    let _ = poll(&mut [PollFd::new(&input, PollFlags::empty())], None);
                    // Its destructors run too, and touch nothing of the parent's.
                    return;
                }
                continue;
            }
            "serve" => loop {
                sides[0].ni.status(0).expect("usable");
            },
            other => panic!("{other}"),
        }
        println!("{}", sides[0].ni.status(2).expect("usable"));
    }
}

struct Scene {
    sides: [Side; 1],
    partner: Peer,
    /// Memory that operations write here, and that they send or show.
    written: Memory,
    shown: Memory,
    /// Events by memory descriptor.
    seen: Vec<(Handle, Event)>,
}

impl Scene {
    fn new(has_engine: bool) -> Self {
        let endpoint = Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
        let sides = [side_of_mode(endpoint, 0, &Table::new(), has_engine)];
        sides[0].post(bits(0), &zeroes(SHORT), PUT);
        let program = std::env::current_exe().expect("this program");
        let partner = Peer::spawn(program.to_str().expect("text"), PARTNER, &[sides[0].ni.uri()]);
        let (written, shown) = (filled(0), filled(3));
        let mut scene = Self { sides, partner, written, shown, seen: Vec::new() };
        scene.until("the partner", |scene| scene.count(PutEnd) == 1);
        // Its own put has ended: it makes no call until it is told to.
        scene.tell("step");
        scene.seen.clear();
        scene
    }

    fn look(&mut self) {
        while let Some(event) = self.sides[0].event() {
            self.seen.push((event.memory, event));
        }
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}: {:?}", self.seen);
            self.look();
        }
    }

    fn count(&self, kind: EventKind) -> usize {
        self.seen.iter().filter(|(_, event)| event.kind == kind).count()
    }

    /// Has the partner do something and make one call. Returns how many requests it has taken.
    fn tell(&mut self, words: &str) -> u32 {
        self.partner.tell(words);
        self.partner.line().parse().expect("a number")
    }

    /// Begins operations, and brings the partner into a state of them. Returns their descriptors.
    fn enter(&mut self, state: State) -> Vec<Handle> {
        let to = |bits| Target { bits, ..other(1) };
        let side = &self.sides[0];
        match state {
            State::Sent => {
                let [short, sink, source, swapped] = [(); 4].map(|()| side.bind(&zeroes(SHORT)));
                let [long, reply] = [&self.shown, &self.written].map(|memory| side.bind(memory));
                side.ni.put(short, None, true, &to(1)).expect("room");
                side.ni.put(long, None, true, &to(1)).expect("room");
                side.ni.get(sink, None, &to(2)).expect("room");
                side.ni.get(reply, None, &to(2)).expect("room");
                side.ni.get_put(swapped, source, &to(3)).expect("room");
                self.until("the ends of sends", |scene| scene.count(SendEnd) == 2);
                vec![short, long, sink, reply, swapped]
            }
            State::Reads => {
                let long = side.bind(&self.shown);
                side.ni.put(long, None, true, &to(1)).expect("room");
                while self.tell("step") == 0 {}
                vec![long]
            }
            State::IsRead => {
                let reply = side.bind(&self.written);
                side.ni.get(reply, None, &to(2)).expect("room");
                while self.tell("step") == 0 {}
                self.until("the reply", |scene| scene.count(ReplyStart) == 1);
                vec![reply]
            }
            State::Puts => {
                let (_, memory) = side.post(bits(1), &self.written, PUT);
                self.tell("put");
                self.until("the put", |scene| scene.count(PutStart) == 1);
                vec![memory]
            }
            State::Gets | State::GetsNow => {
                let (_, memory) = side.post(bits(2), &self.shown, GET);
                self.tell("get");
                self.until("the get", |scene| scene.count(GetStart) == 1);
                if state == State::GetsNow {
                    self.tell("step");
                }
                vec![memory]
            }
        }
    }

    fn stop(&self) {
        self.partner.signal(Signal::STOP);
        // It may run until the system has stopped it.
        let stopped = waitpid(Some(self.partner.pid()), WaitOptions::UNTRACED).expect("a child");
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
    }

    fn break_down(&mut self, what: &str, fault: Fault, is_own_work: bool) {
        if matches!(fault, Fault::Stop | Fault::StopAndKill) {
            self.stop();
            let ends = self.ends();
            for _ in 0..CALLS {
                self.look();
            }
            assert!(is_own_work || self.ends() == ends, "{what}: nobody else could do it: {:?}", self.seen);
        }
        if matches!(fault, Fault::Fork | Fault::ForkAndKill) {
            self.partner.tell("fork");
            assert_eq!(self.partner.line(), "child Some(Failed)");
        }
        match fault {
            Fault::Stop => self.partner.signal(Signal::CONT),
            Fault::Fork => {}
            _ => {
                self.partner.kill();
                self.partner.wait();
            }
        }
        if fault.is_survived() {
            self.partner.tell("serve");
        }
    }

    /// The events that end an operation as a whole.
    fn ends(&self) -> usize {
        self.seen.iter().filter(|(_, event)| is_end(event)).count()
    }

    fn play(&mut self, state: State, fault: Fault) {
        let what = format!("{state:?}, {fault:?}, engine: {}", self.sides[0].ni.is_accelerated());
        let memories = self.enter(state);
        self.break_down(&what, fault, state.is_own_work());
        let ended = memories.len();
        let begun = Instant::now();
        while self.ends() < ended {
            assert!(begun.elapsed() < LIMIT, "{what}: {:?}", self.seen);
            let before = self.seen.len();
            self.look();
            for (memory, event) in &self.seen[before..] {
                // It is not pending any more once its end can be seen.
                if is_end(event) {
                    assert_eq!(self.sides[0].ni.unlink_memory(*memory), Ok(()), "{what}: {event:?}");
                }
            }
        }
        let after = bytes(&self.written);
        for _ in 0..CALLS {
            self.look();
        }
        for memory in memories {
            let of: Vec<_> = self.seen.iter().filter(|(of, _)| *of == memory).map(|(_, event)| *event).collect();
            let ends: Vec<_> = of.iter().filter(|event| is_end(event)).map(|event| event.failure).collect();
            // What this side does by itself may be done before it learns of the end.
            let is_right = ends == [u32::from(!fault.is_survived())] || state.is_own_work() && ends == [0];
            assert!(is_right, "{what}: {of:?}");
            let starts = of.iter().filter(|event| matches!(event.kind, PutStart | GetStart | ReplyStart)).count();
            let pairs = of.iter().filter(|event| matches!(event.kind, PutEnd | GetEnd | ReplyEnd)).count();
            assert_eq!(starts, pairs, "{what}: {of:?}");
        }
        assert!(bytes(&self.written) == after, "{what}: it was written after its end");
        assert_eq!(self.sides[0].ni.counts().0, 0, "{what}");
    }
}

/// Whether it is the one event that ends an operation: what follows is none of it.
fn is_end(event: &Event) -> bool {
    match event.kind {
        Ack | ReplyEnd | PutEnd | GetEnd => true,
        // Otherwise an ack is due.
        SendEnd => event.failure == 1,
        _ => false,
    }
}
