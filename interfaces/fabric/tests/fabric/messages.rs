//! Messages of one process to itself over several transports.

use crate::world::{Side, bytes, domain, memory, of};
use cci_fabric::{Code, Endpoint, NOT_AVAILABLE, Receive, Segments, Send, Space, What, bits};

const TRANSPORTS: [&str; 4] = ["sm", "sock", "tcp", "auto"];

#[test]
fn a_message_of_any_length_goes_where_its_receive_is_posted_early_or_late() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        there.meet(&here);
        for is_early in [true, false] {
            for (tag, len) in (0..).zip([0, 1, 8, 32, 33, 1_000, 16_384, 16_385, 1 << 20]) {
                let sent: Vec<u8> = (0..len).map(|at| (at * 7 + tag) as u8).collect();
                let (from, into) = (of(sent.clone()), memory(len));
                let tag = tag as u64;
                if is_early {
                    there.receive(&into, tag, 100 + tag).expect("a receive");
                }
                here.send(to, &from, tag, tag, 0).expect("a send");
                if !is_early {
                    // It is there, and waits.
                    let peek = |side: &Side| side.post(&memory(0), (tag, 0), NOT_AVAILABLE, 1, bits::PEEK);
                    loop {
                        here.turn();
                        peek(&there).expect("a peek");
                        match there.next_beside(&here) {
                            Ok(entry) => break assert_eq!((entry.len, entry.tag), (len, tag), "{transport}"),
                            Err(failed) => assert_eq!(failed.code, Code::NoMessage),
                        }
                    }
                    there.receive(&into, tag, 100 + tag).expect("a receive");
                }
                let entry = there.next_beside(&here).unwrap_or_else(|why| panic!("{transport}, {len} B: {why:?}"));
                assert_eq!((entry.context, entry.len, entry.tag, entry.source), (100 + tag, len, tag, 0));
                assert_eq!(entry.flags, bits::RECV | bits::TAGGED);
                assert!(bytes(&into) == sent, "{transport}, {len} B");
                let entry = here.next_beside(&there).expect("a send");
                assert_eq!((entry.context, entry.flags), (tag, bits::SEND | bits::TAGGED));
            }
        }
    }
}

#[test]
fn both_kinds_of_messages_have_receives_of_their_own_and_remote_data() {
    let domain = domain("sm");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    let to = here.meet(&there);
    let (plain, tagged) = (memory(8), memory(8));
    let receive = |space, memory: &cci::Memory, context| Receive {
        segments: Segments::from(memory.clone()),
        from: NOT_AVAILABLE,
        space,
        tag: 0,
        ignore: !0,
        context,
        flags: 0,
    };
    there.endpoint.receive(receive(Space::Message, &plain, 1)).expect("a receive");
    there.endpoint.receive(receive(Space::Tagged, &tagged, 2)).expect("a receive");
    let send = |space, what, data| Send { what, to, space, tag: 9, data, context: 5, flags: 0 };
    here.endpoint.send(send(Space::Tagged, What::Bytes(b"tagged"), Some(77))).expect("a send");
    let memory = Segments::Many(vec![of(b"pl".to_vec()), of(b"ain".to_vec())]);
    here.endpoint.send(send(Space::Message, What::Memory(memory), None)).expect("a send");
    let entry = there.next_beside(&here).expect("a message");
    assert_eq!((entry.context, entry.tag, entry.data, entry.source), (2, 9, 77, NOT_AVAILABLE));
    assert_eq!(entry.flags, bits::RECV | bits::TAGGED | bits::REMOTE_CQ_DATA);
    let entry = there.next_beside(&here).expect("a message");
    assert_eq!((entry.context, entry.flags, entry.len), (1, bits::RECV | bits::MSG, 5));
    assert_eq!((&bytes(&tagged)[..6], &bytes(&plain)[..5]), (&b"tagged"[..], &b"plain"[..]));
    // Copied bytes make no entry.
    assert_eq!(here.next_beside(&there).map(|entry| entry.context), Ok(5));
    assert_eq!(here.queue.read(1, |_| ()), Err(Code::Again));
    let long = [0; cci_fabric::INJECT_SIZE + 1];
    assert_eq!(here.endpoint.send(send(Space::Message, What::Bytes(&long), None)), Err(Code::MessageSize));
    assert_eq!(here.endpoint.send(Send { to: 9, ..send(Space::Message, What::Bytes(&[]), None) }), Err(Code::Invalid));
}

