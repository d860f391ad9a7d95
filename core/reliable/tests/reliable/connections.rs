//! Connections: made, refused, expected elsewhere, broken, closed; and groups.

use crate::memory_link::Hub;
use crate::world::{End, How, LIMIT, join, message, next, opened, outcome, two, until, waiting};
use cci_instruments::{pattern, payload};
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, ConnectError, EventKind, SendError, Status};
use cci_reliable::Link;
use cci_transport::{Connect, ConnectionState, Posted, Slot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

#[test]
fn a_request_carries_its_payload_and_its_answer() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    for len in [0, 1, 56, 1024] {
        a.connect(&b.uri, RO, LIMIT, &pattern(9, len));
        let request = next(&ends, 1, EventKind::ConnectRequest);
        assert_eq!((payload(request), request.words()[1]), (pattern(9, len), u64::from(RO as u32)));
        b.cell.with(|core, transport| transport.reject(core, request)).expect("usable").expect("rejected");
        b.give_back(request);
        let refused = next(&ends, 0, EventKind::Connect);
        assert_eq!(Status::from_u32(refused.detail()), Some(Status::ConnRefused));
        assert_eq!(refused.words(), [1, 0]);
        a.give_back(refused);
    }
}

#[test]
fn nobody_answers_and_the_connect_ends_in_time() {
    let (_, a, deaf) = two();
    a.connect(&deaf.uri, RO, Duration::from_millis(50), b"");
    let ended = next(&[&a], 0, EventKind::Connect);
    assert_eq!(Status::from_u32(ended.detail()), Some(Status::TimedOut));
    a.give_back(ended);
    let refused = a.cell.with(|core, transport| {
        let connect = Connect { uri: "nonsense", payload: b"", attribute: RO, context: 1, timeout: None };
        transport.connect(core, &connect)
    });
    assert_eq!(refused, Ok(Err(ConnectError::BadUri)));
    assert_eq!(a.cell.with(|core, _| core.connection_count()), Ok(0), "a connection was left behind");
}

/// Sleeps on an endpoint's handle, as a program does, until an event comes.
fn sleep_for(end: &End) -> &'static Slot {
    let begun = Instant::now();
    loop {
        if let Some(slot) = end.poll() {
            return slot;
        }
        assert!(begun.elapsed() < LIMIT, "no event");
        let handle = end.cell.with(|_, transport| transport.handle().try_clone_to_owned()).expect("usable");
        let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
        let told = poll(&mut [PollFd::new(&handle.expect("a descriptor"), PollFlags::IN)], Some(&limit));
        assert_eq!(told, Ok(1), "the handle stays silent");
    }
}

#[test]
fn a_connect_goes_on_once_its_host_is_found() {
    let (hub, a, b) = two();
    let ends = [&a, &b];
    a.cell
        .with(|core, transport| {
            core.set_handle_in_use();
            transport.arm(core)
        })
        .expect("usable");
    a.connect(&format!("later:{}", b.uri), RO, LIMIT, b"by name");
    assert!(a.poll().is_none() && b.poll().is_none());
    hub.find_names();
    let handle = a.cell.with(|_, transport| transport.handle().try_clone_to_owned()).expect("usable").expect("one");
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)), Ok(1), "nobody tells of the name");
    let request = next(&ends, 1, EventKind::ConnectRequest);
    assert_eq!(payload(request), b"by name");
    b.accept(request, 2);
    b.give_back(request);
    let (to_b, _) = (opened(&ends, 0, EventKind::Connect), opened(&ends, 1, EventKind::Accept));
    a.send(to_b, b"found", 3);
    assert_eq!(message(&ends, 1), b"found");
}

