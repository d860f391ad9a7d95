//! Receiving: datagrams into scratch buffers, and frames out of them.

use crate::sys::{Arrival, RecvBatch};
use cci_proto::Address;
use cci_transport::Incoming;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::ops::Add;

/// Datagrams taken in one system call: more after [`STREAK`] calls in a row that were filled. A call that asks for more than
/// there is looks once in vain, which would cost a lone answer a tenth of its way.
const WANT: [usize; 3] = [1, 4, 16];
/// Calls that found as much as they asked for.
const STREAK: usize = 4;

/// What has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) frames: u64,
    pub(crate) datagrams: u64,
    pub(crate) coalesced: u64,
    pub(crate) dropped: u64,
}

impl Add for Received {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            datagrams: self.datagrams + other.datagrams,
            coalesced: self.coalesced + other.coalesced,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// Takes datagrams and shows the frames in them.
pub(crate) struct Receiver {
    batch: RecvBatch,
    /// Whether to ask how datagrams were marked: on the loop-back interface nobody does.
    wants_marks: bool,
    /// Who alone sends what arrives here, if that is known.
    pub(crate) only: Option<Address>,
    arrivals: Vec<Arrival>,
    /// What is shown next: datagram, and byte of it.
    at: usize,
    offset: usize,
    /// The group's number, if the datagrams are of one.
    group: Option<u32>,
    /// Calls in a row that found as much as they asked for.
    streak: usize,
    pub(crate) received: Received,
}

impl Receiver {
    /// Buffers of `stride` bytes each. `wants_marks`: congestion is marked where the datagrams come from.
    pub(crate) fn new(stride: usize, wants_marks: bool) -> Self {
        let mut receiver = Self::without_buffers(stride, wants_marks);
        receiver.make_buffers();
        receiver
    }

    /// Makes the buffers of one that was made without, before it takes anything.
    pub(crate) fn make_buffers(&mut self) {
        self.batch.make_buffers();
    }

    pub(crate) fn without_buffers(stride: usize, wants_marks: bool) -> Self {
        let batch = RecvBatch::without_buffers(WANT[WANT.len() - 1], stride);
        let arrivals = Vec::with_capacity(batch.capacity());
        Self {
            batch,
            wants_marks,
            only: None,
            arrivals,
            at: 0,
            offset: 0,
            group: None,
            streak: 0,
            received: Received::default(),
        }
    }

    /// Whether frames wait to be shown.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        self.at < self.arrivals.len()
    }

    /// Drops the frames that wait to be shown.
    pub(crate) fn forget_rest(&mut self) {
        self.arrivals.clear();
    }

    /// Takes datagrams from a socket and shows up to about `budget` frames, those first that wait to be shown; says how many.
    #[inline]
    pub(crate) fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        budget: usize,
        sink: &mut dyn FnMut(Incoming<'_>),
    ) -> Result<usize, Errno> {
        match self.pass_lone(socket, sink) {
            Some(taken) => taken,
            None if self.has_rest() => Ok(self.show(budget, sink)),
            None => self.fill(socket, None).map(|()| self.show(budget, sink)),
        }
    }

    /// Takes datagrams from a socket; all that came before have been shown.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>, group: Option<u32>) -> Result<(), Errno> {
        self.arrivals.clear();
        (self.at, self.offset, self.group) = (0, 0, group);
        let want = WANT[self.streak / STREAK];
        let taken = if want == 1 && !self.wants_marks {
            self.batch.receive_lone(socket, self.only)
        } else {
            self.batch.receive(socket, want)
        };
        let count = match taken {
            Ok(count) => count,
            Err(error) => {
                if group.is_none() {
                    self.streak = 0;
                }
                return Err(error);
            }
        };
        self.streak = if count == want { (self.streak + 1).min(STREAK * WANT.len() - 1) } else { 0 };
        self.received.datagrams += count as u64;
        for at in 0..count {
            self.arrivals.push(self.batch.arrival(at));
        }
        Ok(())
    }

    /// Takes one datagram from a socket and shows it, if that is how datagrams come at present and nobody marks them. None: they
    /// are to be taken by [`Receiver::fill`], or wait to be shown already.
    #[inline]
    fn pass_lone(
        &mut self,
        socket: BorrowedFd<'_>,
        sink: &mut dyn FnMut(Incoming<'_>),
    ) -> Option<Result<usize, Errno>> {
        if self.wants_marks || self.streak >= STREAK || self.has_rest() {
            return None;
        }
        if let Err(error) = self.batch.receive_lone(socket, self.only) {
            self.streak = 0;
            return Some(Err(error));
        }
        self.streak += 1;
        self.received.datagrams += 1;
        let arrival = self.batch.arrival(0);
        if arrival.segment > 0 || arrival.truncated || arrival.len == 0 {
            self.arrivals.clear();
            self.arrivals.push(arrival);
            (self.at, self.offset, self.group) = (0, 0, None);
            return None;
        }
        self.received.frames += 1;
        let bytes = &self.batch.bytes(0)[..arrival.len];
        sink(Incoming::Frame { from: arrival.from, bytes, congested: false });
        Some(Ok(1))
    }

    /// Shows up to `budget` frames; says how many.
    pub(crate) fn show(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
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
                match self.group {
                    None => sink(Incoming::Frame { from, bytes, congested: arrival.congested }),
                    Some(group) => sink(Incoming::Multicast { group, from, bytes }),
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
