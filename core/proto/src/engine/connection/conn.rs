//! A connection: 120 bytes. Its state while something is in flight is its
//! [`Flow`](crate::engine::flow::Flow).

use crate::engine::api::PathMtu;
use crate::engine::serial::distance;
use crate::{Address, Attribute, Time};
use alloc::collections::BTreeMap;

/// State of a connection in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Client: CONNECT is on its way.
    Asking,
    /// Server: the program has not answered.
    Requested,
    /// Server: ACCEPT is on its way.
    Accepting,
    /// Usable.
    Open,
    /// The peer is gone; the host has not closed it yet.
    Broken,
    /// The host has closed it; CLOSE is on its way.
    Closing,
}

/// Stands for no connection, flow or operation.
pub(crate) const NONE: u32 = u32::MAX;

/// Bits of a connection's flags.
pub(crate) mod bit {
    /// It is in the list of those that have something to send.
    pub(crate) const READY: u16 = 1;
    /// The silence was reported to the host.
    pub(crate) const SILENCE_REPORTED: u16 = 2;
    /// A keepalive or probe is due, which the peer answers at once.
    pub(crate) const PING: u16 = 4;
    /// An acknowledgement waits for an answer of the program or for its deadline.
    pub(crate) const ACK_DELAYED: u16 = 8;
    /// An acknowledgement is to be sent now.
    pub(crate) const ACK_NOW: u16 = 16;
    /// One full frame has come since the last acknowledgement.
    pub(crate) const FULL: u16 = 32;
    /// The frame that comes next was refused for lack of a slot.
    pub(crate) const RNR: u16 = 64;
    /// Checks may leave out the bytes of RMA.
    pub(crate) const UNCHECKED: u16 = 128;
    /// A frame has come: `newest` is valid.
    pub(super) const RECEIVED: u16 = 256;
    /// CONFIRM is to be sent.
    pub(crate) const CONFIRM: u16 = 512;
    /// Waits for a frame buffer.
    pub(crate) const AWAITING_FRAME: u16 = 1024;
    /// A ping has left since a frame of the peer last came.
    pub(crate) const PINGED: u16 = 2048;
    /// This side gave up the connection: the peer gets a CLOSE.
    pub(crate) const GAVE_UP: u16 = 4096;
    /// The write that ended last was refused: its message is not delivered, however much later it
    /// comes.
    pub(crate) const AFTER_REFUSED: u16 = 8192;
    /// The peer takes no messages as long as this side's largest
    /// ([`SmallPeers`](super::SmallPeers)).
    pub(super) const SMALL_PEER: u16 = 16384;
    /// Frames are sealed ([`SealedConn`](super::super::sealed::SealedConn)).
    pub(crate) const SEALED: u16 = 32768;
}

/// Peers whose largest message is shorter than this side's, by connection: bytes. Most peers have
/// the same limit, so that connections need no room for it.
#[derive(Default)]
pub(crate) struct SmallPeers(BTreeMap<u32, u32>);

impl SmallPeers {
    /// Notes the largest message that the peer of this connection takes; `own`: this side's.
    pub(crate) fn note(&mut self, conn: &mut Conn, index: u32, largest: u32, own: u32) {
        conn.clear(bit::SMALL_PEER);
        if largest < own {
            conn.set(bit::SMALL_PEER);
            self.0.insert(index, largest);
        }
    }

    /// The largest message that may be sent on this connection; `own`: this side's.
    #[inline]
    pub(crate) fn largest(&self, conn: &Conn, index: u32, own: u32) -> u32 {
        if conn.has(bit::SMALL_PEER) { self.0.get(&index).copied().unwrap_or(0) } else { own }
    }

    /// Forgets a connection that is removed.
    pub(crate) fn forget(&mut self, index: u32) {
        self.0.remove(&index);
    }

