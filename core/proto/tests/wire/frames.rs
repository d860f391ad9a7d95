//! One sealed frame of every kind and of every record, for the tests of the wire format.

use cci_proto::engine::Target;
use cci_proto::wire::*;
use cci_proto::{Atomic, Attribute};

/// A frame and what to call it.
pub(crate) type Named = (&'static str, Vec<u8>);

/// A header with a different byte at every offset.
pub(crate) const fn header(kind: Kind) -> Header {
    Header { kind, to: 0x0102_0304_0506_0708, from: 0x1112_1314_1516_1718, number: 0x2122_2324, time: 0x3132_3334 }
}

/// An offer with a different byte at every offset.
pub(crate) const OFFER: Offer = Offer {
    features: features::UNCHECKED,
    first_seq: 0x4142_4344,
    attribute: Attribute::ReliableUnordered,
    mtu: 9000,
    max_send_size: 0x0010_0000,
    recv_buffer: 0x0020_0000,
    credit: 512,
    host: 0x5152_5354_5556_5758,
};

/// A target of RMA.
pub(crate) const TARGET: Target =
    Target { handle: [0xA1A2_A3A4_A5A6_A7A8, 0xB1B2_B3B4_B5B6_B7B8], offset: 4096, len: 1 << 20 };

/// A word of it, and what may become of one.
pub(crate) const WORD: Target = Target { len: 8, ..TARGET };
pub(crate) const COMPARE_SWAP: Atomic =
    Atomic::CompareSwap { expected: 0xD1D2_D3D4_D5D6_D7D8, desired: 0xC1C2_C3C4_C5C6_C7C8 };

/// An acknowledgement.
pub(crate) const ACK: Ack =
    Ack { credit: 100, ack: 0x6162_6364, echo_number: 0x7172_7374, echo_time: 0x8182_8384, delay: 25, congested: 3 };

/// A DATA frame's head with these flags.
pub(crate) const fn data(flags: u8) -> Data {
    Data { header: header(Kind::Data), seq: 0x9192_9394, flags, ack: ACK, sack_words: 0 }
}

/// A frame written by `emit`, sealed.
pub(crate) fn frame(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut frame = vec![0xEE; 66_000];
    let len = emit(&mut frame);
    frame.truncate(len);
    seal(&mut frame, 0, |crc| crc);
    frame
}

/// A DATA frame with these flags and this sack, its records written by `emit` from an offset to an
/// offset.
pub(crate) fn data_frame(flags: u8, sack: &[u64], emit: impl FnOnce(&mut [u8], usize) -> usize) -> Vec<u8> {
    frame(|frame| {
        let at = data(flags).emit(sack, frame);
        emit(frame, at)
    })
}

/// A DATA frame of a sequence whose last record carries memory, not covered by the check if it says
/// so.
pub(crate) fn memory_frame(flags: u8, memory: &[u8], emit: impl FnOnce(&mut [u8], usize) -> usize) -> Vec<u8> {
    let mut frame = vec![0xEE; 66_000];
    let at = data(flags).emit(&[], &mut frame);
    let len = emit(&mut frame, at);
    frame.truncate(len);
    let is_checked = flags & flags::UNCHECKED == 0;
    seal(&mut frame, memory.len(), |crc| if is_checked { crc.update(memory) } else { crc });
    frame.extend_from_slice(memory);
    frame
}

/// The same bytes sealed anew: what someone who can compute a CRC can send.
pub(crate) fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    seal(&mut bytes, 0, |crc| crc);
    bytes
}

/// A CONNECT.
pub(crate) fn connect() -> Connect<'static> {
    Connect {
        header: Header { to: 0, ..header(Kind::Connect) },
        offer: OFFER,
        token: 0xC1C2_C3C4_C5C6_C7C8,
        cookie: 0xD1D2_D3D4_D5D6_D7D8,
        cookie_time: 0xE1E2_E3E4,
        payload: b"hello",
        share: Share::None,
    }
}

/// The kinds of the handshake and of the end.
pub(crate) fn control_frames() -> Vec<Named> {
    let retry = Retry {
        header: Header { from: 0, ..header(Kind::Retry) },
        cookie: 0xD1D2_D3D4_D5D6_D7D8,
        cookie_time: 0xE1E2_E3E4,
    };
    let accept = Accept { header: header(Kind::Accept), offer: OFFER, cookie: 0xD1D2_D3D4_D5D6_D7D8, share: &[] };
    let reject =
        Reject { header: header(Kind::Reject), reason: Reason::Resources, cookie: 0xD1D2_D3D4_D5D6_D7D8, tag: None };
    let redirect = Redirect {
        header: header(Kind::Redirect),
        cookie: 0xD1D2_D3D4_D5D6_D7D8,
        token: 0xC1C2_C3C4_C5C6_C7C8,
        uri: b"sock://192.0.2.7:9000",
        tag: None,
    };
    let close = Close { header: header(Kind::Close), reason: 0, is_answer: false, ack: 0x9192_9394, messages: 3 };
    let reset = Reset { header: header(Kind::Reset), number: 0xF1F2_F3F4 };
    let multicast = Multicast { from: 0x1112_1314_1516_1718, number: 0x2122_2324, time: 0x3132_3334, bytes: b"" };
    vec![
        ("connect", frame(|f| connect().emit(f))),
        ("retry", frame(|f| retry.emit(f))),
        ("accept", frame(|f| accept.emit(f))),
        ("reject", frame(|f| reject.emit(f))),
        ("redirect", frame(|f| redirect.emit(f))),
        ("close", frame(|f| close.emit(&[], f))),
        (
            "close, with a sack and a result",
            frame(|f| {
                let at = close.emit(&[5], f);
                emit_result(f, at, 0xA1A2_A3A4, 0)
            }),
        ),
        ("reset", frame(|f| reset.emit(f))),
        (
            "multicast",
            frame(|f| {
                let end = multicast.emit_head(f);
                f[end..end + 5].copy_from_slice(b"group");
                end + 5
            }),
        ),
        ("confirm", frame(|f| Confirm { header: header(Kind::Confirm) }.emit(f))),
    ]
}

