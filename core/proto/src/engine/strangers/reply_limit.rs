//! How many answers those get whose connection is not known: nobody makes this side send for him.

use crate::Time;
use crate::engine::random::keyed;

/// Networks are told apart in so many classes, under the endpoint's key.
pub(super) const CLASSES: u64 = 64;
/// Answers at once after a pause, whole endpoint.
const BURST: u64 = 256;
/// Nanoseconds for each: 100 in a second.
const EVERY: u64 = 10_000_000;
/// One network has at most this part.
const SHARE: u64 = 4;

/// A token bucket, as the time at which it will be full again (the generic cell rate algorithm).
#[derive(Clone, Copy, Default)]
pub(super) struct Bucket(pub(super) Time);

impl Bucket {
    /// When it would be full again with one token less; none: there is no token. Each takes `every`
    /// to come, and `burst` fit.
    pub(super) fn without_one(self, now: Time, every: u64, burst: u64) -> Option<Self> {
        (self.0.since(now) <= every * (burst - 1)).then(|| Self(Time(self.0.max(now).0.saturating_add(every))))
    }
}

/// The class of a network.
pub(super) fn class(secret: [u64; 2], network: u64) -> usize {
    // A cookie and a request's key are of an address too: none is taken for the other.
    usize::try_from(keyed(secret, &[network], &[]) % CLASSES).unwrap_or(0)
}

/// The buckets: of all, and of each class of networks.
pub(crate) struct ReplyLimit {
    all: Bucket,
    of: [Bucket; CLASSES as usize],
}

impl ReplyLimit {
    pub(crate) const fn new() -> Self {
        Self { all: Bucket(Time(0)), of: [Bucket(Time(0)); CLASSES as usize] }
    }

    /// Whether this network gets an answer now.
    #[cold]
    pub(crate) fn take(&mut self, now: Time, secret: [u64; 2], network: u64) -> bool {
        let class = class(secret, network);
        let of = self.of[class].without_one(now, EVERY * SHARE, BURST / SHARE);
        let (Some(of), Some(all)) = (of, self.all.without_one(now, EVERY, BURST)) else { return false };
        (self.of[class], self.all) = (of, all);
        true
    }
}
