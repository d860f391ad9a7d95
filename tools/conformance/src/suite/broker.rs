//! A broker: one endpoint takes the requests, others serve them.

use crate::sys::{self, RawEvent};
use crate::world::{LIMIT, World, open};
use cci::{Attribute, Connect, Device, EventKind, Failure, RequestError};

const RO: Attribute = Attribute::ReliableOrdered;

/// A request is accepted on another endpoint of the device: client and worker talk, the broker is
/// out.
pub fn accepted_elsewhere(device: &Device) {
    let (client, broker, worker) = (open(device), open(device), open(device));
    let world = World::new([&client, &broker, &worker]);
    client.connect(&Connect::to(broker.uri()).payload(b"work").context(31).timeout(LIMIT)).expect("a connect");
    let event = world.next(1, EventKind::ConnectRequest);
    assert_eq!(event.request().expect("a request").payload(), b"work");
    event.into_request().expect("a request").accept_on(&worker, 32).expect("an accept");
    let (accepted, connected) = (world.next(2, EventKind::Accept), world.next(0, EventKind::Connect));
    assert_eq!((accepted.outcome(), accepted.context()), (Ok(()), 32));
    assert_eq!((connected.outcome(), connected.context()), (Ok(()), 31));
    let (to_worker, to_client) = (connected.connection().expect("one"), accepted.connection().expect("one"));
    assert_eq!((to_worker.context(), to_worker.attribute(), to_client.attribute()), (Some(31), Some(RO), Some(RO)));
    for number in 0..100u64 {
        client.send(to_worker, &number.to_ne_bytes(), number).expect("a send");
        assert_eq!(world.message(2), number.to_ne_bytes());
        assert_eq!(world.sent(0), number);
        worker.send(to_client, &number.to_ne_bytes(), number).expect("a send");
        assert_eq!(world.message(0), number.to_ne_bytes());
        assert_eq!(world.sent(2), number);
    }
    assert_eq!(world.waiting(1, EventKind::Recv) + world.waiting(1, EventKind::Accept), 0, "the broker is out");
}

/// Many clients are spread over several workers; the connections outlive the broker.
pub fn many_workers(device: &Device) {
    let client = open(device);
    let broker = open(device);
    let workers = [open(device), open(device), open(device)];
    let mut connections = Vec::new();
    {
        let world = World::new([&client, &broker, &workers[0], &workers[1], &workers[2]]);
        for number in 0..30u64 {
            client
                .connect(&Connect::to(broker.uri()).payload(&number.to_ne_bytes()).context(number).timeout(LIMIT))
                .expect("a connect");
        }
        for _ in 0..30 {
            let event = world.next(1, EventKind::ConnectRequest);
            let request = event.into_request().expect("a request");
            let number = u64::from_ne_bytes(request.payload().try_into().expect("8 bytes"));
            let worker = &workers[usize::try_from(number % 3).expect("small")];
            request.accept_on(worker, number).expect("an accept");
        }
        for _ in 0..30 {
            let event = world.next(0, EventKind::Connect);
            connections.push((event.context(), event.connection().expect("accepted")));
        }
        for worker in 2..5 {
            for _ in 0..10 {
                let event = world.next(worker, EventKind::Accept);
                assert_eq!(event.context() % 3, worker as u64 - 2, "accepted by another worker");
            }
        }
    }
    broker.close().expect("a close");
    let world = World::new([&client, &workers[0], &workers[1], &workers[2]]);
    for (number, connection) in connections {
        client.send(connection, &number.to_ne_bytes(), number).expect("a send");
        let worker = 1 + usize::try_from(number % 3).expect("small");
        let event = world.next(worker, EventKind::Recv);
        assert_eq!(event.connection().and_then(|connection| connection.context()), Some(number));
        assert_eq!(event.received().expect("a message").to_vec(), number.to_ne_bytes());
    }
}

/// A closed worker cannot accept: the request stays open and can be answered by another.
pub fn refused_elsewhere(device: &Device) {
    let (client, broker) = (open(device), open(device));
    let world = World::new([&client, &broker]);
    client.connect(&Connect::to(broker.uri()).context(1).timeout(LIMIT)).expect("a connect");
    let event = RawEvent::of(world.next(1, EventKind::ConnectRequest));
    let worker = open(device);
    let cell = sys::cell(&worker);
    worker.close().expect("a close");
    assert!(cci::__binding::accept_on(event.cell(), cell, 1).is_err(), "the worker is closed");
    assert_eq!(event.give_back(), Err(RequestError::NotAnswered));
    event.reject().expect("still open");
    event.give_back().expect("answered");
    assert_eq!(world.next(0, EventKind::Connect).outcome(), Err(Failure::Refused));
}
