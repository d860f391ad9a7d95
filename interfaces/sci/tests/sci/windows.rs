//! Loads, stores and copies.

use crate::world::{connect, host, published, refused, two};
use cci_sci::{Access, Error, Kind, Word};

fn is_whole<T: Word + PartialEq + std::fmt::Debug>(window: &cci_sci::Window, seen: &cci_sci::Window, value: T) {
    let size = size_of::<T>();
    window.store(64, value).expect("aligned");
    assert_eq!(seen.load::<T>(64), Ok(value));
    if size > 1 {
        assert_eq!(refused(window.store(65, value)), Error::OffsetAlignment);
        assert_eq!(refused(window.load::<T>(64 + size / 2)), Error::OffsetAlignment);
    }
    assert_eq!(refused(window.load::<T>(129 - size)), Error::OutOfRange);
    window.load::<T>(128 - size).expect("the last one");
    assert_eq!(refused(window.store(usize::MAX, value)), Error::OutOfRange);
}

#[test]
fn each_type_is_stored_and_seen_by_the_owner() {
    let [owner, other] = two();
    let segment = published(&owner, 128);
    let connection = connect(&other, &owner, &segment);
    let window = connection.map(0..128, Access::ReadWrite).expect("mapped");
    let seen = segment.map(0..128, Access::Read).expect("mapped");
    assert_eq!((window.kind(), window.access(), seen.access()), (Kind::Shared, Access::ReadWrite, Access::Read));
    is_whole(&window, &seen, 0xa5_u8);
    is_whole(&window, &seen, -5_i8);
    is_whole(&window, &seen, 0xa55a_u16);
    is_whole(&window, &seen, -500_i16);
    is_whole(&window, &seen, 0xa55a_1234_u32);
    is_whole(&window, &seen, -70_000_i32);
    is_whole(&window, &seen, u64::MAX - 1);
    is_whole(&window, &seen, i64::MIN);
    is_whole(&window, &seen, 1.5_f32);
    is_whole(&window, &seen, -2.5_f64);
    // A store changes its own bytes alone.
    window.write(0, &[0xee; 128]).expect("inside");
    window.store(66, 1_u16).expect("aligned");
    let mut bytes = [0; 128];
    seen.read(0, &mut bytes).expect("inside");
    assert_eq!(bytes[64..70], [0xee, 0xee, 1, 0, 0xee, 0xee]);
    assert_eq!([refused(seen.store(0, 1_u8)), refused(seen.write(0, b"x"))], [Error::Access; 2]);
}

#[test]
fn windows_begin_and_end_anywhere() {
    let [owner, other] = two();
    let segment = published(&owner, 10_001);
    let connection = connect(&other, &owner, &segment);
    for range in [0..10_001, 1..2, 4095..4097, 7..9_999, 10_000..10_001] {
        let window = connection.map(range.clone(), Access::ReadWrite).expect("inside");
        let len = range.len();
        assert_eq!(window.len(), len);
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + range.start) as u8).collect();
        window.write(0, &bytes).expect("inside");
        let mut seen = vec![0; len];
        segment.map(range.clone(), Access::Read).and_then(|window| window.read(0, &mut seen)).expect("inside");
        assert!(seen == bytes, "{range:?}");
        assert_eq!([refused(window.write(1, &bytes)), refused(window.read(len, &mut [0]))], [Error::OutOfRange; 2]);
        // The alignment is that in the segment.
        let first = range.start.next_multiple_of(8) - range.start;
        assert_eq!(window.store(first, 1_u64).is_ok(), first + 8 <= len, "{range:?}");
    }
    #[expect(clippy::reversed_empty_ranges, reason = "that is the test")]
    let wrong = [5..5, 6..5, 0..10_002, 10_001..10_001, 0..usize::MAX];
    for range in wrong {
        assert_eq!(refused(connection.map(range.clone(), Access::Read)), Error::OutOfRange, "{range:?}");
        assert_eq!(refused(segment.map(range.clone(), Access::Read)), Error::OutOfRange, "{range:?}");
    }
}

#[test]
fn a_transfer_copies_between_windows() {
    let [owner, other] = two();
    let (from, to) = (published(&owner, 20_000), published(&other, 20_000));
    let source = connect(&other, &owner, &from);
    let source = source.map(3..20_000, Access::Read).map(|window| (window, source)).expect("mapped").0;
    let target = to.map(5..20_000, Access::ReadWrite).expect("mapped");
    let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at * 13 + at / 256) as u8).collect();
    from.map(0..20_000, Access::ReadWrite).and_then(|window| window.write(0, &bytes)).expect("mapped");
    source.transfer(10, &target, 20, 12_345).expect("inside");
    let mut seen = vec![0; 20_000];
    to.map(0..20_000, Access::Read).and_then(|window| window.read(0, &mut seen)).expect("mapped");
    assert!(seen[25..25 + 12_345] == bytes[13..13 + 12_345]);
    assert!(seen[..25].iter().chain(&seen[25 + 12_345..]).all(|byte| *byte == 0));
    assert_eq!(refused(source.transfer(10, &target, 20, 19_990)), Error::OutOfRange);
    assert_eq!(refused(target.transfer(0, &source, 0, 1)), Error::Access);
}

/// One thread stores, another polls: the flag comes after what was stored before it.
#[test]
fn stores_arrive_in_their_order() {
    let [owner, other] = two();
    let segment = published(&owner, 4096);
    let connection = connect(&other, &owner, &segment);
    let there = connection.map(0..4096, Access::ReadWrite).expect("mapped");
    let here = segment.map(0..4096, Access::ReadWrite).expect("mapped");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=20_000_u64 {
                there.store(128, round).expect("inside");
                there.write(256, &[round as u8; 64]).expect("inside");
                there.store_barrier();
                there.store(0, round).expect("inside");
                while there.load::<u64>(64) != Ok(round) {
                    std::thread::yield_now();
                }
            }
        });
        for round in 1..=20_000_u64 {
            while here.load::<u64>(0) != Ok(round) {
                std::thread::yield_now();
            }
            let mut bytes = [0; 64];
            here.read(256, &mut bytes).expect("inside");
            assert_eq!((here.load::<u64>(128), bytes), (Ok(round), [round as u8; 64]));
            here.flush();
            here.store(64, round).expect("inside");
        }
    });
}

#[test]
fn two_nodes_of_a_program_have_segments_of_one_number() {
    let (first, second) = (host(4), host(8));
    let segment = published(&first, 8);
    let twin = second.create(segment.id(), 16).expect("another node");
    twin.prepare().expect("room");
    twin.publish().expect("prepared");
    let third = host(12);
    assert_eq!(
        [(4, 8), (8, 16)].map(|(node, len)| {
            third.connect(node, segment.id(), None).map(|connection| connection.len()) == Ok(len)
        }),
        [true; 2]
    );
}
