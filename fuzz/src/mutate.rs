//! Changes of inputs at random, for a toolchain without a fuzzer: the same ones each time.

/// Numbers at which lengths and counts go wrong.
const EDGES: [u64; 12] = [0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX - 7, u64::MAX];
/// Longest input, bytes.
const MOST: usize = 4_096;

/// Changes inputs at random, by a seed.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// Another seed gives other changes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `limit`, which may be 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    /// A part of `len` bytes: where it begins and ends.
    fn part(&mut self, len: usize) -> std::ops::Range<usize> {
        let begin = self.below(len + 1);
        let most = (len - begin).min(16);
        begin..begin + self.below(most + 1)
    }

    /// Changes an input some times; `others` are inputs of which parts are taken over.
    pub fn change(&mut self, input: &mut Vec<u8>, others: &[Vec<u8>]) {
        for _ in 0..=self.below(4) {
            let at = self.below(input.len() + 1);
            match self.below(9) {
                0 => input.truncate(at),
                1 => input.insert(at, self.next() as u8),
                2 => drop(input.drain(self.part(input.len()))),
                3 => {
                    let part = self.part(input.len());
                    let copy = input[part].to_vec();
                    input.splice(at..at, copy);
                }
                4 => {
                    let other = self.below(others.len());
                    let Some(other) = others.get(other) else { continue };
                    let part = self.part(other.len());
                    let end = (at + part.len()).min(input.len());
                    input.splice(at..end, other[part].iter().copied());
                }
                5 => {
                    let (edge, width) = (EDGES[self.below(EDGES.len())], 1 << self.below(4));
                    let bytes = if self.below(2) == 0 { edge.to_le_bytes() } else { edge.to_be_bytes() };
                    let bytes = if self.below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
                    let end = (at + width).min(input.len());
                    input.splice(at..end, bytes.iter().copied());
                }
                6 => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte = byte.wrapping_add([1, 2, 0xff, 0xfe][self.below(4)]);
                    }
                }
                7 => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte = self.next() as u8;
                    }
                }
            }
            input.truncate(MOST);
        }
    }
}

/// As many inputs as asked for, each made from one of the corpus or from nothing.
pub fn mutations(seed: u64, corpus: &[Vec<u8>], count: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut mutator = Mutator::new(seed);
    (0..count).map(move |_| {
        let first = mutator.below(corpus.len() + 1);
        let mut input = corpus.get(first).cloned().unwrap_or_default();
        mutator.change(&mut input, corpus);
        input
    })
}
