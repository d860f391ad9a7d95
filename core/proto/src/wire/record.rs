//! The records of a DATA frame. Each begins with four bytes; the length is that of what follows
//! them.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |     kind      |     flags     |            length             |  0
//! +---------------+---------------+-------------------------------+
//!
//! 1 MESSAGE, flag 1 = after all before it      6 RESULT
//! +-------------------------------+            +-------------------------------+
//! |  bytes                        |  4         |              op               |  4
//! +-------------------------------+            +---------------+---------------+
//!                                              |    status     |    0  0  0    |  8
//! 2 PART                                       +---------------+---------------+
//! +-------------------------------+
//! |            message            |  4         7 PROBE, last
//! |             total             |  8         +---------------+---------------+
//! |              at               | 12         |     size      |       0       |  4
//! |  bytes                        | 16         |  zeros up to size of frame    |  8
//! +-------------------------------+            +-------------------------------+
//!
//! 3 WRITE, last                                8 PROBE_REPLY
//! +-------------------------------+            +---------------+---------------+
//! |              op               |  4         |     size      |       0       |  4
//! |               0               |  8         +---------------+---------------+
//! |        handle, 128 bits       | 12
//! |        offset, 64 bits        | 28         5 READ_BYTES, last
//! |   length of all, 64 bits      | 36         +-------------------------------+
//! |          at, 64 bits          | 44         |              op               |  4
//! |  bytes                        | 52         |               0               |  8
//! +-------------------------------+            |          at, 64 bits          | 12
//!                                              |  bytes                        | 20
//! 4 READ: as WRITE, without at and bytes       +-------------------------------+
//!
//! 9 SLICE, alone in its frame                  11 VALUE
//! +---------------+---------------+            +-------------------------------+
//! |     total     |      at       |  4         |              op               |  4
//! |  bytes                        |  8         |               0               |  8
//! +-------------------------------+            |        value, 64 bits         | 12
//!                                              +-------------------------------+
//! 10 ATOMIC, alone in its frame; flag 1 = compare and swap
//! +-------------------------------+
//! |  as READ                      |  4
//! |       operand, 64 bits        | 44
//! |       expected, 64 bits       | 52
//! +-------------------------------+
//!
//! 12 LARGE, alone in its frame                 13 LANDING
//! +-------------------------------+            +-------------------------------+
//! |              op               |  4         |              op               |  4
//! |               0               |  8         |               0               |  8
//! |        length, 64 bits        | 12         |        handle, 128 bits       | 12
//! +-------------------------------+            +-------------------------------+
//! ```

use super::bytes::{u8_at, u16_at, u32_at, u64_at, zero};
use crate::Atomic;
use crate::engine::Target;

/// Bytes before the body of each record.
pub(super) const RECORD: usize = 4;

/// Numbers of the records.
pub(super) mod kind {
    pub(in super::super) const MESSAGE: u8 = 1;
    pub(in super::super) const PART: u8 = 2;
    pub(in super::super) const WRITE: u8 = 3;
    pub(in super::super) const READ: u8 = 4;
    pub(in super::super) const READ_BYTES: u8 = 5;
    pub(in super::super) const RESULT: u8 = 6;
    pub(in super::super) const PROBE: u8 = 7;
    pub(in super::super) const PROBE_REPLY: u8 = 8;
    pub(in super::super) const SLICE: u8 = 9;
    pub(in super::super) const ATOMIC: u8 = 10;
    pub(in super::super) const VALUE: u8 = 11;
    pub(in super::super) const LARGE: u8 = 12;
    pub(in super::super) const LANDING: u8 = 13;
}

/// The flag of MESSAGE.
pub(super) const AFTER: u8 = 1;
/// The flag of ATOMIC.
pub(super) const COMPARE: u8 = 1;