#[test]
fn a_host_is_asked_at_its_other_addresses_where_the_first_is_silent() {
    let (hub, a, b) = two();
    let silent = hub.link().uri().to_owned();
    a.connect(&format!("later:{silent},{}", b.uri), RO, LIMIT, b"by name");
    hub.find_names();
    let ends = [&a, &b];
    let request = next(&ends, 1, EventKind::ConnectRequest);
    b.accept(request, 2);
    b.give_back(request);
    let (to_b, _) = (opened(&ends, 0, EventKind::Connect), opened(&ends, 1, EventKind::Accept));
    a.send(to_b, b"found", 3);
    assert_eq!(message(&ends, 1), b"found");
    a.give_back(next(&ends, 0, EventKind::Send));
    // Where none answers, one event says which were asked.
    let other = hub.link().uri().to_owned();
    a.connect(&format!("later:{silent},{other}"), RO, Duration::from_millis(200), b"");
    hub.find_names();
    let slot = sleep_for(&a);
    let reason = a.cell.with(|core, _| core.reason(slot).map(str::to_owned)).expect("usable").unwrap_or_default();
    assert_eq!(Status::from_u32(slot.detail()), Some(Status::TimedOut), "{reason}");
    assert_eq!(reason, format!("the addresses of its host were asked in turn: {silent}, {other}"));
    a.give_back(slot);
    assert!(a.poll().is_none());
}

#[test]
fn a_name_that_is_not_found_ends_the_connect() {
    let hub = Hub::new();
    let a = End::open(&hub, How::default());
    let ended = |slot: &'static Slot| {
        let reason = a.cell.with(|core, _| core.reason(slot).map(str::to_owned)).expect("usable");
        let told = (Status::from_u32(slot.detail()), slot.words()[0], reason.unwrap_or_default());
        a.give_back(slot);
        told
    };
    a.connect("later:nowhere", RO, LIMIT, b"");
    hub.find_names();
    assert_eq!(ended(sleep_for(&a)), (Some(Status::ConnRefused), 1, "no host nowhere".into()));
    // By time, while nobody answers; an answer that comes later is nobody's.
    a.connect("later:silent", RO, Duration::from_millis(50), b"");
    let slot = sleep_for(&a);
    assert_eq!(hub.names(), 0, "the name is still looked up");
    let (status, _, reason) = ended(slot);
    assert!(status == Some(Status::TimedOut) && reason.contains("name"), "{status:?}: {reason}");
    hub.find_names();
    assert!(a.poll().is_none());
    assert_eq!(a.cell.with(|core, _| core.connection_count()), Ok(0), "a connection was left behind");
    // And by the end of the endpoint.
    a.connect("later:silent", RO, LIMIT, b"");
    a.close();
    assert_eq!(hub.names(), 0, "a closed endpoint waits for a name");
}

#[test]
fn a_client_is_accepted_by_the_endpoint_that_expects_it() {
    let hub = Hub::new();
    let [client, broker, worker] = std::array::from_fn(|_| End::open(&hub, How::default()));
    let ends = [&client, &broker, &worker];
    client.connect(&broker.uri, RO, LIMIT, b"work");
    let request = next(&ends, 1, EventKind::ConnectRequest);
    let expected = worker.cell.with(|core, transport| transport.expect(core, 77, 5, LIMIT));
    assert_eq!(expected, Ok(Ok(())));
    let redirected = broker.cell.with(|core, transport| transport.redirect(core, request, &worker.uri, 77));
    assert_eq!(redirected, Ok(Ok(())));
    broker.give_back(request);
    let at_worker = opened(&ends, 2, EventKind::Accept);
    let at_client = opened(&ends, 0, EventKind::Connect);
    client.send(at_client, b"to the worker", 1);
    assert_eq!(message(&ends, 2), b"to the worker");
    worker.send(at_worker, b"to the client", 1);
    assert_eq!(message(&ends, 0), b"to the client");
}

#[test]
fn a_redirect_that_names_a_host_is_refused() {
    let hub = Hub::new();
    let [client, broker] = std::array::from_fn(|_| End::open(&hub, How::default()));
    let ends = [&client, &broker];
    client.connect(&broker.uri, RO, LIMIT, b"work");
    let request = next(&ends, 1, EventKind::ConnectRequest);
    let redirected = broker.cell.with(|core, transport| transport.redirect(core, request, "later:somewhere", 77));
    assert_eq!(redirected, Ok(Ok(())));
    broker.give_back(request);
    assert_eq!(outcome(&ends, 0, EventKind::Connect).0, Some(Status::ConnRefused));
    assert_eq!(hub.names(), 0, "a peer has this endpoint look a name up");
}

