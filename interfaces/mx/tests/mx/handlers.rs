//! The unexpected handler.

use crate::world::{bytes, close, connect, device, end, pattern, post, refused, some_with, two, until, zeroes};
use cci_mx::{Answer, Code, Endpoint, Error, Match, Options, Unexpected, buffer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

type Seen = Arc<Mutex<Vec<(u64, u32, Option<Vec<u8>>)>>>;

/// A handler that notes what it sees, and takes what has bit 63.
fn noting(seen: &Seen) -> impl Fn(&Unexpected<'_>) -> Answer + Send + Sync + 'static {
    let seen = Arc::clone(seen);
    move |message| {
        let data = message.data.map(<[u8]>::to_vec);
        seen.lock().expect("no panic").push((message.bits, message.length, data));
        if message.bits >> 63 == 1 { Answer::Finished } else { Answer::Continue }
    }
}

#[test]
fn the_handler_sees_what_no_receive_matches_and_may_take_it() {
    for transport in ["sm", "sim", "sock"] {
        let sides = two(transport);
        let to = connect(&sides, 0, 1);
        let seen = Seen::default();
        sides[1].on_unexpected(Some(noting(&seen))).expect("usable");
        let (expected, _) = post(&sides[1], 8, 5);
        let taken = 1 << 63;
        let mut sends = Vec::new();
        for (size, bits) in [(8, 5), (8, 6), (3_000, 6), (100_000, 6), (8, taken), (3_000, taken), (100_000, taken)] {
            sends.push(sides[0].send_sync(buffer(pattern(size, 3)), to, bits, 0).expect("room"));
        }
        end(&sides, 1, expected);
        for send in sends.drain(4..) {
            assert_eq!(end(&sides, 0, send).code, Code::Success, "the handler has taken it");
        }
        assert_eq!(sides[1].pending().1, 3);
        for size in [8, 3_000, 100_000] {
            let (receive, memory) = post(&sides[1], size, 6);
            assert_eq!(end(&sides, 1, receive).code, Code::Success);
            assert!(bytes(&memory) == pattern(size, 3));
        }
        sends.into_iter().for_each(|send| assert_eq!(end(&sides, 0, send).code, Code::Success));
        let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
        let bits: Vec<_> = seen.iter().map(|(bits, length, _)| (*bits, *length)).collect();
        assert_eq!(bits, [(6, 8), (6, 3_000), (6, 100_000), (taken, 8), (taken, 3_000), (taken, 100_000)]);
        for (_, length, data) in seen {
            assert_eq!(data, (length < 20_000).then(|| pattern(length as usize, 3)), "{transport}");
        }
        assert_eq!((sides[1].counts().handled, sides[1].pending()), (3, (0, 0)));
        sides[1].on_unexpected::<fn(&Unexpected<'_>) -> Answer>(None).expect("usable");
        let send = sides[0].send_sync(zeroes(8), to, taken, 0).expect("room");
        let (receive, _) = post(&sides[1], 8, taken);
        assert_eq!((end(&sides, 1, receive).code, end(&sides, 0, send).code), (Code::Success, Code::Success));
        close(sides);
    }
}

/// It posts the receive for the message that it is shown, sends, and makes no progress itself.
#[test]
fn a_handler_may_post_and_send_and_not_close() {
    let sides = two("sm");
    let to = [connect(&sides, 1, 0), connect(&sides, 0, 1)];
    let sides: Vec<_> = sides.into_iter().map(Arc::new).collect();
    let (own, calls): (Weak<Endpoint>, _) = (Arc::downgrade(&sides[1]), Arc::new(AtomicUsize::new(0)));
    let (memory, count) = (zeroes(100_000), Arc::clone(&calls));
    let place = memory.clone();
    let handler = move |message: &Unexpected<'_>| {
        let endpoint = own.upgrade().expect("it lives");
        assert_eq!(endpoint.close(), Err(Error::CloseInHandler));
        assert_eq!(endpoint.probe(Match::ANY, None), Ok(None), "no progress, and no wait");
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            endpoint.forget(endpoint.send(buffer(b"seen".to_vec()), message.source, 9, 0).expect("room")).expect("one");
            endpoint.receive(place.clone(), Match::exact(message.bits), 4).expect("room");
        }
        Answer::Continue
    };
    sides[1].on_unexpected(Some(handler)).expect("usable");
    let send = sides[0].send(buffer(pattern(100_000, 1)), to[1], 8, 0).expect("room");
    let (answer, said) = (zeroes(4), Match::exact(9));
    let answered = sides[0].receive(answer.clone(), said, 0).expect("room");
    let other = sides[0].send(zeroes(8), to[1], 7, 0).expect("room");
    let received = loop {
        sides[0].progress().expect("usable");
        if let Some(status) = sides[1].test_any(Match::exact(8)).expect("usable") {
            break status;
        }
    };
    assert_eq!((received.context, received.copied), (4, 100_000));
    assert!(bytes(&memory) == pattern(100_000, 1));
    for request in [send, answered, other] {
        while sides[0].test(request).expect("a request").is_none() {
            sides[1].progress().expect("usable");
        }
    }
    while sides[1].pending().1 == 0 {
        sides[1].progress().expect("usable");
    }
    assert_eq!((bytes(&answer), calls.load(Ordering::Relaxed)), (b"seen".to_vec(), 2));
    assert_eq!(sides[1].close(), Ok(()));
    assert_eq!(refused(sides[1].progress()), Error::BadEndpoint);
}

#[test]
fn a_handler_sees_what_an_endpoint_sends_to_itself() {
    let sides = some_with(&device("sm"), 1, &Options::new());
    let own = connect(&sides, 0, 0);
    let seen = Seen::default();
    sides[0].on_unexpected(Some(noting(&seen))).expect("usable");
    let taken = sides[0].send_sync(buffer(b"12345".to_vec()), own, 1 << 63, 0).expect("room");
    assert_eq!(end(&sides, 0, taken).code, Code::Success);
    let kept = sides[0].send(buffer(b"123".to_vec()), own, 1, 0).expect("room");
    assert_eq!(end(&sides, 0, kept).code, Code::Success);
    let lengths: Vec<_> =
        seen.lock().expect("no panic").iter().map(|(_, length, data)| (*length, data.is_some())).collect();
    assert_eq!(lengths, [(5, true), (3, true)]);
    assert_eq!(sides[0].pending(), (0, 1));
}

/// A wait has found its request, and runs the handler before it consumes it. The handler consumes
/// it instead, and its place is used again.
#[test]
fn what_a_handler_consumes_is_not_found_again_in_its_place() {
    let sides = two("sm");
    let to = [connect(&sides, 1, 0), connect(&sides, 0, 1)];
    let sides: Vec<_> = sides.into_iter().map(Arc::new).collect();
    let (own, back) = (Arc::downgrade(&sides[1]), to[0]);
    let sent = Arc::new(Mutex::new(None));
    let place = Arc::clone(&sent);
    let handler = move |message: &Unexpected<'_>| {
        let endpoint = own.upgrade().expect("it lives");
        if message.bits == 9 {
            // What it sends to itself is handled when the wait has found its request.
            endpoint.forget(endpoint.send(zeroes(8), endpoint.address(), 8, 0).expect("room")).expect("a request");
        } else {
            let received = endpoint.test_any(Match::exact(1)).expect("usable").expect("it has ended");
            assert_eq!((received.code, received.bits), (Code::Success, 1));
            *place.lock().expect("no panic") = Some(endpoint.send(zeroes(8), back, 7, 0).expect("room"));
        }
        Answer::Finished
    };
    sides[1].on_unexpected(Some(handler)).expect("usable");
    let (receive, _) = post(&sides[1], 8, 1);
    for bits in [9, 1] {
        sides[0].forget(sides[0].send(zeroes(8), to[1], bits, 0).expect("room")).expect("a request");
    }
    assert_eq!(sides[1].wait(receive, Some(Duration::from_secs(5))), Err(Error::BadRequest), "it is consumed");
    let send = sent.lock().expect("no panic").take().expect("the handler has sent");
    assert_eq!(sides[1].test(send).expect("a request").map(|status| status.bits), Some(7));
}

#[test]
fn a_handler_that_panics_leaves_the_endpoint_usable() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    sides[1].on_unexpected(Some(|_: &Unexpected<'_>| -> Answer { panic!("a handler's own fault") })).expect("usable");
    sides[0].send(zeroes(8), to, 1, 0).expect("room");
    until(&sides[..1], "the panic", || {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sides[1].progress()));
        caught.is_err().then_some(())
    });
    sides[1].on_unexpected::<fn(&Unexpected<'_>) -> Answer>(None).expect("usable");
    let (receive, _) = post(&sides[1], 8, 2);
    sides[0].send(zeroes(8), to, 2, 0).expect("room");
    assert_eq!(end(&sides, 1, receive).code, Code::Success);
    assert_eq!(sides[1].probe(Match::ANY, NOW), Ok(None), "that message is gone");
}
