//! The wire format: what is written is what is read, and what `docs/wire.md` says.

use crate::frames::{self, ACK, COMPARE_SWAP, OFFER, TARGET, WORD, connect, data, data_frames, header, memory_frame};
use cci_proto::Atomic;
use cci_proto::engine::Target;
use cci_proto::wire::*;

/// A frame of the samples.
fn sample(name: &str) -> Vec<u8> {
    frames::all().into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no sample {name}")).1
}

/// The records of a sample.
fn records(frame: &[u8]) -> Vec<Record<'_>> {
    Data::parse(frame).expect("sound").2.collect()
}

#[test]
fn every_sample_is_let_pass_and_parsed() {
    for (name, bytes) in frames::all() {
        let verified = verify(&bytes).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        assert_eq!(Some(verified), Header::parse(&bytes), "{name}");
        assert!(frames::parses(&bytes), "{name}");
    }
}

#[test]
fn kinds_have_their_numbers() {
    let known: Vec<u8> = (0..=255).filter(|number| Kind::from_u8(*number).is_some()).collect();
    assert_eq!(known, (1..=10).collect::<Vec<u8>>());
    assert!(known.iter().all(|number| Kind::from_u8(*number).map(|kind| kind as u8) == Some(*number)));
}

#[test]
fn a_header_stands_where_it_should() {
    let bytes = sample("confirm");
    assert_eq!(bytes.len(), HEADER);
    assert_eq!(bytes[..4], [0xC2, 10, 0, 32]);
    assert_eq!(bytes[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bytes[16..24], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    assert_eq!(bytes[24..], [0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34]);
    let mut zeroed = bytes.clone();
    zeroed[4..8].fill(0);
    assert_eq!(bytes[4..8], Crc::new().update(&zeroed).value().to_be_bytes());
}

#[test]
fn a_header_says_its_own_kind_whatever_the_caller_wrote() {
    let close = Close { header: header(Kind::Data), reason: 1, is_answer: false, ack: 2, messages: 0 };
    let bytes = frames::frame(|f| close.emit(&[], f));
    let (parsed, ..) = Close::parse(&bytes).expect("sound");
    assert_eq!(parsed, Close { header: header(Kind::Close), ..close });
}

#[test]
fn a_connect_comes_back_and_is_as_long_as_its_longest_answer() {
    let bytes = sample("connect");
    assert_eq!(bytes.len(), CONNECT_MIN);
    let uri = [b'u'; MAX_URI];
    let redirect = Redirect { header: header(Kind::Redirect), cookie: 0, token: 0, uri: &uri, tag: None };
    assert_eq!(frames::frame(|f| redirect.emit(f)).len(), CONNECT_MIN);
    assert_eq!(Connect::parse(&bytes), Some(connect()));
    let payload = [7; MAX_PAYLOAD];
    let long = Connect { payload: &payload, ..connect() };
    let bytes = frames::frame(|f| long.emit(f));
    assert_eq!(bytes.len(), CONNECT + MAX_PAYLOAD);
    assert_eq!(Connect::parse(&bytes), Some(long));
}

#[test]
fn handshakes_come_back() {
    let accept = sample("accept");
    assert_eq!(
        Accept::parse(&accept),
        Some(Accept { header: header(Kind::Accept), offer: OFFER, cookie: 0xD1D2_D3D4_D5D6_D7D8, share: &[] })
    );
    assert_eq!(accept.len(), 72);
    let retry = Retry::parse(&sample("retry")).expect("sound");
    assert_eq!((retry.cookie, retry.cookie_time), (connect().cookie, connect().cookie_time));
    let reject = Reject::parse(&sample("reject")).expect("sound");
    assert_eq!((reject.reason, reject.cookie), (Reason::Resources, connect().cookie));
    let redirect = sample("redirect");
    let redirect = Redirect::parse(&redirect).expect("sound");
    assert_eq!((redirect.cookie, redirect.token), (connect().cookie, connect().token));
    assert_eq!(redirect.uri, b"sock://192.0.2.7:9000");
    let reset = Reset::parse(&sample("reset")).expect("sound");
    assert_eq!(reset.number, 0xF1F2_F3F4);
    let close = sample("close");
    let (close, sack, records) = Close::parse(&close).expect("sound");
    assert_eq!((close.reason, close.is_answer, close.ack, close.messages), (0, false, 0x9192_9394, 3));
    assert_eq!((sack.len(), records.count()), (0, 0));
    let multicast = sample("multicast");
    let multicast = Multicast::parse(&multicast).expect("sound");
    assert_eq!(
        (multicast.from, multicast.number, multicast.bytes),
        (header(Kind::Multicast).from, 0x2122_2324, &b"group"[..])
    );
}

#[test]
fn each_reason_of_a_rejection_comes_back() {
    for reason in [Reason::Program, Reason::Version, Reason::Resources, Reason::Attribute, Reason::Security] {
        let bytes = frames::frame(|f| Reject { header: header(Kind::Reject), reason, cookie: 1, tag: None }.emit(f));
        assert_eq!(Reject::parse(&bytes).map(|reject| reject.reason), Some(reason));
        assert_eq!(Reason::from_u8(reason as u8), Some(reason));
    }
    assert_eq!(Reason::from_u8(5), None);
}

#[test]
fn only_an_unproven_clients_retry_is_answered_with_less_than_it_sent() {
    // Whatever a server answers to one CONNECT is no longer than it.
    for name in ["retry", "accept", "reject", "redirect"] {
        assert!(sample(name).len() <= CONNECT_MIN, "{name}");
    }
    assert!(sample("reset").len() <= 36);
}

#[test]
fn an_acknowledgement_comes_back() {
    let bytes = sample("ack");
    let (read, sack, mut records) = Data::parse(&bytes).expect("sound");
    assert_eq!(read, data(flags::RNR));
    assert_eq!(read.ack, ACK);
    assert!(sack.is_empty() && records.next().is_none());
    assert_eq!(bytes.len(), DATA);
}

#[test]
fn a_sack_comes_back() {
    let bytes = sample("sack");
    let (read, sack, _) = Data::parse(&bytes).expect("sound");
    assert_eq!((usize::from(read.sack_words), sack.len()), (2, 2));
    assert_eq!(sack.words().collect::<Vec<_>>(), [0b1011, 1 << 63]);
    let full: Vec<u64> = (0..70).collect();
    let bytes = frames::data_frame(0, &full, |_, at| at);
    assert_eq!(bytes.len(), DATA + 8 * MAX_SACK);
    assert_eq!(Data::parse(&bytes).expect("sound").1.words().collect::<Vec<_>>(), full[..MAX_SACK]);
}

#[test]
fn several_records_come_back_in_order() {
    let expected = [
        Record::Message { after: false, bytes: b"one" },
        Record::Message { after: false, bytes: b"" },
        Record::Result { op: 9, status: 1 },
        Record::Message { after: true, bytes: b"two" },
    ];
    assert_eq!(records(&sample("messages")), expected);
}

#[test]
fn each_record_comes_back() {
    let memory = b"memory".as_slice();
    let write = Record::Write { op: 7, target: TARGET, at: 1024, bytes: memory };
    let read_bytes = Record::ReadBytes { op: 8, at: 2048, bytes: memory };
    let expected = [
        ("message", Record::Message { after: false, bytes: b"ping" }),
        ("part", Record::Part { message: 5, total: 3000, at: 1000, bytes: b"part" }),
        ("write", write),
        ("write, unchecked", write),
        ("read", Record::Read { op: 8, target: TARGET }),
        ("read bytes", read_bytes),
        ("result", Record::Result { op: 8, status: 2 }),
        ("fetch and add", Record::Atomic { op: 8, target: WORD, atomic: Atomic::FetchAdd(5) }),
        ("compare and swap", Record::Atomic { op: 8, target: WORD, atomic: COMPARE_SWAP }),
        ("value", Record::Value { op: 8, value: 0xC1C2_C3C4_C5C6_C7C8 }),
        ("large", Record::Large { op: 8, len: 1 << 30 }),
        ("landing", Record::Landing { op: 8, handle: TARGET.handle }),
        ("probe", Record::Probe { size: 1400 }),
        ("probe reply", Record::ProbeReply { size: 1400 }),
        ("slice", Record::Slice { total: 8004, at: 7728, bytes: b"slice" }),
    ];
    for (name, record) in expected {
        assert_eq!(records(&sample(name)), [record], "{name}");
    }
}

#[test]
fn heads_of_records_have_the_sizes_that_they_are_said_to_have() {
    let sizes = [
        ("message", MESSAGE_HEAD + 4),
        ("part", PART_HEAD + 4),
        ("write", WRITE_HEAD + 6),
        ("read", READ),
        ("read bytes", READ_BYTES_HEAD + 6),
        ("result", RESULT),
        ("fetch and add", ATOMIC),
        ("compare and swap", ATOMIC),
        ("value", VALUE),
        ("large", LARGE),
        ("landing", LANDING),
        ("slice", SLICE_HEAD + 5),
    ];
    for (name, size) in sizes {
        assert_eq!(sample(name).len(), DATA + size, "{name}");
    }
    assert_eq!(sample("probe").len(), 1400);
}

#[test]
fn an_atomic_operation_is_alone_in_its_frame_and_changes_a_word() {
    let note = |f: &mut [u8], at: usize| emit_message(f, at, false, &[b"one"]);
    let atomic = |f: &mut [u8], at: usize, len: u64| emit_atomic(f, at, 8, &Target { len, ..WORD }, COMPARE_SWAP);
    let frame = |emit: &dyn Fn(&mut [u8], usize) -> usize| frames::data_frame(flags::SEQUENCED, &[], emit);
    assert!(Data::parse(&frame(&|f, at| atomic(f, at, 4))).is_some());
    assert!(
        Data::parse(&frame(&|f, at| {
            let at = note(f, at);
            atomic(f, at, 4)
        }))
        .is_none(),
        "after a message"
    );
    assert!(
        Data::parse(&frame(&|f, at| {
            let at = atomic(f, at, 4);
            note(f, at)
        }))
        .is_none(),
        "before a message"
    );
    for len in [0, 1, 2, 5, 7, 16, u64::MAX] {
        assert!(Data::parse(&frame(&|f, at| atomic(f, at, len))).is_none(), "{len} bytes");
    }
    // What FETCH_ADD does not use is 0.
    let mut bytes = sample("fetch and add");
    let last = bytes.len() - 1;
    bytes[last] = 1;
    assert!(Data::parse(&frames::resealed(bytes)).is_none());
}

#[test]
fn a_large_message_is_alone_in_its_frame() {
    let note = |f: &mut [u8], at: usize| emit_message(f, at, false, &[b"one"]);
    let beside = |first: bool| {
        frames::data_frame(flags::SEQUENCED, &[], |f, at| {
            if first {
                let at = emit_large(f, at, 8, 5);
                note(f, at)
            } else {
                let at = note(f, at);
                emit_large(f, at, 8, 5)
            }
        })
    };
    assert!(Data::parse(&beside(true)).is_none() && Data::parse(&beside(false)).is_none());
}

#[test]
fn a_probe_has_room_for_itself_at_least() {
    let bytes = frames::data_frame(0, &[1, 2], |f, at| emit_probe(f, at, 60));
    assert_eq!(records(&bytes), [Record::Probe { size: 80 }]);
}

#[test]
fn the_check_leaves_out_memory_only_where_the_frame_says_so() {
    for (name, bytes) in data_frames() {
        let mut last = bytes.clone();
        *last.last_mut().expect("not empty") ^= 1;
        let passes = name.ends_with("unchecked");
        assert_eq!(verify(&last).is_ok(), passes, "{name}, the last byte of memory");
        let mut before = bytes.clone();
        let memory = if passes { 6 } else { 0 };
        before[bytes.len() - memory - 1] ^= 1;
        assert!(verify(&before).is_err(), "{name}, the last byte before it");
    }
}

#[test]
fn memory_may_be_a_whole_frame_long() {
    let memory = vec![0x5A; 64_000];
    for flags in [flags::SEQUENCED, flags::SEQUENCED | flags::UNCHECKED] {
        let target = Target { len: 64_000, ..TARGET };
        let bytes = memory_frame(flags, &memory, |f, at| emit_write(f, at, 1, &target, 0, memory.len()));
        assert!(verify(&bytes).is_ok());
        assert_eq!(records(&bytes), [Record::Write { op: 1, target, at: 0, bytes: &memory }]);
    }
}
