//! How many sealed handshakes an endpoint begins. A share with a wrong tag costs it some hashes,
//! and one with a right tag a request of its program and a Diffie-Hellman.

use super::reply_limit::{Bucket, CLASSES, class};
use crate::Time;

/// Handshakes at once after a pause.
const BURST: u64 = 256;
/// Nanoseconds for each: 2,000 in a second.
const EVERY: u64 = 500_000;
/// One network may begin this part of them: whoever has recorded a share can send it again.
const SHARE: u64 = 4;
/// One network may have this part of them examined for nothing.
const WRONG_SHARE: u64 = 16;
/// Nanoseconds after which networks are classed anew, so that none shares the fate of a flood.
const RECLASS: u64 = 250_000_000;

/// The buckets: of all handshakes that were begun, of those of each class of networks, and of the
/// wrong shares of each class.
pub(crate) struct HandshakeLimit {
    all: Bucket,
    right: [Bucket; CLASSES as usize],
    wrong: [Bucket; CLASSES as usize],
}

impl HandshakeLimit {
    pub(crate) const fn new() -> Self {
        let none = [Bucket(Time(0)); CLASSES as usize];
        Self { all: Bucket(Time(0)), right: none, wrong: none }
    }

    /// The class of a network, for now.
    fn class(now: Time, secret: [u64; 2], network: u64) -> usize {
        class([secret[0] ^ (now.0 / RECLASS), secret[1]], network)
    }

    /// Returns whether the share of a client of this network may be examined now.
    #[cold]
    pub(crate) fn may_examine(&self, now: Time, secret: [u64; 2], network: u64) -> bool {
        let at = Self::class(now, secret, network);
        self.wrong[at].without_one(now, EVERY * WRONG_SHARE, BURST / WRONG_SHARE).is_some()
            && self.right[at].without_one(now, EVERY * SHARE, BURST / SHARE).is_some()
            && self.all.without_one(now, EVERY, BURST).is_some()
    }

    /// Notes that a share was examined, and whether its tag was right.
    #[cold]
    pub(crate) fn on_examined(&mut self, now: Time, secret: [u64; 2], network: u64, is_right: bool) {
        let at = Self::class(now, secret, network);
        let take = |bucket: &mut Bucket, every, burst| {
            *bucket = bucket.without_one(now, every, burst).unwrap_or(*bucket);
        };
        if is_right {
            take(&mut self.right[at], EVERY * SHARE, BURST / SHARE);
            take(&mut self.all, EVERY, BURST);
        } else {
            take(&mut self.wrong[at], EVERY * WRONG_SHARE, BURST / WRONG_SHARE);
        }
    }
}
