//! The wire format under any input: round trips of everything, and no panic on anything.

use crate::frames;
use cci_proto::Attribute;
use cci_proto::engine::Target;
use cci_proto::wire::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A record that owns its bytes.
#[derive(Clone, Debug)]
enum Owned {
    Message { after: bool, bytes: Vec<u8> },
    Part { message: u32, before: u32, bytes: Vec<u8>, behind: u32 },
    Read { op: u32, target: Target },
    Result { op: u32, status: u8 },
    Value { op: u32, value: u64 },
    Landing { op: u32, handle: [u64; 2] },
    ProbeReply { size: u16 },
    Write { op: u32, handle: [u64; 2], offset: u64, at: u64, bytes: Vec<u8>, behind: u64 },
    ReadBytes { op: u32, at: u64, bytes: Vec<u8> },
    Probe { more: u16 },
    Slice { before: u16, bytes: Vec<u8>, behind: u16 },
}

impl Owned {
    /// Writes the record; memory too.
    fn emit(&self, frame: &mut [u8], at: usize) -> usize {
        let (end, bytes): (usize, &[u8]) = match self {
            Self::Message { after, bytes } => {
                let (a, b) = bytes.split_at(bytes.len() / 3);
                (emit_message(frame, at, *after, &[a, b]), &[])
            }
            Self::Part { message, before, bytes, behind } => {
                let total = before + u32::try_from(bytes.len()).expect("short") + behind;
                (emit_part(frame, at, *message, total, *before, bytes.len()), bytes)
            }
            Self::Read { op, target } => (emit_read(frame, at, *op, target), &[]),
            Self::Result { op, status } => (emit_result(frame, at, *op, *status), &[]),
            Self::Value { op, value } => (emit_value(frame, at, *op, *value), &[]),
            Self::Landing { op, handle } => (emit_landing(frame, at, *op, *handle), &[]),
            Self::ProbeReply { size } => (emit_probe_reply(frame, at, *size), &[]),
            Self::Write { op, at: op_at, bytes, .. } => {
                (emit_write(frame, at, *op, &self.target(), *op_at, bytes.len()), bytes)
            }
            Self::ReadBytes { op, at: op_at, bytes } => (emit_read_bytes(frame, at, *op, *op_at, bytes.len()), bytes),
            Self::Probe { more } => (emit_probe(frame, at, u16::try_from(at + 8).expect("short") + more), &[]),
            Self::Slice { before, bytes, behind } => {
                let total = before + u16::try_from(bytes.len()).expect("short") + behind;
                (emit_slice(frame, at, total, *before, bytes.len()), bytes)
            }
        };
        frame[end..end + bytes.len()].copy_from_slice(bytes);
        end + bytes.len()
    }

    fn target(&self) -> Target {
        let Self::Write { handle, offset, at, bytes, behind, .. } = self else { unreachable!("writes only") };
        Target { handle: *handle, offset: *offset, len: at + bytes.len() as u64 + behind }
    }

    /// What a frame of `size` bytes should give back.
    fn expected(&self, size: usize) -> Record<'_> {
        match self {
            Self::Message { after, bytes } => Record::Message { after: *after, bytes },
            Self::Part { message, before, bytes, behind } => Record::Part {
                message: *message,
                total: before + u32::try_from(bytes.len()).expect("short") + behind,
                at: *before,
                bytes,
            },
            Self::Read { op, target } => Record::Read { op: *op, target: *target },
            Self::Result { op, status } => Record::Result { op: *op, status: *status },
            Self::Value { op, value } => Record::Value { op: *op, value: *value },
            Self::Landing { op, handle } => Record::Landing { op: *op, handle: *handle },
            Self::ProbeReply { size } => Record::ProbeReply { size: *size },
            Self::Write { op, at, bytes, .. } => Record::Write { op: *op, target: self.target(), at: *at, bytes },
            Self::ReadBytes { op, at, bytes } => Record::ReadBytes { op: *op, at: *at, bytes },
            Self::Probe { .. } => Record::Probe { size: u16::try_from(size).expect("short") },
            Self::Slice { before, bytes, behind } => Record::Slice {
                total: before + u16::try_from(bytes.len()).expect("short") + behind,
                at: *before,
                bytes,
            },
        }
    }
}

