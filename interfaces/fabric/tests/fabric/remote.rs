//! Accesses to memory of a peer by keys.

use crate::world::{Side, bytes, domain, memory, of};
use cci_fabric::{Code, Remote, Segments, bits};

const TRANSPORTS: [&str; 4] = ["sm", "sock", "tcp", "auto"];
const BOTH: u64 = bits::REMOTE_READ | bits::REMOTE_WRITE;

fn access(to: u64, local: &cci::Memory, (offset, key): (u64, u64), is_write: bool, context: u64) -> Remote {
    let (segments, pieces) = (Segments::from(local.clone()), vec![(offset, local.len(), key)]);
    Remote { segments, to, pieces, is_write, data: None, context, flags: 0 }
}

#[test]
fn bytes_go_to_memory_of_a_key_and_come_back() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        let target = memory(300_000);
        let _region = domain.register(target.clone(), 0xdead_beef_0000, BOTH).expect("a region");
        for (round, len) in (1_u8..).zip([1, 8, 4_000, 200_000]) {
            let at = (u64::from(round) * 1_000, 0xdead_beef_0000);
            let (from, into) = (of(vec![round; len]), memory(len));
            here.endpoint.remote(access(to, &from, at, true, 1)).expect("a write");
            let entry = here.next_beside(&there).unwrap_or_else(|why| panic!("{transport}, {len} B: {why:?}"));
            assert_eq!((entry.context, entry.flags), (1, bits::RMA | bits::WRITE));
            assert!(bytes(&target)[at.0 as usize..][..len] == bytes(&from), "{transport}, {len} B");
            here.endpoint.remote(access(to, &into, at, false, 2)).expect("a read");
            let entry = here.next_beside(&there).unwrap_or_else(|why| panic!("{transport}, {len} B: {why:?}"));
            assert_eq!((entry.context, entry.flags), (2, bits::RMA | bits::READ));
            assert!(bytes(&into) == bytes(&from), "{transport}, {len} B");
        }
        // Pieces on both sides that do not fit each other, and remote data.
        let segments = Segments::Many(vec![of(vec![1; 10]), of(vec![2; 30])]);
        let pieces = vec![(0, 25, 0xdead_beef_0000), (100, 15, 0xdead_beef_0000)];
        let data = Some(u64::MAX);
        here.endpoint.remote(Remote { segments, to, pieces, is_write: true, data, context: 3, flags: 0 }).expect("one");
        assert_eq!(here.next_beside(&there).map(|entry| entry.context), Ok(3));
        let entry = there.next_beside(&here).expect("what follows a write");
        assert_eq!((entry.data, entry.len), (u64::MAX, 40));
        assert_eq!(entry.flags, bits::RMA | bits::REMOTE_WRITE | bits::REMOTE_CQ_DATA);
        let found = bytes(&target);
        assert!(found[..25] == [&[1; 10][..], &[2; 15]].concat() && found[100..115] == [2; 15], "{transport}");
        here.endpoint.inject_write(&[9; 8], to, (0, 0xdead_beef_0000), Some(5)).expect("a write");
        assert_eq!(there.next_beside(&here).map(|entry| entry.data), Ok(5));
        assert!(bytes(&target)[..8] == [9; 8]);
        assert_eq!(here.queue.read(1, |_| ()), Err(Code::Again), "it makes no entry");
    }
}

#[test]
fn what_is_injected_is_the_programs_again_at_once() {
    let domain = domain("sm");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    let (to, target, from) = (here.meet(&there), memory(64), of(vec![1; 32]));
    let _region = domain.register(target.clone(), 7, BOTH).expect("a region");
    let inject = |local: &cci::Memory| Remote { flags: bits::INJECT, ..access(to, local, (0, 7), true, 1) };
    here.endpoint.remote(inject(&from)).expect("a write");
    // The key is asked for first: nothing has left.
    assert!(from.copy_in(0, &[2; 32]));
    assert_eq!(here.next_beside(&there).map(|entry| entry.context), Ok(1));
    assert_eq!(bytes(&target)[..32], [1; 32]);
    assert_eq!(here.endpoint.remote(inject(&of(vec![1; 33]))), Err(Code::MessageSize));
}

#[test]
fn keys_ranges_and_rights_are_those_of_the_region() {
    let domain = domain("sm");
    let (here, there) = (Side::new(&domain), Side::new(&domain));
    for to in [here.meet(&there), here.meet(&here)] {
        let regions = [bits::REMOTE_READ, bits::REMOTE_WRITE]
            .map(|access| domain.register(memory(100), access, access).expect("a region"));
        let empty = domain.register(cci::Memory::none(), 1, BOTH).expect("an empty region");
        for (at, is_write, code) in [
            ((0, 77), true, Some(Code::KeyRejected)),
            ((0, regions[0].key()), true, Some(Code::Access)),
            ((0, regions[1].key()), false, Some(Code::Access)),
            ((93, regions[1].key()), true, Some(Code::Invalid)),
            ((u64::MAX - 3, regions[1].key()), true, Some(Code::Invalid)),
            ((0, empty.key()), true, Some(Code::Invalid)),
            ((92, regions[1].key()), true, None),
            ((92, regions[0].key()), false, None),
        ] {
            here.endpoint.remote(access(to, &memory(8), at, is_write, 5)).expect("it begins");
            let ended = here.next_beside(&there);
            assert_eq!(ended.err().map(|failed| failed.code), code, "{to}, {at:?}");
            assert_eq!(ended.map_or_else(|failed| failed.entry.context, |entry| entry.context), 5);
        }
    }
    let wrong = Remote { pieces: vec![(0, 9, 1)], ..access(0, &memory(8), (0, 1), true, 5) };
    assert_eq!(here.endpoint.remote(wrong), Err(Code::Invalid), "other lengths");
}

#[test]
fn a_key_that_is_registered_anew_is_asked_for_once_more() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        for round in 0..20_u8 {
            let target = memory(64);
            let region = domain.register(target.clone(), 5, BOTH).expect("a region");
            here.endpoint.remote(access(to, &of(vec![round; 64]), (0, 5), true, 1)).expect("a write");
            here.next_beside(&there).unwrap_or_else(|why| panic!("{transport}, round {round}: {why:?}"));
            assert!(bytes(&target) == [round; 64], "{transport}");
            drop(region);
        }
        here.endpoint.remote(access(to, &memory(8), (0, 5), true, 1)).expect("a write");
        let failed = here.next_beside(&there).expect_err("it is closed");
        assert_eq!(failed.code, Code::KeyRejected, "{transport}");
    }
}
