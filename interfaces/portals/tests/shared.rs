//! An engine in a process of its own, and programs that share it: puts and gets between them, and a
//! program, or the engine, that is killed, stopped or forked. This is a program of one thread,
//! because programs fork.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "programs answer by lines, and this one counts itself among the tests")]

use cci_conformance::{LIMIT, Peer, process, sm_device, sys};
use cci_portals::EventKind::{Ack, PutEnd, ReplyEnd, SendEnd};
use cci_portals::shared::{Client, Engine};
use cci_portals::{Described, Error, Event, Handle, Match, Place, Position, ProcessId, Target, Unlink, options};
use rustix::process::{Resource, Rlimit, Signal, WaitOptions, getrlimit, prlimit, waitpid};
use std::time::{Duration, Instant};

const ENGINE: &str = "engine";
const PROGRAM: &str = "program";
/// Bytes of a program's memory: a half for others, a half for what it sends.
const HALF: usize = 1 << 20;
/// Longer than any message.
const LONG: u64 = 300_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(ENGINE) => return engine(&arguments.next().expect("a name")),
        Some(PROGRAM) => return program(&arguments.next().expect("a name")),
        _ => {}
    }
    programs_put_to_each_other();
    wrong_commands_are_refused();
    refusals_that_nobody_reads_hold_nobody_up();
    a_killed_program_ends_its_operations_alone();
    a_stopped_program_loses_events_and_holds_nobody_up();
    a_forked_child_is_refused_and_holds_nothing();
    a_killed_engine_ends_all_calls();
    a_stopped_engine_goes_on_later();
    an_idle_engine_sleeps();
    without_descriptors_an_engine_sleeps_and_serves_afterwards();
    println!("test result: ok. 10 passed; 0 failed;");
}

fn engine(name: &str) {
    let device = sm_device();
    let mut engine = Engine::open(name, move |pid| Place::by_rule(&device, pid)).expect("a name of its own");
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    engine.serve().expect("it can sleep");
    println!("over");
}

/// A program with an entry for everybody, and a descriptor of what it sends.
struct Side {
    client: Client,
    queue: Handle,
    source: Handle,
}

fn described(start: usize, length: u64, options: u32, queue: Handle) -> Described {
    Described { start: start as u64, length, options, queue, ..Described::default() }
}

fn anybody() -> Match {
    Match { source: ProcessId::ANY, bits: 0, ignore: !0 }
}

impl Side {
    fn join(name: &str) -> Self {
        let mut client = Client::join(name, None, 2 * HALF).expect("an engine");
        let queue = client.queue(4096).expect("room");
        let entry = client.attach(4, anybody(), Unlink::Retain, Position::After).expect("room");
        let bits = options::OP_PUT | options::OP_GET | options::MANAGE_REMOTE | options::EVENT_START_DISABLE;
        client.attach_memory(entry, described(0, HALF as u64, bits, queue), Unlink::Retain).expect("room");
        let of_source = described(HALF, HALF as u64, options::EVENT_START_DISABLE, queue);
        let source = client.bind(of_source, Unlink::Retain).expect("room");
        Self { client, queue, source }
    }

    fn put(&mut self, to: ProcessId, bytes: u64) {
        let begun = Instant::now();
        while let Err(why) = self.client.put(self.source, Some((0, bytes)), true, &Target::at(to, 4)) {
            assert!(why == Error::NoSpace && begun.elapsed() < LIMIT, "{why}");
        }
    }

    fn wait(&mut self) -> Event {
        let (event, is_lost) = self.client.wait(self.queue, Some(LIMIT)).expect("an event");
        assert!(!is_lost, "the queue is long enough");
        event
    }

    /// Waits for so many acks, and returns how many sends and acks have failed. Passes over what
    /// others put here.
    fn acks(&mut self, count: usize) -> usize {
        let (mut acks, mut failures) = (0, 0);
        while acks < count {
            let event = self.wait();
            assert!(matches!(event.kind, SendEnd | Ack | PutEnd), "{event:?}");
            failures += event.failure as usize;
            // A send that has failed has no ack.
            acks += usize::from(event.kind == Ack || event.failure == 1);
        }
        failures
    }

    /// Nothing more comes.
    fn is_quiet(&mut self) -> bool {
        self.client.wait(self.queue, Some(Duration::from_millis(20))) == Err(Error::QueueEmpty)
    }

    fn fill(&self, byte: u8) {
        assert!(self.client.memory().copy_in(HALF as u64, &vec![byte; HALF]));
    }

    fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        assert!(self.client.memory().copy_out(at, &mut byte));
        byte[0]
    }
}

