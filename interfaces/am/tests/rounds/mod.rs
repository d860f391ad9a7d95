//! Rounds of requests and replies between two endpoints of one thread.

use cci_am::{Endpoint, Handlers, Mapping, Peer, Reply, Request};

const ECHO: u8 = 1;
const BACK: u8 = 2;
const TAKE: u8 = 3;

fn echo<const LONGEST: usize>(bytes: &mut [u8; LONGEST], request: Request<'_>) {
    let len = request.payload().copy_to(0, bytes);
    let arguments = request.arguments();
    request.reply_medium(BACK, arguments, &bytes[..len]).expect("what came can go back");
}

fn back<const LONGEST: usize>(bytes: &mut [u8; LONGEST], reply: Reply<'_>) {
    reply.payload().copy_to(0, bytes);
}

fn take<const LONGEST: usize>(bytes: &mut [u8; LONGEST], request: Request<'_>) {
    request.payload().copy_to(0, bytes);
}

/// The handlers of both endpoints.
pub(crate) fn handlers<const LONGEST: usize>() -> Handlers<[u8; LONGEST]> {
    Handlers::new().request(ECHO, echo).request(TAKE, take).reply(BACK, back)
}

/// So many requests of each length. Two of three have a reply.
pub(crate) fn round<const LONGEST: usize, M: Mapping>(
    server: &mut Endpoint<[u8; LONGEST], M>,
    client: &mut Endpoint<[u8; LONGEST], M>,
    peer: Peer,
    count: usize,
) {
    let payload = [5; LONGEST];
    let mut poll = |client: &mut Endpoint<[u8; LONGEST], M>| {
        server.poll().expect("usable");
        client.poll().expect("usable");
    };
    for number in 0..count {
        let (at, len) = ([ECHO, ECHO, TAKE][number % 3], [0, 30, 500, LONGEST][number % 4]);
        while client.now().request_medium(peer, at, &[1, 2, 3], &payload[..len]).is_err() {
            poll(client);
        }
        while number % 16 == 0 && client.outstanding(peer) > 0 {
            poll(client);
        }
    }
}