#[test]
fn a_message_that_is_too_long_is_cut_and_says_so() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        for len in [10, 100_000] {
            let into = memory(len / 2);
            there.receive(&into, 1, 2).expect("a receive");
            here.send(to, &of(vec![7; len]), 1, 3, 0).expect("a send");
            let failed = there.next_beside(&here).expect_err("it is too long");
            assert_eq!((failed.code, failed.entry.context, failed.entry.len), (Code::Truncated, 2, len / 2));
            assert_eq!(failed.dropped, len - len / 2);
            assert!(bytes(&into).iter().all(|byte| *byte == 7));
            assert_eq!(here.next_beside(&there).map(|entry| entry.context), Ok(3), "its send ends well");
        }
    }
}

#[test]
fn each_level_of_completion_ends() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        for (context, flags) in (0..).zip([bits::INJECT_COMPLETE, bits::TRANSMIT_COMPLETE, bits::DELIVERY_COMPLETE]) {
            // Nobody receives them: a match is not waited for.
            here.send(to, &of(vec![1; 500]), 1, context, flags).expect("a send");
            let entry = here.next_beside(&there).unwrap_or_else(|why| panic!("{transport}, {flags:#x}: {why:?}"));
            assert_eq!(entry.context, context);
        }
    }
}

#[test]
fn an_endpoint_sends_to_itself() {
    let side = Side::new(&domain("sm"));
    let to = side.meet(&side);
    for is_early in [true, false] {
        for len in [0, 8, 5_000, 1 << 20] {
            let (from, into) = (of((0..len).map(|at| at as u8).collect()), memory(len));
            if is_early {
                side.receive(&into, 5, 1).expect("a receive");
            }
            side.send(to, &from, 5, 2, bits::DELIVERY_COMPLETE).expect("a send");
            if !is_early {
                side.receive(&into, 5, 1).expect("a receive");
            }
            let mut contexts = [side.next(), side.next()].map(|entry| entry.expect("both end well").context);
            contexts.sort_unstable();
            assert!(contexts == [1, 2] && bytes(&into) == bytes(&from), "{len} B");
        }
    }
}

#[test]
fn a_receive_names_its_source_and_its_tag() {
    let domain = domain("sm");
    let (here, other, there) = (Side::new(&domain), Side::new(&domain), Side::new(&domain));
    let (first, second) = (there.meet(&here), there.meet(&other));
    let (to, also) = (here.meet(&there), other.meet(&there));
    there.post(&memory(8), (0x10, 0xf), second, 2, 0).expect("a receive");
    there.post(&memory(8), (0x10, 0xf), first, 1, 0).expect("a receive");
    here.send(to, &of(vec![1]), 0x1a, 0, 0).expect("a send");
    let entry = there.next_beside(&here).expect("a message");
    assert_eq!((entry.context, entry.source, entry.tag), (1, first, 0x1a));
    other.send(also, &of(vec![1]), 0x2a, 0, 0).expect("a send");
    other.send(also, &of(vec![1]), 0x1b, 0, 0).expect("a send");
    let entry = there.next_beside(&other).expect("a message");
    assert_eq!((entry.context, entry.source, entry.tag), (2, second, 0x1b));
}

#[test]
fn a_cancelled_operation_ends_once() {
    let domain = domain("sm");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    let to = here.meet(&there);
    there.receive(&memory(8), 1, 10).expect("a receive");
    there.receive(&memory(8), 1, 11).expect("a receive");
    assert_eq!(there.endpoint.cancel(10), Ok(()));
    assert_eq!(there.endpoint.cancel(10), Err(Code::NoEntry));
    let failed = there.next().expect_err("it is cancelled");
    assert_eq!((failed.code, failed.entry.context), (Code::Canceled, 10));
    here.send(to, &of(vec![1; 8]), 1, 0, 0).expect("a send");
    assert_eq!(there.next_beside(&here).map(|entry| entry.context), Ok(11));
    assert_eq!(there.endpoint.cancel(11), Err(Code::NoEntry));
    // A send whose link is not open yet has not left.
    let third = Side::new(&domain);
    let to = here.meet(&third);
    assert!(here.next().is_ok());
    here.send(to, &of(vec![1; 8]), 1, 20, 0).expect("a send");
    assert_eq!(here.endpoint.cancel(20), Ok(()));
    assert_eq!(here.next().map_err(|failed| failed.code), Err(Code::Canceled));
}