/// Obeys lines.
fn program(name: &str) {
    let mut side = Side::join(name);
    println!("{} {}", side.client.id().nid, side.client.id().pid);
    side.fill(7);
    let mut to = side.client.id();
    for line in std::io::stdin().lines() {
        let line = line.expect("text");
        let mut words = line.split(' ');
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
        match number() {
            // To whom it puts from now on.
            Some(1) => to = ProcessId { nid: number().expect("a node"), pid: number().expect("a process") },
            // Puts, and says how many were acknowledged.
            Some(2) => {
                let count = number().expect("a count");
                for _ in 0..count {
                    side.put(to, 8);
                    assert_eq!(side.acks(1), 0);
                }
            }
            // Puts for ever, and reads no event.
            Some(3) => loop {
                let _ = side.client.put(side.source, Some((0, 8)), true, &Target::at(to, 4));
            },
            // Reads so many events of puts to it, or finds that some were lost.
            Some(4) => {
                let count = number().expect("a count");
                let mut lost = 0;
                for _ in 0..count {
                    let (event, is_lost) = side.client.wait(side.queue, Some(LIMIT)).expect("an event");
                    lost += u32::from(is_lost);
                    if is_lost {
                        break;
                    }
                    assert_eq!(event.kind, PutEnd);
                }
                println!("{lost} lost");
                continue;
            }
            Some(5) => {
                if sys::fork().is_none() {
                    let found = side.client.event(side.queue);
                    let put = side.client.put(side.source, None, true, &Target::at(to, 4));
                    println!("{found:?} {put:?}");
                    drop(side);
                    // Until the test has ended.
                    std::thread::sleep(LIMIT);
                    return;
                }
                continue;
            }
            _ => panic!("{line}"),
        }
        println!("done");
    }
}

/// An engine, and a program of this process.
struct Scene {
    name: String,
    engine: Peer,
    side: Side,
}

fn spawn(role: &str, name: &str) -> Peer {
    let program = std::env::current_exe().expect("this program");
    Peer::spawn(program.to_str().expect("text"), role, &[name])
}

fn stop(peer: &Peer) {
    peer.signal(Signal::STOP);
    // It may run until the system has stopped it.
    let stopped = waitpid(Some(peer.pid()), WaitOptions::UNTRACED).expect("a child");
    assert!(stopped.is_some_and(|(_, status)| status.stopped()));
}

impl Scene {
    fn new(what: &str) -> Self {
        let name = format!("{what} {}", std::process::id());
        let mut engine = spawn(ENGINE, &name);
        assert_eq!(engine.line(), "ready");
        engine.tell("go");
        let side = Side::join(&name);
        Self { name, engine, side }
    }

    /// Another program, and which process it is.
    fn program(&self) -> (Peer, ProcessId) {
        let mut peer = spawn(PROGRAM, &self.name);
        let line = peer.line();
        let (nid, pid) = line.split_once(' ').expect("two numbers");
        (peer, ProcessId { nid: nid.parse().expect("a number"), pid: pid.parse().expect("a number") })
    }

    fn point(&self, peer: &mut Peer) {
        let ProcessId { nid, pid } = self.side.client.id();
        peer.tell(&format!("1 {nid} {pid}"));
        assert_eq!(peer.line(), "done");
    }

    /// Processor time of the engine.
    fn used(&self) -> Duration {
        let stat = format!("/proc/{}/schedstat", self.engine.pid().as_raw_pid());
        let text = std::fs::read_to_string(&stat).expect("/proc");
        Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number"))
    }

    /// Puts to a program that was killed, until the engine has ended its interface.
    fn until_gone(&mut self, other: ProcessId) {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "its interface is still there");
            self.side.put(other, 8);
            if self.side.acks(1) == 1 {
                return assert!(self.side.is_quiet());
            }
        }
    }

    /// The engine ends with its last program.
    fn end(mut self) {
        drop(self.side);
        assert_eq!(self.engine.line(), "over");
        self.engine.wait();
    }
}

fn programs_put_to_each_other() {
    let mut scene = Scene::new("puts");
    let (mut peer, other) = scene.program();
    scene.point(&mut peer);
    peer.tell("2 500");
    scene.side.fill(3);
    let mut arrived = 0;
    for round in 0..500 {
        // Short and long, to the other one and to this process itself.
        let to = if round % 5 == 4 { scene.side.client.id() } else { other };
        scene.side.put(to, if round % 7 == 0 { LONG } else { 8 });
        let mut is_over = false;
        while !is_over {
            let event = scene.side.wait();
            assert_eq!(event.failure, 0, "{event:?}");
            arrived += usize::from(event.kind == PutEnd);
            is_over = event.kind == Ack;
        }
    }
    while arrived < 600 {
        arrived += usize::from(scene.side.wait().kind == PutEnd);
    }
    assert_eq!(peer.line(), "done");
    assert!(scene.side.is_quiet());
    // The last that came here was a byte of either.
    assert!([3, 7].contains(&scene.side.byte(0)) && scene.side.byte(LONG - 1) == 3);
    // A get brings back what was put there.
    assert!(scene.side.client.memory().copy_in(HALF as u64, &vec![0; HALF]));
    let Side { client, source, .. } = &mut scene.side;
    client.get(*source, Some((0, LONG)), &Target::at(other, 4)).expect("room");
    while scene.side.wait().kind != ReplyEnd {}
    assert_eq!([0, LONG - 1].map(|at| scene.side.byte(HALF as u64 + at)), [3, 3]);
    drop(peer);
    scene.end();
}

