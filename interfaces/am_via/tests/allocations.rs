//! Requests and replies allocate nothing once the first ones have gone, by each mapping over `sm`.

#![forbid(unsafe_code)]

use cci_am::{Endpoint, Handlers, Options, Reply, Request, TAG_ALL};
use cci_am_via::{Variant, ViaMapping};
use cci_conformance::sm_device;
use cci_instruments::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ECHO: u8 = 1;
const BACK: u8 = 2;
const TAKE: u8 = 3;

fn echo(bytes: &mut [u8; 2048], request: Request<'_>) {
    let len = request.payload().copy_to(0, bytes);
    let arguments = request.arguments();
    request.reply_medium(BACK, arguments, &bytes[..len]).expect("what came can go back");
}

fn back(bytes: &mut [u8; 2048], reply: Reply<'_>) {
    reply.payload().copy_to(0, bytes);
}

fn take(bytes: &mut [u8; 2048], request: Request<'_>) {
    request.payload().copy_to(0, bytes);
}

fn open(variant: Variant) -> Endpoint<[u8; 2048], ViaMapping> {
    let handlers = Handlers::new().request(ECHO, echo).request(TAKE, take).reply(BACK, back);
    let mapping = ViaMapping::open(&sm_device(), &cci_am_via::Options::new(variant)).expect("a mapping");
    Endpoint::over(mapping, &Options::new(), handlers, [0; 2048]).expect("an endpoint")
}

#[test]
fn no_allocation_in_messages_that_are_not_cut() {
    for variant in Variant::ALL {
        let (mut server, mut client) = (open(variant), open(variant));
        let name = server.name().to_owned();
        let peer = client.map(&name, TAG_ALL).expect("a name");
        let payload = [5; 2048];
        let mut round = |count: usize| {
            for number in 0..count {
                let (at, len) = ([ECHO, ECHO, TAKE][number % 3], [0, 30, 500, 2048][number % 4]);
                while client.now().request_medium(peer, at, &[1, 2, 3], &payload[..len]).is_err() {
                    server.poll().expect("usable");
                    client.poll().expect("usable");
                }
                if number % 16 == 0 {
                    while client.outstanding(peer) > 0 {
                        server.poll().expect("usable");
                        client.poll().expect("usable");
                    }
                }
            }
        };
        round(2_000);
        let before = allocations();
        round(10_000);
        assert_eq!(allocations() - before, 0, "{variant:?}: allocations in 10,000 requests");
    }
}