/// DATA with each record, with several, with none and with a sack.
pub(crate) fn data_frames() -> Vec<Named> {
    use flags::{ASK, PROMPT, RNR, SEQUENCED, UNCHECKED};
    let write = |f: &mut [u8], at: usize| emit_write(f, at, 7, &TARGET, 1024, 6);
    vec![
        ("ack", data_frame(RNR, &[], |_, at| at)),
        ("sack", data_frame(0, &[0b1011, 1 << 63], |_, at| at)),
        ("message", data_frame(SEQUENCED | ASK, &[], |f, at| emit_message(f, at, false, &[b"ping"]))),
        (
            "messages",
            data_frame(SEQUENCED, &[1], |f, at| {
                let at = emit_message(f, at, false, &[b"one"]);
                let at = emit_message(f, at, false, &[b""]);
                let at = emit_result(f, at, 9, 1);
                emit_message(f, at, true, &[&b"tw"[..], b"", b"o"])
            }),
        ),
        (
            "part",
            data_frame(SEQUENCED, &[], |f, at| {
                let at = emit_part(f, at, 5, 3000, 1000, 4);
                f[at..at + 4].copy_from_slice(b"part");
                at + 4
            }),
        ),
        ("write", memory_frame(SEQUENCED, b"memory", write)),
        ("write, unchecked", memory_frame(SEQUENCED | UNCHECKED, b"memory", write)),
        ("read", data_frame(SEQUENCED | PROMPT, &[], |f, at| emit_read(f, at, 8, &TARGET))),
        ("read bytes", memory_frame(SEQUENCED, b"memory", |f, at| emit_read_bytes(f, at, 8, 2048, 6))),
        (
            "message and read bytes, unchecked",
            memory_frame(SEQUENCED | UNCHECKED, b"memory", |f, at| {
                let at = emit_message(f, at, false, &[b"first"]);
                emit_read_bytes(f, at, 8, 2048, 6)
            }),
        ),
        ("result", data_frame(SEQUENCED, &[], |f, at| emit_result(f, at, 8, 2))),
        ("fetch and add", data_frame(SEQUENCED, &[], |f, at| emit_atomic(f, at, 8, &WORD, Atomic::FetchAdd(5)))),
        ("compare and swap", data_frame(SEQUENCED, &[], |f, at| emit_atomic(f, at, 8, &WORD, COMPARE_SWAP))),
        ("value", data_frame(SEQUENCED, &[], |f, at| emit_value(f, at, 8, 0xC1C2_C3C4_C5C6_C7C8))),
        ("large", data_frame(SEQUENCED, &[], |f, at| emit_large(f, at, 8, 1 << 30))),
        ("landing", data_frame(SEQUENCED, &[], |f, at| emit_landing(f, at, 8, TARGET.handle))),
        ("probe", data_frame(0, &[], |f, at| emit_probe(f, at, 1400))),
        ("probe reply", data_frame(0, &[], |f, at| emit_probe_reply(f, at, 1400))),
        (
            "slice",
            data_frame(SEQUENCED | PROMPT, &[], |f, at| {
                let at = emit_slice(f, at, 8004, 7728, 5);
                f[at..at + 5].copy_from_slice(b"slice");
                at + 5
            }),
        ),
    ]
}

/// All of them.
pub(crate) fn all() -> Vec<Named> {
    let mut all = control_frames();
    all.extend(data_frames());
    all
}

/// Whether the parser of the frame's kind takes it; records are read to the end.
pub(crate) fn parses(bytes: &[u8]) -> bool {
    let Some(header) = Header::parse(bytes) else { return false };
    match header.kind {
        Kind::Connect => Connect::parse(bytes).is_some(),
        Kind::Retry => Retry::parse(bytes).is_some(),
        Kind::Accept => Accept::parse(bytes).is_some(),
        Kind::Reject => Reject::parse(bytes).is_some(),
        Kind::Redirect => Redirect::parse(bytes).is_some(),
        Kind::Close => Close::parse(bytes).is_some(),
        Kind::Reset => Reset::parse(bytes).is_some(),
        Kind::Multicast => Multicast::parse(bytes).is_some(),
        Kind::Confirm => Confirm::parse(bytes).is_some(),
        Kind::Data => Data::parse(bytes).is_some_and(|(_, sack, records)| {
            assert_eq!(sack.words().count(), sack.len());
            records.count() < usize::MAX
        }),
    }
}