fn wrong_commands_are_refused() {
    let mut scene = Scene::new("refusals");
    let Side { client, queue, source } = &mut scene.side;
    let (queue, source, own) = (*queue, *source, client.id());
    for (start, length) in [(2 * HALF, 1), (usize::MAX, 8), (0, u64::MAX), (HALF, HALF as u64 + 1)] {
        let refused = client.bind(described(start, length, 0, queue), Unlink::Retain);
        assert_eq!(refused, Err(Error::IllegalMemory), "{start} {length}");
    }
    assert_eq!(client.bind(described(0, 8, options::IOVEC, queue), Unlink::Retain), Err(Error::IllegalMemory));
    assert_eq!(client.bind(described(0, 8, 0, source), Unlink::Retain), Err(Error::Queue));
    assert_eq!(client.attach(1 << 20, anybody(), Unlink::Retain, Position::After), Err(Error::PortalIndex));
    assert_eq!(client.unlink_memory(queue), Err(Error::Memory));
    assert_eq!(client.unlink_entry(queue), Err(Error::Entry));
    assert_eq!(client.queue(1 << 20), Err(Error::NoSpace));
    assert_eq!(client.status(6), Err(Error::Register));
    assert_eq!(client.put(source, None, true, &Target::at(ProcessId::ANY, 4)), Err(Error::Process));
    assert_eq!(client.put(source, None, true, &Target::at(own, 1 << 16)), Err(Error::PortalIndex));
    // What the engine finds wrong is told later, once.
    for (memory, region, why) in [(queue, None, Error::Memory), (source, Some((1, HALF as u64)), Error::IllegalMemory)]
    {
        client.put(memory, region, true, &Target::at(own, 4)).expect("room");
        assert_eq!(client.wait(queue, Some(LIMIT)), Err(why));
        assert_eq!(client.wait(queue, Some(Duration::from_millis(5))), Err(Error::QueueEmpty));
    }
    assert_eq!((client.event(source), client.status(0)), (Err(Error::Queue), Ok(0)));
    scene.end();
}

/// A program that reads nothing gets room for refusals, and no more; it goes on once it has read
/// them. One that never does ends as any other.
fn refusals_that_nobody_reads_hold_nobody_up() {
    let mut scene = Scene::new("unread");
    let Side { client, queue, .. } = &mut scene.side;
    let wrong = Target::at(client.id(), 4);
    // Until no more is taken, however long the program tries. An engine that has not run for a
    // while on a loaded machine takes more later.
    let fill = |client: &mut Client| {
        let (mut begun, mut since, first) = (0, Instant::now(), Instant::now());
        let is_late = |begun| begun <= 1024 && first.elapsed() < LIMIT;
        while since.elapsed() < Duration::from_millis(100) || is_late(begun) {
            match client.put(*queue, None, false, &wrong) {
                Ok(()) => (begun, since) = (begun + 1, Instant::now()),
                Err(why) => assert_eq!(why, Error::NoSpace),
            }
            assert!(begun < 10_000, "it is bounded");
        }
        begun
    };
    let begun = fill(client);
    for _ in 0..begun {
        assert_eq!(client.wait(*queue, Some(LIMIT)), Err(Error::Memory));
    }
    assert_eq!(client.wait(*queue, Some(Duration::from_millis(5))), Err(Error::QueueEmpty));
    assert!(begun > 1024 && fill(client) > 1024);
    scene.end();
}

/// One of two programs dies while it puts and while the other one has puts under way to it.
fn a_killed_program_ends_its_operations_alone() {
    let mut scene = Scene::new("kills");
    let (mut third, _) = scene.program();
    for _ in 0..5 {
        let (mut peer, other) = scene.program();
        scene.side.put(other, 8);
        assert_eq!(scene.side.acks(1), 0);
        // To itself, so that no events of its puts come here.
        peer.tell("3");
        for round in 0..100 {
            scene.side.put(other, if round % 10 == 0 { LONG } else { 8 });
            if round == 50 {
                assert_eq!(scene.side.acks(1), 0, "the engine takes puts for who lives");
                peer.kill();
            }
        }
        peer.wait();
        // What the engine has taken for it is acknowledged; of each other put there is one end.
        let failures = scene.side.acks(99);
        assert!(scene.side.is_quiet(), "beside {failures} failures of 99");
        scene.until_gone(other);
        // The engine goes on with the others.
        scene.point(&mut third);
        third.tell("2 20");
        (0..20).for_each(|_| assert_eq!(scene.side.wait().kind, PutEnd));
        assert_eq!(third.line(), "done");
    }
    drop(third);
    scene.end();
}