#[test]
fn an_expected_client_that_does_not_come_is_reported() {
    let hub = Hub::new();
    let worker = End::open(&hub, How::default());
    let expect = |token| {
        let limit = Duration::from_millis(20);
        worker.cell.with(|core, transport| transport.expect(core, token, 5, limit)).expect("usable").expect("room");
    };
    expect(1);
    assert_eq!(outcome(&[&worker], 0, EventKind::Accept).0, Some(Status::TimedOut));
    expect(2);
    worker.cell.with(|core, transport| transport.forget_expected(core, 2)).expect("usable");
    expect(3);
    assert_eq!(outcome(&[&worker], 0, EventKind::Accept).0, Some(Status::TimedOut));
    assert_eq!(waiting(&worker, EventKind::Accept), 0, "what was forgotten is reported");
}

#[test]
fn a_disconnect_delivers_what_was_acknowledged_and_tells_the_peer_once() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    let (to_b, to_a) = join(&ends, RO);
    b.cell
        .with(|core, transport| {
            to_a.keepalive.store(3_600_000_000, Ordering::Relaxed);
            transport.options_changed(core, to_a);
        })
        .expect("usable");
    for number in 0..20 {
        a.send(to_b, &pattern(number, 100), number);
        outcome(&ends, 0, EventKind::Send);
    }
    a.disconnect(to_b);
    assert_eq!(to_b.state(), ConnectionState::Free);
    for number in 0..20 {
        assert_eq!(message(&ends, 1), pattern(number, 100));
    }
    b.give_back(next(&ends, 1, EventKind::Disconnect));
    b.give_back(next(&ends, 1, EventKind::KeepaliveTimedOut));
    assert_eq!(to_a.state(), ConnectionState::Broken);
    b.disconnect(to_a);
    join(&ends, RO);
    assert_eq!(waiting(&b, EventKind::Disconnect) + waiting(&b, EventKind::KeepaliveTimedOut), 0, "told twice");
}

#[test]
fn a_connection_costs_few_frames_from_its_making_to_its_end() {
    let (hub, a, b) = two();
    let ends = [&a, &b];
    for _ in 0..100 {
        let (to_b, to_a) = join(&ends, RO);
        a.post(to_b, b"hello", Posted::Silent(0)).expect("a send");
        assert_eq!(message(&ends, 1), b"hello");
        a.disconnect(to_b);
        b.disconnect(to_a);
    }
    // Ten, if nothing is sent again for want of time: request, cookie, request, answer,
    // confirmation, message, acknowledgement, and farewells.
    let (frames, _) = hub.sent();
    assert!(frames <= 20 * 100, "{frames} frames for 100 connections");
}

