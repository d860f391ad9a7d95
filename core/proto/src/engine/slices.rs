//! Slices of frames that the path no longer carries whole: the sender cuts them, and the receiver
//! reassembles the frame.

use super::Engine;
use super::conn::{Conn, bit};
use super::flow::{Flow, FrameState, ReorderEntry, WINDOW};
use super::host::Host;
use super::pieces::Pieces;
use crate::Time;
use crate::wire::{DATA, Data, Record, Records, SLICE_HEAD, WRITE_HEAD};
use alloc::vec;
use alloc::vec::Vec;

/// Most incomplete frames of an endpoint, and of one connection.
const MOST: usize = 32;
const MOST_OF_ONE: usize = 8;
/// Age after which slices are not of the same frame, nanoseconds. Far below the time in which
/// sequence numbers wrap.
const STALE: u64 = 60_000_000_000;

/// The owner of an incomplete frame: the identifier of the connection, and the network of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) id: u64,
    pub(super) network: u64,
}

/// A frame of which some slices have arrived.
struct PartialFrame {
    owner: Owner,
    seq: u32,
    /// When the last one came.
    at: Time,
    pieces: Pieces,
    seen: Vec<u64>,
    bytes: Vec<u8>,
}

/// The incomplete frames, bounded in number. A dropped frame is retransmitted by the peer.
#[derive(Default)]
pub(super) struct Slices(Vec<PartialFrame>);

impl Slices {
    /// Returns the number of incomplete frames.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a slice to its frame. Returns all records of the frame once it is whole.
    pub(super) fn take(&mut self, now: Time, owner: Owner, seq: u32, record: (u16, u16, &[u8])) -> Option<Vec<u8>> {
        let (total, at, bytes) = record;
        let is_known = |partial: &PartialFrame| partial.owner == owner && partial.seq == seq;
        let is_usable =
            |partial: &PartialFrame| partial.pieces.total == u32::from(total) && now.since(partial.at) < STALE;
        let index = match self.0.iter().position(is_known) {
            Some(index) if is_usable(&self.0[index]) => index,
            Some(index) => {
                self.0.swap_remove(index);
                self.make(now, owner, seq, total)
            }
            None => self.make(now, owner, seq, total),
        };
        let partial = &mut self.0[index];
        partial.at = now;
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if partial.pieces.note(&mut partial.seen, u32::from(at), len) {
            partial.bytes[usize::from(at)..usize::from(at) + bytes.len()].copy_from_slice(bytes);
        }
        partial.pieces.is_whole().then(|| self.0.swap_remove(index).bytes)
    }

    /// Begins a frame. A connection that has its share loses its oldest frame. Without room, the
    /// oldest frame of the connection that holds most is dropped, within the network that holds
    /// most. The new frame counts, so a greedy peer drops its own frames.
    fn make(&mut self, now: Time, owner: Owner, seq: u32, total: u16) -> usize {
        let held = |is_same: &dyn Fn(&Owner) -> bool| {
            self.0.iter().map(|partial| &partial.owner).chain([&owner]).filter(|other| is_same(other)).count()
        };
        let is_greedy = held(&|other| *other == owner) > MOST_OF_ONE;
        if is_greedy || self.0.len() >= MOST {
            let rank = |partial: &PartialFrame| {
                let Owner { id, network } = partial.owner;
                let by_network = held(&|other| other.network == network);
                (by_network, held(&|other| other.id == id), core::cmp::Reverse(partial.at))
            };
            let candidates = self.0.iter().enumerate().filter(|(_, partial)| !is_greedy || partial.owner == owner);
            if let Some((oldest, _)) = candidates.max_by_key(|(_, partial)| rank(partial)) {
                self.0.swap_remove(oldest);
            }
        }
        let bytes = vec![0; usize::from(total)];
        self.0.push(PartialFrame { owner, seq, at: now, pieces: Pieces::of(total.into()), seen: Vec::new(), bytes });
        self.0.len() - 1
    }
}

