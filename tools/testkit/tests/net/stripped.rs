//! Somebody between a client and a server who takes the offer to seal out of what passes, as
//! whoever wants to read a connection does.

use crate::sealed::Path;
use cci::{Connect, Endpoint, EventKind, Failure};
use cci_conformance::namespace::Net;
use cci_conformance::{World, device_of, open};
use cci_proto::wire::{Connect as Frame, Offer, Share, features, seal};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a client asks that gets no answer which it may believe.
const SHORT: Duration = Duration::from_secs(1);

/// A frame as somebody between sends it on: a CONNECT without the offer to seal, and others as they
/// came.
fn stripped(frame: &[u8]) -> Option<Vec<u8>> {
    let connect = Frame::parse(frame)?;
    let offer = Offer { features: connect.offer.features & !features::SEALED, ..connect.offer };
    // What is in the share he cannot read.
    let plain = Frame { offer, share: Share::None, ..connect };
    let mut changed = vec![0; frame.len()];
    let len = plain.emit(&mut changed);
    changed.truncate(len);
    seal(&mut changed, 0, |check| check);
    (connect.offer.features & features::SEALED != 0).then_some(changed)
}

/// Passes datagrams between whoever asks here and the server, until `ended`; how many were changed.
fn relay(socket: &UdpSocket, server: SocketAddr, strips: bool, ended: &AtomicBool) -> usize {
    let (mut client, mut changed, mut datagram) = (None, 0, vec![0; 65_536]);
    while !ended.load(Ordering::Relaxed) {
        let (len, from) = match socket.recv_from(&mut datagram) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) => panic!("the relay: {error}"),
        };
        let is_answer = from == server;
        if !is_answer {
            client = Some(from);
        }
        let Some(to) = (if is_answer { client } else { Some(server) }) else { continue };
        let other = stripped(&datagram[..len]).filter(|_| strips);
        changed += usize::from(other.is_some());
        // What is lost is sent again.
        let _ = socket.send_to(other.as_deref().unwrap_or(&datagram[..len]), to);
    }
    changed
}

fn endpoint(host: &Net, security: &str) -> Endpoint {
    let secret = "a".repeat(64);
    host.enter(|| open(&device_of("sock", &[("interface", "v0"), ("secret", &secret), ("security", security)])))
}

/// Connects by a relay between: what protects the connection, or why there is none; and how many
/// frames were changed on the way, and how many requests the server's program has seen.
fn connect(path: &Path, security: &str, strips: bool) -> (Result<String, Failure>, usize, usize) {
    let [client, server] = path.hosts.each_ref().map(|host| endpoint(host, security));
    let address = server.uri().strip_prefix("sock://").and_then(|rest| rest.parse().ok()).expect("an address");
    let socket = path.between.enter(|| UdpSocket::bind("10.0.1.254:0").expect("an address of the router"));
    socket.set_read_timeout(Some(Duration::from_millis(10))).expect("a socket");
    let uri = format!("sock://{}", socket.local_addr().expect("bound"));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let relay = scope.spawn(|| relay(&socket, address, strips, &ended));
        let world = World::new([&client, &server]);
        client.connect(&Connect::to(&uri).payload(b"who I am").timeout(SHORT)).expect("a URI");
        let (mut requests, mut connected) = (0, None);
        world.until("an outcome", || {
            while world.waiting(1, EventKind::ConnectRequest) > 0 {
                requests += 1;
                world.next(1, EventKind::ConnectRequest).into_request().expect("one").accept(0).expect("room");
            }
            if world.waiting(0, EventKind::Connect) > 0 {
                connected = Some(world.next(0, EventKind::Connect));
            }
            connected.is_some()
        });
        let event = connected.expect("just seen");
        let outcome = event.outcome().map(|()| client.report(event.connection().expect("open")).expect("open"));
        ended.store(true, Ordering::Relaxed);
        (outcome.map(|report| report.protection), relay.join().expect("no panic"), requests)
    })
}

/// A handshake from which the offer was taken opens nothing, and shows the server's program
/// nothing.
pub(crate) fn handshake() {
    let path = Path::new();
    let (outcome, changed, requests) = connect(&path, "psk", true);
    assert_eq!((outcome, requests), (Err(Failure::TimedOut), 0));
    assert!(changed > 1, "the client asked more than once, and {changed} frames were changed");
    // Somebody who changes nothing is in nobody's way.
    let (outcome, changed, requests) = connect(&path, "psk", false);
    assert!(outcome.as_ref().is_ok_and(|by| by.starts_with("sealed by AES-256-GCM")), "{outcome:?}");
    assert_eq!((changed, requests), (0, 1));
    // And who would rather have a connection than a sealed one gets one in clear.
    let (outcome, changed, requests) = connect(&path, "prefer", true);
    assert!(outcome.as_ref().is_ok_and(|by| by.starts_with("plain, since")), "{outcome:?}");
    assert!(changed > 0 && requests == 1, "{changed} frames, {requests} requests");
}
