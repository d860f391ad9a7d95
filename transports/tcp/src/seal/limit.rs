//! How many handshakes an endpoint answers: each costs it some hashes, and one with the right tag a
//! Diffie-Hellman.

use cci_proto::Time;
use std::net::IpAddr;
use std::time::Duration;

/// Handshakes at once after a pause.
const BURST: u32 = 256;
/// Time for each: 2,000 in a second.
const EVERY: Duration = Duration::from_micros(500);
/// One network may waste this part of them on wrong tags.
const SHARE: u32 = 16;
/// Classes of networks, of which each has a bucket.
const CLASSES: usize = 64;

/// A bucket of tokens: the time at which it is full again.
#[derive(Clone, Copy, Default)]
struct Bucket(Time);

impl Bucket {
    /// The bucket after one more token was taken; `None`: it has none.
    fn without_one(self, now: Time, every: Duration, burst: u32) -> Option<Self> {
        let full = self.0.max(now) + every;
        (full <= now + every * burst).then_some(Self(full))
    }
}

/// The buckets: of all handshakes, and of the wrong ones of each class of networks.
pub(super) struct HandshakeLimit {
    all: Bucket,
    wrong: [Bucket; CLASSES],
    /// Spreads networks over classes, so that nobody can choose to share a class.
    key: u64,
}

impl HandshakeLimit {
    pub(super) fn new(key: u64) -> Self {
        Self { all: Bucket::default(), wrong: [Bucket::default(); CLASSES], key }
    }

    /// The class of an address by its network; `None`: an address of this host, which no other host
    /// can have a stream from.
    fn class(&self, ip: IpAddr) -> Option<usize> {
        let network = match ip {
            _ if ip.is_loopback() => return None,
            IpAddr::V4(ip) => u64::from(u32::from(ip) >> 8),
            IpAddr::V6(ip) => (u128::from(ip) >> 64) as u64,
        };
        let mixed = (network ^ self.key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some((mixed ^ self.key.rotate_left(32)).wrapping_mul(0xd6e8_feb8_6659_fd93) as usize >> 58)
    }

    /// Returns whether a client at this address may begin a handshake now. One has begun then.
    pub(super) fn take(&mut self, now: Time, ip: IpAddr) -> bool {
        let has_wasted = self
            .class(ip)
            .is_some_and(|class| self.wrong[class].without_one(now, EVERY * SHARE, BURST / SHARE).is_none());
        let Some(all) = self.all.without_one(now, EVERY, BURST).filter(|_| !has_wasted) else { return false };
        self.all = all;
        true
    }

    /// Notes that the handshake of a client at this address was not made with the secret.
    pub(super) fn on_wrong(&mut self, now: Time, ip: IpAddr) {
        if let Some(class) = self.class(ip)
            && let Some(wrong) = self.wrong[class].without_one(now, EVERY * SHARE, BURST / SHARE)
        {
            self.wrong[class] = wrong;
        }
    }
}

const _: () = assert!(CLASSES == 1 << (u64::BITS - 58) && usize::BITS == u64::BITS);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Handshakes of this address that are answered, of so many within a second from `begin` on.
    fn answered(limit: &mut HandshakeLimit, begin: Time, ip: [u8; 4], count: u32, is_wrong: bool) -> u32 {
        let mut answered = 0;
        for number in 0..count {
            let now = begin + SECOND * number / count;
            if limit.take(now, ip.into()) {
                answered += 1;
                if is_wrong {
                    limit.on_wrong(now, ip.into());
                }
            }
        }
        answered
    }

    #[test]
    fn an_endpoint_answers_2000_handshakes_a_second() {
        let mut limit = HandshakeLimit::new(7);
        let begin = Time(1 << 40);
        let first = answered(&mut limit, begin, [192, 0, 2, 1], 100_000, false);
        assert!((2000 + BURST - 1..=2000 + BURST + 1).contains(&first), "{first}");
        let second = answered(&mut limit, begin + SECOND, [192, 0, 2, 1], 100_000, false);
        assert!((1999..=2001).contains(&second), "{second}");
    }

    /// A network that has no secret gets a sixteenth; another one gets the rest.
    #[test]
    fn a_flood_of_one_network_leaves_room_for_others() {
        let mut limit = HandshakeLimit::new(7);
        let begin = Time(1 << 40);
        let (flood, other) = ([192, 0, 2, 1], [198, 51, 100, 1]);
        assert_ne!(limit.class(flood.into()), limit.class(other.into()), "else the key is to be another one");
        answered(&mut limit, begin, flood, 100_000, true);
        let wasted = answered(&mut limit, begin + SECOND, flood, 100_000, true);
        assert!((124..=126).contains(&wasted), "{wasted}");
        let end = begin + SECOND * 2;
        assert!(limit.take(end, other.into()));
        let neighbours = answered(&mut limit, end, [192, 0, 2, 77], 100_000, true);
        assert!((124..=126).contains(&neighbours), "of the same network: {neighbours}");
    }

    #[test]
    fn programs_of_this_host_waste_nothing_of_a_network() {
        let mut limit = HandshakeLimit::new(7);
        let begin = Time(1 << 40);
        let wrong = answered(&mut limit, begin, [127, 0, 0, 1], 100_000, true);
        assert!(wrong > 2000, "{wrong}");
    }
}
