//! How descriptors end: what UNLINK tells, and what counts as dropped by then.

use crate::world::{GET, PUT, TRANSPORTS, anything, close, events, id, other, put, two, until, zeroes};
use cci_portals::EventKind::{
    Ack, GetPutEnd, GetPutStart, PutEnd, PutStart, ReplyEnd, ReplyStart, SendEnd, SendStart, Unlink as Unlinked,
};
use cci_portals::{Descriptor, Error, Event, Target, Unlink, buffer, options};

/// What UNLINK has of the event before it: all but what is its own.
#[track_caller]
fn check_unlink(unlinked: &Event, last: &Event) {
    let of = |event: &Event| Event { kind: Unlinked, link: last.sequence, sequence: 0, ..*event };
    assert_eq!(of(unlinked), of(last));
    assert_eq!(unlinked.link, last.sequence);
}

/// A program that handles UNLINK as the end of its operation reads the operation there.
#[test]
fn unlink_tells_of_the_operation_that_ended_the_descriptor() {
    for transport in TRANSPORTS {
        for size in [8, 100_000] {
            let sides = two(transport);
            let once = |bits, threshold, side: usize| {
                Descriptor::new(&zeroes(size)).options(bits).threshold(threshold).events(sides[side].queue)
            };
            sides[1].post_descriptor(anything(), once(PUT, 1, 1), Unlink::Unlink);
            sides[1].post_descriptor(anything(), once(GET, 1, 1), Unlink::Unlink);
            let to = Target { bits: 7, header: 9, ..other(1) };
            let source = sides[0].ni.bind(once(0, 2, 0), Unlink::Unlink).expect("room");
            sides[0].ni.put(source, None, true, &to).expect("active");
            let sent = events(&sides, 0, &[SendStart, SendEnd, Ack, Unlinked]);
            check_unlink(&sent[3], &sent[2]);
            let came = events(&sides, 1, &[PutStart, PutEnd, Unlinked]);
            check_unlink(&came[2], &came[1]);
            let seen = (came[2].initiator, came[2].bits, came[2].header, came[2].rlength, came[2].portal);
            assert_eq!(seen, (id(0), 7, 9, size as u64, to.portal), "{transport}");
            let sink = sides[0].ni.bind(once(0, 1, 0), Unlink::Unlink).expect("room");
            sides[0].ni.get(sink, None, &to).expect("active");
            let replied = events(&sides, 0, &[ReplyStart, ReplyEnd, Unlinked]);
            check_unlink(&replied[2], &replied[1]);
            let source = sides[0].ni.bind(once(0, 1, 0), Unlink::Unlink).expect("room");
            sides[0].ni.put(source, None, false, &to).expect("active");
            let sent = events(&sides, 0, &[SendStart, SendEnd, Unlinked]);
            check_unlink(&sent[2], &sent[1]);
            close(sides);
        }
    }
}

/// Without an END event UNLINK follows the START.
#[test]
fn unlink_follows_the_last_event_that_its_descriptor_left() {
    let sides = two("sm");
    put(&sides, 0, b"opens the link", &other(1));
    until(&sides, "the drop", || (sides[1].dropped() == 1).then_some(()));
    let only_start = |side: usize| {
        let descriptor = Descriptor::new(&zeroes(8)).options(PUT | options::EVENT_END_DISABLE);
        descriptor.threshold(1).events(sides[side].queue)
    };
    sides[1].post_descriptor(anything(), only_start(1), Unlink::Unlink);
    let source = sides[0].ni.bind(only_start(0), Unlink::Unlink).expect("room");
    sides[0].ni.put(source, None, false, &Target { header: 3, ..other(1) }).expect("active");
    for (side, start) in [(0, SendStart), (1, PutStart)] {
        let seen = events(&sides, side, &[start, Unlinked]);
        check_unlink(&seen[1], &seen[0]);
    }
}

/// An ack is dropped where its descriptor has gone. One that finds it inactive leaves nothing, as
/// nothing was asked for.
#[test]
fn an_ack_for_an_inactive_descriptor_leaves_nothing_and_counts_nowhere() {
    for size in [8, 100_000] {
        let sides = two("sm");
        sides[1].post(anything(), &zeroes(size), PUT | options::MANAGE_REMOTE);
        let once = Descriptor::new(&zeroes(size)).threshold(1).events(sides[0].queue);
        let source = sides[0].ni.bind(once, Unlink::Retain).expect("room");
        sides[0].ni.put(source, None, true, &other(1)).expect("active");
        events(&sides, 0, &[SendStart, SendEnd]);
        until(&sides, "the ack", || (sides[0].ni.counts().0 == 0).then_some(()));
        assert_eq!((sides[0].event(), sides[0].dropped()), (None, 0));
        assert_eq!(sides[0].ni.put(source, None, true, &other(1)), Err(Error::Memory), "it is inactive");
    }
}

/// A swap that its target drops has no reply, so nothing but the request is dropped.
#[test]
fn a_swap_that_is_dropped_counts_once() {
    let sides = two("sm");
    let once = |threshold| Descriptor::new(&zeroes(8)).threshold(threshold).events(sides[0].queue);
    // The send takes what its reply would need.
    let both = sides[0].ni.bind(once(1), Unlink::Retain).expect("room");
    sides[0].ni.get_put(both, both, &other(1)).expect("active");
    events(&sides, 0, &[SendStart, SendEnd]);
    until(&sides, "the end", || (sides[0].ni.counts().0 == 0).then_some(()));
    assert_eq!((sides[0].event(), sides[0].dropped(), sides[1].dropped()), (None, 0, 1));
    // One that is taken has a reply, which is dropped.
    sides[1].post(anything(), &buffer(vec![5; 8]), PUT | GET | options::MANAGE_REMOTE);
    let both = sides[0].ni.bind(once(1), Unlink::Retain).expect("room");
    sides[0].ni.get_put(both, both, &other(1)).expect("active");
    events(&sides, 0, &[SendStart, SendEnd]);
    events(&sides, 1, &[GetPutStart, GetPutEnd]);
    until(&sides, "the reply", || (sides[0].ni.counts().0 == 0).then_some(()));
    assert_eq!((sides[0].event(), sides[0].dropped(), sides[1].dropped()), (None, 1, 1));
}
