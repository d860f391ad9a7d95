//! Puts, gets and swaps: what moves, and which events there are.

use crate::world::{
    GET, PUT, Side, TRANSPORTS, anything, bits, bytes, close, events, id, other, pattern, put, two, until, zeroes,
};
use cci::Memory;
use cci_portals::EventKind::{
    Ack, GetEnd, GetPutEnd, GetPutStart, GetStart, PutEnd, PutStart, ReplyEnd, ReplyStart, SendEnd, SendStart,
    Unlink as Unlinked,
};
use cci_portals::{ANY, Descriptor, Error, Target, Unlink, buffer, options};

/// Around the limits of messages and pieces.
const SIZES: [usize; 8] = [0, 1, 24, 1_000, 16_336, 16_337, 70_001, 1 << 20];

fn parts(whole: &[u8], cuts: &[usize]) -> (Vec<Memory>, Descriptor) {
    let mut rest = whole;
    let mut parts = Vec::new();
    for cut in cuts {
        let (first, last) = rest.split_at(*cut.min(&rest.len()));
        parts.push(buffer(first.to_vec()));
        rest = last;
    }
    parts.push(buffer(rest.to_vec()));
    (parts.clone(), Descriptor::of_parts(parts))
}

fn joined(parts: &[Memory]) -> Vec<u8> {
    parts.iter().flat_map(bytes).collect()
}

#[test]
fn a_put_goes_where_its_entry_says_and_its_events_say_so() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let memory = zeroes(100);
        let (_, target) = sides[1].post(bits(7), &memory, PUT);
        let source = sides[0].bind(&buffer(b"hello".to_vec()));
        let to = Target { bits: 7, header: 77, ..other(1) };
        sides[0].ni.put(source, None, true, &to).expect("room");
        let sent = events(&sides, 0, &[SendStart, SendEnd, Ack]);
        let came = events(&sides, 1, &[PutStart, PutEnd]);
        assert_eq!(&bytes(&memory)[..6], b"hello\0", "{transport}");
        for event in &came {
            assert_eq!((event.initiator, event.portal, event.bits, event.header), (id(0), 4, 7, 77));
            assert_eq!((event.rlength, event.mlength, event.offset, event.memory), (5, 5, 0, target));
            assert_eq!((event.failure, event.uid, event.link), (0, sides[0].ni.identity().0, came[0].link));
        }
        assert_eq!((sent[0].link, sent[1].initiator, sent[1].mlength), (sent[1].link, id(0), 5));
        assert_eq!((sent[2].mlength, sent[2].rlength, sent[2].portal, sent[2].bits), (5, 5, ANY, 7));
        assert_eq!((sent[2].initiator, sent[2].uid), (id(1), sides[1].ni.identity().0), "who answers");
        assert!(sent.iter().all(|event| event.memory == source && event.failure == 0));
        close(sides);
    }
}

#[test]
fn puts_and_gets_of_all_sizes_go_between_memories_of_several_parts() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        for size in SIZES {
            let sent = pattern(size, 3);
            let (_, from) = parts(&sent, &[size / 3, 0, size / 5]);
            let (target, to) = parts(&vec![0; size], &[size / 2, 1]);
            let (entry, _) = sides[1].post_descriptor(bits(7), to.options(PUT | GET), Unlink::Retain);
            let source = sides[0].ni.bind(from.events(sides[0].queue), Unlink::Retain).expect("room");
            sides[0].ni.put(source, None, true, &Target { bits: 7, ..other(1) }).expect("room");
            let ends = events(&sides, 0, &[SendStart, SendEnd, Ack]);
            let came = events(&sides, 1, &[PutStart, PutEnd]);
            assert_eq!((ends[2].mlength, came[1].mlength, came[1].failure), (size as u64, size as u64, 0));
            assert!(joined(&target) == sent, "{size} bytes over {transport}");
            sides[1].ni.unlink_entry(entry).expect("nothing is pending");
            sides[0].ni.unlink_memory(source).expect("nothing is pending");

            // And back, from there.
            let memory = Descriptor::of_parts(target.clone()).options(GET);
            let (entry, _) = sides[1].post_descriptor(bits(8), memory, Unlink::Retain);
            let (copy, into) = parts(&vec![0; size], &[size / 7, size / 3]);
            let sink = sides[0].ni.bind(into.events(sides[0].queue), Unlink::Retain).expect("room");
            sides[0].ni.get(sink, None, &Target { bits: 8, ..other(1) }).expect("room");
            let ends = events(&sides, 0, &[ReplyStart, ReplyEnd]);
            let served = events(&sides, 1, &[GetStart, GetEnd]);
            assert_eq!((ends[1].mlength, ends[1].failure, served[1].failure), (size as u64, 0, 0));
            assert_eq!((ends[0].initiator, ends[1].initiator, served[1].initiator), (id(1), id(1), id(0)));
            assert_eq!((ends[0].link, served[0].link), (ends[1].link, served[1].link));
            assert!(joined(&copy) == sent, "{size} bytes back over {transport}");
            sides[1].ni.unlink_entry(entry).expect("nothing is pending");
            sides[0].ni.unlink_memory(sink).expect("nothing is pending");
        }
        assert_eq!((sides[0].ni.counts(), sides[1].ni.counts()), ((0, 0), (0, 0)), "nothing is left open");
        close(sides);
    }
}

