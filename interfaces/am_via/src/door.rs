//! Where peers find a mapping: its name, and how often it looks for those that want to connect.

use crate::Core;
use cci_via::engine::Clients;
use cci_via::{Address, Error};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

const SCHEME: &str = "via://";

/// Where peers find a mapping.
pub(crate) struct Door {
    pub(crate) clients: Clients,
    pub(crate) pace: Pace,
}

/// How often a mapping looks for peers that want to connect: a look is a system call.
pub(crate) struct Pace {
    polls: u32,
    empty_polls: u32,
    last: Instant,
}

impl Pace {
    /// Polls between two readings of the clock: of those that find nothing, and of all.
    const EMPTY_POLLS: u32 = 32;
    const POLLS: u32 = 1_024;
    /// Time between two looks.
    const INTERVAL: Duration = Duration::from_millis(1);

    fn new() -> Self {
        Self { polls: 0, empty_polls: 0, last: Instant::now() }
    }

    /// Counts a poll. Whether it is time for a look.
    #[inline]
    pub(crate) fn is_due(&mut self, found: usize) -> bool {
        self.polls += 1;
        self.empty_polls += u32::from(found == 0);
        (self.empty_polls >= Self::EMPTY_POLLS || self.polls >= Self::POLLS) && self.is_over(Instant::now())
    }

    #[inline(never)]
    fn is_over(&mut self, now: Instant) -> bool {
        (self.polls, self.empty_polls) = (0, 0);
        let is_over = now.saturating_duration_since(self.last) >= Self::INTERVAL;
        if is_over {
            self.last = now;
        }
        is_over
    }
}

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Door {
    pub(crate) fn open(core: &Core) -> Result<(Self, String), Error> {
        let word = format!("{:016x}{:016x}", random(), random());
        let local = Address::new(core.host(), word.as_bytes());
        let clients = core.clients(&local)?;
        let name = match core.host() {
            IpAddr::V4(host) => format!("{SCHEME}{host}/{word}"),
            IpAddr::V6(host) => format!("{SCHEME}[{host}]/{word}"),
        };
        Ok((Self { clients, pace: Pace::new() }, name))
    }
}

/// The address in a name.
pub(crate) fn address_of(name: &str) -> Option<Address> {
    let (host, word) = name.strip_prefix(SCHEME)?.split_once('/')?;
    let host: IpAddr = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.into(),
        None => host.parse::<Ipv4Addr>().ok()?.into(),
    };
    (1..=64).contains(&word.len()).then(|| Address::new(host, word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_an_address_or_refused() {
        let address = address_of("via://10.0.0.7/word").expect("an address");
        assert_eq!((address.host.to_string(), &address.discriminator[..]), ("10.0.0.7".into(), &b"word"[..]));
        assert_eq!(address_of("via://[::1]/word").map(|address| address.host.to_string()), Some("::1".into()));
        for name in [
            "via://::1/word",
            "via://[::1/word",
            "via://[10.0.0.7]/word",
            "",
            "via://",
            "via://10.0.0.7",
            "via://10.0.0.7/",
            "via://host/word",
            "sm://10.0.0.7/word",
        ] {
            assert!(address_of(name).is_none(), "{name}");
        }
    }

    /// Looks of a program that polls in vain, this long for each poll.
    fn looks(polls: u32, each: Duration) -> u32 {
        let mut pace = Pace::new();
        let mut now = pace.last;
        let mut looks = 0;
        for _ in 0..polls / Pace::EMPTY_POLLS {
            now += Pace::EMPTY_POLLS * each;
            looks += u32::from(pace.is_over(now));
        }
        looks
    }

    #[test]
    fn a_program_that_spins_looks_for_peers_once_a_millisecond_and_a_slow_one_after_32_polls() {
        assert_eq!(looks(1 << 20, Duration::from_nanos(50)), 52, "in 52 ms");
        assert_eq!(looks(3_200, Duration::from_millis(1)), 100);
    }
}
