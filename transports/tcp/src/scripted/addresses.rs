//! A host that has several addresses.

use crate::endpoint::PendingName;
use crate::fixture::{End, LIMIT, Script};
use crate::setup::dial::DIALING;
use cci_proto::{Attribute, EventKind, Status};
use cci_transport::{Slot, monotonic};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

impl End {
    /// A connect whose host has these addresses.
    fn connect_to(&mut self, addresses: &[SocketAddr], timeout: Duration) {
        let now = monotonic();
        self.tcp.shared.now = now;
        let name = PendingName {
            number: 1,
            slot: self.core.take_send().expect("a slot"),
            attribute: Attribute::ReliableOrdered,
            payload: b"request".as_slice().into(),
            context: 3,
            deadline: now + timeout,
        };
        self.tcp.shared.open_operations += 1;
        self.tcp.go_on(&mut self.core, name, Ok(addresses.to_vec()));
    }

    /// Its outcome is this failure, and why.
    fn fails(&mut self, status: Status) -> String {
        let slot = self.next(EventKind::Connect);
        assert_eq!(slot.detail(), status as u32);
        let reason = self.core.reason(slot).unwrap_or_default().to_owned();
        assert!(slot.give_back());
        assert_eq!(self.tcp.shared.open_operations, 0, "it has ended");
        reason
    }
}

/// Both ends until the server has a request.
fn request(client: &mut End, server: &mut End) -> &'static Slot {
    let mut found = None;
    client.until("the request", |_| {
        found = server.call();
        found.is_some()
    });
    let slot = found.expect("just seen");
    assert_eq!(slot.kind(), EventKind::ConnectRequest as u32);
    slot
}

/// Accepts, and waits until the client is connected; no second request has come.
fn is_connected(client: &mut End, server: &mut End) {
    let slot = request(client, server);
    server.tcp.accept_request(&mut server.core, slot, 0).expect("the request is answered");
    assert!(slot.give_back());
    server.ends(EventKind::Accept, Status::Success);
    client.ends(EventKind::Connect, Status::Success);
    server.calls(100);
}

/// An address of this host at which nobody listens: the port was just free.
fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.2:0").and_then(|listener| listener.local_addr()).expect("a port")
}

/// Fills the backlog of a listener: its address answers nothing any more, as nobody accepts.
fn fill(listener: &TcpListener, address: SocketAddr) -> Vec<TcpStream> {
    rustix::net::listen(listener, 0).expect("a backlog of one");
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    std::iter::from_fn(connect).collect()
}

/// An address that answers nothing.
fn silent() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.3:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let fill = fill(&listener, address);
    (address, listener, fill)
}

#[test]
fn an_address_where_nobody_listens_is_left_for_the_next() {
    let (mut client, mut server) = (End::new(), End::new());
    client.connect_to(&[closed(), server.address()], LIMIT);
    is_connected(&mut client, &mut server);
}

#[test]
fn an_address_that_does_not_answer_is_left_for_the_next() {
    let (mut client, mut server) = (End::new(), End::new());
    let (silent, _listener, _fill) = silent();
    let begun = monotonic();
    client.connect_to(&[silent, server.address()], LIMIT);
    is_connected(&mut client, &mut server);
    assert!(monotonic() - begun >= Duration::from_millis(250), "the first address has had its turn");
    client.until("the lane to the first address ends", |client| client.tcp.lanes.iter().flatten().count() == 1);
}

#[test]
fn a_program_that_does_not_speak_is_left_for_the_next() {
    let (mut client, mut server) = (End::new(), End::new());
    let stranger = TcpListener::bind("127.0.0.2:0").expect("a port");
    let address = stranger.local_addr().expect("an address");
    let speaks = std::thread::spawn(move || {
        let (mut stream, _) = stranger.accept().expect("the client");
        std::io::Write::write_all(&mut stream, &[b'x'; 256]).expect("the client reads");
        stream
    });
    client.connect_to(&[address, server.address()], LIMIT);
    is_connected(&mut client, &mut server);
    drop(speaks.join().expect("the stranger has spoken"));
}

#[test]
fn an_endpoint_that_was_asked_is_not_left() {
    let (mut client, mut first, mut second) = (End::new(), End::new(), End::new());
    client.connect_to(&[first.address(), second.address()], LIMIT);
    let slot = request(&mut client, &mut first);
    let begun = monotonic();
    while monotonic() - begun < Duration::from_millis(600) {
        client.calls(1);
        second.calls(1);
    }
    first.tcp.reject_request(&mut first.core, slot);
    assert!(slot.give_back());
    assert!(client.fails(Status::ConnRefused).contains("has rejected the request"));
    second.calls(100);
}

#[test]
fn where_no_address_answers_each_is_named() {
    let mut client = End::new();
    let (first, second) = (closed(), closed());
    client.connect_to(&[first, second], LIMIT);
    let reason = client.fails(Status::ConnRefused);
    for address in [first, second] {
        assert!(reason.contains(&format!("nobody listens at tcp://{address}")), "{reason}");
    }
    let (silent, _listener, _fill) = silent();
    client.connect_to(&[first, silent], Duration::from_millis(400));
    let reason = client.fails(Status::TimedOut);
    assert!(reason.contains(&format!("nobody listens at tcp://{first}")), "{reason}");
    assert!(reason.contains(&format!("tcp://{silent} does not answer")), "{reason}");
}

/// The peer closes the first stream and answers no further one: the lane has paused and dials
/// again, and the connect ends at its deadline all the same.
#[test]
fn a_connect_ends_in_time_though_its_lane_is_dialed_again() {
    let mut client = End::new();
    let listener = TcpListener::bind("127.0.0.2:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let begun = monotonic();
    client.connect(&format!("tcp://{address}"), Duration::from_secs(1));
    let first = Script::answer(&listener, &mut client);
    let _fill = fill(&listener, address);
    drop(first);
    client.fails(Status::TimedOut);
    assert!(monotonic() - begun >= Duration::from_secs(1), "not before its deadline");
}

/// As many lanes dial as may, in vain: connects that wait for their turn end at their deadlines.
#[test]
fn connects_that_wait_for_their_turn_to_dial_end_in_time() {
    let mut client = End::new();
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let _fill = fill(&listener, SocketAddr::from(([127, 0, 0, 1], port)));
    let to = |number: u8| format!("tcp://127.0.1.{number}:{port}");
    (1..=DIALING).for_each(|number| client.connect(&to(u8::try_from(number).expect("few")), 2 * LIMIT));
    for (number, millis) in [(201, 200), (202, 400), (203, 600)] {
        client.connect(&to(number), Duration::from_millis(millis));
    }
    for _ in 0..3 {
        let slot = client.next(EventKind::Connect);
        assert_eq!(slot.detail(), Status::TimedOut as u32);
        assert!(slot.give_back());
    }
}