impl Engine {
    /// Handles a slice of a sequenced frame.
    pub(super) fn handle_slice<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        data: &Data,
        mut records: Records<'_>,
        host: &mut H,
    ) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let largest = usize::from(self.config.mtu).saturating_sub(DATA);
        let (true, Some(Record::Slice { total, at, bytes })) = (conn.is_reliable(), records.next()) else {
            self.stats.malformed += 1;
            return;
        };
        if usize::from(total) > largest {
            self.stats.malformed += 1;
            return;
        }
        let gap = data.seq.wrapping_sub(conn.recv_next) as usize;
        let entry = self.flows.get(conn.flow).and_then(|flow| flow.reorder_queue.get(gap));
        let is_here = entry.is_some_and(|entry| !matches!(entry, ReorderEntry::Missing));
        if gap == 0
            && is_here
            && let Some(none) = Records::again(&[])
        {
            // It waits for a slot, and its sender asks whether there is one.
            return self.handle_sequenced(now, index, data, none, bytes.len(), host);
        }
        if gap >= WINDOW || is_here {
            // It has come, or it comes too early.
            self.stats.duplicates += 1;
            conn.set(bit::ACK_NOW);
            return;
        }
        let owner = Owner { id: conn.id, network: conn.to.network() };
        let Some(whole) = self.slices.take(now, owner, data.seq, (total, at, bytes)) else { return };
        match Records::again(&whole).filter(|records| !records.is_slice()) {
            Some(records) => self.handle_sequenced(now, index, data, records, DATA + whole.len(), host),
            None => self.stats.malformed += 1,
        }
    }
}

/// A part of the records of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) total: usize,
}

/// A frame that is leaving in slices: the next slice, and how many are left. Each retransmission
/// begins with another slice, from the first and the second half in turn. A queue that takes only
/// the first few frames of a burst would otherwise drop the same slices each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slicing {
    seq: u32,
    number: usize,
    left: usize,
    count: usize,
}

impl Slicing {
    /// Cuts the frame `seq`, sent `attempts` times and with `total` bytes of records, into slices
    /// for frames of at most `mtu`.
    pub(super) fn new(seq: u32, attempts: u8, total: usize, mtu: u16) -> Self {
        let count = total.div_ceil(Slice::size(mtu)).max(1);
        let (turn, half) = (usize::from(attempts / 2), usize::from(attempts % 2) * count / 2);
        Self { seq, number: (turn + half) % count, left: count, count }
    }

    /// Returns whether no slice has left yet.
    pub(super) const fn is_first(&self) -> bool {
        self.left == self.count
    }

    pub(super) const fn is_last(&self) -> bool {
        self.left == 1
    }

    /// Returns the next slice.
    pub(super) fn slice(&self, total: usize, mtu: u16) -> Slice {
        let size = Slice::size(mtu);
        let at = (self.number * size).min(total);
        Slice { at, len: size.min(total - at), total }
    }

    /// Returns the rest after that slice, or `None` after the last.
    pub(super) fn next(self) -> Option<Self> {
        let number = (self.number + 1) % self.count;
        (self.left > 1).then_some(Self { number, left: self.left - 1, ..self })
    }
}

impl Slice {
    /// Bytes of a slice in frames of at most `mtu`; those of a record's head are never cut.
    fn size(mtu: u16) -> usize {
        usize::from(mtu).saturating_sub(DATA + SLICE_HEAD).max(WRITE_HEAD + 1)
    }

    /// All of them.
    pub(super) const fn whole(total: usize) -> Self {
        Self { at: 0, len: total, total }
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.len == self.total
    }
}

/// Notes that one more slice of a frame in flight leaves.
pub(super) fn note_slice(now: Time, conn: &Conn, flow: &mut Flow, at: usize, bytes: u64) {
    let Some(frame) = flow.in_flight.get_mut(at) else { return };
    (frame.number, frame.sent) = (conn.number.wrapping_sub(1), now);
    if frame.state == FrameState::Lost {
        // It was declared lost too early: it had not left whole.
        flow.lost -= 1;
        flow.bytes_in_flight += u64::from(frame.bytes);
        frame.state = FrameState::Sent;
    }
    frame.bytes = frame.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    (flow.sent_at, flow.used_at) = (now, now);
    flow.bytes_in_flight += bytes;
    flow.congestion.on_sent(now, bytes, 4 * u64::from(conn.mtu));
}

/// Returns the index in `in_flight` of the frame that is leaving in slices, unless it was accepted
/// meanwhile.
pub(super) fn sliced(conn: &Conn, flow: &mut Flow) -> Option<usize> {
    let back = conn.next_seq.wrapping_sub(flow.slicing?.seq) as usize;
    let at = flow.in_flight.len().checked_sub(back);
    let is_wanted = |at: &usize| flow.in_flight.get(*at).is_some_and(|frame| frame.state != FrameState::Accepted);
    let at = at.filter(is_wanted);
    if at.is_none() {
        flow.slicing = None;
    }
    at
}
