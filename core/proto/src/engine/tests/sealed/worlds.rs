//! Worlds by seed, each with somebody on the path: frames are mutated, replayed, reordered, cut,
//! reflected and spliced. Nothing of them is accepted, and everything that is sent arrives.

use super::*;

/// Worlds of a run, a tenth of those of `make attacks`, which sets `CCI_SEALED_WORLDS`.
const WORLDS: u64 = 1000;
/// Frames of the attacker in each.
const ATTACKS: u64 = 100;

/// What the attacker does with a frame.
const KINDS: [&str; 8] =
    ["mutated", "replayed", "cut", "reflected", "spliced", "in clear", "of the other phase", "reordered"];
const REPLAYED: usize = 1;
const REORDERED: usize = 7;
/// The longest time for which a frame is held back, microseconds: three times the way there.
const LONGEST_HOLD: usize = 60_000;

/// Frames of the attacker, by kind.
type Counts = [u64; KINDS.len()];

/// Somebody on the path.
struct Attacker {
    random: u64,
    /// What has passed: by whom, and the frame.
    seen: Vec<(usize, Vec<u8>)>,
}

impl Attacker {
    fn below(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % bound
    }

    fn any(&mut self) -> (usize, Vec<u8>) {
        let at = self.below(self.seen.len());
        self.seen[at].clone()
    }

