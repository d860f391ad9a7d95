//! Which ranks share a host, and its processors.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeSet;

/// A rank among those of its host.
///
/// ```
/// let local = cci_job::Local { rank: 1, size: 4, processors: 2 };
/// assert_eq!(local.ranks_per_core(), 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "launchers make it")]
pub struct Local {
    /// The number among the ranks of the host, from 0, in the order of ranks.
    pub rank: u32,
    /// How many ranks of the job the host has.
    pub size: u32,
    /// How many processors these may use, at least 1.
    pub processors: u32,
}

impl Local {
    /// How many ranks there are for each processor. Above 1 a rank that busy-polls takes time from
    /// others.
    #[must_use]
    pub fn ranks_per_core(&self) -> f64 {
        f64::from(self.size) / f64::from(self.processors.max(1))
    }
}

/// The most bytes that name a host.
const LONGEST_NAME: usize = 64;

/// The boot identifier of this host: that of the kernel, so that containers count as one host.
fn host() -> Vec<u8> {
    let name = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| b"unknown".to_vec());
    name.trim_ascii().iter().copied().take(LONGEST_NAME).collect()
}

/// The processors that this process may use, a bit each.
fn processors() -> Vec<u8> {
    // One that is not known is one that the host has all the same.
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| {
        let mut first = CpuSet::new();
        first.set(0);
        first
    });
    let byte = |at: usize| (0..8).fold(0, |byte, bit| byte | u8::from(allowed.is_set(at * 8 + bit)) << bit);
    let mut bytes: Vec<u8> = (0..CpuSet::MAX_CPU / 8).map(byte).collect();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1));
    bytes
}

/// What this rank gives to the exchange of places: the length of the host's name, the name, its
/// processors.
pub(crate) fn own() -> Vec<u8> {
    let name = host();
    let length = u8::try_from(name.len()).expect("at most 64 bytes");
    [vec![length], name, processors()].concat()
}

/// The name of the host, and its processors. A malformed place is a host of its own.
fn split(place: &[u8]) -> (&[u8], &[u8]) {
    let name = place.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
    name.unwrap_or((place, &[]))
}

/// The rank's own place among all.
pub(crate) fn local(rank: u32, places: &[Vec<u8>]) -> Local {
    let own = places.get(rank as usize).map_or(&[][..], |place| split(place).0);
    let here: Vec<(usize, &[u8])> = places
        .iter()
        .map(|place| split(place))
        .enumerate()
        .filter(|(_, place)| place.0 == own)
        .map(|(at, place)| (at, place.1))
        .collect();
    let mut processors = BTreeSet::new();
    for (_, mask) in &here {
        processors.extend((0..mask.len() * 8).filter(|at| mask[at / 8] >> (at % 8) & 1 == 1));
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let before = here.iter().filter(|(at, _)| *at < rank as usize).count();
    Local { rank: count(before), size: count(here.len()), processors: count(processors.len().max(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_host_count_the_union_of_their_processors() {
        let place = |name: &[u8], mask: &[u8]| [&[u8::try_from(name.len()).expect("short")], name, mask].concat();
        let places = [place(b"a", &[1]), place(b"b", &[0xff, 1]), place(b"a", &[2]), place(b"a", &[2])];
        assert_eq!(local(0, &places), Local { rank: 0, size: 3, processors: 2 });
        assert_eq!(local(3, &places), Local { rank: 2, size: 3, processors: 2 });
        assert_eq!(local(1, &places), Local { rank: 0, size: 1, processors: 9 });
    }

    #[test]
    fn a_malformed_place_is_a_host_of_its_own() {
        let places = [vec![], vec![200, 1], own()];
        assert_eq!(local(0, &places).size, 1);
        assert_eq!(local(1, &places).size, 1);
        assert!(local(2, &places).processors >= 1);
    }
}
