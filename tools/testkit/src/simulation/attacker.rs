//! Somebody on the path of sealed connections, who sees every frame and sends his own: mutated,
//! cut, replayed, reflected, spliced, and in clear.

use cci_proto::wire::{self, HEADER};
use cci_sim::Random;
use cci_sim::network::NodeIndex;

/// Frames that he remembers.
const MEMORY: usize = 256;
/// Of so many frames that he sees, he sends one of his own after one.
const EVERY: u64 = 8;

/// A frame, by whom, and for whom.
type Forged = (NodeIndex, NodeIndex, Vec<u8>);

/// Somebody on the path.
#[derive(Debug)]
pub(super) struct Attacker {
    random: Random,
    seen: Vec<Forged>,
    attacks: u32,
}

impl Attacker {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::of(seed, 0x91d, 0), seen: Vec::new(), attacks: 0 }
    }

    /// Frames that he has sent.
    pub(super) fn attacks(&self) -> u32 {
        self.attacks
    }

    /// A frame has left a node. Returns one of his.
    pub(super) fn hear(&mut self, from: NodeIndex, to: NodeIndex, frame: Vec<u8>) -> Option<Forged> {
        if self.seen.len() < MEMORY {
            self.seen.push((from, to, frame));
        } else {
            let at = self.below(MEMORY);
            self.seen[at] = (from, to, frame);
        }
        if self.random.below(EVERY) > 0 {
            return None;
        }
        self.attacks += 1;
        Some(self.forge())
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound.max(1) as u64)).unwrap_or(0)
    }

    fn any(&mut self) -> Forged {
        let at = self.below(self.seen.len());
        self.seen[at].clone()
    }

    fn forge(&mut self) -> Forged {
        let (from, to, mut frame) = self.any();
        match self.below(7) {
            0 => {
                for _ in 0..=self.below(4) {
                    let bit = self.below(8 * frame.len());
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
            }
            1 => {
                let len = self.below(frame.len());
                frame.truncate(len.max(HEADER));
                put_length(&mut frame);
            }
            2 => {
                // Back to its sender, as if his peer had sent it.
                let ids: [u8; 16] = std::array::from_fn(|at| frame[8 + (at + 8) % 16]);
                frame[8..24].copy_from_slice(&ids);
                return (to, from, frame);
            }
            3 => {
                let (.., other) = self.any();
                let at = HEADER + self.below(frame.len().min(other.len()) - HEADER);
                frame.truncate(at);
                frame.extend_from_slice(&other[at..]);
                put_length(&mut frame);
            }
            4 => {
                frame[1] &= 0x3F;
                wire::seal(&mut frame, 0, |check| check);
            }
            5 => frame[1] ^= 0x40,
            // Once more, as it was.
            _ => {}
        }
        (from, to, frame)
    }
}

fn put_length(frame: &mut [u8]) {
    let len = u16::try_from(frame.len()).unwrap_or(u16::MAX);
    frame[2..4].copy_from_slice(&len.to_be_bytes());
}
