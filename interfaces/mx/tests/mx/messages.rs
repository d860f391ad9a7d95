//! Messages of all lengths, expected and not, plain and synchronous.

use crate::world::{
    KEY, NIC, TRANSPORTS, bytes, close, connect, device, end, pattern, post, refused, some_with, two, two_with, until,
    zeroes,
};
use cci_mx::{Code, Endpoint, Error, MAX_SEGMENTS, Match, Options, Segments, buffer};

/// Around the limits of what is kept beside an entry, of classes, and of eager messages.
const SIZES: [usize; 16] =
    [0, 1, 40, 41, 64, 65, 112, 113, 128, 129, 4_000, 16_384, 16_385, 65_536, 1 << 20, (1 << 20) + 1];

#[test]
fn messages_of_every_length_arrive_expected_and_unexpected() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let to = connect(&sides, 0, 1);
        for (at, size) in SIZES.into_iter().enumerate() {
            for (is_sync, is_expected) in [(false, false), (false, true), (true, false), (true, true)] {
                let (sent, bits) = (pattern(size, at), at as u64);
                let early = is_expected.then(|| post(&sides[1], size, bits));
                let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
                let send = start(&sides[0], buffer(sent.clone()), to, bits, 9).expect("room");
                if !is_expected {
                    let found = until(&sides, "a message", || {
                        sides[1].probe(Match::exact(bits), Some(Default::default())).expect("usable")
                    });
                    assert_eq!((found.length as usize, found.source), (size, sides[0].address()));
                    if is_sync || size > 16_384 {
                        (0..100).for_each(|_| sides.iter().for_each(|side| side.progress().expect("usable")));
                        assert_eq!(sides[0].test(send), Ok(None), "nobody has received it");
                    }
                }
                let (receive, memory) = early.unwrap_or_else(|| post(&sides[1], size, bits));
                let status = end(&sides, 1, receive);
                let whole = size as u32;
                assert_eq!((status.code, status.bits, status.context), (Code::Success, bits, bits), "{transport}");
                assert_eq!((status.length, status.copied, status.source), (whole, whole, sides[0].address()));
                assert!(bytes(&memory) == sent, "{transport}: {size} bytes");
                let status = end(&sides, 0, send);
                assert_eq!((status.code, status.context, status.length), (Code::Success, 9, whole));
                assert_eq!((status.copied, status.source, status.bits), (whole, to, bits));
            }
        }
        assert_eq!(sides.iter().map(Endpoint::pending).collect::<Vec<_>>(), [(0, 0); 2]);
        close(sides);
    }
}

#[test]
fn what_is_too_long_for_its_receive_is_cut() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let to = connect(&sides, 0, 1);
        for (size, room) in [(100, 30), (10, 0), (100_000, 70_000), (100_000, 0)] {
            for is_expected in [false, true] {
                let sent = pattern(size, room);
                let early = is_expected.then(|| post(&sides[1], room, 3));
                let send = sides[0].send_sync(buffer(sent.clone()), to, 3, 0).expect("room");
                if !is_expected {
                    until(&sides, "a message", || (sides[1].pending().1 == 1).then_some(()));
                }
                let (receive, memory) = early.unwrap_or_else(|| post(&sides[1], room, 3));
                let status = end(&sides, 1, receive);
                assert_eq!((status.code, status.length, status.copied), (Code::Truncated, size as u32, room as u32));
                assert!(bytes(&memory) == sent[..room], "{transport}");
                assert_eq!(end(&sides, 0, send).code, Code::Success);
            }
        }
        close(sides);
    }
}

#[test]
fn vectors_of_256_segments_with_empty_ones_go_whole() {
    for transport in ["sm", "sim", "sock"] {
        let sides = two(transport);
        let to = connect(&sides, 0, 1);
        // Eager; offered as they are; gathered first; and cut into other segments at the other
        // side.
        for (count, len) in [(256, 3), (256, 600), (17, 5_000), (12, 5_000), (4, 0)] {
            let parts: Vec<_> = (0..count).map(|at| pattern(if at % 3 == 1 { 0 } else { len }, at)).collect();
            let whole = parts.concat();
            let rooms: Vec<_> = (0..count).map(|at| zeroes(whole.len() / count + at % 5)).collect();
            let receive = sides[1].receive(rooms.clone(), Match::ANY, 0).expect("room");
            let parts: Vec<_> = parts.into_iter().map(buffer).collect();
            let send = sides[0].send(parts, to, 1, 0).expect("room");
            let status = end(&sides, 1, receive);
            let got: Vec<u8> = rooms.iter().flat_map(bytes).collect();
            let copied = status.copied as usize;
            assert_eq!(copied, whole.len().min(got.len()));
            assert!(got[..copied] == whole[..copied] && got[copied..].iter().all(|byte| *byte == 0), "{transport}");
            assert_eq!(end(&sides, 0, send).code, Code::Success);
        }
        close(sides);
    }
}