#[test]
fn a_region_of_a_memory_descriptor_is_put_and_got() {
    let sides = two("sm");
    let memory = zeroes(16);
    sides[1].post(bits(7), &memory, PUT | GET | options::MANAGE_REMOTE);
    let source = sides[0].bind(&buffer(b"0123456789".to_vec()));
    let to = Target { bits: 7, offset: 4, ..other(1) };
    sides[0].ni.put(source, Some((2, 3)), false, &to).expect("room");
    let sent = events(&sides, 0, &[SendStart, SendEnd]);
    assert_eq!((sent[1].offset, sent[1].mlength), (2, 3));
    let came = events(&sides, 1, &[PutStart, PutEnd]);
    assert_eq!((came[1].offset, &bytes(&memory)[3..8]), (4, &b"\x00234\0"[..]));
    let copy = buffer(vec![b'-'; 5]);
    let sink = sides[0].bind(&copy);
    sides[0].ni.get(sink, Some((1, 2)), &Target { offset: 5, ..to }).expect("room");
    events(&sides, 0, &[ReplyStart, ReplyEnd]);
    assert_eq!(bytes(&copy), b"-34--");
    assert_eq!(sides[0].ni.put(source, Some((8, 3)), false, &to), Err(Error::IllegalMemory));
    assert_eq!(sides[0].ni.get(sink, Some((u64::MAX, 3)), &to), Err(Error::IllegalMemory));
    // One that is inactive has no region.
    let over = Descriptor::new(&buffer(vec![0; 9])).threshold(0);
    let over = sides[0].ni.bind(over, Unlink::Retain).expect("room");
    assert_eq!(sides[0].ni.put(over, Some((8, 3)), false, &to), Err(Error::Memory));
}

/// The target's bytes come, and the initiator's take their place.
#[test]
fn a_swap_exchanges_the_bytes_of_both_sides() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let memory = buffer(b"target!!".to_vec());
        sides[1].post(bits(7), &memory, PUT | GET);
        let (old, new) = (zeroes(8), buffer(b"initiate".to_vec()));
        let (sink, source) = (sides[0].bind(&old), sides[0].bind(&new));
        sides[0].ni.get_put(sink, source, &Target { bits: 7, header: 5, ..other(1) }).expect("room");
        let came = events(&sides, 1, &[GetPutStart, GetPutEnd]);
        assert_eq!((came[1].header, came[1].mlength, came[0].link), (5, 8, came[1].link));
        let ends = events(&sides, 0, &[SendStart, SendEnd, ReplyStart, ReplyEnd]);
        assert_eq!((ends[1].memory, ends[3].memory, ends[3].mlength), (source, sink, 8));
        assert_eq!((ends[1].initiator, ends[3].initiator, came[1].initiator), (id(0), id(1), id(0)));
        assert!(ends[0].link == ends[1].link && ends[2].link == ends[3].link && ends[1].link != ends[2].link);
        assert_eq!((&bytes(&old)[..], &bytes(&memory)[..]), (&b"target!!"[..], &b"initiate"[..]));
        close(sides);
    }
}

