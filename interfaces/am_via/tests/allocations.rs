//! Requests and replies allocate nothing once the first ones have gone, by each mapping over `sm`.

#![forbid(unsafe_code)]

#[path = "../../am/tests/rounds/mod.rs"]
mod rounds;

use cci_am::{Endpoint, Options, TAG_ALL};
use cci_am_via::{Variant, ViaMapping};
use cci_conformance::sm_device;
use cci_instruments::{CountingAllocator, allocations_off_main};
use rounds::{handlers, round};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn open(variant: Variant) -> Endpoint<[u8; 2048], ViaMapping> {
    let mapping = ViaMapping::open(&sm_device(), &cci_am_via::Options::new(variant)).expect("a mapping");
    Endpoint::over(mapping, &Options::new(), handlers(), [0; 2048]).expect("an endpoint")
}

#[test]
fn no_allocation_in_messages_that_are_not_cut() {
    for variant in Variant::ALL {
        let (mut server, mut client) = (open(variant), open(variant));
        let name = server.name().to_owned();
        let peer = client.map(&name, TAG_ALL).expect("a name");
        round(&mut server, &mut client, peer, 2_000);
        let before = allocations_off_main();
        round(&mut server, &mut client, peer, 10_000);
        assert_eq!(allocations_off_main() - before, 0, "{variant:?}: allocations in 10,000 requests");
    }
}