#[test]
fn bad_arguments_are_refused_and_change_nothing() {
    let sides = two("sm");
    let to = connect(&sides, 0, 1);
    let many = || Segments::Many(vec![zeroes(1); MAX_SEGMENTS + 1]);
    assert_eq!(refused(sides[0].send(many(), to, 0, 0)), Error::SegmentCount);
    assert_eq!(refused(sides[0].receive(many(), Match::ANY, 0)), Error::SegmentCount);
    let wrong = Match { bits: 3, mask: 1 };
    assert_eq!(refused(sides[0].receive(zeroes(1), wrong, 0)), Error::BadMask);
    assert_eq!(refused(sides[0].test_any(wrong)), Error::BadMask);
    assert_eq!(refused(sides[0].probe(wrong, Some(Default::default()))), Error::BadMask);
    assert_eq!(refused(sides[0].start_connect((NIC, 2_048), KEY, 0, 0)), Error::BadEndpointId);
    assert_eq!(refused(sides[0].start_connect((1 << 32, 1), KEY, 0, 0)), Error::NicNotFound);
    let (receive, _) = post(&sides[0], 1, 0);
    assert_eq!(refused(sides[0].buffered(receive, None)), Error::BadRequest);
    assert_eq!(sides[0].cancel(receive), Ok(true));
    for result in [
        sides[0].test(receive).map(|_| ()),
        sides[0].cancel(receive).map(|_| ()),
        sides[0].forget(receive),
        sides[0].context(receive).map(|_| ()),
        sides[0].set_timeout(receive, None),
        sides[0].buffered(receive, None).map(|_| ()),
    ] {
        assert_eq!(result, Err(Error::BadRequest));
    }
    assert_eq!(sides[0].pending(), (0, 0));
}

#[test]
fn an_endpoint_sends_to_itself() {
    let sides = some_with(&device("sm"), 1, &Options::new().unexpected_max(512 << 10));
    let own = connect(&sides, 0, 0);
    for size in [0, 5, 100, 20_000, 1 << 20] {
        for (is_sync, is_expected) in [(false, false), (true, false), (false, true), (true, true)] {
            let sent = pattern(size, 1);
            let early = is_expected.then(|| post(&sides[0], size + 1, 4));
            let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
            let send = start(&sides[0], buffer(sent.clone()), own, 4, 0).expect("room");
            // Done at once, as to another endpoint, if it is short.
            if !is_sync && !is_expected {
                assert_eq!(sides[0].buffered(send, Some(Default::default())), Ok(size <= 16_384));
            }
            let (receive, memory) = early.unwrap_or_else(|| post(&sides[0], size + 1, 4));
            let status = end(&sides, 0, receive);
            assert_eq!((status.code, status.copied as usize, status.source), (Code::Success, size, own));
            assert!(bytes(&memory)[..size] == sent);
            assert_eq!(end(&sides, 0, send).code, Code::Success);
        }
    }
    // More than is kept of unexpected messages: the rest waits in its own memory.
    let sends: Vec<_> =
        (0..40).map(|at| sides[0].send(buffer(pattern(16_384, at)), own, 0, 0).expect("room")).collect();
    let waiting = sends.iter().filter(|send| sides[0].buffered(**send, Some(Default::default())) == Ok(false)).count();
    assert!(waiting > 20, "{waiting} have found no room");
    for (at, send) in sends.into_iter().enumerate() {
        let (receive, memory) = post(&sides[0], 16_384, 0);
        assert_eq!(end(&sides, 0, receive).code, Code::Success);
        assert!(bytes(&memory) == pattern(16_384, at));
        assert_eq!(end(&sides, 0, send).code, Code::Success);
    }
    assert_eq!(sides[0].pending(), (0, 0));
}

#[test]
fn a_forgotten_request_leaves_nothing() {
    let sides = two_with(&device("sm"), &Options::new());
    let to = connect(&sides, 0, 1);
    for size in [8, 100_000] {
        let send = sides[0].send_sync(zeroes(size), to, 1, 0).expect("room");
        sides[0].forget(send).expect("a request");
        assert_eq!(refused(sides[0].test(send)), Error::BadRequest);
        let (receive, _) = post(&sides[1], size, 1);
        assert_eq!(end(&sides, 1, receive).code, Code::Success);
        until(&sides, "its end", || (sides[0].pending().0 == 0).then_some(()));
    }
    let done = sides[0].send(zeroes(8), to, 1, 0).expect("room");
    sides[0].forget(done).expect("it has ended");
    assert_eq!(sides[0].pending(), (0, 0));
}

/// Posted or not yet, to another one or to oneself, short or offered: both requests end.
#[test]
fn a_receive_that_is_too_short_ends_and_so_does_its_send() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        connect(&sides, 0, 1);
        for (to, len, is_first) in [0, 1].into_iter().flat_map(|to| {
            [10, 120, 20_000, 1 << 20].into_iter().flat_map(move |len| [(to, len, true), (to, len, false)])
        }) {
            let data = buffer(pattern(len, 3));
            let early = is_first.then(|| post(&sides[to], len / 2, 1));
            let send = sides[0].send(data, sides[to].address(), 1, 0).expect("room");
            (0..5).for_each(|_| sides[to].progress().expect("usable"));
            let (receive, memory) = early.unwrap_or_else(|| post(&sides[to], len / 2, 1));
            let status = end(&sides, to, receive);
            let lengths = (status.length as usize, status.copied as usize);
            assert_eq!((status.code, lengths), (Code::Truncated, (len, len / 2)), "{transport}, {to}, {len}");
            assert!(bytes(&memory) == pattern(len, 3)[..len / 2]);
            assert_eq!(end(&sides, 0, send).code, Code::Success);
        }
        close(sides);
    }
}