/// The highest status of RESULT.
const MAX_STATUS: u8 = 3;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A message in one piece.
    Message {
        /// Only after everything before it in the sequence, whatever the connection promises.
        after: bool,
        /// The message.
        bytes: &'a [u8],
    },
    /// A part of a message.
    Part {
        /// The sender's number of the message.
        message: u32,
        /// Bytes of the whole message.
        total: u32,
        /// Where this part begins in it.
        at: u32,
        /// The part, not empty, within the message.
        bytes: &'a [u8],
    },
    /// A part of an RMA write.
    Write {
        /// The sender's number of the operation.
        op: u32,
        /// What it writes to.
        target: Target,
        /// Where this part begins in the operation.
        at: u64,
        /// The part, not empty, within the operation.
        bytes: &'a [u8],
    },
    /// An RMA read is asked for.
    Read {
        /// The sender's number of the operation.
        op: u32,
        /// What it reads.
        target: Target,
    },
    /// A word is to be changed, and its old value told.
    Atomic {
        /// The sender's number of the operation.
        op: u32,
        /// The word.
        target: Target,
        /// What it becomes.
        atomic: Atomic,
    },
    /// Memory is asked for, into which a large message is to be written.
    Large {
        /// The sender's number of the operation. The writes that follow have it too.
        op: u32,
        /// Bytes of the message.
        len: u64,
    },
    /// The memory for a large message.
    Landing {
        /// The sender's number of the operation.
        op: u32,
        /// What it is written to, from its first byte on.
        handle: [u64; 2],
    },
    /// The old value of a word that was changed.
    Value {
        /// The initiator's number of the operation.
        op: u32,
        /// The value.
        value: u64,
    },
    /// A part of what a read asked for.
    ReadBytes {
        /// The reader's number of the operation.
        op: u32,
        /// Where this part begins in the operation.
        at: u64,
        /// The part, not empty.
        bytes: &'a [u8],
    },
    /// How an RMA ended at its target.
    Result {
        /// The initiator's number of the operation.
        op: u32,
        /// 0: well; 1: handle, range or right is wrong; 2: the copy failed; 3: the message is too
        /// long.
        status: u8,
    },
    /// Looks whether a frame of this size arrives.
    Probe {
        /// Bytes of the whole frame.
        size: u16,
    },
    /// It did.
    ProbeReply {
        /// As in the probe.
        size: u16,
    },
    /// A slice of the records of a frame that the path does not carry whole.
    Slice {
        /// Bytes of all its records.
        total: u16,
        /// Where this slice begins in them.
        at: u16,
        /// The slice, not empty, within the records.
        bytes: &'a [u8],
    },
}

impl Record<'_> {
    /// Whether the receiver answers it by a record.
    #[inline]
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. } | Self::Atomic { .. } | Self::Large { .. })
    }
}

/// The records of a frame, one after the other. Whoever holds one knows that their framing is
/// sound.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    frame: usize,
}

impl<'a> Records<'a> {
    /// The bytes of the records that are left, to be kept for later.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether these are not records, but a slice of some.
    #[inline]
    #[must_use]
    pub fn is_slice(&self) -> bool {
        self.rest.first() == Some(&kind::SLICE)
    }

    /// The record, if there is one and no other.
    #[inline]
    #[must_use]
    pub fn only(mut self) -> Option<Record<'a>> {
        self.next().filter(|_| self.rest.is_empty())
    }

    /// Records that are these bytes, if every one is sound.
    #[must_use]
    pub fn again(bytes: &'a [u8]) -> Option<Self> {
        Self::parse(bytes, usize::MAX)
    }

    /// The last of the [`bytes`](Records::bytes) of records that were kept, from the beginning of
    /// one of them on. They are not checked once more: what is kept for a slot is looked at with
    /// each event that the program returns.
    #[must_use]
    pub(crate) const fn kept(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, frame: usize::MAX }
    }

    /// These bytes at the end of a frame of `frame` bytes, if every record in them is sound.
    #[inline]
    pub(super) fn parse(bytes: &'a [u8], frame: usize) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let is_first = rest.len() == bytes.len();
            let (record, after) = split(rest, frame)?;
            // Beside a message that finds no slot it would be applied again.
            if matches!(record, Record::Atomic { .. } | Record::Large { .. }) && !is_first {
                return None;
            }
            rest = after;
        }
        Some(Self { rest: bytes, frame })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let (record, rest) = split(self.rest, self.frame)?;
        self.rest = rest;
        Some(record)
    }
}

/// Bytes of memory that the last of these records carries; `None` if they are not sound.
#[inline]
pub(super) fn memory_at_end(bytes: &[u8], frame: usize) -> Option<usize> {
    match Records::parse(bytes, frame)?.last() {
        Some(Record::Write { bytes, .. } | Record::ReadBytes { bytes, .. }) => Some(bytes.len()),
        _ => Some(0),
    }
}

/// The first record and what follows it, if it is sound.
#[inline]
fn split(bytes: &[u8], frame: usize) -> Option<(Record<'_>, &[u8])> {
    let (number, flags) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
    let len = usize::from(u16_at(bytes, 2)?);
    let (body, rest) = bytes[RECORD..].split_at_checked(len)?;
    if number == kind::MESSAGE {
        let record = Record::Message { after: flags & AFTER != 0, bytes: body };
        return (flags & !AFTER == 0).then_some((record, rest));
    }
    let is_last = rest.is_empty();
    if number == kind::ATOMIC && is_last {
        return Some((atomic(flags, body)?, rest));
    }
    (flags == 0).then_some(())?;
    let record = match number {
        kind::PART => part(body),
        kind::WRITE if is_last => write(body),
        kind::READ => read(body),
        kind::READ_BYTES if is_last => read_bytes(body),
        kind::RESULT => result(body),
        kind::PROBE if is_last => probe(body, frame),
        kind::PROBE_REPLY => probe_reply(body),
        kind::SLICE if is_last => slice(body),
        kind::VALUE => value(body),
        kind::LARGE if is_last => large(body),
        kind::LANDING => landing(body),
        _ => None,
    }?;
    Some((record, rest))
}

