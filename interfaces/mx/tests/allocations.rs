//! Messages allocate nothing once the first ones have gone, over `sm`: expected and unexpected,
//! short and large, plain and synchronous.

#![forbid(unsafe_code)]

use cci_conformance::sm_device;
use cci_instruments::{CountingAllocator, allocations_off_main};
use cci_mx::{Endpoint, Match, Options, Place, buffer, endpoint_options};
use cci_peers::{Name, Table};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn sides() -> [Endpoint; 2] {
    let ends = [(); 2].map(|()| cci::Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint"));
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(id, end)| table.insert(Name::Number(9 << 32 | id), end.uri()));
    let mut id = 0;
    ends.map(|end| {
        let place = Place::of(end, 9, id, Box::new(table.clone()));
        id += 1;
        Endpoint::open(place, 7, &Options::new()).expect("an endpoint")
    })
}

#[test]
fn no_allocation_in_20_000_messages() {
    let sides = sides();
    let asked = sides[0].start_connect((9, 1), 7, 0, 0).expect("room");
    let to = loop {
        sides[1].progress().expect("usable");
        if let Some(status) = sides[0].test(asked).expect("a request") {
            break status.source;
        }
    };
    let memories = [0, 8, 100, 3_000, 60_000].map(|len| [buffer(vec![1; len]), buffer(vec![0; len])]);
    let round = |count: usize| {
        for number in 0..count {
            let [from, into] = &memories[number % memories.len()];
            let (bits, is_sync) = (number as u64 % 16, number % 3 == 0);
            let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
            let post = || sides[1].receive(into.clone(), Match::exact(bits), 0).expect("room");
            let early = (number % 2 == 0).then(post);
            let send = start(&sides[0], from.clone(), to, bits, 0).expect("room");
            while early.is_none() && sides[1].probe(Match::ANY, Some(Duration::ZERO)).expect("usable").is_none() {}
            let receive = early.unwrap_or_else(post);
            while sides[1].test(receive).expect("a request").is_none() {}
            while sides[0].test(send).expect("a request").is_none() {}
        }
    };
    round(2_000);
    let before = allocations_off_main();
    round(20_000);
    assert_eq!(allocations_off_main() - before, 0);
}
