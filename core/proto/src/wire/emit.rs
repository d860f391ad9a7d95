//! Appends records to a DATA frame. Each function writes at `at` and says where the record, or its
//! head, ends. Of WRITE, READ_BYTES, PART and SLICE only the head is written; the bytes follow it:
//! memory for the first two, the caller's copy for the others.
//!
//! All of them panic when the buffer is too small.

use super::bytes::{length, put};
use super::record::{AFTER, COMPARE, RECORD, kind};
use crate::engine::Target;
use crate::{Atomic, Cursor, Gather};

/// Bytes of MESSAGE before the message.
pub const MESSAGE_HEAD: usize = 4;
/// Bytes of PART before the part.
pub const PART_HEAD: usize = 16;
/// Bytes of WRITE before the memory.
pub const WRITE_HEAD: usize = 52;
/// Bytes of READ.
pub const READ: usize = 44;
/// Bytes of READ_BYTES before the memory.
pub const READ_BYTES_HEAD: usize = 20;
/// Bytes of RESULT.
pub const RESULT: usize = 12;
/// Bytes of ATOMIC.
pub const ATOMIC: usize = 60;
/// Bytes of VALUE.
pub const VALUE: usize = 20;
/// Bytes of LARGE.
pub const LARGE: usize = 20;
/// Bytes of LANDING.
pub const LANDING: usize = 28;

/// Bytes of SLICE before the slice.
pub const SLICE_HEAD: usize = 8;

/// Bytes of PROBE without its zeros, and of PROBE_REPLY.
const PROBE: usize = 8;

/// The four bytes before a record's body.
#[inline]
fn begin(frame: &mut [u8], at: usize, number: u8, flags: u8, body: usize) -> usize {
    put(frame, at, [number, flags]);
    put(frame, at + 2, length(body));
    at + RECORD
}

/// A message; its parts lie one after the other.
#[inline]
pub fn emit_message(frame: &mut [u8], at: usize, after: bool, parts: &(impl Gather + ?Sized)) -> usize {
    let len = parts.total();
    let flags = if after { AFTER } else { 0 };
    let body = begin(frame, at, kind::MESSAGE, flags, len);
    let end = body + len;
    parts.copy(&mut Cursor::default(), &mut frame[body..end]);
    end
}

/// The head of a part of `bytes_len` bytes that begins at `part_at` of a message of `total`.
#[inline]
pub fn emit_part(frame: &mut [u8], at: usize, message: u32, total: u32, part_at: u32, bytes_len: usize) -> usize {
    let body = begin(frame, at, kind::PART, 0, PART_HEAD - RECORD + bytes_len);
    put(frame, body, message.to_be_bytes());
    put(frame, body + 4, total.to_be_bytes());
    put(frame, body + 8, part_at.to_be_bytes());
    at + PART_HEAD
}

/// The head of `bytes_len` bytes of a write, from `op_at` of the operation on.
#[inline]
pub fn emit_write(frame: &mut [u8], at: usize, op: u32, target: &Target, op_at: u64, bytes_len: usize) -> usize {
    let body = begin(frame, at, kind::WRITE, 0, WRITE_HEAD - RECORD + bytes_len);
    operation(frame, body, op, target);
    put(frame, body + 40, op_at.to_be_bytes());
    at + WRITE_HEAD
}

/// Asks for a read.
#[inline]
pub fn emit_read(frame: &mut [u8], at: usize, op: u32, target: &Target) -> usize {
    let body = begin(frame, at, kind::READ, 0, READ - RECORD);
    operation(frame, body, op, target);
    at + READ
}

/// The head of `bytes_len` bytes that a read asked for, from `op_at` of the operation on.
#[inline]
pub fn emit_read_bytes(frame: &mut [u8], at: usize, op: u32, op_at: u64, bytes_len: usize) -> usize {
    let body = begin(frame, at, kind::READ_BYTES, 0, READ_BYTES_HEAD - RECORD + bytes_len);
    put(frame, body, op.to_be_bytes());
    put(frame, body + 4, [0; 4]);
    put(frame, body + 8, op_at.to_be_bytes());
    at + READ_BYTES_HEAD
}