fn part(body: &[u8]) -> Option<Record<'_>> {
    let (message, total, at) = (u32_at(body, 0)?, u32_at(body, 4)?, u32_at(body, 8)?);
    let bytes = &body[12..];
    fits(at.into(), bytes, total.into())?;
    Some(Record::Part { message, total, at, bytes })
}

fn write(body: &[u8]) -> Option<Record<'_>> {
    let (op, target) = operation(body)?;
    let at = u64_at(body, 40)?;
    let bytes = &body[48..];
    fits(at, bytes, target.len)?;
    Some(Record::Write { op, target, at, bytes })
}

fn read(body: &[u8]) -> Option<Record<'_>> {
    let (op, target) = operation(body).filter(|_| body.len() == 40)?;
    Some(Record::Read { op, target })
}

fn atomic(flags: u8, body: &[u8]) -> Option<Record<'_>> {
    let (op, target) = operation(body).filter(|(_, target)| body.len() == 56 && Atomic::is_word(target.len))?;
    let (operand, expected) = (u64_at(body, 40)?, u64_at(body, 48)?);
    let atomic = match (flags, expected) {
        (0, 0) => Atomic::FetchAdd(operand),
        (COMPARE, expected) => Atomic::CompareSwap { expected, desired: operand },
        _ => return None,
    };
    Some(Record::Atomic { op, target, atomic })
}

fn value(body: &[u8]) -> Option<Record<'_>> {
    zero::<4>(body, 4)?;
    let value = u64_at(body, 8).filter(|_| body.len() == 16)?;
    Some(Record::Value { op: u32_at(body, 0)?, value })
}

fn large(body: &[u8]) -> Option<Record<'_>> {
    zero::<4>(body, 4)?;
    let len = u64_at(body, 8).filter(|_| body.len() == 16)?;
    Some(Record::Large { op: u32_at(body, 0)?, len })
}

fn landing(body: &[u8]) -> Option<Record<'_>> {
    zero::<4>(body, 4)?;
    let handle = [u64_at(body, 8)?, u64_at(body, 16).filter(|_| body.len() == 24)?];
    Some(Record::Landing { op: u32_at(body, 0)?, handle })
}

fn read_bytes(body: &[u8]) -> Option<Record<'_>> {
    zero::<4>(body, 4)?;
    let (op, at) = (u32_at(body, 0)?, u64_at(body, 8)?);
    let bytes = &body[16..];
    // Only the reader knows how long its operation is.
    fits(at, bytes, u64::MAX)?;
    Some(Record::ReadBytes { op, at, bytes })
}

fn result(body: &[u8]) -> Option<Record<'_>> {
    zero::<3>(body, 5)?;
    let status = u8_at(body, 4).filter(|status| *status <= MAX_STATUS && body.len() == 8)?;
    Some(Record::Result { op: u32_at(body, 0)?, status })
}

fn probe(body: &[u8], frame: usize) -> Option<Record<'_>> {
    let size = u16_at(body, 0).filter(|size| usize::from(*size) == frame)?;
    zero::<2>(body, 2)?;
    body[4..].iter().all(|byte| *byte == 0).then_some(Record::Probe { size })
}

fn probe_reply(body: &[u8]) -> Option<Record<'_>> {
    zero::<2>(body, 2)?;
    let size = u16_at(body, 0).filter(|_| body.len() == 4)?;
    Some(Record::ProbeReply { size })
}

fn slice(body: &[u8]) -> Option<Record<'_>> {
    let (total, at) = (u16_at(body, 0)?, u16_at(body, 2)?);
    let bytes = &body[4..];
    fits(at.into(), bytes, total.into())?;
    Some(Record::Slice { total, at, bytes })
}

/// Number and target of an RMA. Whether the range is one, the target says.
#[inline]
fn operation(body: &[u8]) -> Option<(u32, Target)> {
    zero::<4>(body, 4)?;
    let target =
        Target { handle: [u64_at(body, 8)?, u64_at(body, 16)?], offset: u64_at(body, 24)?, len: u64_at(body, 32)? };
    Some((u32_at(body, 0)?, target))
}

/// `Some` if there are bytes, and they end within the whole.
#[inline]
fn fits(at: u64, bytes: &[u8], whole: u64) -> Option<()> {
    let end = at.checked_add(bytes.len() as u64)?;
    (!bytes.is_empty() && end <= whole).then_some(())
}
