//! Writes DATA frames: acknowledgement and payload.

use crate::engine::api::Transmit;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::frame_pool::FramePool;
use crate::engine::flow::in_flight::Payload;
use crate::engine::flow::rma_state::{OP_MASK, RmaState};
use crate::engine::flow::slicing::Slice;
use crate::engine::host::{Host, Op, Source, Target};
use crate::wire::{
    self, Ack, DATA, Data, Header, Kind, READ_BYTES_HEAD, SLICE_HEAD, WRITE_HEAD, emit_read_bytes, emit_slice,
    emit_write, flags,
};
use crate::{Failure, Time};

/// The reason why a frame was not built: its memory is no longer registered.
pub(super) struct MemoryLoss(pub(crate) Failure);

/// The parts of a sequenced frame.
pub(super) struct FrameParts<P> {
    /// Bytes in the buffer.
    pub(crate) len: usize,
    pub(crate) piece: Option<P>,
    pub(crate) piece_len: u32,
    pub(crate) flags: u8,
}

/// Returns the length of records and memory.
pub(super) fn payload_len(payload: &Payload) -> usize {
    match payload {
        Payload::Empty => 0,
        Payload::Batch(batch) => usize::from(batch.len),
        Payload::Write { len, .. } => WRITE_HEAD + *len as usize,
        Payload::Aborted { .. } => WRITE_HEAD + 1,
        Payload::ReadBytes { len, .. } => READ_BYTES_HEAD + *len as usize,
    }
}

/// Returns the length of the record's head before memory.
fn head_len(payload: &Payload) -> usize {
    match payload {
        Payload::Write { .. } => WRITE_HEAD,
        Payload::ReadBytes { .. } => READ_BYTES_HEAD,
        Payload::Empty | Payload::Batch(_) | Payload::Aborted { .. } => 0,
    }
}

/// Writes a sequenced frame: all records of `payload`, or a slice of them.
#[expect(clippy::too_many_arguments, reason = "one frame from all that it is made of")]
pub(super) fn build<H: Host>(
    conn: &mut Conn,
    flow: &Flow,
    seq: u32,
    mut bits: u8,
    payload: &Payload,
    slice: Slice,
    is_again: bool,
    now: Time,
    frames: &FramePool,
    rmas: &[Option<RmaState>],
    buffer: &mut [u8],
    host: &mut H,
) -> Result<FrameParts<H::Piece>, MemoryLoss> {
    let memory = memory(flow, payload, slice, (rmas, is_again && !conn.has(bit::UNCHECKED)), host)?;
    if memory.is_some() && slice.is_whole() && conn.has(bit::UNCHECKED) {
        bits |= flags::UNCHECKED;
    }
    let payload_len = slice.len + if slice.is_whole() { 0 } else { SLICE_HEAD };
    let mut at = emit_data(conn, Some(flow), Some(seq), bits, payload_len, now, host.credit(), buffer);
    if !slice.is_whole() {
        let [total, from] = [slice.total, slice.at].map(|bytes| u16::try_from(bytes).unwrap_or(u16::MAX));
        at = emit_slice(buffer, at, total, from, slice.len);
    }
    let len = put_records(payload, slice, memory.as_ref().map(|memory| memory.target), frames, buffer, at);
    let (piece, piece_len) = memory.map_or((None, 0), |memory| (Some(memory.piece), memory.len));
    Ok(FrameParts { len, piece, piece_len, flags: bits })
}

/// Registered memory that a frame carries.
struct Memory<P> {
    target: Target,
    piece: P,
    len: u32,
}

/// Returns the memory of a slice of a write or of read bytes. `is_again`: it was sent before, with
/// a check over it.
fn memory<H: Host>(
    flow: &Flow,
    payload: &Payload,
    slice: Slice,
    (rmas, is_again): (&[Option<RmaState>], bool),
    host: &mut H,
) -> Result<Option<Memory<H::Piece>>, MemoryLoss> {
    let head = head_len(payload);
    // The first slice has the whole head.
    let skipped = slice.at.saturating_sub(head) as u64;
    let len = u32::try_from(slice.len - if slice.at == 0 { head } else { 0 }).unwrap_or(u32::MAX);
    let mut piece = |source: Source, at: u64| {
        if is_again {
            host.resent(&source, len);
        }
        host.source(&source, at + skipped, len).map_err(MemoryLoss)
    };
    let (target, piece) = match payload {
        Payload::Write { op, at, .. } => {
            let host_op = Op(op & OP_MASK);
            let state = rmas.get(host_op.0 as usize).and_then(Option::as_ref);
            let state = state.filter(|state| state.wire == *op && state.conn == flow.conn() && state.failed.is_none());
            let target = state.map(|state| state.target).ok_or(MemoryLoss(Failure::Copy))?;
            (target, piece(Source::Local(host_op), *at)?)
        }
        Payload::ReadBytes { target, at, .. } => (*target, piece(Source::Served(*target), *at)?),
        Payload::Empty | Payload::Batch(_) | Payload::Aborted { .. } => return Ok(None),
    };
    Ok(Some(Memory { target, piece, len }))
}