#[test]
fn what_is_open_at_a_disconnect_ends_once() {
    let (hub, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    hub.set_full(true);
    for number in 0..100 {
        a.send(to_b, &pattern(number, 100), number);
    }
    a.post(to_b, b"silent", Posted::Silent(100)).expect("a send");
    a.disconnect(to_b);
    for number in 0..101 {
        assert_eq!(outcome(&[&a], 0, EventKind::Send), (Some(Status::Disconnected), number));
    }
    hub.set_full(false);
    until(&[&a, &b], || waiting(&b, EventKind::Disconnect) == 1);
    assert_eq!(waiting(&a, EventKind::Send), 0, "more ends than operations");
}

#[test]
fn a_silent_peer_is_reported_once_until_asked_for_again() {
    let (_, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    for _ in 0..2 {
        a.cell
            .with(|core, transport| {
                to_b.keepalive.store(30_000, Ordering::Relaxed);
                transport.options_changed(core, to_b);
            })
            .expect("usable");
        a.give_back(next(&[&a], 0, EventKind::KeepaliveTimedOut));
        assert_eq!(to_b.keepalive.load(Ordering::Relaxed), 0);
    }
    a.send(to_b, b"still there", 1);
    assert_eq!(message(&[&a, &b], 1), b"still there");
    assert_eq!(waiting(&a, EventKind::KeepaliveTimedOut), 0, "told twice");
}

#[test]
fn setting_the_same_keepalive_again_does_not_postpone_it() {
    let (_, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    let begun = Instant::now();
    // The peer's program makes no calls.
    while a.poll().is_none() {
        assert!(begun.elapsed() < LIMIT, "the time begins anew with each call");
        a.cell
            .with(|core, transport| {
                to_b.keepalive.store(30_000, Ordering::Relaxed);
                transport.options_changed(core, to_b);
            })
            .expect("usable");
    }
}

#[test]
fn a_send_times_out_and_breaks_its_connection_only() {
    let hub = Hub::new();
    let [a, b, deaf] = std::array::from_fn(|_| End::open(&hub, How::default()));
    let (to_deaf, _) = join(&[&a, &deaf], RO);
    let (to_b, _) = join(&[&a, &b], RO);
    a.cell
        .with(|core, transport| {
            to_deaf.send_timeout.store(50_000, Ordering::Relaxed);
            transport.options_changed(core, to_deaf);
        })
        .expect("usable");
    a.send(to_deaf, b"hello", 9);
    assert_eq!(outcome(&[&a, &b], 0, EventKind::Send), (Some(Status::TimedOut), 9));
    assert_eq!((to_deaf.state(), to_b.state()), (ConnectionState::Broken, ConnectionState::Open));
    a.send(to_b, b"unharmed", 1);
    assert_eq!(message(&[&a, &b], 1), b"unharmed");
}

#[test]
fn a_closed_endpoint_ends_its_connections_after_its_last_message() {
    let hub = Hub::new();
    let b = End::open(&hub, How::default());
    let a = End::open(&hub, How::default());
    let (to_b, to_a) = join(&[&a, &b], RO);
    a.send(to_b, b"the last", 1);
    assert_eq!(message(&[&a, &b], 1), b"the last");
    outcome(&[&a, &b], 0, EventKind::Send);
    a.close();
    b.give_back(next(&[&b], 0, EventKind::Disconnect));
    assert_eq!(to_a.state(), ConnectionState::Broken);
}

#[test]
fn a_group_has_many_senders_and_receivers() {
    let hub = Hub::new();
    let [first, second, third] = std::array::from_fn(|_| End::open(&hub, How::default()));
    let ends = [&first, &second, &third];
    let enter = |at: usize, attribute| {
        ends[at].connect("mem://group/news", attribute, LIMIT, b"");
        opened(&ends, at, EventKind::Connect)
    };
    let senders = [enter(0, Attribute::MulticastSend), enter(1, Attribute::MulticastSend)];
    let receivers = [enter(1, Attribute::MulticastReceive), enter(2, Attribute::MulticastReceive)];
    let largest = senders[0].max_send_size.load(Ordering::Relaxed) as usize;
    assert_eq!(largest, 1200 - 32, "one frame on every path");
    for (at, sender) in senders.iter().enumerate() {
        for len in [0, 8, 57, largest] {
            ends[at].send(sender, &pattern(len as u64, len), 4);
            assert_eq!(outcome(&ends, at, EventKind::Send), (Some(Status::Success), 4));
            for to in [1, 2] {
                assert_eq!(message(&ends, to), pattern(len as u64, len));
            }
        }
    }
    assert_eq!(second.post(receivers[0], b"x", Posted::Event(1)), Err(SendError::Direction));
    second.disconnect(receivers[0]);
    first.send(senders[0], b"after it", 1);
    assert_eq!(message(&ends, 2), b"after it");
    (0..100).for_each(|_| {
        let _ = second.poll();
    });
    assert_eq!(waiting(&second, EventKind::Recv), 0, "heard after leaving");
    let refused = first.cell.with(|core, transport| {
        let attribute = Attribute::MulticastReceive;
        transport.connect(core, &Connect { uri: &second.uri, payload: b"", attribute, context: 1, timeout: None })
    });
    assert_eq!(refused, Ok(Err(ConnectError::BadUri)));
}

#[test]
fn bogus_frames_change_nothing() {
    let (hub, a, b) = two();
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    for seed in 0..2000u64 {
        let mut frame = pattern(seed, usize::try_from(seed % 300).expect("small"));
        if let Some(first) = frame.first_mut() {
            *first = 0xC0 | cci_proto::wire::VERSION;
        }
        hub.inject(&b.uri, &frame);
    }
    a.send(to_b, b"unharmed", 1);
    assert_eq!(message(&ends, 1), b"unharmed");
    assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), 1));
    assert_eq!(b.cell.with(|core, _| core.connection_count()), Ok(1));
}
