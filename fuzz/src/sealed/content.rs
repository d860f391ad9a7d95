//! What the two sides send each other. Each byte follows from a number and its place, so that a
//! receiver can tell it from any other.

use cci_proto::engine::Target;
use std::collections::BTreeMap;

/// Bytes of the registered memory of a side.
pub(super) const SERVED: u64 = 1 << 14;
/// Bytes of the shortest message: its number.
pub(super) const SHORTEST: usize = 4;

fn byte(of: u64, at: u64) -> u8 {
    let word = (of ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word >> 40) as u8
}

fn bytes(of: u64, at: u64, len: u64) -> Vec<u8> {
    (at..at + len).map(|at| byte(of, at)).collect()
}

/// A part of what a side's registered memory holds, which nothing changes: writes are checked where
/// they come, and leave it as it is.
pub(super) fn memory(side: usize, at: u64, len: u64) -> Vec<u8> {
    bytes(1 + side as u64, at, len)
}

/// A part of what the write of this number brings.
pub(super) fn write(number: u32, at: u64, len: u64) -> Vec<u8> {
    bytes(u64::from(number) << 8, at, len)
}

/// The message of this number.
fn message(number: u32, len: usize) -> Vec<u8> {
    let mut message = bytes(u64::from(number) << 8 | 3, 0, len as u64);
    message[..SHORTEST].copy_from_slice(&number.to_be_bytes());
    message
}

/// A message that was sent and has not come yet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    by: usize,
    len: usize,
}

/// What both sides have sent.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    next: u32,
    messages: BTreeMap<u32, Sent>,
    writes: Vec<(usize, u32, Target)>,
    payloads: Vec<(usize, Vec<u8>)>,
    /// The newest message of each ordered connection: side, and cookie.
    newest: BTreeMap<(usize, u32), u32>,
    /// Whether somebody on the path has led a side to itself, which the secret of a group does not
    /// prevent. What a side has sent may then come back to it.
    pub(super) is_mirrored: bool,
}

impl Ledger {
    /// The bytes of a new message.
    pub(super) fn send(&mut self, by: usize, len: usize) -> Vec<u8> {
        self.next += 1;
        let len = len.max(SHORTEST);
        self.messages.insert(self.next, Sent { by, len });
        message(self.next, len)
    }

    /// The number of a new write.
    pub(super) fn write(&mut self, by: usize, target: Target) -> u32 {
        self.next += 1;
        self.writes.push((by, self.next, target));
        self.next
    }

    /// Notes the payload of a request.
    pub(super) fn ask(&mut self, by: usize, payload: &[u8]) {
        self.payloads.push((by, payload.to_vec()));
    }

    fn may_come(&self, by: usize, to: usize) -> bool {
        by != to || self.is_mirrored
    }

    /// A message came to a side: the other one has sent it, and it comes for the first time.
    pub(super) fn check_message(&mut self, to: usize, cookie: u32, is_ordered: bool, bytes: &[u8]) {
        let number = u32::from_be_bytes(*bytes.first_chunk().expect("no shorter message was sent"));
        let sent = self.messages.remove(&number);
        let Some(sent) = sent else { panic!("message {number} was not sent, or comes again") };
        assert!(self.may_come(sent.by, to), "message {number} comes back");
        assert!(bytes == message(number, sent.len), "message {number} is another");
        if is_ordered {
            let before = self.newest.insert((to, cookie), number);
            assert!(before.is_none_or(|before| before < number), "message {number} comes after {before:?}");
        }
    }

    /// Bytes are written to the memory of a side: the other one has begun such a write.
    pub(super) fn check_write(&self, to: usize, (target, at, bytes): &(Target, u64, Vec<u8>)) {
        let is_it = |&(by, number, of): &(usize, u32, Target)| {
            self.may_come(by, to) && of == *target && *bytes == write(number, *at, bytes.len() as u64)
        };
        let end = at.checked_add(bytes.len() as u64);
        assert!(end.is_some_and(|end| end <= target.len), "{} bytes at {at} of {}", bytes.len(), target.len);
        assert!(self.writes.iter().any(is_it), "{} bytes at {at} of {target:?}, which nobody wrote", bytes.len());
    }

    /// Bytes answer a read of a side: they are those of the other one's memory.
    pub(super) fn check_read(&self, to: usize, (at, bytes): &(u64, Vec<u8>)) {
        let is_of = |side| self.may_come(side, to) && *bytes == memory(side, *at, bytes.len() as u64);
        assert!((0..2).any(is_of), "{} bytes at {at} are not the peer's", bytes.len());
    }

    /// A request came to a side: the other one has asked with this payload.
    pub(super) fn check_request(&self, to: usize, payload: &[u8]) {
        let is_it = |(by, asked): &(usize, Vec<u8>)| self.may_come(*by, to) && asked == payload;
        assert!(self.payloads.iter().any(is_it), "a request with a payload that nobody sent");
    }
}