/// How an RMA ended: 0 well, 1 refused, 2 the copy failed, 3 the message is too long.
#[inline]
pub fn emit_result(frame: &mut [u8], at: usize, op: u32, status: u8) -> usize {
    let body = begin(frame, at, kind::RESULT, 0, RESULT - RECORD);
    put(frame, body, op.to_be_bytes());
    put(frame, body + 4, [status, 0, 0, 0]);
    at + RESULT
}

/// Asks for a word to be changed.
#[inline]
pub fn emit_atomic(frame: &mut [u8], at: usize, op: u32, target: &Target, atomic: Atomic) -> usize {
    let (flags, operand, expected) = match atomic {
        Atomic::FetchAdd(addend) => (0, addend, 0),
        Atomic::CompareSwap { expected, desired } => (COMPARE, desired, expected),
    };
    let body = begin(frame, at, kind::ATOMIC, flags, ATOMIC - RECORD);
    operation(frame, body, op, target);
    put(frame, body + 40, operand.to_be_bytes());
    put(frame, body + 48, expected.to_be_bytes());
    at + ATOMIC
}

/// The old value of a word that was changed.
#[inline]
pub fn emit_value(frame: &mut [u8], at: usize, op: u32, value: u64) -> usize {
    let body = begin(frame, at, kind::VALUE, 0, VALUE - RECORD);
    put(frame, body, op.to_be_bytes());
    put(frame, body + 4, [0; 4]);
    put(frame, body + 8, value.to_be_bytes());
    at + VALUE
}

/// Asks for memory for a large message.
#[inline]
pub fn emit_large(frame: &mut [u8], at: usize, op: u32, len: u64) -> usize {
    let body = begin(frame, at, kind::LARGE, 0, LARGE - RECORD);
    put(frame, body, op.to_be_bytes());
    put(frame, body + 4, [0; 4]);
    put(frame, body + 8, len.to_be_bytes());
    at + LARGE
}

/// The memory for a large message.
#[inline]
pub fn emit_landing(frame: &mut [u8], at: usize, op: u32, handle: [u64; 2]) -> usize {
    let body = begin(frame, at, kind::LANDING, 0, LANDING - RECORD);
    put(frame, body, op.to_be_bytes());
    put(frame, body + 4, [0; 4]);
    put(frame, body + 8, handle[0].to_be_bytes());
    put(frame, body + 16, handle[1].to_be_bytes());
    at + LANDING
}

/// A probe with zeros until the whole frame is `size` bytes long; without any, and with the frame's
/// real size, if there is no room for them.
pub fn emit_probe(frame: &mut [u8], at: usize, size: u16) -> usize {
    let end = usize::from(size).max(at + PROBE);
    let body = begin(frame, at, kind::PROBE, 0, end - at - RECORD);
    put(frame, body, length(end));
    frame[body + 2..end].fill(0);
    end
}

/// Answers a probe.
pub fn emit_probe_reply(frame: &mut [u8], at: usize, size: u16) -> usize {
    let body = begin(frame, at, kind::PROBE_REPLY, 0, PROBE - RECORD);
    put(frame, body, size.to_be_bytes());
    put(frame, body + 2, [0; 2]);
    at + PROBE
}

/// The head of a slice of `bytes_len` bytes that begins at `slice_at` of records of `total`.
pub fn emit_slice(frame: &mut [u8], at: usize, total: u16, slice_at: u16, bytes_len: usize) -> usize {
    let body = begin(frame, at, kind::SLICE, 0, SLICE_HEAD - RECORD + bytes_len);
    put(frame, body, total.to_be_bytes());
    put(frame, body + 2, slice_at.to_be_bytes());
    at + SLICE_HEAD
}

/// Number and target of an RMA: the first 40 bytes of its body.
#[inline]
fn operation(frame: &mut [u8], body: usize, op: u32, target: &Target) {
    put(frame, body, op.to_be_bytes());
    put(frame, body + 4, [0; 4]);
    put(frame, body + 8, target.handle[0].to_be_bytes());
    put(frame, body + 16, target.handle[1].to_be_bytes());
    put(frame, body + 24, target.offset.to_be_bytes());
    put(frame, body + 32, target.len.to_be_bytes());
}
