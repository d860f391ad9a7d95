//! Requests and replies allocate nothing once the first ones have gone, over `sm`.

#![forbid(unsafe_code)]

mod rounds;

use cci_am::{Endpoint, Options, TAG_ALL};
use cci_conformance::sm_device;
use cci_instruments::{CountingAllocator, allocations_off_main};
use rounds::{handlers, round};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn open() -> Endpoint<[u8; 4096]> {
    Endpoint::open(&sm_device(), &Options::new(), handlers(), [0; 4096]).expect("an endpoint")
}

#[test]
fn no_allocation_in_100_000_messages() {
    let (mut server, mut client) = (open(), open());
    let name = server.name().to_owned();
    let peer = client.map(&name, TAG_ALL).expect("a URI");
    round(&mut server, &mut client, peer, 5_000);
    let before = allocations_off_main();
    round(&mut server, &mut client, peer, 60_000);
    assert_eq!(allocations_off_main() - before, 0, "allocations in 60,000 requests and 40,000 replies");
}