#[test]
fn a_swap_needs_both_rights_room_for_the_reply_and_few_bytes() {
    let sides = two("sm");
    sides[1].post(bits(7), &zeroes(64), PUT);
    let [eight, nine, many] = [8, 9, 65].map(|len| sides[0].bind(&zeroes(len)));
    let to = Target { bits: 7, ..other(1) };
    assert_eq!(sides[0].ni.get_put(eight, nine, &to), Err(Error::IllegalMemory));
    assert_eq!(sides[0].ni.get_put(many, many, &to), Err(Error::IllegalMemory));
    let source = sides[0].bind(&zeroes(8));
    sides[0].ni.get_put(eight, source, &to).expect("room");
    let ends = events(&sides, 0, &[SendStart, SendEnd, ReplyStart, ReplyEnd]);
    assert_eq!((ends[1].failure, ends[3].failure, ends[3].mlength), (0, 1, 0), "the target refuses");
    assert_eq!(sides[1].dropped(), 1);
}

/// As many bytes come as go, to the front of the memory for the reply, which may be longer than a
/// swap at most.
#[test]
fn a_swap_is_as_long_as_its_source() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let (there, here) = (buffer(pattern(16, 1)), buffer(vec![9; 100]));
        sides[1].post(anything(), &there, PUT | GET | options::MANAGE_REMOTE);
        let (sink, source) = (sides[0].bind(&here), sides[0].bind(&buffer(pattern(8, 5))));
        sides[0].ni.get_put(sink, source, &other(1)).expect("it fits");
        let ends = events(&sides, 0, &[SendStart, SendEnd, ReplyStart, ReplyEnd]);
        assert_eq!(ends.iter().map(|of| (of.rlength, of.mlength, of.failure)).collect::<Vec<_>>(), [(8, 8, 0); 4]);
        assert_eq!(bytes(&here), [pattern(8, 1), vec![9; 92]].concat(), "{transport}");
        assert_eq!(bytes(&there), [pattern(8, 5), pattern(16, 1)[8..].to_vec()].concat(), "{transport}");
        crate::world::close(sides);
    }
}

/// What begins behind the end of a descriptor is nothing to be cut: the next entry has it.
#[test]
fn nothing_is_cut_that_begins_behind_the_end() {
    let sides = two("sm");
    let cut = PUT | options::MANAGE_REMOTE | options::TRUNCATE;
    let handles = [8, 64].map(|len| sides[1].post(anything(), &zeroes(len), cut).1);
    let source = sides[0].bind(&zeroes(4));
    for (offset, at, len) in [(6, 0, 2), (8, 0, 0), (9, 1, 4)] {
        sides[0].ni.put(source, None, false, &Target { offset, ..other(1) }).expect("room");
        let ended = events(&sides, 1, &[PutStart, PutEnd])[1];
        assert_eq!((ended.memory, ended.mlength, ended.offset), (handles[at], len, offset));
    }
    sides[0].ni.put(source, None, false, &Target { offset: 65, ..other(1) }).expect("room");
    until(&sides, "the drop", || (sides[1].dropped() == 1).then_some(()));
    assert_eq!(sides[1].event(), None);
}

/// A put with ack from a bound descriptor needs 2.
#[test]
fn a_threshold_counts_the_send_and_its_ack() {
    for (threshold, has_ack) in [(1, false), (2, true)] {
        let sides = two("sm");
        sides[1].post(anything(), &zeroes(8), PUT | GET | options::MANAGE_REMOTE);
        let descriptor = Descriptor::new(&zeroes(8)).threshold(threshold).events(sides[0].queue);
        let source = sides[0].ni.bind(descriptor, Unlink::Retain).expect("room");
        sides[0].ni.put(source, None, true, &other(1)).expect("active");
        let ends = events(&sides, 0, &[SendStart, SendEnd]);
        assert_eq!(ends[1].described.threshold, threshold - 1);
        if has_ack {
            assert_eq!(events(&sides, 0, &[Ack])[0].described.threshold, 0);
        } else {
            until(&sides, "the ack", || (sides[0].ni.counts().0 == 0).then_some(()));
            assert_eq!(sides[0].event(), None);
        }
        assert_eq!(sides[0].ni.put(source, None, true, &other(1)), Err(Error::Memory), "it is inactive");
        sides[0].ni.unlink_memory(source).expect("nothing is pending");
        assert_eq!(sides[0].ni.counts().0, 0);
    }
}

