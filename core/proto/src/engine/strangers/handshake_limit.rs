//! How many sealed handshakes an endpoint begins: each costs it some hashes, and an accepted one a
//! Diffie-Hellman. A network whose requests have wrong tags soon gets a RETRY for each.

use super::reply_limit::{Bucket, CLASSES, class};
use crate::Time;

/// Handshakes at once after a pause.
const BURST: u64 = 256;
/// Nanoseconds for each: 2,000 in a second.
const EVERY: u64 = 500_000;
/// One network may waste this part of them.
const SHARE: u64 = 16;

/// The buckets: of all handshakes, and of the wrong ones of each class of networks.
pub(crate) struct HandshakeLimit {
    all: Bucket,
    wrong: [Bucket; CLASSES as usize],
}

impl HandshakeLimit {
    pub(crate) const fn new() -> Self {
        Self { all: Bucket(Time(0)), wrong: [Bucket(Time(0)); CLASSES as usize] }
    }

    /// Returns whether a client of this network may begin a handshake now. One has begun then.
    #[cold]
    pub(crate) fn take(&mut self, now: Time, secret: [u64; 2], network: u64) -> bool {
        let wrong = self.wrong[class(secret, network)];
        let has_wasted = wrong.without_one(now, EVERY * SHARE, BURST / SHARE).is_none();
        let Some(all) = self.all.without_one(now, EVERY, BURST).filter(|_| !has_wasted) else { return false };
        self.all = all;
        true
    }

    /// Notes that the handshake of a client of this network was not made with the secret.
    #[cold]
    pub(crate) fn on_wrong(&mut self, now: Time, secret: [u64; 2], network: u64) {
        let wrong = &mut self.wrong[class(secret, network)];
        *wrong = wrong.without_one(now, EVERY * SHARE, BURST / SHARE).unwrap_or(*wrong);
    }
}