fn target() -> impl Strategy<Value = Target> {
    let half = u64::MAX / 2;
    (any::<[u64; 2]>(), 0..=half, 0..=half).prop_map(|(handle, offset, len)| Target { handle, offset, len })
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..300)
}

/// A record that others may follow.
fn any_record() -> impl Strategy<Value = Owned> {
    let half = u32::MAX / 4;
    prop_oneof![
        (any::<bool>(), vec(any::<u8>(), 0..300)).prop_map(|(after, bytes)| Owned::Message { after, bytes }),
        (any::<u32>(), 0..half, content(), 0..half).prop_map(|(message, before, bytes, behind)| Owned::Part {
            message,
            before,
            bytes,
            behind
        }),
        (any::<u32>(), target()).prop_map(|(op, target)| Owned::Read { op, target }),
        (any::<u32>(), 0_u8..=3).prop_map(|(op, status)| Owned::Result { op, status }),
        any::<(u32, u64)>().prop_map(|(op, value)| Owned::Value { op, value }),
        any::<(u32, [u64; 2])>().prop_map(|(op, handle)| Owned::Landing { op, handle }),
        any::<u16>().prop_map(|size| Owned::ProbeReply { size }),
    ]
}

/// A record that ends its frame, or none.
fn any_last() -> impl Strategy<Value = Option<Owned>> {
    let quarter = u64::MAX / 4;
    prop_oneof![
        Just(None),
        (any::<u32>(), any::<[u64; 2]>(), 0..quarter, 0..quarter, content(), 0..quarter).prop_map(
            |(op, handle, offset, at, bytes, behind)| Some(Owned::Write { op, handle, offset, at, bytes, behind })
        ),
        (any::<u32>(), 0..quarter, content()).prop_map(|(op, at, bytes)| Some(Owned::ReadBytes { op, at, bytes })),
        (0_u16..2000).prop_map(|more| Some(Owned::Probe { more })),
        (0_u16..30_000, content(), 0_u16..30_000).prop_map(|(before, bytes, behind)| Some(Owned::Slice {
            before,
            bytes,
            behind
        })),
    ]
}

fn any_header(kind: Kind) -> impl Strategy<Value = Header> {
    any::<(u64, u64, u32, u32)>().prop_map(move |(to, from, number, time)| Header { kind, to, from, number, time })
}

fn any_offer() -> impl Strategy<Value = Offer> {
    (any::<(u32, u32, u16, u32, u32, u32, u64)>(), 0_u32..3).prop_map(
        |((features, first_seq, mtu, max_send_size, recv_buffer, credit, host), attribute)| Offer {
            features,
            first_seq,
            attribute: Attribute::from_u32(attribute).expect("one of three"),
            mtu,
            max_send_size,
            recv_buffer,
            credit,
            host,
        },
    )
}

fn any_data() -> impl Strategy<Value = Data> {
    let ack =
        any::<(u16, u32, u32, u32, u16, u16)>().prop_map(|(credit, ack, echo_number, echo_time, delay, congested)| {
            Ack { credit, ack, echo_number, echo_time, delay, congested }
        });
    (any_header(Kind::Data), any::<u32>(), any::<u8>(), ack).prop_map(|(header, seq, flags, ack)| Data {
        header,
        seq,
        flags: flags & flags::ALL & !flags::UNCHECKED,
        ack,
        sack_words: 0,
    })
}

/// Bytes of a CONNECT before its payload.
const CONNECT_HEAD: usize = 88;

