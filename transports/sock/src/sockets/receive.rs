//! Receiving: datagrams into scratch buffers, and frames out of them.

use crate::address;
use crate::socket::How;
use crate::sys::{Arrival, RecvBatch};
use cci_proto::Address;
use cci_reliable::Incoming;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::cell::Cell;

/// Datagrams taken in one system call: more after [`STREAK`] calls in a row that were filled. A
/// call that asks for more than there is looks once in vain, which would cost a single answer a
/// tenth of its way.
const WANT: [usize; 3] = [1, 4, 16];
/// Calls that found as much as they asked for.
const STREAK: usize = 4;
/// Of datagrams of so many bytes no more are taken at a time than [`WANT_LARGE`]: the buffers that
/// they are copied to, and from, then stay in the second-level cache. By trial: a write of 1 MiB
/// over the loop-back interface takes a twentieth less time.
const LARGE: usize = 16 << 10;
const WANT_LARGE: usize = 4;

/// What has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) frames: u64,
    pub(super) datagrams: u64,
    pub(super) coalesced: u64,
    pub(super) dropped: u64,
}

/// How datagrams come at a socket.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Who alone sends what arrives there, if that is known.
    pub(super) only: Option<Address>,
    /// Whether to ask how datagrams were marked: on the loop-back interface nobody does.
    wants_marks: bool,
    /// Nobody may ask there.
    is_outward: bool,
    /// Calls in a row that found as much as they asked for.
    streak: usize,
    /// The last datagram of the last call was large.
    is_large: bool,
}

/// What the datagrams are that wait to be shown.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Frames of anybody.
    Anybody,
    /// Frames that nobody may ask by.
    Outward,
    /// Frames of the group of this number.
    Group(u32),
}

impl Stream {
    /// That of a socket which is made like this.
    pub(crate) fn of(how: How) -> Self {
        Self { wants_marks: how.wants_marks, is_outward: how.is_outward, ..Self::default() }
    }

    fn origin(&self) -> Origin {
        if self.is_outward { Origin::Outward } else { Origin::Anybody }
    }

    /// The call that takes the next datagrams.
    pub(super) fn call(&self) -> &'static str {
        match (self.want(), self.wants_marks) {
            (1, false) => "recvfrom",
            (1, true) => "recvmsg",
            _ => "recvmmsg",
        }
    }

    /// Datagrams to be taken in one call.
    fn want(&self) -> usize {
        let want = WANT[self.streak / STREAK];
        if self.is_large { want.min(WANT_LARGE) } else { want }
    }
}

/// Takes datagrams from the sockets of an endpoint and shows the frames in them.
pub(crate) struct Receiver {
    batch: RecvBatch,
    arrivals: Vec<Arrival>,
    /// What is shown next: datagram, and byte of it.
    at: usize,
    offset: usize,
    origin: Origin,
    pub(super) received: Received,
}

impl Receiver {
    /// Buffers of `stride` bytes each.
    pub(super) fn new(stride: usize) -> Result<Self, Errno> {
        let batch = RecvBatch::new(WANT[WANT.len() - 1], stride)?;
        let arrivals = Vec::with_capacity(batch.capacity());
        Ok(Self { batch, arrivals, at: 0, offset: 0, origin: Origin::Anybody, received: Received::default() })
    }

