//! Identifiers and first sequence numbers that nobody guesses.

use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// A keyed hash of a counter: without the key, what came before says nothing about what comes next.
pub(super) struct Random {
    key: [u64; 2],
    count: u64,
}

impl Random {
    pub(super) fn new(key: [u64; 2]) -> Self {
        Self { key, count: 0 }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        keyed(self.key, &[self.count], &[])
    }
}

/// SipHash-2-4 of words and bytes.
pub(super) fn keyed(key: [u64; 2], words: &[u64], bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(key[0], key[1]);
    for word in words {
        hasher.write_u64(*word);
    }
    hasher.write(bytes);
    hasher.finish()
}