/// What passes its check and is parsed is written again byte by byte as it came: there is one way
/// to say each thing.
fn assert_rewrites(bytes: &[u8]) {
    let mut again = vec![0; bytes.len() + 600];
    let len = match Header::parse(bytes).map(|header| header.kind) {
        Some(Kind::Connect) => Connect::parse(bytes).map(|f| {
            let whole = f.emit(&mut again);
            // With a bit for encryption, what follows the payload is another version's.
            if f.offer.features >> 16 == 0 { whole } else { CONNECT_HEAD + f.payload.len() }
        }),
        Some(Kind::Retry) => Retry::parse(bytes).map(|f| f.emit(&mut again)),
        Some(Kind::Accept) => Accept::parse(bytes).map(|f| f.emit(&mut again)),
        Some(Kind::Reject) => Reject::parse(bytes).map(|f| f.emit(&mut again)),
        Some(Kind::Redirect) => Redirect::parse(bytes).map(|f| f.emit(&mut again)),
        Some(Kind::Close) => Close::parse(bytes).map(|(f, sack, records)| {
            let at = f.emit(&sack.words().collect::<Vec<_>>(), &mut again);
            let records = records.bytes();
            again[at..at + records.len()].copy_from_slice(records);
            at + records.len()
        }),
        Some(Kind::Reset) => Reset::parse(bytes).map(|f| f.emit(&mut again)),
        Some(Kind::Confirm) => Confirm::parse(bytes).map(|f| f.emit(&mut again)),
        _ => None,
    };
    let Some(len) = len else { return };
    // Padding beyond the shortest CONNECT is the sender's choice.
    assert_eq!(bytes[8..len.min(bytes.len())], again[8..len.min(bytes.len())]);
}