/// The start of a get leaves no event. So its reply finds a threshold of 1, and ends the
/// descriptor.
#[test]
fn a_get_takes_nothing_from_a_threshold_and_its_reply_takes_one() {
    for transport in TRANSPORTS {
        for size in [8, 100_000] {
            let sides = two(transport);
            sides[1].post(anything(), &buffer(vec![5; size]), GET | options::MANAGE_REMOTE);
            let copy = zeroes(size);
            let descriptor = Descriptor::new(&copy).threshold(1).events(sides[0].queue);
            let sink = sides[0].ni.bind(descriptor, Unlink::Unlink).expect("room");
            sides[0].ni.get(sink, None, &other(1)).expect("active");
            let ends = events(&sides, 0, &[ReplyStart, ReplyEnd, Unlinked]);
            assert_eq!((ends[0].described.threshold, ends[2].link), (0, ends[1].sequence), "{transport}");
            assert_eq!(bytes(&copy), vec![5; size], "{transport}");
            assert_eq!(sides[0].ni.unlink_memory(sink), Err(Error::Memory), "it went by itself");
            close(sides);
        }
    }
}

/// Both may begin, and the second reply finds the descriptor inactive.
#[test]
fn a_reply_beyond_the_threshold_is_dropped_and_counted() {
    let sides = two("sm");
    sides[1].post(anything(), &buffer(vec![5; 8]), GET | options::MANAGE_REMOTE);
    let descriptor = Descriptor::new(&zeroes(8)).threshold(1).events(sides[0].queue);
    let sink = sides[0].ni.bind(descriptor, Unlink::Unlink).expect("room");
    for _ in 0..2 {
        sides[0].ni.get(sink, None, &other(1)).expect("active");
    }
    events(&sides, 0, &[ReplyStart, ReplyEnd, Unlinked]);
    assert_eq!((sides[0].dropped(), sides[0].event(), sides[0].ni.counts().0), (1, None, 0));
}

/// The descriptor of the answer needs 1 as well, and that of the send 1.
#[test]
fn a_swap_takes_one_of_each_descriptor() {
    let sides = two("sm");
    sides[1].post(anything(), &zeroes(8), PUT | GET | options::MANAGE_REMOTE);
    let once = || Descriptor::new(&zeroes(8)).threshold(1).events(sides[0].queue);
    let [sink, source] = [once(), once()].map(|of| sides[0].ni.bind(of, Unlink::Unlink).expect("room"));
    sides[0].ni.get_put(sink, source, &other(1)).expect("both are active");
    let ends = events(&sides, 0, &[SendStart, SendEnd, Unlinked, ReplyStart, ReplyEnd, Unlinked]);
    assert_eq!((ends[2].memory, ends[5].memory), (source, sink));
}

#[test]
fn an_operation_with_oneself_works_like_any_other() {
    let sides = vec![two("sm").swap_remove(0)];
    for size in SIZES {
        let (memory, sent) = (zeroes(size), pattern(size, 1));
        let (entry, _) = sides[0].post(bits(7), &memory, PUT | GET);
        let source = sides[0].bind(&buffer(sent.clone()));
        sides[0].ni.put(source, None, true, &Target { bits: 7, ..other(0) }).expect("room");
        let all = events(&sides, 0, &[SendStart, SendEnd, PutStart, PutEnd, Ack]);
        assert_eq!((all[3].mlength, all[4].mlength, all[3].initiator), (size as u64, size as u64, id(0)));
        assert!(bytes(&memory) == sent);
        sides[0].ni.unlink_entry(entry).expect("nothing is pending");
        let (entry, _) = sides[0].post(bits(7), &memory, GET);
        let copy = zeroes(size);
        sides[0].ni.get(sides[0].bind(&copy), None, &Target { bits: 7, ..other(0) }).expect("room");
        events(&sides, 0, &[GetStart, GetEnd, ReplyStart, ReplyEnd]);
        assert!(bytes(&copy) == sent);
        sides[0].ni.unlink_entry(entry).expect("nothing is pending");
    }
    let (old, new, memory) = (zeroes(4), buffer(b"new!".to_vec()), buffer(b"old!".to_vec()));
    sides[0].post(bits(7), &memory, PUT | GET);
    let (sink, source) = (sides[0].bind(&old), sides[0].bind(&new));
    sides[0].ni.get_put(sink, source, &Target { bits: 7, ..other(0) }).expect("room");
    events(&sides, 0, &[SendStart, SendEnd, GetPutStart, GetPutEnd, ReplyStart, ReplyEnd]);
    assert_eq!((bytes(&old), bytes(&memory)), (b"old!".to_vec(), b"new!".to_vec()));
    assert_eq!(sides[0].ni.counts(), (0, 0));
}

