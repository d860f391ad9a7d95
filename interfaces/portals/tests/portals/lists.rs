//! Match lists: which entry takes a request.

use crate::world::{GET, PUT, anything, bits, bytes, events, id, other, put, two, two_with, until, zeroes};
use cci_portals::EventKind::{PutEnd, PutStart, ReplyEnd, ReplyStart, Unlink as Unlinked};
use cci_portals::{
    ANY, AccessEntry, Descriptor, Error, Handle, Limits, Match, Position, ProcessId, Target, Unlink, buffer, options,
};

/// Where a put ended up: the descriptor of its PUT_END.
fn taken(sides: &[crate::world::Side], bytes: &[u8], bits: u64) -> cci_portals::Event {
    put(sides, 0, bytes, &Target { bits, ..other(1) });
    events(sides, 1, &[PutStart, PutEnd])[1]
}

#[test]
fn an_entry_that_refuses_is_passed_over() {
    let sides = two("sm");
    let ni = &sides[1].ni;
    // Without a descriptor, inactive, for gets, too short, of somebody else; then one takes it.
    ni.attach(4, anything(), Unlink::Retain, Position::After).expect("room");
    sides[1].post_descriptor(anything(), Descriptor::new(&zeroes(64)).options(PUT).threshold(0), Unlink::Retain);
    sides[1].post(anything(), &zeroes(64), GET);
    sides[1].post(anything(), &zeroes(4), PUT);
    for source in [id(1), ProcessId { nid: 8, pid: ANY }, ProcessId { nid: ANY, pid: 5 }] {
        sides[1].post(Match { source, ..anything() }, &zeroes(64), PUT);
    }
    sides[1].post(Match { ignore: 0xf, ..bits(0x70) }, &zeroes(64), PUT);
    let (_, last) = sides[1].post(Match { source: ProcessId { nid: 9, pid: ANY }, ..anything() }, &zeroes(64), PUT);
    assert_eq!(taken(&sides, b"hello", 0x7f).memory, {
        // The one with ignored bits is before it.
        let event = taken(&sides, b"hello", 0x71);
        assert_ne!(event.memory, last);
        event.memory
    });
    assert_eq!(taken(&sides, b"hello", 0x81).memory, last);
    assert_eq!(sides[1].dropped(), 0);
}

#[test]
fn entries_stand_where_they_were_put() {
    let sides = two("sm");
    let ni = &sides[1].ni;
    let attach = |entry| {
        let descriptor = Descriptor::new(&zeroes(8)).options(PUT | options::MANAGE_REMOTE).threshold(1);
        ni.attach_memory(entry, descriptor.events(sides[1].queue), Unlink::Retain).expect("room")
    };
    let middle = ni.attach(4, anything(), Unlink::Retain, Position::After).expect("room");
    let first = ni.attach(4, anything(), Unlink::Retain, Position::Before).expect("room");
    let last = ni.attach(4, bits(7), Unlink::Retain, Position::After).expect("room");
    let before = ni.insert(middle, bits(7), Unlink::Retain, Position::Before).expect("room");
    let after = ni.insert(middle, anything(), Unlink::Retain, Position::After).expect("room");
    // Each takes one put.
    let wanted: Vec<_> = [first, before, middle, after, last].map(attach).into();
    let found: Vec<_> = wanted.iter().map(|_| taken(&sides, b"x", 7).memory).collect();
    assert_eq!(found, wanted);
    put(&sides, 0, b"x", &Target { bits: 7, ..other(1) });
    until(&sides, "the drop", || (sides[1].dropped() == 1).then_some(()));
    assert_eq!(ni.insert(cci_portals::Handle::NONE, anything(), Unlink::Retain, Position::After), Err(Error::Entry));
}

#[test]
fn what_is_too_long_is_cut_or_goes_on() {
    let sides = two("sm");
    let (short, rest) = (zeroes(4), zeroes(64));
    sides[1].post(bits(7), &short, PUT | options::TRUNCATE);
    sides[1].post(anything(), &rest, PUT);
    let event = taken(&sides, b"hello", 7);
    assert_eq!((event.rlength, event.mlength, bytes(&short)), (5, 4, b"hell".to_vec()));
    let event = taken(&sides, b"more", 7);
    assert_eq!((event.mlength, event.offset), (0, 4), "nothing is left, and it is still cut");
    assert_eq!(taken(&sides, b"hello", 8).mlength, 5);
    // A cut get brings what there is.
    let (source, copy) = (buffer(b"abc".to_vec()), zeroes(8));
    sides[1].post(bits(9), &source, GET | options::TRUNCATE | options::MANAGE_REMOTE);
    sides[0].ni.get(sides[0].bind(&copy), None, &Target { bits: 9, offset: 1, ..other(1) }).expect("room");
    let ends = events(&sides, 0, &[ReplyStart, ReplyEnd]);
    assert_eq!((ends[1].rlength, ends[1].mlength, &bytes(&copy)[..3]), (2, 2, &b"bc\0"[..]));
}

#[test]
fn the_local_offset_grows_until_too_little_is_left() {
    let sides = two("sm");
    let memory = zeroes(20);
    let descriptor = Descriptor::new(&memory).options(PUT).max_size(6);
    sides[1].post_descriptor(anything(), descriptor, Unlink::Unlink);
    assert_eq!(taken(&sides, b"12345", 1).offset, 0);
    assert_eq!(taken(&sides, b"6789", 2).offset, 5);
    put(&sides, 0, b"abcdef", &other(1));
    let came = events(&sides, 1, &[PutStart, PutEnd, Unlinked]);
    assert_eq!((came[1].offset, bytes(&memory)), (9, b"123456789abcdef\0\0\0\0\0".to_vec()), "five are left");
    put(&sides, 0, b"x", &other(1));
    until(&sides, "the drop", || (sides[1].dropped() == 1).then_some(()));
}

