//! What a run was, in one number.

/// A hash over all deliveries. Not cryptographic: two runs that differ anywhere have different
/// hashes but for about one pair in 2^64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }
}

impl Trace {
    pub(super) fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }

    /// Eight bytes at a time: the hash is taken of every frame of every run.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }

    pub(super) fn value(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
