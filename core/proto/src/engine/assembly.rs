//! Messages that are put together from parts.

use super::host::{Host, Place};
use super::records::{Scene, Taken};
use super::send::AFTER;
use alloc::vec::Vec;

/// Parts of one message on an unreliable connection that are kept account of; a message of more is not put together.
const MOST_PARTS: usize = 1 << 16;

/// A message that is being put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assembly {
    pub(super) place: Place,
    message: u32,
    total: u32,
    /// Bytes from the start on; on an unreliable connection, parts but for the last.
    filled: u32,
    /// On an unreliable connection: size of the parts but for the last (0: none has come), and where the last begins.
    size: u32,
    tail: Option<u32>,
}

impl Assembly {
    const fn new(place: Place, message: u32, total: u32) -> Self {
        Self { place, message, total, filled: 0, size: 0, tail: None }
    }

    /// Notes a part that may come in any order; false if it has come, or is none of those that a message is cut into: all of
    /// one size but for the last, which is not longer.
    fn note(&mut self, seen: &mut Vec<u64>, at: u32, len: u32) -> bool {
        if self.total - at == len {
            return self.tail.replace(at).is_none();
        }
        if self.size == 0 {
            self.size = len;
        }
        let number = (at / self.size) as usize;
        if len != self.size || !at.is_multiple_of(self.size) || number >= MOST_PARTS {
            return false;
        }
        if seen.len() <= number / 64 {
            seen.resize(number / 64 + 1, 0);
        }
        let bit = 1 << (number % 64);
        let is_new = seen[number / 64] & bit == 0;
        seen[number / 64] |= bit;
        self.filled += u32::from(is_new);
        is_new
    }

    /// Whether every part has come.
    fn is_whole(&self) -> bool {
        let Some(tail) = self.tail else { return false };
        let fits = tail == 0 || self.total - tail <= self.size;
        fits && u64::from(self.filled) * u64::from(self.size) == u64::from(tail)
    }
}

/// Whether a message is older than another; numbers of 31 bits that wrap.
#[expect(clippy::cast_possible_wrap, reason = "distance modulo 2^31")]
fn is_older(message: u32, than: u32) -> bool {
    ((message.wrapping_sub(than) << 1) as i32) < 0
}

impl Scene<'_> {
    /// A part of a message whose parts come in order, each once.
    pub(super) fn part<H: Host>(&mut self, message: u32, total: u32, at: u32, bytes: &[u8], host: &mut H) -> Taken {
        if total > self.max_send_size || message & AFTER != 0 && self.flow.after_refused {
            return Taken::Done;
        }
        if at == 0 {
            self.abandon(host);
            let Some(place) = host.begin(self.conn.user, total) else { return Taken::NoSlot };
            self.flow.assembly = Some(Assembly::new(place, message, total));
        }
        let Some(assembly) = &mut self.flow.assembly else { return Taken::Done };
        if assembly.message != message || assembly.total != total || assembly.filled != at {
            return Taken::Done;
        }
        host.fill(assembly.place, at, bytes);
        assembly.filled += u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if assembly.filled == total {
            self.deliver(host);
        }
        Taken::Done
    }

    /// A part of an unreliable message, in any order; a message with a hole is never shown.
    pub(super) fn loose_part<H: Host>(&mut self, message: u32, total: u32, at: u32, bytes: &[u8], host: &mut H) {
        let message = message & !AFTER;
        if total > self.max_send_size {
            return;
        }
        if self.flow.assembly.is_none_or(|assembly| assembly.message != message) {
            if self.flow.assembly.is_some_and(|assembly| is_older(message, assembly.message)) {
                return;
            }
            self.abandon(host);
            let Some(place) = host.begin(self.conn.user, total) else { return };
            self.flow.assembly = Some(Assembly::new(place, message, total));
            self.flow.seen.clear();
        }
        let Some(assembly) = &mut self.flow.assembly else { return };
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if assembly.total != total || !assembly.note(&mut self.flow.seen, at, len) {
            return;
        }
        host.fill(assembly.place, at, bytes);
        if assembly.is_whole() {
            self.deliver(host);
        }
    }

    /// The message is complete.
    fn deliver<H: Host>(&mut self, host: &mut H) {
        if let Some(assembly) = self.flow.assembly.take() {
            host.deliver(self.conn.user, assembly.place);
        }
    }

    /// Forgets the message that is being put together.
    fn abandon<H: Host>(&mut self, host: &mut H) {
        if let Some(assembly) = self.flow.assembly.take() {
            host.abandon(assembly.place);
        }
    }
}