    /// Whether frames wait to be shown.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        self.at < self.arrivals.len()
    }

    /// Takes datagrams from a socket and shows up to about `budget` frames, those first that wait
    /// to be shown; returns how many.
    #[inline]
    pub(super) fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        stream: &mut Stream,
        budget: usize,
        sink: &mut dyn FnMut(Incoming<'_>),
    ) -> Result<usize, Errno> {
        match self.receive_one(socket, stream, sink) {
            Some(taken) => taken,
            None if self.has_rest() => Ok(self.show(budget, sink)),
            None => self.fill(socket, stream, None).map(|()| self.show(budget, sink)),
        }
    }

    /// Takes datagrams from a socket; all that came before have been shown.
    pub(crate) fn fill(
        &mut self,
        socket: BorrowedFd<'_>,
        stream: &mut Stream,
        group: Option<u32>,
    ) -> Result<(), Errno> {
        self.arrivals.clear();
        (self.at, self.offset, self.origin) = (0, 0, group.map_or(stream.origin(), Origin::Group));
        let want = stream.want();
        let taken = if want == 1 && !stream.wants_marks {
            self.batch.receive_single(socket, stream.only)
        } else {
            self.batch.receive(socket, want)
        };
        let count = match taken {
            Ok(count) => count,
            Err(error) => {
                stream.streak = 0;
                return Err(error);
            }
        };
        stream.streak = if count == want { (stream.streak + 1).min(STREAK * WANT.len() - 1) } else { 0 };
        self.received.datagrams += count as u64;
        for at in 0..count {
            self.arrivals.push(self.batch.arrival(at));
        }
        stream.is_large = self.arrivals.last().is_some_and(|arrival| arrival.len >= LARGE);
        Ok(())
    }

    /// Takes one datagram from a socket and shows it, if that is how datagrams come at present and
    /// nobody marks them. None: they are to be taken by [`Receiver::fill`], or wait to be shown
    /// already.
    #[inline]
    fn receive_one(
        &mut self,
        socket: BorrowedFd<'_>,
        stream: &mut Stream,
        sink: &mut dyn FnMut(Incoming<'_>),
    ) -> Option<Result<usize, Errno>> {
        if stream.wants_marks || stream.streak >= STREAK || self.has_rest() {
            return None;
        }
        if let Err(error) = self.batch.receive_single(socket, stream.only) {
            stream.streak = 0;
            return Some(Err(error));
        }
        stream.streak += 1;
        self.received.datagrams += 1;
        let arrival = self.batch.arrival(0);
        if arrival.segment > 0 || arrival.truncated || arrival.len == 0 {
            self.arrivals.clear();
            self.arrivals.push(arrival);
            (self.at, self.offset, self.origin) = (0, 0, Origin::Anybody);
            return None;
        }
        self.received.frames += 1;
        let bytes = &self.batch.bytes(0)[..arrival.len];
        sink(Incoming::Frame { from: arrival.from, bytes, congested: false });
        Some(Ok(1))
    }

    /// Shows up to `budget` frames; returns how many.
    pub(super) fn show(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = 0;
        while shown < budget && self.at < self.arrivals.len() {
            let arrival = self.arrivals[self.at];
            if arrival.truncated || arrival.len == 0 {
                self.received.dropped += 1;
                self.at += 1;
                continue;
            }
            let step = if arrival.segment == 0 { arrival.len } else { arrival.segment };
            let whole = &self.batch.bytes(self.at)[..arrival.len];
            let before = shown;
            while self.offset < arrival.len && shown < budget {
                let end = (self.offset + step).min(arrival.len);
                let (from, bytes) = (arrival.from, &whole[self.offset..end]);
                let congested = arrival.congested;
                match self.origin {
                    Origin::Anybody => sink(Incoming::Frame { from, bytes, congested }),
                    Origin::Outward => {
                        let from = address::outward(from);
                        let is_known = Cell::new(false);
                        sink(Incoming::Unasked { from, bytes, is_known: &is_known });
                        if is_known.get() {
                            sink(Incoming::Frame { from, bytes, congested });
                        }
                    }
                    Origin::Group(group) => sink(Incoming::Multicast { group, from, bytes }),
                }
                self.offset = end;
                shown += 1;
            }
            if step < arrival.len {
                self.received.coalesced += (shown - before) as u64;
            }
            if self.offset >= arrival.len {
                self.at += 1;
                self.offset = 0;
            }
        }
        self.received.frames += shown as u64;
        shown
    }
}

#[cfg(test)]
mod tests;