#[test]
fn a_claimed_message_is_for_the_receive_with_its_context() {
    for len in [8, 100_000] {
        let domain = domain("sm");
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        for number in 1..=3 {
            here.send(to, &of(vec![number; len]), number.into(), 0, 0).expect("a send");
        }
        let look = |tag, ignore, context, flags| {
            loop {
                here.turn();
                there.post(&memory(0), (tag, ignore), NOT_AVAILABLE, context, flags | bits::PEEK).expect("a peek");
                if let Ok(entry) = there.next_beside(&here) {
                    break entry;
                }
            }
        };
        assert_eq!(look(3, 0, 1, 0).len, len);
        assert_eq!(look(0, !0, 50, bits::CLAIM).tag, 1);
        // Nobody else gets it.
        assert_eq!(look(0, !0, 2, bits::DISCARD).tag, 2);
        let into = memory(len);
        there.receive(&into, 3, 60).expect("a receive");
        assert_eq!(there.next_beside(&here).map(|entry| (entry.context, entry.tag)), Ok((60, 3)));
        let wrong = there.post(&into, (0, 0), NOT_AVAILABLE, 51, bits::CLAIM);
        assert_eq!(wrong, Err(Code::Invalid), "nothing is claimed for it");
        there.post(&into, (0, 0), NOT_AVAILABLE, 50, bits::CLAIM).expect("a receive");
        assert_eq!(there.next_beside(&here).map(|entry| (entry.context, entry.tag)), Ok((50, 1)));
        assert!(bytes(&into).iter().all(|byte| *byte == 1));
        for _ in 0..3 {
            here.next_beside(&there).expect("each send ends well");
        }
    }
}

#[test]
fn a_buffer_takes_several_messages() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        there.endpoint.set_min_multi_receive(1_000);
        // One waits already.
        here.send(to, &of(vec![1; 100]), 1, 0, 0).expect("a send");
        here.next_beside(&there).expect("a send");
        let buffer = memory(300_000);
        let start = buffer.start() as u64;
        there.post(&buffer, (1, 0), NOT_AVAILABLE, 9, bits::MULTI_RECV).expect("a receive");
        there.receive(&memory(8), 1, 10).expect("a receive behind it");
        let mut at = 0;
        for (number, len) in (1_u8..).zip([100, 50_001, 7, 200_000, 49_100]) {
            if number > 1 {
                here.send(to, &of(vec![number; len]), 1, 0, 0).expect("a send");
            }
            let entry = there.next_beside(&here).unwrap_or_else(|why| panic!("{transport}, {number}: {why:?}"));
            assert_eq!((entry.context, entry.len, entry.buffer), (9, len, start + at as u64), "{transport}");
            // After the last one less than 1,000 bytes are free.
            assert_eq!(entry.flags & bits::MULTI_RECV != 0, number == 5, "{transport}, {number}");
            assert!(bytes(&buffer)[at..at + len].iter().all(|byte| *byte == number));
            at = (at + len).next_multiple_of(8);
        }
        here.send(to, &of(vec![1; 8]), 1, 0, 0).expect("a send");
        assert_eq!(there.next_beside(&here).map(|entry| entry.context), Ok(10));
    }
}

