//! The parsers of the wire format.

use cci_proto::wire::*;

/// Longest input that counts, bytes: the longest frame.
const MOST: usize = 65_000;

/// Any bytes, as they came and with a right check: they are refused, or they are parsed and written
/// again as they came.
///
/// # Panics
///
/// When a parser is wrong.
pub fn wire_parse(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MOST)];
    if let Ok(header) = verify(bytes) {
        assert_eq!(Header::parse(bytes), Some(header));
        rewrite(bytes);
    }
    if bytes.len() < HEADER {
        return;
    }
    let mut sealed = bytes.to_vec();
    // Magic and check are what a fuzzer cannot guess and an attacker can compute.
    sealed[0] = 0xC0 | VERSION;
    seal(&mut sealed, 0, |crc| crc);
    let unchecked = memory_len(&sealed);
    if unchecked > 0 {
        let (head, memory) = sealed.split_at_mut(bytes.len() - unchecked);
        seal(head, memory.len(), |crc| crc);
        memory.fill(0);
    }
    match verify(&sealed) {
        Ok(_) => rewrite(&sealed),
        Err(why) => assert_eq!((why, Kind::from_u8(sealed[1])), (Malformed::Kind, None), "only its kind is unknown"),
    }
}

/// Bytes at the end of a frame that its check does not cover; flags that there are none of do not
/// matter for it.
fn memory_len(frame: &[u8]) -> usize {
    let mut frame = frame.to_vec();
    if let Some(flags) = frame.get_mut(36) {
        *flags &= flags::ALL;
    }
    let Some((data, _, records)) = Data::parse(&frame) else { return 0 };
    match records.last() {
        _ if data.flags & flags::UNCHECKED == 0 => 0,
        Some(Record::Write { bytes, .. } | Record::ReadBytes { bytes, .. }) => bytes.len(),
        _ => 0,
    }
}

/// Every frame can be said in one way only: what was parsed and is written again is what came.
fn rewrite(frame: &[u8]) {
    let mut again = vec![0xEE; frame.len() + CONNECT_MIN];
    let Some(len) = emit(frame, &mut again) else { return };
    // What follows a CONNECT's payload is the sender's affair.
    let is_connect = frame[1] == Kind::Connect as u8;
    assert!(len == frame.len() || is_connect, "{len} bytes of {}", frame.len());
    let len = Connect::parse(frame).map_or(len, |connect| CONNECT + connect.payload.len());
    assert_eq!((frame[0], frame[1]), (again[0], again[1]));
    assert_eq!(frame[8..len], again[8..len]);
}

/// Parses and writes; says how long the frame became.
fn emit(frame: &[u8], again: &mut [u8]) -> Option<usize> {
    Some(match Header::parse(frame)?.kind {
        Kind::Connect => Connect::parse(frame)?.emit(again),
        Kind::Retry => Retry::parse(frame)?.emit(again),
        Kind::Accept => Accept::parse(frame)?.emit(again),
        Kind::Reject => Reject::parse(frame)?.emit(again),
        Kind::Redirect => Redirect::parse(frame)?.emit(again),
        Kind::Close => {
            let (close, sack, records) = Close::parse(frame)?;
            let at = close.emit(&sack.words().collect::<Vec<_>>(), again);
            append(again, at, records.bytes())
        }
        Kind::Reset => Reset::parse(frame)?.emit(again),
        Kind::Confirm => Confirm::parse(frame)?.emit(again),
        Kind::Multicast => {
            let multicast = Multicast::parse(frame)?;
            let head = multicast.emit_head(again);
            append(again, head, multicast.bytes)
        }
        Kind::Data => {
            let (data, sack, records) = Data::parse(frame)?;
            let at = data.emit(&sack.words().collect::<Vec<_>>(), again);
            records.fold(at, |at, record| emit_record(again, at, record))
        }
    })
}

fn emit_record(frame: &mut [u8], at: usize, record: Record<'_>) -> usize {
    match record {
        Record::Message { after, bytes } => emit_message(frame, at, after, &[bytes]),
        Record::Part { message, total, at: part_at, bytes } => {
            let end = emit_part(frame, at, message, total, part_at, bytes.len());
            append(frame, end, bytes)
        }
        Record::Write { op, target, at: op_at, bytes } => {
            let end = emit_write(frame, at, op, &target, op_at, bytes.len());
            append(frame, end, bytes)
        }
        Record::Read { op, target } => emit_read(frame, at, op, &target),
        Record::ReadBytes { op, at: op_at, bytes } => {
            let end = emit_read_bytes(frame, at, op, op_at, bytes.len());
            append(frame, end, bytes)
        }
        Record::Result { op, status } => emit_result(frame, at, op, status),
        Record::Atomic { op, target, atomic } => emit_atomic(frame, at, op, &target, atomic),
        Record::Value { op, value } => emit_value(frame, at, op, value),
        Record::Large { op, len } => emit_large(frame, at, op, len),
        Record::Landing { op, handle } => emit_landing(frame, at, op, handle),
        Record::Probe { size } => emit_probe(frame, at, size),
        Record::ProbeReply { size } => emit_probe_reply(frame, at, size),
        Record::Slice { total, at: slice_at, bytes } => {
            let end = emit_slice(frame, at, total, slice_at, bytes.len());
            append(frame, end, bytes)
        }
    }
}

fn append(frame: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}