    /// Entries, for tests.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The state of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    /// This side's identifier: 64 random bits.
    pub(crate) id: u64,
    /// The peer's identifier.
    pub(crate) peer: u64,
    /// The peer's address.
    pub(crate) to: Address,
    /// The host's cookie.
    pub(crate) host_cookie: u32,
    /// Number of the next frame of the reliable sequence. UU: the older half of the numbers seen
    /// lately.
    pub(crate) next_seq: u32,
    /// The next that the peer is to send. UU: the newer half.
    pub(crate) recv_next: u32,
    /// Next transmission number.
    pub(crate) number: u32,
    /// Newest transmission number of the peer, its time, and when it came (microseconds here).
    pub(crate) newest: u32,
    pub(crate) newest_time: u32,
    pub(crate) newest_at: u32,
    /// Round-trip time: smoothed, variation, smallest; microseconds; 0 = not measured.
    pub(crate) srtt: u32,
    pub(super) rttvar: u32,
    pub(crate) min_rtt: u32,
    /// Index of the flow, or [`NONE`].
    pub(crate) flow: u32,
    /// Bytes that the peer's receive buffer holds.
    pub(crate) peer_buffer: u32,
    /// Microseconds; 0 = never.
    pub(crate) keepalive: u32,
    pub(crate) send_timeout: u32,
    /// Largest frame of the path; the largest that path and peer take; the largest that the path
    /// carries for certain.
    pub(crate) mtu: u16,
    pub(crate) peer_mtu: u16,
    pub(crate) base_mtu: u16,
    /// The lower half of `newest` when an acknowledgement began to wait: tells its entry in the
    /// timer from older ones.
    pub(crate) ack_number: u16,
    /// Messages that the peer has room for.
    pub(crate) credit: u16,
    pub(crate) flags: u16,
    /// The attribute, in a byte.
    promise: u8,
    pub(crate) state: State,
    /// Congestion marks received.
    pub(crate) marks: u16,
    /// The valid entry of the timer, nanoseconds; [`u64::MAX`] = none.
    pub(crate) armed: Time,
}

// A hundred thousand idle connections are 12 MB.
const _: () = assert!(size_of::<Option<Conn>>() <= 120);

impl Conn {
    pub(crate) fn new(id: u64, peer: u64, to: Address, attribute: Attribute, host_cookie: u32) -> Self {
        Self {
            id,
            peer,
            to,
            host_cookie,
            next_seq: 0,
            recv_next: 0,
            number: 0,
            newest: 0,
            newest_time: 0,
            newest_at: 0,
            srtt: 0,
            rttvar: 0,
            min_rtt: 0,
            flow: NONE,
            peer_buffer: 0,
            keepalive: 0,
            send_timeout: 0,
            mtu: 0,
            peer_mtu: 0,
            base_mtu: 0,
            ack_number: 0,
            credit: 0,
            flags: 0,
            promise: attribute as u32 as u8,
            state: State::Asking,
            marks: 0,
            armed: Time(u64::MAX),
        }
    }

    /// Notes what the path carries. What the peer takes is not known yet.
    pub(crate) fn set_path(&mut self, path: PathMtu) {
        (self.base_mtu, self.peer_mtu) = (path.base, path.largest);
    }

    /// What the path carries, as [`Conn::set_path`] has noted it.
    pub(super) fn path(&self) -> PathMtu {
        PathMtu { base: self.base_mtu, largest: self.peer_mtu }
    }

    pub(crate) fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }

    pub(crate) fn set(&mut self, bits: u16) {
        self.flags |= bits;
    }

    pub(crate) fn clear(&mut self, bits: u16) {
        self.flags &= !bits;
    }

    /// Clears bits. Returns whether one was set.
    pub(crate) fn take(&mut self, bits: u16) -> bool {
        let had = self.has(bits);
        self.clear(bits);
        had
    }

    pub(crate) fn attribute(&self) -> Attribute {
        Attribute::from_u32(u32::from(self.promise)).unwrap_or(Attribute::ReliableOrdered)
    }

    pub(crate) fn is_reliable(&self) -> bool {
        self.promise <= Attribute::ReliableUnordered as u32 as u8
    }

    /// Notes a transmission number. Keeps the newest, which acknowledgements echo, and its time of
    /// arrival.
    pub(crate) fn track_number(&mut self, number: u32, time: u32, at: u32) {
        if !self.has(bit::RECEIVED) || distance(number, self.newest) > 0 {
            self.set(bit::RECEIVED);
            (self.newest, self.newest_time, self.newest_at) = (number, time, at);
        }
    }

    /// Forgets the numbers of the peer: what they were known from is not authenticated.
    pub(crate) fn forget_numbers(&mut self) {
        self.clear(bit::RECEIVED);
    }

    /// Returns whether this number is new on an unreliable connection, by a window of 64. Call it
    /// before [`Conn::track_number`].
    #[expect(clippy::cast_possible_truncation, reason = "halves of a word")]
    pub(crate) fn is_new(&mut self, number: u32) -> bool {
        let mut seen = u64::from(self.next_seq) << 32 | u64::from(self.recv_next);
        let distance = if self.has(bit::RECEIVED) { number.wrapping_sub(self.newest) } else { 64 };
        let behind = number.wrapping_sub(self.newest).wrapping_neg();
        let fresh = if distance != 0 && distance < 1 << 31 {
            seen = seen.checked_shl(distance).unwrap_or(0) | 1;
            true
        } else if behind < 64 {
            let fresh = seen >> behind & 1 == 0;
            seen |= 1 << behind;
            fresh
        } else {
            false
        };
        (self.next_seq, self.recv_next) = ((seen >> 32) as u32, seen as u32);
        fresh
    }
}
