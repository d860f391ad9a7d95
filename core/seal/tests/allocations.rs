//! Sealing and opening allocate nothing.

#![forbid(unsafe_code)]

use cci_instruments::{CountingAllocator, allocations_off_main};
use cci_mem::source::Source;
use cci_seal::noise::{Initiator, Responder};
use cci_seal::{Phase, Psk, TAG, Vault};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Connections that take turns, more than there are expanded keys.
const CONNECTIONS: u32 = 20;

/// One test only, since the allocator counts for the whole process.
#[test]
fn no_allocation_in_100_000_frames() {
    let psk = Psk::fresh().expect("a secret");
    let (mut client, mut server) = (Vault::new(8), Vault::new(8));
    for index in 0..CONNECTIONS {
        let initiator = Initiator::begin(&psk, &[], b"").expect("begun");
        let responder = Responder::read(&psk, &[], initiator.message(), &mut []).expect("read");
        let (answer, session) = responder.answer(&[], b"").expect("answered");
        client.insert(index, &initiator.finish(&[], &answer, &mut []).expect("finished")).expect("memory");
        server.insert(index, &session).expect("memory");
    }
    let text = [7; 600];
    let mut frame = [0; 608 + TAG];
    let mut exchange = |number: u64| {
        let index = number as u32 / 100 % CONNECTIONS;
        let parts = [Source::from(&b"records:"[..]), Source::from(&text[..])];
        client.seal(index, number, b"header", &parts, &mut frame).expect("sealed");
        let opened = server.open(index, Phase::Present, number, b"header", &mut frame).expect("opened");
        assert_eq!(opened.len(), 608);
        if number.is_multiple_of(1_000) {
            client.rest(index);
            server.rest(index);
        }
    };
    // Until each vault has all of its room.
    (1..2_001).for_each(&mut exchange);
    let before = allocations_off_main();
    (2_001..102_001).for_each(&mut exchange);
    assert_eq!(allocations_off_main() - before, 0);
}