/// Each side is initiator and target at once, with puts short and long mixed.
#[test]
fn puts_begin_at_the_target_in_the_order_of_their_calls() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let memory = zeroes(100_000);
        let sizes = [8, 40_000, 0, 17_000, 1, 100_000, 3];
        for side in &sides {
            side.post(anything(), &memory, PUT | options::MANAGE_REMOTE);
        }
        for (number, size) in sizes.iter().cycle().take(35).enumerate() {
            for (from, to) in [(0, 1), (1, 0)] {
                let source = sides[from].ni.bind(Descriptor::new(&zeroes(*size)), Unlink::Retain).expect("room");
                let to = Target { bits: number as u64, ..other(to) };
                sides[from].ni.put(source, None, false, &to).expect("room");
            }
        }
        for at in 0..2 {
            let (mut begun, mut ended) = (Vec::new(), 0);
            while begun.len() < 35 || ended < 35 {
                let event = until(&sides, "a put", || sides[at].event());
                match event.kind {
                    PutStart => begun.push(event.bits),
                    kind => {
                        assert_eq!((kind, event.failure), (PutEnd, 0));
                        ended += 1;
                    }
                }
            }
            assert!(begun.iter().copied().eq(0..35), "{transport}: {begun:?}");
        }
        close(sides);
    }
}

#[test]
fn a_target_that_disables_acks_gives_none() {
    for size in [8, 40_000] {
        let sides = two("sm");
        let memory = zeroes(size);
        sides[1].post(anything(), &memory, PUT | options::ACK_DISABLE | options::MANAGE_REMOTE);
        let source = sides[0].bind(&zeroes(size));
        sides[0].ni.put(source, None, true, &other(1)).expect("room");
        events(&sides, 0, &[SendStart, SendEnd]);
        events(&sides, 1, &[PutStart, PutEnd]);
        until(&sides, "the end", || (sides[0].ni.counts().0 == 0).then_some(()));
        assert_eq!((sides[0].event(), sides[0].dropped()), (None, 0));
    }
}

/// The ack of an earlier life of a descriptor is nobody's.
#[test]
fn an_ack_for_a_descriptor_that_is_gone_is_dropped() {
    let sides = two("sm");
    sides[1].post(anything(), &zeroes(8), PUT | options::MANAGE_REMOTE);
    put(&sides, 0, b"opens", &other(1));
    events(&sides, 1, &[PutStart, PutEnd]);
    let source = sides[0].bind(&zeroes(8));
    sides[0].ni.put(source, None, true, &other(1)).expect("room");
    // The send ends when the target's library has the message, and its ack comes later.
    let ended = until_sent(&sides[0]);
    assert_eq!(ended.kind, SendEnd);
    sides[0].ni.unlink_memory(source).expect("an ack is no pending operation");
    sides[0].bind(&zeroes(8));
    until(&sides, "the ack", || (sides[0].dropped() == 1).then_some(()));
    assert_eq!((sides[0].event(), sides[0].ni.counts().0), (None, 0));
}

/// Waits for the end of a send while the target takes the message, and answers it not.
fn until_sent(side: &Side) -> cci_portals::Event {
    let begun = std::time::Instant::now();
    loop {
        if let Some(event) = side.event().filter(|event| event.kind != SendStart) {
            return event;
        }
        assert!(begun.elapsed() < cci_conformance::LIMIT, "the send does not end");
    }
}