/// Writes a slice of records at `at`, without the memory in it. Returns where it ends.
fn put_records(
    payload: &Payload,
    slice: Slice,
    target: Option<Target>,
    frames: &FramePool,
    buffer: &mut [u8],
    at: usize,
) -> usize {
    match (payload, target) {
        (Payload::Batch(batch), _) => {
            let bytes = &frames.bytes(batch.buffer)[slice.at..slice.at + slice.len];
            buffer[at..at + slice.len].copy_from_slice(bytes);
            at + slice.len
        }
        (Payload::Aborted { op, is_last }, _) => {
            // No registration has this handle.
            let target = Target { handle: [0, 0], offset: 0, len: if *is_last { 1 } else { 2 } };
            let end = emit_write(buffer, at, *op, &target, 0, 1);
            buffer[end] = 0;
            end + 1
        }
        (Payload::Write { op, at: op_at, len, .. }, Some(target)) if slice.at == 0 => {
            emit_write(buffer, at, *op, &target, *op_at, *len as usize)
        }
        (Payload::ReadBytes { op, at: op_at, len, .. }, _) if slice.at == 0 => {
            emit_read_bytes(buffer, at, *op, *op_at, *len as usize)
        }
        (Payload::Empty | Payload::Write { .. } | Payload::ReadBytes { .. }, _) => at,
    }
}

/// Returns the header of the next frame of a connection.
pub(crate) fn header(conn: &mut Conn, kind: Kind, now: Time) -> Header {
    let number = conn.number;
    conn.number = number.wrapping_add(1);
    Header { kind, to: conn.peer, from: conn.id, number, time: now.micros() }
}

/// A whole frame without memory.
pub(crate) fn plain<P>(conn: &Conn, len: usize) -> Transmit<P> {
    Transmit { to: conn.to, len, piece: None, piece_len: 0, checked: true, probe: false, seal: None }
}

/// Writes the head of a DATA frame with its acknowledgement. Returns where the records begin. A
/// SACK that does not fit beside the records stays pending.
#[expect(clippy::too_many_arguments, reason = "one frame from all that it is made of")]
pub(super) fn emit_data(
    conn: &mut Conn,
    flow: Option<&Flow>,
    seq: Option<u32>,
    mut bits: u8,
    payload_len: usize,
    now: Time,
    credit: u32,
    buffer: &mut [u8],
) -> usize {
    let with_gap = flow.map(|flow| &flow.reorder_queue).filter(|queue| queue.has_gap());
    let space = usize::from(conn.mtu).saturating_sub(DATA + payload_len) / 8;
    let count = with_gap.map_or(0, |queue| queue.sack_words().min(space).min(wire::MAX_SACK));
    if with_gap.is_none_or(|queue| queue.sack_words() == count) {
        conn.clear(bit::ACK_NOW | bit::ACK_DELAYED | bit::FULL);
    }
    if seq.is_some() {
        bits |= flags::SEQUENCED;
    }
    if conn.has(bit::RNR) {
        bits |= flags::RNR;
    }
    let reliable = conn.is_reliable();
    let ack = Ack {
        credit: u16::try_from(credit).unwrap_or(u16::MAX),
        ack: if reliable { conn.recv_next } else { 0 },
        echo_number: conn.newest,
        echo_time: conn.newest_time,
        delay: u16::try_from(conn.silence(now)).unwrap_or(u16::MAX),
        congested: conn.marks,
    };
    let data = Data { header: header(conn, Kind::Data, now), seq: seq.unwrap_or(0), flags: bits, ack, sack_words: 0 };
    match with_gap {
        None => data.emit(&[], buffer),
        Some(queue) => data.emit(&queue.sack()[..count], buffer),
    }
}
