//! Path-MTU discovery by probes (RFC 8899), which are larger frames that carry nothing needed.

use crate::Time;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::connection::sealed::OVERHEAD;

/// Sizes worth trying, bytes of frame: Ethernet of 1,500 and 9,000 bytes below IPv6 and IPv4, and
/// loop-back.
const SIZES: [u16; 6] = [1_400, 1_452, 1_472, 4_096, 8_952, 8_972];
/// Probes of one size.
const TRIES: u8 = 3;
/// Time until a size that failed is tried again (RFC 8899, PMTU_RAISE_TIMER), microseconds.
const RAISE: u64 = 600_000_000;

/// What is being probed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathProbing {
    size: u16,
    tries: u8,
    next_at: Time,
    /// A probe of the peer that is to be answered.
    reply: u16,
}

impl PathProbing {
    /// The size of a probe that is due on this connection, to be sent now.
    pub(crate) fn due(&mut self, now: Time, conn: &Conn, largest: u16) -> Option<u16> {
        let largest = largest.min(conn.peer_mtu);
        if conn.mtu >= largest || now < self.next_at {
            return None;
        }
        if self.size <= conn.mtu {
            let overhead = if conn.has(bit::SEALED) { OVERHEAD } else { 0 };
            (self.size, self.tries) = (next_size(conn.mtu, largest, overhead), 0);
        } else if self.tries >= TRIES {
            // This size does not pass: a smaller one between may, the next larger will not.
            self.size = 0;
            self.next_at = now.plus_micros(RAISE);
            return None;
        }
        self.tries += 1;
        self.next_at = now.plus_micros(conn.probe_timeout(0) * 2);
        Some(self.size)
    }

    /// Begins with the smallest size.
    pub(crate) fn restart(&mut self) {
        *self = Self { reply: self.reply, ..Self::default() };
    }

    /// A probe of the peer arrived.
    pub(crate) fn on_probe(&mut self, size: u16) {
        self.reply = size;
    }

    /// Whether a probe of the peer is to be answered.
    pub(crate) fn has_reply(&self) -> bool {
        self.reply > 0
    }

    /// The size to be confirmed to the peer.
    pub(crate) fn take_reply(&mut self) -> Option<u16> {
        let size = core::mem::take(&mut self.reply);
        (size > 0).then_some(size)
    }

    /// A probe of ours arrived, says the peer; whether it is the one that was sent.
    pub(crate) fn on_reply(&mut self, size: u16) -> bool {
        let expected = size == self.size;
        if expected {
            self.next_at = Time(0);
        }
        expected
    }
}

/// The next size; frames on the wire are longer by `overhead`.
fn next_size(mtu: u16, largest: u16, overhead: u16) -> u16 {
    SIZES.into_iter().map(|size| size - overhead).find(|size| *size > mtu).unwrap_or(largest).min(largest)
}