#[test]
fn a_descriptor_that_goes_by_itself_goes_after_its_last_operation() {
    for transport in TRANSPORTS {
        for size in [8, 100_000] {
            let sides = two(transport);
            let memory = zeroes(size);
            let descriptor = Descriptor::new(&memory).options(PUT).threshold(1);
            let (entry, target) = sides[1].post_descriptor(anything(), descriptor, Unlink::Unlink);
            let source = Descriptor::new(&zeroes(size)).threshold(2).events(sides[0].queue);
            let source = sides[0].ni.bind(source, Unlink::Unlink).expect("room");
            sides[0].ni.put(source, None, true, &other(1)).expect("room");
            let came = events(&sides, 1, &[PutStart, PutEnd, Unlinked]);
            assert_eq!((came[2].link, came[2].memory), (came[1].sequence, target));
            let sent = events(&sides, 0, &[SendStart, SendEnd, Ack, Unlinked]);
            assert_eq!((sent[3].link, sent[3].memory), (sent[2].sequence, source));
            assert_eq!(sides[1].ni.unlink_entry(entry), Err(Error::Entry), "it has gone along");
            assert_eq!(sides[1].ni.unlink_memory(target), Err(Error::Memory));
            assert_eq!(sides[0].ni.unlink_memory(source), Err(Error::Memory));
            close(sides);
        }
    }
}

/// Its bytes have left the memory, and no event tells of it.
#[test]
fn a_short_put_that_leaves_no_events_is_over_as_its_call_returns() {
    let quietly = options::EVENT_START_DISABLE | options::EVENT_END_DISABLE;
    for transport in TRANSPORTS {
        let sides = two(transport);
        let (ni, memory) = (&sides[0].ni, zeroes(8));
        sides[1].post(anything(), &memory, PUT | options::MANAGE_REMOTE);
        // Opens the link.
        put(&sides, 0, &[1], &other(1));
        events(&sides, 1, &[PutStart, PutEnd]);
        let silent = ni.bind(Descriptor::new(&buffer(vec![7; 8])), Unlink::Retain).expect("room");
        let once = Descriptor::new(&buffer(vec![9; 8])).threshold(1).options(quietly).events(sides[0].queue);
        let once = ni.bind(once, Unlink::Unlink).expect("room");
        // The other side makes no progress meanwhile.
        ni.put(silent, None, false, &other(1)).expect("room");
        assert_eq!((ni.unlink_memory(silent), ni.counts().0), (Ok(()), 0), "{transport}");
        ni.put(once, None, false, &other(1)).expect("room");
        assert_eq!(ni.put(once, None, false, &other(1)), Err(Error::Memory), "it went by itself");
        assert_eq!(sides[0].event().map(|event| event.kind), Some(Unlinked));
        events(&sides, 1, &[PutStart, PutEnd, PutStart, PutEnd]);
        assert_eq!((bytes(&memory), ni.status(4), ni.status(5)), (vec![9; 8], Ok(3), Ok(17)));
        close(sides);
    }
}

/// What this side reads goes to the same descriptor at other places, and to its new memory.
#[test]
fn long_puts_go_to_a_descriptor_again_and_to_the_memory_that_it_gets() {
    const LEN: usize = 60_000;
    for transport in TRANSPORTS {
        let sides = two(transport);
        let (first, of_first) = parts(&vec![0; 2 * LEN], &[LEN / 2, 0, LEN]);
        let (second, of_second) = parts(&vec![0; 2 * LEN], &[LEN]);
        let options = PUT | options::MANAGE_REMOTE;
        let (_, target) = sides[1].post_descriptor(anything(), of_first.options(options), Unlink::Retain);
        for (round, memory) in [&first, &second].into_iter().enumerate() {
            let halves = [pattern(LEN, 2 * round), pattern(LEN, 2 * round + 1)];
            for (at, half) in [1, 0].map(|at| (at, &halves[at])) {
                put(&sides, 0, half, &Target { offset: (at * LEN) as u64, ..other(1) });
                events(&sides, 1, &[PutStart, PutEnd]);
            }
            assert!(joined(memory) == halves.concat(), "round {round} over {transport}");
            let next = of_second.clone().options(options).events(sides[1].queue);
            sides[1].ni.update(target, Some(next), sides[1].queue).expect("quiet");
        }
        assert!(joined(&first) == [pattern(LEN, 0), pattern(LEN, 1)].concat(), "left alone since, over {transport}");
        assert_eq!(sides[1].ni.unlink_memory(target), Ok(()));
        close(sides);
    }
}
