//! The wire format meets what should never come: everything is refused, and nothing panics.

use crate::frames::{self, TARGET, connect, data_frame, memory_frame, resealed};
use cci_proto::wire::*;

/// A frame with one byte changed and its check made right again.
fn with_byte(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    resealed(bytes)
}

/// A frame of the samples.
fn sample(name: &str) -> Vec<u8> {
    frames::all().into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no sample {name}")).1
}

/// A DATA frame with these bytes for records.
fn raw_records(records: &[u8]) -> Vec<u8> {
    data_frame(flags::SEQUENCED, &[], |f, at| {
        f[at..at + records.len()].copy_from_slice(records);
        at + records.len()
    })
}

/// The frame passes its check, and is refused by its parser.
fn assert_contradicts_itself(bytes: &[u8], what: &str) {
    assert!(verify(bytes).is_ok(), "{what}: the check is to be right");
    assert!(!frames::parses(bytes), "{what}");
}

#[test]
fn every_truncation_is_refused() {
    for (name, bytes) in frames::all() {
        for len in 0..bytes.len() {
            let expected = if len < HEADER { Malformed::Short } else { Malformed::Length };
            assert_eq!(verify(&bytes[..len]), Err(expected), "{name}, {len} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn every_truncation_with_a_right_check_is_refused_or_another_frame() {
    for (name, bytes) in frames::all() {
        for len in HEADER..bytes.len() {
            let cut = resealed(bytes[..len].to_vec());
            let is_frame = match name {
                "multicast" => true,
                // Nothing but records that end there, or an acknowledgement without any.
                // The same without its RESULT: 44 bytes and a word of the sack.
                "close, with a sack and a result" => len == 52,
                _ if bytes[1] == Kind::Data as u8 => len >= DATA && frames::parses(&cut),
                _ => false,
            };
            assert_eq!(frames::parses(&cut), is_frame, "{name}, {len} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn a_longer_frame_than_it_says_is_refused() {
    for (name, mut bytes) in frames::all() {
        bytes.push(0);
        assert_eq!(verify(&bytes), Err(Malformed::Length), "{name}");
        if !["multicast", "connect"].contains(&name) {
            assert!(!frames::parses(&resealed(bytes)), "{name}: trailing byte");
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for (name, bytes) in frames::all() {
        let free = if name.ends_with("unchecked") { 6 } else { 0 };
        for bit in 0..8 * (bytes.len() - free) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&flipped).is_err(), "{name}, bit {bit}");
        }
    }
}

#[test]
fn each_reason_to_drop_is_named() {
    let bytes = sample("message");
    let with = |at: usize, byte: u8| verify(&with_byte(&bytes, at, byte));
    assert_eq!(verify(&[]), Err(Malformed::Short));
    assert_eq!(verify(&bytes[..31]), Err(Malformed::Short));
    assert_eq!(with(0, 0xC3), Err(Malformed::Version), "a version to come");
    assert_eq!(with(0, 0x45), Err(Malformed::Version), "another protocol");
    for kind in [0, 11, 0x7F, 0x86, 0xFF] {
        assert_eq!(with(1, kind), Err(Malformed::Kind), "kind {kind}");
    }
    for length in [0_u16, 31, 63, 65, 0xFFFF] {
        let mut bytes = bytes.clone();
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        assert_eq!(verify(&bytes), Err(Malformed::Length), "length {length}");
    }
    let mut wrong = bytes.clone();
    wrong[7] ^= 1;
    assert_eq!(verify(&wrong), Err(Malformed::Check));
    assert!(verify(&bytes).is_ok());
}

#[test]
fn a_frame_of_another_kind_is_not_parsed() {
    for (name, bytes) in frames::all() {
        let kind = Kind::from_u8(bytes[1]);
        let parsed = [
            (Kind::Connect, Connect::parse(&bytes).is_some()),
            (Kind::Retry, Retry::parse(&bytes).is_some()),
            (Kind::Accept, Accept::parse(&bytes).is_some()),
            (Kind::Reject, Reject::parse(&bytes).is_some()),
            (Kind::Redirect, Redirect::parse(&bytes).is_some()),
            (Kind::Data, Data::parse(&bytes).is_some()),
            (Kind::Close, Close::parse(&bytes).is_some()),
            (Kind::Reset, Reset::parse(&bytes).is_some()),
            (Kind::Multicast, Multicast::parse(&bytes).is_some()),
            (Kind::Confirm, Confirm::parse(&bytes).is_some()),
        ];
        for (parser, is_some) in parsed {
            assert_eq!(is_some, Some(parser) == kind, "{name} by the parser of {parser:?}");
        }
    }
}

#[test]
fn reserved_bytes_are_zero() {
    let reserved: [(&str, &[usize]); 10] = [
        ("connect", &[41, 86, 87]),
        ("accept", &[41]),
        ("reject", &[33, 34, 35]),
        ("redirect", &[34, 35]),
        ("close", &[35, 42, 43]),
        ("write", &[57, 64, 67]),
        ("read", &[57, 64, 67]),
        ("read bytes", &[57, 64, 67]),
        ("result", &[57, 65, 67]),
        ("probe", &[57, 62, 63, 64, 1399]),
    ];
    for (name, offsets) in reserved {
        let bytes = sample(name);
        for at in offsets {
            assert_eq!(bytes[*at], 0, "{name}, offset {at}");
            assert_contradicts_itself(&with_byte(&bytes, *at, 0x80), &format!("{name}, offset {at}"));
        }
    }
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    for (name, at, byte) in [
        ("connect", 40, 3),
        ("connect", 40, 4),
        ("accept", 40, 5),
        ("reject", 32, 5),
        ("close", 33, 2),
        ("close", 34, 1),
        ("close", 34, 65),
        ("close, with a sack and a result", 52, 1),
        ("message", 36, 0x21),
        ("message", 36, 0x40),
        ("message", 36, 0x80),
        ("message", 56, 0),
        ("message", 56, 14),
        ("message", 57, 2),
        ("part", 57, 1),
        ("result", 64, 4),
        ("large", 57, 1),
        ("large", 67, 1),
        ("landing", 67, 1),
    ] {
        assert_contradicts_itself(&with_byte(&sample(name), at, byte), &format!("{name}, {byte} at {at}"));
    }
}

#[test]
fn identifiers_that_must_be_zero_are() {
    assert_contradicts_itself(&with_byte(&sample("connect"), 15, 1), "connect to somebody");
    assert_contradicts_itself(&with_byte(&sample("retry"), 23, 1), "retry from somebody");
    assert_contradicts_itself(&with_byte(&sample("multicast"), 15, 1), "multicast to somebody");
}

#[test]
fn a_connect_that_is_shorter_than_its_answer_is_refused() {
    let bytes = sample("connect");
    assert_contradicts_itself(&resealed(bytes[..CONNECT_MIN - 1].to_vec()), "short");
}

#[test]
fn a_payload_is_within_its_frame_and_its_limit() {
    let bytes = sample("connect");
    let with_length = |bytes: &[u8], len: usize| {
        let mut bytes = bytes.to_vec();
        bytes[84..86].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
        resealed(bytes)
    };
    assert!(frames::parses(&with_length(&bytes, CONNECT_MIN - CONNECT)));
    assert_contradicts_itself(&with_length(&bytes, CONNECT_MIN - CONNECT + 1), "beyond its frame");
    let payload = [1; MAX_PAYLOAD + 1];
    let long = frames::frame(|f| Connect { payload: &payload, ..connect() }.emit(f));
    assert_contradicts_itself(&long, "beyond its limit");
    assert_contradicts_itself(&with_length(&long, MAX_PAYLOAD), "padding that is not zero");
}

#[test]
fn padding_may_be_more_than_zeros_for_those_who_know_a_feature_to_come() {
    let bytes = with_byte(&sample("connect"), CONNECT_MIN - 1, 1);
    assert_contradicts_itself(&bytes, "padding");
    let bytes = with_byte(&bytes, 32, 0x01);
    assert_eq!(Connect::parse(&bytes).map(|connect| connect.payload), Some(&b"hello"[..]));
}

#[test]
fn a_uri_is_as_long_as_it_says() {
    for uri in [vec![], vec![b'u'; MAX_URI + 1]] {
        let redirect = Redirect { header: frames::header(Kind::Redirect), cookie: 1, token: 2, uri: &uri, tag: None };
        assert_contradicts_itself(&frames::frame(|f| redirect.emit(f)), "too short or too long");
    }
    let bytes = sample("redirect");
    assert_contradicts_itself(&with_byte(&bytes, 33, bytes[33] - 1), "longer than it says");
    assert_contradicts_itself(&with_byte(&bytes, 33, bytes[33] + 1), "shorter than it says");
}

#[test]
fn a_sack_is_within_its_frame_and_its_limit() {
    let bytes = sample("ack");
    assert_contradicts_itself(&with_byte(&bytes, 37, 1), "a sack without bytes");
    let long = data_frame(0, &[], |f, at| {
        f[at..at + 8 * 65].fill(0);
        at + 8 * 65
    });
    assert!(frames::parses(&with_byte(&long[..DATA + 8 * 64], 37, 64)));
    assert_contradicts_itself(&with_byte(&long, 37, 65), "65 words");
    assert_contradicts_itself(&with_byte(&long, 37, 255), "255 words");
}

#[test]
fn records_end_where_their_frame_ends() {
    for records in [
        &[1][..],
        &[1, 0],
        &[1, 0, 0],
        &[1, 0, 0, 1],
        &[1, 0, 0, 2, 7],
        &[1, 0, 0xFF, 0xFF, 7],
        &[1, 0, 0, 1, 7, 1],
        &[1, 0, 0, 1, 7, 1, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
    ] {
        assert_contradicts_itself(&raw_records(records), &format!("{records:?}"));
    }
    assert!(frames::parses(&raw_records(&[1, 0, 0, 1, 7, 1, 0, 0, 0])));
}

#[test]
fn records_of_a_fixed_length_have_it() {
    for (kind, len) in [(4, 40), (6, 8), (8, 4)] {
        for body in [len - 1, len, len + 1] {
            let mut record = vec![kind, 0, 0, body];
            record.resize(4 + usize::from(body), 0);
            assert_eq!(frames::parses(&raw_records(&record)), body == len, "kind {kind}, {body} bytes");
        }
    }
    for (kind, head) in [(2, 12), (3, 48), (5, 16), (9, 4)] {
        for body in 0..=head {
            let mut record = vec![kind, 0, 0, body];
            record.resize(4 + usize::from(body), 0);
            assert_contradicts_itself(&raw_records(&record), &format!("kind {kind}, {body} bytes, none of content"));
        }
    }
}

#[test]
fn memory_ends_its_frame() {
    let after = |head: fn(&mut [u8], usize) -> usize| {
        data_frame(flags::SEQUENCED, &[], |f, at| {
            let at = head(f, at);
            f[at..at + 4].copy_from_slice(b"once");
            emit_message(f, at + 4, false, &[b"more"])
        })
    };
    assert_contradicts_itself(&after(|f, at| emit_write(f, at, 1, &TARGET, 0, 4)), "write");
    assert_contradicts_itself(&after(|f, at| emit_read_bytes(f, at, 1, 0, 4)), "read bytes");
    assert_contradicts_itself(&after(|f, at| emit_slice(f, at, 9, 0, 4)), "slice");
    let probe = data_frame(0, &[], |f, at| {
        let at = emit_probe(f, at, 100);
        emit_message(f, at, false, &[b"more"])
    });
    assert_contradicts_itself(&probe, "probe");
}

#[test]
fn a_probe_is_as_long_as_it_says() {
    let bytes = sample("probe");
    assert_contradicts_itself(&with_byte(&bytes, 61, bytes[61] ^ 1), "another size");
}

#[test]
fn parts_lie_within_the_whole() {
    let write = |len: u64, at: u64, bytes: &[u8]| {
        let target = cci_proto::engine::Target { len, ..TARGET };
        memory_frame(flags::SEQUENCED, bytes, |f, end| emit_write(f, end, 1, &target, at, bytes.len()))
    };
    assert!(frames::parses(&write(10, 6, b"four")));
    assert_contradicts_itself(&write(10, 7, b"four"), "write beyond its end");
    assert_contradicts_itself(&write(10, u64::MAX, b"four"), "write that wraps");
    assert_contradicts_itself(&write(10, u64::MAX - 2, b"four"), "write that wraps into its range");
    assert_contradicts_itself(&write(10, 5, b""), "write of nothing");
    assert_contradicts_itself(&write(0, 0, b""), "write of nothing to nothing");
    let part = |total: u32, at: u32, bytes: &[u8]| {
        memory_frame(flags::SEQUENCED, bytes, |f, end| emit_part(f, end, 1, total, at, bytes.len()))
    };
    assert!(frames::parses(&part(10, 6, b"four")));
    assert_contradicts_itself(&part(10, 7, b"four"), "part beyond its end");
    assert_contradicts_itself(&part(u32::MAX, u32::MAX - 2, b"four"), "part that wraps");
    assert_contradicts_itself(&part(10, 0, b""), "part of nothing");
    let slice = |total: u16, at: u16, bytes: &[u8]| {
        memory_frame(flags::SEQUENCED, bytes, |f, end| emit_slice(f, end, total, at, bytes.len()))
    };
    assert!(frames::parses(&slice(10, 6, b"four")));
    assert_contradicts_itself(&slice(10, 7, b"four"), "slice beyond its end");
    assert_contradicts_itself(&slice(u16::MAX, u16::MAX - 2, b"four"), "slice that wraps");
    let read_bytes = |at: u64| memory_frame(flags::SEQUENCED, b"four", |f, end| emit_read_bytes(f, end, 1, at, 4));
    assert!(frames::parses(&read_bytes(u64::MAX - 4)));
    assert_contradicts_itself(&read_bytes(u64::MAX - 3), "read bytes that wrap");
    let read = |offset: u64, len: u64| {
        let target = cci_proto::engine::Target { offset, len, ..TARGET };
        data_frame(flags::SEQUENCED, &[], |f, at| emit_read(f, at, 1, &target))
    };
    // No contradiction: a range that no registration has, which the target refuses with a result.
    assert!(frames::parses(&read(u64::MAX - 4, 5)));
}

#[test]
fn unsound_records_are_covered_by_the_check_whole() {
    // Otherwise a frame could choose what is left out by contradicting itself.
    let mut bytes = memory_frame(flags::SEQUENCED | flags::UNCHECKED, b"memory", |f, at| {
        emit_write(f, at, 1, &TARGET, u64::MAX, 6)
    });
    assert_eq!(verify(&bytes), Err(Malformed::Check));
    bytes = resealed(bytes);
    assert_contradicts_itself(&bytes, "sealed whole");
}
