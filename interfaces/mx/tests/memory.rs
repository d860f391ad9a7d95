//! What posted receives take of a process's memory, over `sm`. The only test of its process: others
//! would take memory beside it.

#![forbid(unsafe_code)]

use cci::Memory;
use cci_conformance::sm_device;
use cci_mx::{Buffer, Endpoint, Match, Options, Place, endpoint_options};
use cci_peers::Table;

const COUNT: u64 = 100_000;
/// Bytes, as `cci perf mx` has it.
const BAR: u64 = 16 << 20;

/// A segment without memory, as long as one of C.
#[derive(Clone)]
struct Nowhere([u64; 2]);

const _: () = assert!(size_of::<Nowhere>() == 16);

impl Buffer for Nowhere {
    fn len(&self) -> usize {
        self.0[1] as usize
    }

    fn copy_out(&self, _: usize, _: &mut [u8]) -> bool {
        false
    }

    fn copy_in(&self, _: usize, _: &[u8]) -> bool {
        false
    }

    fn memory(&self) -> Memory {
        Memory::none()
    }
}

/// Bytes of this process's pages that no file holds.
fn anonymous() -> u64 {
    let all = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel's account of this process");
    let line = all.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("a line of that name");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of kB");
    kibibytes << 10
}

#[test]
fn receives_of_100_000_take_at_most_16_mib() {
    let end = cci::Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let place = Place::of(end, 9, 0, Box::new(Table::new()));
    let endpoint = Endpoint::open(place, 7, &Options::new()).expect("an endpoint");
    // The first reading takes memory itself.
    anonymous();
    let before = anonymous();
    for bits in 0..COUNT {
        endpoint.receive(Nowhere([bits, 8]), Match::exact(bits), bits).expect("room");
    }
    let taken = anonymous() - before;
    assert!((COUNT..=BAR).contains(&taken), "{taken} bytes for {COUNT} receives");
}
