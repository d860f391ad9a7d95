//! Random programs, and a simple model of what they come to: two plain lists for each endpoint.
//!
//! A program is a list of steps. Each step is worked out on both sides before the next one, so that
//! the model knows the order in which messages match; what is under way meanwhile is data.

use cci::{Device, Memory};
use cci_conformance::{LIMIT, device_of, sm_device};
use cci_mx::{Address, Code, Endpoint, Match, Options, Place, Request, buffer, endpoint_options};
use cci_peers::{Name, Table};
use fastrand::Rng;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So much is eager over each transport.
const SHORT: u64 = 1_000;

const NOW: Option<Duration> = Some(Duration::ZERO);

/// A receive that no message has matched, or a message without a receive.
struct Posted {
    wanted: Match,
    number: usize,
}

struct Arrived {
    bits: u64,
    from: usize,
    send: usize,
}

/// What a request is to end with.
struct Expected {
    side: usize,
    request: Request,
    memory: Memory,
    /// Of a receive: bits, sender, and bytes of the message.
    end: Option<(u64, usize, Vec<u8>)>,
    /// Of a send: whether it ends once it is received, and whether that has happened.
    waits: bool,
    is_matched: bool,
    is_done: bool,
}

struct World {
    sides: Vec<Endpoint>,
    addresses: Vec<Address>,
    posted: Vec<Vec<Posted>>,
    arrived: Vec<VecDeque<Arrived>>,
    requests: Vec<Expected>,
    seed: u64,
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed * 31) as u8).collect()
}

fn contents(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len() as usize];
    assert!(bytes.is_empty() || memory.copy_out(0, &mut bytes));
    bytes
}

impl World {
    fn new(device: &Device, seed: u64) -> Self {
        let ends: Vec<_> =
            (0..3).map(|_| cci::Endpoint::open(device, &endpoint_options()).expect("an endpoint")).collect();
        let mut table = Table::new();
        (0..).zip(&ends).for_each(|(id, end)| table.insert(Name::Number(1 << 32 | id), end.uri()));
        let open = |(id, end)| {
            let place = Place::of(end, 1, id, Box::new(table.clone()));
            Endpoint::open(place, 7, &Options::new()).expect("an endpoint")
        };
        let sides: Vec<_> = (0..).zip(ends).map(open).collect();
        let addresses = sides.iter().map(Endpoint::address).collect();
        let posted = sides.iter().map(|_| Vec::new()).collect();
        let arrived = sides.iter().map(|_| VecDeque::new()).collect();
        let world = Self { sides, addresses, posted, arrived, requests: Vec::new(), seed };
        for from in 0..3 {
            for to in 0..3 {
                let request = world.sides[from].start_connect((1, to), 7, 0, 0).expect("room");
                world.until("a connect", || world.sides[from].test(request).expect("a request").is_some());
            }
        }
        world
    }

    fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < LIMIT, "seed {}: waited in vain for {what}", self.seed);
            self.sides.iter().for_each(|side| side.progress().expect("usable"));
        }
    }

    fn matched(&mut self, receive: usize, bits: u64, from: usize, send: usize) {
        let sent = contents(&self.requests[send].memory);
        self.requests[receive].end = Some((bits, from, sent));
        self.requests[send].is_matched = true;
    }

    fn post(&mut self, rng: &mut Rng) {
        let side = rng.usize(0..3);
        let mask = [!0, !0, !0, 0xf0, 0x0f, 0][rng.usize(0..6)];
        let wanted = Match { bits: bits(rng) & mask, mask };
        let memory = buffer(vec![0; size(rng)]);
        let number = self.requests.len();
        let request = if rng.bool() || memory.is_empty() {
            self.sides[side].receive(memory.clone(), wanted, number as u64)
        } else {
            let cut = rng.u64(0..=memory.len());
            let parts = [memory.part(0, cut), memory.part(cut, memory.len() - cut)].map(|part| part.expect("inside"));
            self.sides[side].receive(Vec::from(parts), wanted, number as u64)
        };
        let request = request.expect("room");
        self.enter(side, request, memory, false);
        let covers = |arrived: &Arrived| (arrived.bits ^ wanted.bits) & wanted.mask == 0;
        match self.arrived[side].iter().position(covers) {
            Some(at) => {
                let Arrived { bits, from, send } = self.arrived[side].remove(at).expect("it is there");
                self.matched(number, bits, from, send);
            }
            None => self.posted[side].push(Posted { wanted, number }),
        }
    }

    fn enter(&mut self, side: usize, request: Request, memory: Memory, waits: bool) {
        let (end, is_matched, is_done) = (None, false, false);
        self.requests.push(Expected { side, request, memory, end, waits, is_matched, is_done });
    }

    fn send(&mut self, rng: &mut Rng) {
        let (from, to) = (rng.usize(0..3), rng.usize(0..3));
        let (bits, is_sync, number) = (bits(rng), rng.u32(0..4) == 0, self.requests.len());
        let memory = buffer(pattern(size(rng), number));
        let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
        let before = self.sides[to].counts();
        let request = start(&self.sides[from], memory.clone(), self.addresses[to], bits, number as u64).expect("room");
        // It has come before the next step.
        self.until("a message", || {
            let now = self.sides[to].counts();
            now.expected + now.unexpected > before.expected + before.unexpected
        });
        let waits = is_sync || memory.len() > 16_384;
        self.enter(from, request, memory, waits);
        let covers = |posted: &Posted| (posted.wanted.bits ^ bits) & posted.wanted.mask == 0;
        match self.posted[to].iter().position(covers) {
            Some(at) => {
                let Posted { number: receive, .. } = self.posted[to].remove(at);
                self.matched(receive, bits, from, number);
            }
            None => self.arrived[to].push_back(Arrived { bits, from, send: number }),
        }
    }

    fn cancel(&mut self, rng: &mut Rng) {
        let side = rng.usize(0..3);
        if let Some(at) = rng.usize(0..4).checked_sub(1).filter(|at| *at < self.posted[side].len()) {
            let Posted { number, .. } = self.posted[side].remove(at);
            assert_eq!(self.sides[side].cancel(self.requests[number].request), Ok(true), "seed {}", self.seed);
            self.requests[number].is_done = true;
        }
    }

    fn probe(&self, rng: &mut Rng) {
        let (side, wanted) = (rng.usize(0..3), Match { bits: bits(rng) & 0xf0, mask: 0xf0 });
        let found = self.sides[side].probe(wanted, NOW).expect("usable");
        let covers = |arrived: &&Arrived| (arrived.bits ^ wanted.bits) & wanted.mask == 0;
        let expected = self.arrived[side].iter().find(covers);
        let of = |arrived: &Arrived| {
            (arrived.bits, self.addresses[arrived.from], self.requests[arrived.send].memory.len() as u32)
        };
        let found = found.map(|status| (status.bits, status.source, status.length));
        assert_eq!(found, expected.map(of), "seed {}", self.seed);
    }

    /// Tests a request, or any: what has ended is as the model has it.
    fn test(&mut self, number: usize) {
        let Expected { side, request, is_done, .. } = self.requests[number];
        if is_done {
            return;
        }
        let Some(status) = self.sides[side].test(request).expect("a request") else { return };
        let of = &mut self.requests[number];
        of.is_done = true;
        assert_eq!(status.context, number as u64);
        let Some((bits, from, sent)) = &of.end else {
            assert!(of.is_matched || !of.waits, "seed {}: request {number} has ended too early", self.seed);
            assert_eq!((status.code, u64::from(status.copied)), (Code::Success, of.memory.len()));
            return;
        };
        let copied = sent.len().min(of.memory.len() as usize);
        let code = if copied < sent.len() { Code::Truncated } else { Code::Success };
        let ended = (status.code, status.bits, status.source, status.length as usize, status.copied as usize);
        assert_eq!(ended, (code, *bits, self.addresses[*from], sent.len(), copied), "seed {}", self.seed);
        let got = contents(&of.memory);
        assert!(got[..copied] == sent[..copied] && got[copied..].iter().all(|byte| *byte == 0), "seed {}", self.seed);
    }

    fn run(mut self, steps: usize) {
        let mut rng = Rng::with_seed(self.seed);
        for _ in 0..steps {
            match rng.u32(0..20) {
                0..8 => self.post(&mut rng),
                8..16 => self.send(&mut rng),
                16 => self.cancel(&mut rng),
                17 => self.probe(&mut rng),
                _ => {
                    let number = rng.usize(0..=self.requests.len());
                    if number < self.requests.len() {
                        self.test(number);
                    }
                }
            }
        }
        // All that has matched ends; nothing else does.
        let has_end = |of: &Expected| of.end.is_some() || of.is_matched || (of.memory.len() <= SHORT && !of.waits);
        for number in 0..self.requests.len() {
            let is_receive = self.posted.iter().flatten().any(|posted| posted.number == number);
            if is_receive || !has_end(&self.requests[number]) {
                self.test(number);
                let of = &self.requests[number];
                assert!(!of.is_done || !(is_receive || of.waits), "seed {}: {number}", self.seed);
                continue;
            }
            let begun = Instant::now();
            while !self.requests[number].is_done {
                assert!(begun.elapsed() < LIMIT, "seed {}: request {number} does not end", self.seed);
                self.sides.iter().for_each(|side| side.progress().expect("usable"));
                self.test(number);
            }
        }
        for (side, arrived) in self.sides.iter().zip(&self.arrived) {
            assert_eq!(side.pending().1, arrived.len(), "seed {}", self.seed);
        }
        // The time of a virtual network stands still while its ends do not poll.
        std::thread::scope(|scope| self.sides.into_iter().for_each(|side| drop(scope.spawn(|| drop(side)))));
    }
}

fn bits(rng: &mut Rng) -> u64 {
    rng.u64(0..3) << 4 | rng.u64(0..3)
}

fn size(rng: &mut Rng) -> usize {
    match rng.u32(0..6) {
        0 => 0,
        1 | 2 => rng.usize(1..200),
        3 => rng.usize(200..5_000),
        4 => rng.usize(16_300..16_500),
        _ => rng.usize(20_000..90_000),
    }
}

#[test]
fn random_programs_come_to_what_the_model_says_over_shared_memory() {
    for seed in 0..60 {
        World::new(&sm_device(), seed).run(120);
    }
}

#[test]
fn random_programs_come_to_what_the_model_says_over_a_network_with_loss() {
    for seed in 0..25 {
        let (network, number) = (format!("mx-random-{seed}"), seed.to_string());
        let keys = [
            ("network", network.as_str()),
            ("seed", &number),
            ("delay", "20000"),
            ("jitter", "100000"),
            ("bandwidth", "1250000000"),
            ("loss", "3"),
            ("duplicate", "2"),
        ];
        World::new(&device_of("sim", &keys), 1_000 + seed).run(80);
    }
}
