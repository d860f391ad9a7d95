//! Which receive takes which message, and what finds finished requests.

use crate::world::{
    KEY, TRANSPORTS, bytes, close, connect, device, end, pattern, post, refused, two, two_with, until, zeroes,
};
use cci_mx::{Code, Error, Match, Options, Request, buffer};
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

/// Wildcards and full matches in the order of posting; large messages between short ones.
#[test]
fn the_first_receive_that_matches_takes_a_message() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let to = connect(&sides, 0, 1);
        let wanted = [
            Match { bits: 0x10, mask: 0xf0 },
            Match::exact(0x12),
            Match::ANY,
            Match::exact(0x12),
            Match { bits: 0x02, mask: 0x0f },
        ];
        let posted: Vec<_> =
            (0..).zip(wanted).map(|(at, wanted)| sides[1].receive(zeroes(90_000), wanted, at).expect("room")).collect();
        let bits = [0x12, 0x12, 0x12, 0x12, 0x92];
        for (at, bits) in bits.into_iter().enumerate() {
            let size = if at % 2 == 0 { 10 } else { 80_000 };
            sides[0].forget(sides[0].send(buffer(pattern(size, at)), to, bits, 0).expect("room")).expect("a request");
        }
        for (at, request) in posted.into_iter().enumerate() {
            let status = end(&sides, 1, request);
            let size = if at % 2 == 0 { 10 } else { 80_000 };
            assert_eq!((status.bits, status.length, status.context), (bits[at], size, at as u64), "{transport}");
        }
        close(sides);
    }
}

#[test]
fn a_receive_takes_the_oldest_unexpected_message_that_matches() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    for (at, bits) in [0x11, 0x21, 0x12, 0x21].into_iter().enumerate() {
        sides[0].send(buffer(vec![at as u8; 8]), to, bits, 0).expect("room");
    }
    until(&sides, "messages", || (sides[1].pending().1 == 4).then_some(()));
    for (wanted, number) in
        [(Match::exact(0x21), 1), (Match { bits: 2, mask: 0xf }, 2), (Match::ANY, 0), (Match { bits: 1, mask: 1 }, 3)]
    {
        let found = sides[1].probe(wanted, NOW).expect("usable").expect("a message");
        let memory = zeroes(8);
        let receive = sides[1].receive(memory.clone(), wanted, 0).expect("room");
        assert_eq!(sides[1].test(receive).expect("a request").map(|status| status.bits), Some(found.bits));
        assert_eq!(bytes(&memory), [number; 8]);
    }
    assert_eq!(sides[1].probe(Match::ANY, NOW), Ok(None));
}

#[test]
fn finished_requests_are_found_by_their_bits_oldest_first() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    let sends: Vec<_> = (0..6_u64).map(|at| sides[0].send(zeroes(1), to, at % 2, at).expect("room")).collect();
    assert_eq!(sides[0].peek(NOW), Ok(Some(sends[0])));
    let next = |bits| sides[0].test_any(bits).expect("usable").map(|status| status.context);
    assert_eq!([next(Match::exact(1)), next(Match::exact(1)), next(Match::ANY)], [Some(1), Some(3), Some(0)]);
    assert_eq!(sides[0].test(sends[4]).map(|status| status.map(|status| status.context)), Ok(Some(4)));
    assert_eq!(sides[0].peek(NOW), Ok(Some(sends[2])));
    assert_eq!(
        [next(Match::exact(1)), next(Match::exact(1)), next(Match::exact(0)), next(Match::ANY)],
        [Some(5), None, Some(2), None]
    );
    assert_eq!(sides[0].peek(NOW), Ok(None));
}

#[test]
fn context_ids_part_requests() {
    let options = Options::new().context_ids(4, 60);
    let sides = two_with(&device("sm"), &options);
    let to = connect(&sides, 0, 1);
    let id = |id: u64| Match { bits: id << 60, mask: 0xf << 60 };
    for wanted in [Match::ANY, Match { bits: 0, mask: !0 >> 1 }] {
        assert_eq!(refused(sides[1].receive(zeroes(1), wanted, 0)), Error::BadContextMask);
        assert_eq!(refused(sides[1].test_any(wanted)), Error::BadContextMask);
        assert_eq!(refused(sides[1].wait_any(wanted, None)), Error::BadContextMask);
        assert_eq!(refused(sides[1].probe(wanted, None)), Error::BadContextMask);
    }
    let receives: Vec<Request> =
        [1, 2, 2, 15].map(|number| sides[1].receive(zeroes(1), id(number), number).expect("room")).into();
    for number in [2, 15, 1, 2] {
        sides[0].send(zeroes(1), to, number << 60 | 7, 0).expect("room");
    }
    until(&sides, "all", || {
        receives.iter().all(|of| sides[1].peek(NOW).is_ok() && sides[1].context(*of).is_ok()).then_some(())
    });
    let any = |number| until(&sides, "one", || sides[1].test_any(id(number)).expect("usable"));
    assert_eq!([any(1), any(15), any(2), any(2)].map(|status| status.bits >> 60), [1, 15, 2, 2]);
    assert_eq!((sides[1].test_any(id(2)), sides[1].peek(NOW)), (Ok(None), Ok(None)));
    for (count, shift) in [(0, 0), (17, 0), (16, 49), (1, 64)] {
        let place = cci_mx::Place::of(
            cci::Endpoint::open(&device("sm"), &cci_mx::endpoint_options()).expect("an endpoint"),
            9,
            7,
            Box::new(cci_peers::Table::new()),
        );
        let opened = cci_mx::Endpoint::<cci::Memory>::open(place, 0, &Options::new().context_ids(count, shift));
        assert_eq!(opened.expect_err("refused").code(), Error::BadParameterValue);
    }
}

