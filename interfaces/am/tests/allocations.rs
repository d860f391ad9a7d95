//! Requests and replies allocate nothing once the first ones have gone, over `sm`.

#![forbid(unsafe_code)]

use cci_am::{Endpoint, Handlers, Options, Reply, Request, TAG_ALL};
use cci_conformance::sm_device;
use cci_instruments::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ECHO: u8 = 1;
const BACK: u8 = 2;
const TAKE: u8 = 3;

fn echo(bytes: &mut [u8; 4096], request: Request<'_>) {
    let len = request.payload().copy_to(0, bytes);
    let arguments = request.arguments();
    request.reply_medium(BACK, arguments, &bytes[..len]).expect("what came can go back");
}

fn back(bytes: &mut [u8; 4096], reply: Reply<'_>) {
    reply.payload().copy_to(0, bytes);
}

fn take(bytes: &mut [u8; 4096], request: Request<'_>) {
    request.payload().copy_to(0, bytes);
}

fn open() -> Endpoint<[u8; 4096]> {
    let handlers = Handlers::new().request(ECHO, echo).request(TAKE, take).reply(BACK, back);
    Endpoint::open(&sm_device(), &Options::new(), handlers, [0; 4096]).expect("an endpoint")
}

#[test]
fn no_allocation_in_100_000_messages() {
    let (mut server, mut client) = (open(), open());
    let name = server.name().to_owned();
    let peer = client.map(&name, TAG_ALL).expect("a URI");
    let payload = [5; 4096];
    let mut round = |count: usize| {
        for number in 0..count {
            let (at, len) = ([ECHO, ECHO, TAKE][number % 3], [0, 30, 500, 4096][number % 4]);
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
    round(5_000);
    let before = allocations();
    round(60_000);
    assert_eq!(allocations() - before, 0, "allocations in 60,000 requests and 40,000 replies");
}
