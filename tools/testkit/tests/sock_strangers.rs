//! What a local process without a connection may take of a `sock` endpoint: raw frames over the loop-back interface.

#![forbid(unsafe_code)]

use cci::{Attribute, EventKind};
use cci_proto::wire::{self, Connect, Header, Kind, Offer, Retry};
use cci_testkit::{World, device_of, open, open_with};
use std::net::UdpSocket;

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
    let len = Connect { header, offer, token: 0, cookie, cookie_time, payload: b"" }.emit(&mut frame);
    frame.truncate(len);
    wire::seal(&mut frame, 0, |check| check);
    frame
}

/// The next cookie that has come.
fn cookie(socket: &UdpSocket) -> Option<Retry> {
    let mut frame = [0; 2048];
    let len = socket.recv(&mut frame).ok()?;
    Retry::parse(&frame[..len])
}

#[test]
fn requests_of_two_hundred_local_ports_leave_peers_their_slots() {
    let device = device_of("sock", &[("ip", "127.0.0.1")]);
    let server = open_with(&device, |options| options.recv_buffers = 256);
    let friend = open(&device);
    let world = World::new([&friend, &server]);
    let (to_server, _) = world.connect(0, 1, Attribute::ReliableOrdered);
    let place = server.uri().strip_prefix("sock://").expect("a URI of sock");
    let sockets: Vec<UdpSocket> = (0..200)
        .map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
            socket.connect(place).expect("an address");
            socket.set_nonblocking(true).expect("a socket");
            socket
        })
        .collect();
    for (number, socket) in sockets.iter().enumerate() {
        for own in 1..=3 {
            let own = 1000 * number as u64 + own;
            socket.send(&connect(own, 0, 0)).expect("sent");
            let mut retry = None;
            world.until("a cookie", || {
                retry = cookie(socket);
                retry.is_some()
            });
            let retry = retry.expect("just seen");
            socket.send(&connect(own, retry.cookie, retry.cookie_time)).expect("sent");
            (0..3).for_each(|_| world.step());
        }
    }
    let asked = world.waiting(1, EventKind::ConnectRequest);
    assert!((1..=64).contains(&asked), "{asked} requests have slots, a quarter of 256 at most");
    // All of them unanswered, and every message held.
    for number in 0..150 {
        friend.send(to_server, b"through", number).expect("a send");
        world.until("a message", || world.waiting(1, EventKind::Recv) as u64 > number);
    }
}