proptest! {
    #[test]
    fn a_connect_comes_back(
        header in any_header(Kind::Connect),
        offer in any_offer(),
        token: u64,
        cookie: u64,
        cookie_time: u32,
        payload in vec(any::<u8>(), 0..=MAX_PAYLOAD),
        share in vec(any::<u8>(), SHARE..=SHARE + MAX_PAYLOAD),
        is_inside: bool,
    ) {
        let (share, payload) = match (offer.features & features::SEALED, is_inside) {
            (0, _) => (Share::None, &payload[..]),
            (_, false) => (Share::Beside(&share[..SHARE]), &payload[..]),
            (_, true) => (Share::Inside(&share), &[][..]),
        };
        let header = Header { to: 0, ..header };
        let connect = Connect { header, offer, token, cookie, cookie_time, payload, share };
        let bytes = frames::frame(|f| connect.emit(f));
        prop_assert_eq!(verify(&bytes), Ok(connect.header));
        prop_assert_eq!(Connect::parse(&bytes), Some(connect));
    }

    #[test]
    fn answers_to_it_come_back(
        header in any_header(Kind::Accept),
        offer in any_offer(),
        cookie: u64,
        word: u32,
        token: u64,
        reason in 0_u8..5,
        uri in vec(any::<u8>(), 1..=MAX_URI),
        share in vec(any::<u8>(), SHARE..=MAX_SHARE),
        tag: Option<[u8; TAG]>,
    ) {
        let share = if offer.features & features::SEALED == 0 { &[] } else { &share[..] };
        let accept = Accept { header, offer, cookie, share };
        let bytes = frames::frame(|f| accept.emit(f));
        prop_assert_eq!(Accept::parse(&bytes), Some(accept));
        let retry = Retry { header: Header { kind: Kind::Retry, from: 0, ..header }, cookie, cookie_time: word };
        prop_assert_eq!(Retry::parse(&frames::frame(|f| retry.emit(f))), Some(retry));
        let reason = Reason::from_u8(reason).expect("one of five");
        let reject = Reject { header: Header { kind: Kind::Reject, ..header }, reason, cookie, tag };
        prop_assert_eq!(Reject::parse(&frames::frame(|f| reject.emit(f))), Some(reject));
        let redirect = Redirect { header: Header { kind: Kind::Redirect, ..header }, cookie, token, uri: &uri, tag };
        let bytes = frames::frame(|f| redirect.emit(f));
        prop_assert_eq!(Redirect::parse(&bytes), Some(redirect));
    }

    #[test]
    fn ends_come_back(
        header in any_header(Kind::Close),
        reason: u8,
        is_answer: bool,
        number: u32,
        messages: u16,
        sack in vec(any::<u64>(), 0..=64),
        results in vec((any::<u32>(), 0_u8..3), 0..20),
    ) {
        let close = Close { header, reason, is_answer, ack: number, messages };
        let bytes = frames::frame(|f| {
            let at = close.emit(&sack, f);
            results.iter().fold(at, |at, (op, status)| emit_result(f, at, *op, *status))
        });
        let (parsed, words, records) = Close::parse(&bytes).expect("sound");
        prop_assert_eq!(parsed, close);
        prop_assert_eq!(words.words().collect::<Vec<_>>(), sack);
        let results: Vec<_> = results.iter().map(|(op, status)| Record::Result { op: *op, status: *status }).collect();
        prop_assert_eq!(records.collect::<Vec<_>>(), results);
        let reset = Reset { header: Header { kind: Kind::Reset, ..header }, number };
        prop_assert_eq!(Reset::parse(&frames::frame(|f| reset.emit(f))), Some(reset));
        let confirm = Confirm { header: Header { kind: Kind::Confirm, ..header } };
        prop_assert_eq!(Confirm::parse(&frames::frame(|f| confirm.emit(f))), Some(confirm));
    }

    #[test]
    fn multicast_comes_back(from: u64, number: u32, time: u32, message in vec(any::<u8>(), 0..2000)) {
        let sent = Multicast { from, number, time, bytes: &message };
        let mut bytes = vec![0; HEADER];
        prop_assert_eq!(sent.emit_head(&mut bytes), HEADER);
        seal(&mut bytes, message.len(), |crc| crc.update(&message));
        bytes.extend_from_slice(&message);
        prop_assert!(verify(&bytes).is_ok());
        prop_assert_eq!(Multicast::parse(&bytes), Some(sent));
    }

    #[test]
    fn data_comes_back(
        head in any_data(),
        sack in vec(any::<u64>(), 0..=MAX_SACK),
        some in vec(any_record(), 0..6),
        last in any_last(),
    ) {
        let records: Vec<Owned> = some.into_iter().chain(last).collect();
        let bytes = frames::frame(|f| {
            let at = head.emit(&sack, f);
            records.iter().fold(at, |at, record| record.emit(f, at))
        });
        prop_assert_eq!(verify(&bytes), Ok(head.header));
        let (read, words, found) = Data::parse(&bytes).expect("sound");
        prop_assert_eq!(read, Data { sack_words: u8::try_from(sack.len()).expect("few"), ..head });
        prop_assert_eq!(words.words().collect::<Vec<_>>(), sack);
        let expected: Vec<_> = records.iter().map(|record| record.expected(bytes.len())).collect();
        prop_assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn any_bytes_are_refused_or_parsed(bytes in vec(any::<u8>(), 0..700)) {
        prop_assert!(verify(&bytes).is_err(), "2^-72 that it is a frame");
        frames::parses(&bytes);
    }

    #[test]
    fn any_frame_with_a_right_check_is_refused_or_parsed(
        which in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        appended in vec(any::<u8>(), 0..80),
    ) {
        let all = frames::all();
        let mut bytes = all[which.index(all.len())].1.clone();
        bytes.truncate(HEADER.max(cut.index(bytes.len() * 2 + 1)));
        bytes.extend_from_slice(&appended);
        for (at, byte) in changes {
            // Magic stays, so that most get past it.
            let at = 1 + at.index(bytes.len() - 1);
            bytes[at] = byte;
        }
        let bytes = frames::resealed(bytes);
        if frames::parses(&bytes) {
            assert_rewrites(&bytes);
        }
    }
}
