//! Roles of many endpoints, or many sockets, of one process.

use crate::{hear, say};
use cci::{Attribute, Connect, Device, Endpoint, EventKind, Notify};
use cci_conformance::{LIMIT, drain, open};
use cci_proto::wire::{self, Header, Kind, Offer, Retry};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::UdpSocket;

/// So many endpoints, each with so many connects at once; all succeed.
fn connected(device: &Device, uri: &str, endpoints: u64, each: u64) -> Vec<(Endpoint, Vec<cci::Connection>)> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("a limit that is allowed");
    let mut ends: Vec<_> = (0..endpoints).map(|_| (open(device), Vec::new())).collect();
    for (number, (end, _)) in (0..).zip(&ends) {
        let payload = u64::to_ne_bytes(number);
        let connect = Connect::to(uri).payload(&payload).timeout(LIMIT);
        (0..each).for_each(|_| end.connect(&connect).expect("a connect"));
    }
    while ends.iter().any(|(_, open)| open.len() < each as usize) {
        for (end, open) in &mut ends {
            if let Some(event) = end.get_event().expect("usable") {
                assert_eq!((event.kind(), event.outcome()), (EventKind::Connect, Ok(())));
                open.extend(event.connection());
            }
        }
    }
    ends
}

/// Connects by many endpoints at once.
pub(crate) fn connect_many(device: &Device, uri: &str, endpoints: u64, each: u64) {
    let ends = connected(device, uri, endpoints, each);
    say("connected");
    hear();
    drop(ends);
}

/// Sends by many endpoints without pause, whenever there is room, its number in each message.
pub(crate) fn flood_by_many(device: &Device, uri: &str, endpoints: u64) -> ! {
    let ends = connected(device, uri, endpoints, 1);
    say("connected");
    loop {
        for (number, (end, open)) in (0_u64..).zip(&ends) {
            // Each in its turn, so that what finds no room is the receiver's choice.
            let _ = end.send(open[0], &number.to_ne_bytes(), Notify::OnFailure(0));
            drain(end);
        }
    }
}

/// Asks for connections from two hundred ports, three times from each, by frames of its own, and
/// confirms none.
pub(crate) fn strangers(uri: &str) {
    let place = uri.strip_prefix("sock://").expect("a URI of sock");
    for number in 0..200 {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(place).expect("an address");
        socket.set_read_timeout(Some(LIMIT)).expect("a socket");
        for own in 1..=3 {
            let own = 1000 * number + own;
            socket.send(&connect(own, 0, 0)).expect("sent");
            let retry = cookie(&socket);
            socket.send(&connect(own, retry.cookie, retry.cookie_time)).expect("sent");
        }
        // The port stays taken as long as this process lives.
        std::mem::forget(socket);
    }
    say("asked");
    hear();
}

/// A CONNECT of the client `own`.
fn connect(own: u64, cookie: u64, cookie_time: u32) -> Vec<u8> {
    let offer = Offer {
        features: 0,
        first_seq: 1,
        attribute: Attribute::ReliableOrdered,
        mtu: 1400,
        max_send_size: 8192,
        recv_buffer: 1 << 20,
        credit: 64,
        host: 0,
    };
    let header = Header { kind: Kind::Connect, to: 0, from: own, number: 1, time: 0 };
    let mut frame = vec![0; 2048];
    let len = wire::Connect { header, offer, token: 0, cookie, cookie_time, payload: b"", share: wire::Share::None }
        .emit(&mut frame);
    frame.truncate(len);
    wire::seal(&mut frame, 0, |check| check);
    frame
}

/// The next cookie that comes.
fn cookie(socket: &UdpSocket) -> Retry {
    let mut frame = [0; 2048];
    loop {
        let len = socket.recv(&mut frame).expect("the endpoint answers");
        if let Some(retry) = Retry::parse(&frame[..len]) {
            return retry;
        }
    }
}