/// It is used up by the request that leaves too little, not before.
#[test]
fn a_descriptor_that_is_shorter_than_its_max_size_takes_one_request() {
    for bits in [PUT, PUT | options::TRUNCATE] {
        let sides = two("sm");
        let memory = zeroes(5);
        let short = Descriptor::new(&memory).options(bits).max_size(6);
        let (_, target) = sides[1].post_descriptor(anything(), short.clone(), Unlink::Retain);
        assert_eq!(taken(&sides, b"x", 1).offset, 0);
        let expected = Err(Error::Memory);
        assert_eq!(sides[1].ni.put(target, None, false, &other(0)), expected, "it is inactive");
        put(&sides, 0, b"y", &other(1));
        until(&sides, "the drop", || (sides[1].dropped() == 1).then_some(()));
        // An update makes it new.
        sides[1].ni.update(target, Some(short.events(sides[1].queue)), Handle::NO_QUEUE).expect("there");
        assert_eq!(taken(&sides, b"z", 1).offset, 0);
    }
}

#[test]
fn access_is_checked_before_anything_else() {
    let sides = two("sm");
    sides[1].post(anything(), &zeroes(64), PUT);
    let uid = sides[0].ni.identity().0;
    let own = AccessEntry { process: id(0), uid, jid: 0, portal: 4 };
    let entries = [
        (own, true),
        (AccessEntry { process: ProcessId::ANY, uid: ANY, jid: ANY, portal: ANY }, true),
        (AccessEntry { process: id(1), ..own }, false),
        (AccessEntry { process: ProcessId { nid: 8, pid: ANY }, ..own }, false),
        (AccessEntry { uid: uid + 1, ..own }, false),
        (AccessEntry { jid: 1, ..own }, false),
        (AccessEntry { portal: 5, ..own }, false),
    ];
    let mut dropped = 0;
    for (entry, is_let_in) in entries {
        sides[1].ni.access_entry(3, entry).expect("an entry");
        put(&sides, 0, b"x", &Target { access: 3, ..other(1) });
        if is_let_in {
            events(&sides, 1, &[PutStart, PutEnd]);
        } else {
            dropped += 1;
            until(&sides, "the drop", || (sides[1].dropped() == dropped).then_some(()));
        }
    }
    // No entry was made there; none can be; no such portal index.
    for (access, portal) in [(2, 4), (64, 4), (65_535, 4), (0, 256), (0, 65_535)] {
        put(&sides, 0, b"xy", &Target { access, portal, ..other(1) });
        dropped += 1;
        until(&sides, "the drop", || (sides[1].dropped() == dropped).then_some(()));
    }
    assert_eq!(sides[1].ni.status(1), Ok(5 + 2 * 5), "bytes");
    assert_eq!(sides[1].ni.access_entry(64, own), Err(Error::AccessIndex));
    assert_eq!(sides[1].ni.access_entry(3, AccessEntry { portal: 256, ..own }), Err(Error::PortalIndex));
    let source = sides[0].bind(&zeroes(1));
    let to = |access, portal| Target { access, portal, ..other(1) };
    assert_eq!(sides[0].ni.put(source, None, false, &to(65_536, 4)), Err(Error::AccessIndex));
    assert_eq!(sides[0].ni.put(source, None, false, &to(0, 65_536)), Err(Error::PortalIndex));
}

#[test]
fn tables_that_are_full_say_so_and_have_room_again() {
    let limits = Limits { max_mes: 4, max_mds: 3, max_eqs: 2, max_pt_index: 1, max_me_list: 3, ..Limits::default() };
    let sides = two_with(&crate::world::device("sm"), limits);
    let ni = &sides[0].ni;
    assert_eq!((ni.limits().max_mes, ni.limits().max_pt_index), (4, 1));
    let attach = |portal| ni.attach(portal, anything(), Unlink::Retain, Position::After);
    let (portal, first) = ni.attach_any(anything(), Unlink::Retain).expect("room");
    assert_eq!((portal, ni.attach_any(anything(), Unlink::Retain).map(|(portal, _)| portal)), (0, Ok(1)));
    assert_eq!(ni.attach_any(anything(), Unlink::Retain), Err(Error::TableFull));
    attach(0).expect("room");
    attach(0).expect("room");
    assert_eq!((attach(0), attach(1)), (Err(Error::ListTooLong), Err(Error::NoSpace)));
    assert_eq!(ni.insert(first, anything(), Unlink::Retain, Position::After), Err(Error::ListTooLong));
    assert_eq!(attach(2), Err(Error::PortalIndex));
    ni.unlink_entry(first).expect("nothing is pending");
    attach(0).expect("room again");

    let bind = || ni.bind(Descriptor::new(&zeroes(1)), Unlink::Retain);
    let memories: Vec<_> = (0..3).map(|_| bind().expect("room")).collect();
    assert_eq!(bind(), Err(Error::NoSpace));
    ni.unlink_memory(memories[1]).expect("nothing is pending");
    bind().expect("room again");
    assert!(ni.queue(2, false).is_ok());
    assert_eq!(ni.queue(2, false), Err(Error::NoSpace));
    assert_eq!(ni.queue(1 << 40, false), Err(Error::NoSpace));
}
