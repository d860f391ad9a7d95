//! Random programs: each message goes to the receive that plain lists say.

use crate::world::{LONG, Side, bytes, memory, of};
use cci_fabric::{Code, Domain, Entry, NOT_AVAILABLE, Receive, Segments, Send, Space, What, bits};
use fastrand::Rng;
use std::time::Instant;

const LEVELS: [u64; 4] = [0, bits::INJECT_COMPLETE, bits::TRANSMIT_COMPLETE, bits::DELIVERY_COMPLETE];
/// The context of a receive is its number, that of a send this with its number.
const SENDS: u64 = 1 << 32;

struct Sent {
    space: Space,
    tag: u64,
    data: Option<u64>,
    bytes: Vec<u8>,
    is_matched: bool,
}

struct Posted {
    space: Space,
    tag: u64,
    ignore: u64,
    memory: cci::Memory,
    /// What the lists say that it gets, and what it has got.
    wanted: Option<usize>,
    got: Option<(Entry, Option<Code>)>,
}

/// What goes from one side to the other.
#[derive(Default)]
struct Way {
    sent: Vec<Sent>,
    posted: Vec<Posted>,
    ended: usize,
    silent: usize,
}

impl Way {
    /// Gives each message to the oldest receive that matches it, and each receive the oldest
    /// message: it is one assignment, whoever came first.
    fn assign(&mut self) {
        for receive in &mut self.posted {
            let fits = |sent: &Sent| {
                let is_tagged = sent.space == Space::Tagged;
                !sent.is_matched
                    && sent.space == receive.space
                    && (!is_tagged || (sent.tag ^ receive.tag) & !receive.ignore == 0)
            };
            if let Some(at) = self.sent.iter().position(fits) {
                self.sent[at].is_matched = true;
                receive.wanted = Some(at);
            }
        }
    }

    fn check(&self, what: &str) {
        for (number, receive) in self.posted.iter().enumerate() {
            let what = format!("{what}, receive {number}");
            let Some(sent) = receive.wanted.map(|at| &self.sent[at]) else {
                assert!(receive.got.is_none(), "{what} has {:?}", receive.got);
                continue;
            };
            let (entry, code) = receive.got.as_ref().unwrap_or_else(|| panic!("{what} has not ended"));
            let copied = sent.bytes.len().min(receive.memory.len() as usize);
            let is_cut = copied < sent.bytes.len();
            assert_eq!((entry.len, *code), (copied, is_cut.then_some(Code::Truncated)), "{what}");
            assert_eq!(entry.tag, if sent.space == Space::Tagged { sent.tag } else { 0 }, "{what}");
            assert_eq!(entry.data, sent.data.unwrap_or(0), "{what}");
            assert_eq!(entry.flags & bits::REMOTE_CQ_DATA != 0, sent.data.is_some(), "{what}");
            assert!(bytes(&receive.memory)[..copied] == sent.bytes[..copied], "{what}");
        }
    }
}

struct World {
    sides: [Side; 2],
    /// The number of the other side in each vector.
    others: [u64; 2],
    ways: [Way; 2],
}

fn size(rng: &mut Rng) -> usize {
    match rng.usize(0..10) {
        0 => 0,
        1..=4 => rng.usize(1..=cci_fabric::INJECT_SIZE),
        5..=6 => rng.usize(33..2_000),
        7..=8 => rng.usize(2_000..17_000),
        _ => rng.usize(17_000..90_000),
    }
}

fn space(rng: &mut Rng) -> Space {
    if rng.usize(0..4) == 0 { Space::Message } else { Space::Tagged }
}

impl World {
    fn new(domain: &Domain) -> Self {
        let sides = [Side::new(domain), Side::new(domain)];
        let others = [sides[0].meet(&sides[1]), sides[1].meet(&sides[0])];
        Self { sides, others, ways: Default::default() }
    }