    /// A frame of this kind, and for whom.
    fn attack(&mut self, kind: usize) -> (usize, Vec<u8>) {
        let (side, mut frame) = self.any();
        match kind {
            0 => {
                for _ in 0..=self.below(4) {
                    let bit = self.below(8 * frame.len());
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
            }
            REPLAYED => {}
            2 => {
                let len = self.below(frame.len());
                frame.truncate(len);
                if len >= 4 {
                    frame[2..4].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
                }
            }
            3 => {
                // Reflected, with the identifiers exchanged half of the time.
                if self.below(2) == 0 {
                    let (to, from) = (frame[8..16].to_vec(), frame[16..24].to_vec());
                    frame[8..16].copy_from_slice(&from);
                    frame[16..24].copy_from_slice(&to);
                }
                return (side, frame);
            }
            4 => {
                let (_, other) = self.any();
                let at = wire::HEADER + self.below(frame.len().min(other.len()) - wire::HEADER);
                frame.truncate(at);
                frame.extend_from_slice(&other[at..]);
                let len = u16::try_from(frame.len()).expect("short").to_be_bytes();
                frame[2..4].copy_from_slice(&len);
            }
            5 => {
                // In clear, with the check made right.
                frame[1] &= 0x3F;
                wire::seal(&mut frame, 0, |check| check);
            }
            _ => frame[1] ^= 0x40,
        }
        (1 - side, frame)
    }

    /// Holds back one of the frames under way, if there is any, so that later ones overtake it.
    fn reorder(&mut self, pair: &mut Pair) -> bool {
        let at = self.below(pair.wire.len().max(1));
        let Some(key) = pair.wire.keys().nth(at).copied() else { return false };
        let frame = pair.wire.remove(&key).expect("under way");
        let later = key.0.plus_micros(self.below(LONGEST_HOLD) as u64);
        pair.wire.insert((later, key.1), frame);
        true
    }

    /// Does one of the first `kinds`. A frame that was not sent to its receiver changes nothing
    /// there.
    fn act(&mut self, kinds: usize, pair: &mut Pair, counts: &mut Counts) {
        let kind = self.below(kinds);
        if kind == REORDERED {
            counts[kind] += u64::from(self.reorder(pair));
            return;
        }
        let (to, frame) = self.attack(kind);
        if kind != REPLAYED && self.seen.iter().any(|(side, old)| *side == 1 - to && *old == frame) {
            return;
        }
        let before = taken(pair, to);
        let memory = pair.hosts[to].memory.clone();
        let _ = pair.inject(to, &frame);
        counts[kind] += 1;
        if kind != REPLAYED {
            assert_eq!(taken(pair, to), before, "{}: {frame:02x?}", KINDS[kind]);
            assert_eq!(pair.hosts[to].memory, memory, "{}", KINDS[kind]);
        }
    }
}

/// What a side has taken.
fn taken(pair: &Pair, side: usize) -> (u64, usize, u32) {
    (pair.engines[side].stats().received, pair.hosts[side].received.len(), pair.hosts[side].events)
}

fn run_world(seed: u64) -> Counts {
    let attribute = [Attribute::ReliableOrdered, Attribute::ReliableUnordered][seed as usize % 2];
    let mut pair = pair_of([Security::Sealed; 2], [0, 8, 3][seed as usize % 3]);
    pair.state = seed;
    let has_short_keys = seed / 2 % 2 == 1;
    for host in &mut pair.hosts {
        host.sealer.as_mut().expect("a sealer").frames_per_key = if has_short_keys { 30 } else { 1 << 22 };
    }
    // With such keys a frame that is held back may be two phases late, and is lost then.
    let kinds = if has_short_keys { REORDERED } else { KINDS.len() };
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = seen.clone();
    let ends = pair.connect(attribute);
    pair.filter = std::boxed::Box::new(move |side, frame: &[u8]| {
        kept.borrow_mut().push((side, frame.to_vec()));
        true
    });
    let mut attacker = Attacker { random: seed ^ 0xA77A, seen: Vec::new() };
    let target = Target { handle: [7, 7], offset: 0, len: 3000 };
    let write = Rma { op: Op(5000), target, access: Access::Write, fence: false, message: Some(b"written") };
    pair.engines[0].rma(pair.now, ends[0], &write).expect("write");
    let (mut ops, mut counts) = (0, Counts::default());
    while counts.iter().sum::<u64>() < ATTACKS {
        for (side, end) in ends.into_iter().enumerate() {
            let bytes = message(ops, 8 + attacker.below(300));
            pair.engines[side].send(pair.now, end, &[&bytes], Op(ops), false).expect("send");
        }
        ops += 1;
        for _ in 0..attacker.below(4) {
            pair.step();
        }
        // Far fewer frames are in flight than a key may have beyond its time.
        pair.run(|pair| pair.hosts.iter().all(|host| host.ended.len() + 8 > ops as usize));
        pair.pump();
        attacker.seen.append(&mut seen.borrow_mut());
        for _ in 0..attacker.below(4).min(attacker.seen.len()) {
            attacker.act(kinds, &mut pair, &mut counts);
        }
    }
    pair.run(|pair| pair.hosts[0].ended.len() > ops as usize && pair.hosts[1].ended.len() >= ops as usize);
    for side in 0..2 {
        assert!(pair.hosts[side].ended.values().all(Result::is_ok), "seed {seed}: {:?}", pair.hosts[side].ended);
        let mut numbers: Vec<_> =
            pair.hosts[side].received.iter().filter(|m| m[..] != b"written"[..]).cloned().collect();
        if attribute == Attribute::ReliableUnordered {
            numbers.sort();
        }
        let expected = (0..ops).map(|op| op.to_be_bytes());
        assert!(numbers.iter().map(|m| &m[..4]).eq(expected.clone().collect::<Vec<_>>().iter()), "seed {seed}");
    }
    assert!(pair.hosts[1].memory[..3000].iter().all(|byte| *byte == 5), "seed {seed}");
    counts
}

#[test]
fn nothing_that_is_forged_is_accepted_in_any_world() {
    let asked = std::env::var("CCI_SEALED_WORLDS").ok().and_then(|count| count.parse().ok());
    let worlds = asked.unwrap_or(WORLDS);
    let mut counts = Counts::default();
    for seed in 0..worlds {
        let of_world = std::panic::catch_unwind(|| run_world(seed));
        let of_world = of_world.unwrap_or_else(|_| panic!("the world of seed {seed} breaks a promise"));
        counts.iter_mut().zip(of_world).for_each(|(count, more)| *count += more);
    }
    assert!(counts.iter().all(|count| *count >= worlds), "each kind, in each world: {counts:?}");
    assert!(counts.iter().sum::<u64>() >= worlds * ATTACKS);
    if asked.is_some() {
        let kinds: Vec<_> = KINDS.iter().zip(counts).map(|(kind, count)| std::format!("{count} {kind}")).collect();
        // A test that passes shows nothing else.
        let line = std::format!("{worlds} worlds, nothing accepted: {}\n", kinds.join(", "));
        std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("standard output");
    }
}