#[test]
fn a_buffer_that_takes_several_is_cut_and_cancelled_as_others() {
    let domain = domain("sm");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    let to = here.meet(&there);
    let post = |len, context| there.post(&memory(len), (1, 0), NOT_AVAILABLE, context, bits::MULTI_RECV);
    post(200, 1).expect("a receive");
    for len in [100, 101] {
        here.send(to, &of(vec![1; len]), 1, 0, 0).expect("a send");
    }
    assert_eq!(there.next_beside(&here).map(|entry| (entry.context, entry.len)), Ok((1, 100)));
    let failed = there.next_beside(&here).expect_err("it is too long");
    assert_eq!((failed.code, failed.entry.len, failed.dropped), (Code::Truncated, 96, 5));
    assert_ne!(failed.entry.flags & bits::MULTI_RECV, 0, "the buffer is the program's again");
    post(200, 2).expect("a receive");
    assert_eq!(there.endpoint.cancel(2), Ok(()));
    let failed = there.next().expect_err("it is cancelled");
    assert_eq!((failed.code, failed.entry.context), (Code::Canceled, 2));
    assert_ne!(failed.entry.flags & bits::MULTI_RECV, 0);
}

#[test]
fn only_what_asks_for_an_entry_makes_one() {
    let domain = domain("sm");
    let (here, there) = (Side::with(&domain, bits::SELECTIVE_COMPLETION), Side::new(&domain));
    let to = here.meet(&there);
    for context in 0..4 {
        let flags = if context % 2 == 0 { 0 } else { bits::COMPLETION };
        here.send(to, &of(vec![1; 8]), 1, context, flags).expect("a send");
    }
    assert_eq!([here.next_beside(&there), here.next_beside(&there)].map(|entry| entry.expect("well").context), [1, 3]);
    assert_eq!(here.queue.read(1, |_| ()), Err(Code::Again));
    assert_eq!(here.counter.read(), 4, "each is counted");
}

#[test]
fn what_was_sent_before_the_close_arrives() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        std::thread::scope(|scope| {
            for _ in 0..200 {
                here.send(to, &of(vec![1; 1_000]), 1, 0, 0).expect("a send");
            }
            // No link is open yet.
            let closes = scope.spawn(|| here.endpoint.close());
            for _ in 0..200 {
                there.receive(&memory(1_000), 1, 0).expect("a receive");
                there.next().unwrap_or_else(|why| panic!("{transport}: {why:?}"));
            }
            closes.join().expect("it ends");
        });
        assert_eq!(here.send(to, &of(vec![1]), 1, 0, 0), Err(Code::BadState));
    }
}

#[test]
fn what_is_bound_wrongly_is_refused() {
    let domain = domain("sm");
    let side = Side::new(&domain);
    assert_eq!(side.endpoint.enable(), Err(Code::BadState));
    assert_eq!(side.endpoint.bind_vector(&side.vector), Err(Code::BadState));
    let bare = Endpoint::new(&domain, Default::default());
    assert_eq!(bare.enable(), Err(Code::NoVector));
    assert_eq!((bare.bind_vector(&side.vector), bare.bind_vector(&side.vector)), (Ok(()), Err(Code::Invalid)));
    assert_eq!(bare.enable(), Err(Code::NoQueue));
    assert_eq!(bare.bind_queue(&side.queue, bits::SELECTIVE_COMPLETION), Err(Code::BadFlags));
    assert_eq!(bare.bind_queue(&side.queue, bits::RECV), Ok(()));
    assert_eq!(bare.bind_queue(&side.queue, bits::RECV), Err(Code::Invalid));
    assert_eq!((bare.address(), bare.cancel(1)), (Err(Code::BadState), Err(Code::BadState)));
    assert!(domain.is_busy() && side.queue.is_bound() && side.vector.is_bound());
}

#[test]
fn a_read_of_no_entry_makes_progress() {
    let domain = domain("sm");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    let to = here.meet(&there);
    there.receive(&memory(8), 1, 7).expect("a receive");
    here.send(to, &of(vec![1; 8]), 1, 0, 0).expect("a send");
    let begun = std::time::Instant::now();
    let look = |side: &Side| side.queue.read(0, |_| unreachable!("none is asked for"));
    while look(&there) != Ok(0) {
        let _ = look(&here);
        assert!(begun.elapsed() < crate::world::LONG, "nothing came");
    }
    assert_eq!(there.next().map(|entry| entry.context), Ok(7));
}