    fn send(&mut self, rng: &mut Rng, from: usize) {
        let (space, tag, bytes) = (space(rng), rng.u64(0..6), rng.usize(0..256) as u8);
        let bytes = vec![bytes; size(rng)];
        let data = rng.bool().then(|| rng.u64(..));
        let way = &mut self.ways[from];
        let context = SENDS | way.sent.len() as u64;
        let memory = of(bytes.clone());
        let is_silent = bytes.len() <= cci_fabric::INJECT_SIZE && rng.bool();
        let what = match memory.len() {
            _ if is_silent => What::Bytes(&bytes),
            0 => What::Memory(Segments::None),
            len if rng.bool() => {
                let at = rng.u64(0..=len);
                let parts = [memory.part(0, at), memory.part(at, len - at)];
                What::Memory(Segments::Many(parts.into_iter().flatten().collect()))
            }
            _ => What::Memory(Segments::One(memory)),
        };
        let flags = LEVELS[rng.usize(0..4)];
        let send = Send { what, to: self.others[from], space, tag, data, context, flags };
        self.sides[from].endpoint.send(send).expect("a send");
        way.silent += usize::from(is_silent);
        way.sent.push(Sent { space, tag, data, bytes, is_matched: false });
    }

    fn post(&mut self, rng: &mut Rng, from: usize) {
        let (space, tag, ignore) = (space(rng), rng.u64(0..6), [0, 0, 1, 3, !0][rng.usize(0..5)]);
        let len = if rng.bool() { 90_000 } else { size(rng) };
        self.post_one(from, (space, tag, ignore), len);
    }

    fn post_one(&mut self, from: usize, (space, tag, ignore): (Space, u64, u64), len: usize) {
        let way = &mut self.ways[from];
        let memory = memory(len);
        let context = way.posted.len() as u64;
        let segments = Segments::One(memory.clone());
        let receive = Receive { segments, from: NOT_AVAILABLE, space, tag, ignore, context, flags: 0 };
        self.sides[1 - from].endpoint.receive(receive).expect("a receive");
        way.posted.push(Posted { space, tag, ignore, memory, wanted: None, got: None });
    }

    fn turn(&mut self, side: usize) {
        let mut entries = Vec::new();
        let found = self.sides[side].queue.read(8, |entry| entries.push((*entry, None)));
        if found == Err(Code::Available) {
            let failed = self.sides[side].queue.read_failed().expect("a failure");
            entries.push((failed.entry, Some(failed.code)));
        }
        for (entry, code) in entries {
            if entry.context & SENDS != 0 {
                assert_eq!(code, None, "a send ends well");
                self.ways[side].ended += 1;
            } else {
                let place = &mut self.ways[1 - side].posted[entry.context as usize].got;
                assert!(place.replace((entry, code)).is_none(), "it has ended twice");
            }
        }
    }

    fn run(mut self, seed: u64, steps: usize) {
        let rng = &mut Rng::with_seed(seed);
        for _ in 0..steps {
            let side = rng.usize(0..2);
            match rng.usize(0..4) {
                0 => self.send(rng, side),
                1 => self.post(rng, side),
                _ => self.turn(side),
            }
        }
        for from in 0..2 {
            // Room for what is left, of each kind.
            for space in [Space::Message, Space::Tagged] {
                let count = self.ways[from].sent.iter().filter(|sent| sent.space == space).count();
                (0..count).for_each(|_| self.post_one(from, (space, 0, !0), 90_000));
            }
            self.ways[from].assign();
        }
        let begun = Instant::now();
        let is_over = |way: &Way| {
            way.ended + way.silent == way.sent.len()
                && way.posted.iter().all(|receive| receive.got.is_some() == receive.wanted.is_some())
        };
        while !self.ways.iter().all(is_over) {
            (0..2).for_each(|side| self.turn(side));
            assert!(begun.elapsed() < LONG, "seed {seed} does not end");
        }
        for (from, way) in self.ways.iter().enumerate() {
            way.check(&format!("seed {seed}, from {from}"));
        }
    }
}

#[test]
fn random_programs_come_to_what_plain_lists_say() {
    for (transport, count) in [("sm", 30), ("sock", 5), ("tcp", 5)] {
        let domain = crate::world::domain(transport);
        for seed in 0..count {
            World::new(&domain).run(seed, 300);
        }
    }
}

#[test]
fn random_programs_come_to_what_plain_lists_say_over_a_network_with_loss() {
    for seed in 0..10 {
        let (network, number) = (format!("fabric-random-{seed}"), seed.to_string());
        let keys = [
            ("network", network.as_str()),
            ("seed", &number),
            ("delay", "20000"),
            ("jitter", "100000"),
            ("bandwidth", "1250000000"),
            ("loss", "3"),
            ("duplicate", "2"),
        ];
        World::new(&Domain::on(cci_conformance::device_of("sim", &keys))).run(1_000 + seed, 200);
    }
}