/// Puts to it end, since its engine takes them; its events are lost once its queue is full.
fn a_stopped_program_loses_events_and_holds_nobody_up() {
    let mut scene = Scene::new("stops");
    let (mut peer, other) = scene.program();
    stop(&peer);
    // More than the ring and the queue have room for.
    for _ in 0..600 {
        (0..16).for_each(|_| scene.side.put(other, 8));
        assert_eq!(scene.side.acks(16), 0);
    }
    peer.signal(Signal::CONT);
    peer.tell("4 9600");
    assert_eq!(peer.line(), "1 lost");
    drop(peer);
    scene.end();
}

fn a_forked_child_is_refused_and_holds_nothing() {
    let mut scene = Scene::new("forks");
    let (mut peer, other) = scene.program();
    peer.tell("5");
    assert_eq!(peer.line(), "Err(NotInitialised) Err(NotInitialised)");
    scene.point(&mut peer);
    peer.tell("2 20");
    (0..20).for_each(|_| assert_eq!(scene.side.wait().kind, PutEnd));
    assert_eq!(peer.line(), "done");
    // The child lives on, and the engine learns of the parent's end.
    peer.kill();
    peer.wait();
    scene.until_gone(other);
    scene.end();
}

fn a_killed_engine_ends_all_calls() {
    let mut scene = Scene::new("an engine that is killed");
    scene.side.put(scene.side.client.id(), 8);
    let Side { client, queue, source } = &mut scene.side;
    while client.wait(*queue, Some(LIMIT)).expect("an event").0.kind != Ack {}
    scene.engine.kill();
    scene.engine.wait();
    // A program that polls learns of it, as one that waits.
    let begun = Instant::now();
    while client.event(*queue) != Err(Error::Network) {
        assert!(begun.elapsed() < LIMIT);
    }
    let to = Target::at(client.id(), 4);
    assert_eq!(client.wait(*queue, None), Err(Error::Network));
    assert_eq!(client.put(*source, None, true, &to), Err(Error::Network));
    assert_eq!(client.unlink_memory(*source), Err(Error::Network));
    // One that only begins operations learns of it too, once its ring is full.
    let mut scene = Scene::new("another one");
    let Side { client, source, .. } = &mut scene.side;
    scene.engine.kill();
    scene.engine.wait();
    let begun = Instant::now();
    while client.put(*source, None, false, &to) != Err(Error::Network) {
        assert!(begun.elapsed() < LIMIT);
    }
}

fn a_stopped_engine_goes_on_later() {
    let mut scene = Scene::new("an engine that is stopped");
    let own = scene.side.client.id();
    stop(&scene.engine);
    scene.side.put(own, 8);
    assert!(scene.side.is_quiet());
    scene.engine.signal(Signal::CONT);
    assert_eq!((scene.side.acks(1), scene.side.is_quiet()), (0, true));
    scene.end();
}

/// While its programs sleep, stop, or do nothing.
fn an_idle_engine_sleeps() {
    let mut scene = Scene::new("idleness");
    let (peer, other) = scene.program();
    scene.side.put(other, 8);
    assert_eq!(scene.side.acks(1), 0);
    std::thread::sleep(Duration::from_millis(20));
    let (before, own) = (scene.used(), process::processor_time());
    assert_eq!(scene.side.client.wait(scene.side.queue, Some(Duration::from_secs(1))), Err(Error::QueueEmpty));
    let (used, own) = (scene.used() - before, process::processor_time() - own);
    assert!(used < Duration::from_millis(2) && own < Duration::from_millis(10), "{used:?} and {own:?} of 1 s");
    drop(peer);
    scene.end();
}

/// A program comes while the engine may open no descriptor.
fn without_descriptors_an_engine_sleeps_and_serves_afterwards() {
    let mut scene = Scene::new("no descriptors");
    let (pid, limit) = (Some(scene.engine.pid()), getrlimit(Resource::Nofile));
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(3), ..limit }).expect("a lower limit");
    let mut comes = spawn(PROGRAM, &scene.name);
    let before = scene.used();
    std::thread::sleep(Duration::from_secs(1));
    let used = scene.used() - before;
    assert!(used < Duration::from_millis(100), "{used:?} of 1 s");
    scene.side.put(scene.side.client.id(), 8);
    assert_eq!(scene.side.acks(1), 0, "its program is served");
    prlimit(pid, Resource::Nofile, limit).expect("the old limit");
    assert_eq!(comes.line().split(' ').count(), 2, "it is served, too");
    drop(comes);
    scene.end();
}