/// A cancel takes a receive back, or finds it matched; never both, however it meets the message.
#[test]
fn a_cancel_races_with_the_arrival() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    let (mut cancelled, mut matched) = (0, 0);
    for round in 0..400 {
        let size = if round % 2 == 0 { 8 } else { 40_000 };
        let (receive, memory) = post(&sides[1], size, 1);
        let send = sides[0].send(buffer(vec![7; size]), to, 1, 0).expect("room");
        (0..round % 7).for_each(|_| sides[round % 2].progress().expect("usable"));
        if sides[1].cancel(receive).expect("a request") {
            cancelled += 1;
            assert_eq!(bytes(&memory), vec![0; size], "nothing has come");
            let (again, _) = post(&sides[1], size, 1);
            assert_eq!(end(&sides, 1, again).code, Code::Success);
        } else {
            matched += 1;
            assert_eq!(end(&sides, 1, receive).code, Code::Success);
            assert_eq!(bytes(&memory), vec![7; size]);
        }
        assert_eq!(end(&sides, 0, send).code, Code::Success);
    }
    assert!(cancelled > 20 && matched > 20, "{cancelled} and {matched}");
    let send = sides[0].send_sync(zeroes(8), to, 1, 0).expect("room");
    assert_eq!(refused(sides[0].cancel(send)), Error::CancelNotSupported);
}

/// What has not left is taken back, and its partner never has it; what has left is not.
#[test]
fn a_cancel_takes_back_what_has_not_left() {
    for transport in ["sm", "sock", "tcp"] {
        let sides = two(transport);
        let to = sides[1].address();
        // There is no link yet.
        let connect = sides[0].start_connect((9, 1), KEY, 0, 0).expect("room");
        let sends = [8, 100_000].map(|len| sides[0].send(zeroes(len), to, 1, 0).expect("room"));
        let sync = sides[0].send_sync(zeroes(8), to, 1, 0).expect("room");
        let kept = sides[0].send(buffer(vec![7; 8]), to, 1, 0).expect("room");
        for request in [connect, sends[0], sends[1], sync] {
            assert_eq!(sides[0].cancel(request), Ok(true), "{transport}");
            assert_eq!(refused(sides[0].test(request)), Error::BadRequest, "it is gone");
        }
        let (receive, memory) = post(&sides[1], 8, 1);
        assert_eq!(end(&sides, 1, receive).code, Code::Success);
        assert_eq!(bytes(&memory), [7; 8], "{transport}: the first that was sent");
        assert_eq!(end(&sides, 0, kept).code, Code::Success);
        // To oneself a short one is copied at once: it has left.
        let own = sides[0].address();
        let short = sides[0].send_sync(zeroes(8), own, 5, 0).expect("room");
        let long = sides[0].send(zeroes(100_000), own, 5, 0).expect("room");
        assert_eq!((sides[0].cancel(long), refused(sides[0].cancel(short))), (Ok(true), Error::CancelNotSupported));
        let (receive, _) = post(&sides[0], 8, 5);
        assert_eq!(end(&sides, 0, receive).code, Code::Success);
        assert_eq!(end(&sides, 0, short).code, Code::Success);
        assert_eq!(sides[0].probe(Match::exact(5), NOW), Ok(None));
        let offered = sides[0].send(zeroes(100_000), to, 9, 0).expect("room");
        until(&sides, "the offer", || sides[1].probe(Match::exact(9), NOW).expect("usable"));
        assert_eq!(refused(sides[0].cancel(offered)), Error::CancelNotSupported);
        let (receive, _) = post(&sides[1], 100_000, 9);
        assert_eq!(end(&sides, 1, receive).code, Code::Success);
        assert_eq!(end(&sides, 0, offered).code, Code::Success);
        assert_eq!(sides.iter().map(cci_mx::Endpoint::pending).collect::<Vec<_>>(), [(0, 0); 2]);
        crate::world::close(sides);
    }
}
