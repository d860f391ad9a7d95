//! The slots of an endpoint: receive slots, send slots and RMA descriptors.

mod core;

use super::cell::Endpoint;
use super::connection::MOST_WAYS;
use super::options::CoreOptions;
use super::shortage;
use crate::{Connection, OpenError, Slot, globals};
use cci_mem::pool::Pool;
use cci_mem::slot::State;
use cci_proto::{EventKind, Status};
use std::collections::TryReserveError;
use std::ops::Range;

/// Taken slots that one sweep checks: two for each slot newly taken keep up with the program.
const SWEEP: usize = 2;

/// Of the receive slots, this part once more is for connection requests alone, and never fewer
/// than [`LEAST_FOR_REQUESTS`]: what peers have sent, and the program has not returned, keeps no
/// newcomer out.
const PART_FOR_REQUESTS: usize = 16;
const LEAST_FOR_REQUESTS: usize = 16;

pub(super) type SlotPool = Pool<Connection, Endpoint>;

/// The slots, and who has each.
pub(super) struct Slots {
    endpoint: &'static Endpoint,
    all: &'static [Slot],
    /// Addresses of the send slots, which stand between the others.
    send_slots: Range<usize>,
    recv: SlotPool,
    /// Receive slots for messages; the limit of `recv` is larger by each request in `asked`.
    recv_limit: usize,
    /// Receive slots beyond that limit that only connection requests may take, of each way.
    for_requests: usize,
    /// The requests that have such slots, of all ways.
    asked: Vec<&'static Slot>,
    send: SlotPool,
    rma: SlotPool,
    /// Send slots in use by this endpoint, and how many of them only answers may take.
    send_limit: usize,
    answers: usize,
}

impl Slots {
    /// The slots, and the pools of receive slots of the ways, if there are several. The pool of the
    /// first is in the slots already, and has none in its place.
    pub(super) fn new(
        endpoint: &'static Endpoint,
        options: &CoreOptions,
    ) -> Result<(Self, Option<Vec<SlotPool>>), OpenError> {
        let system = |source: rustix::io::Errno| OpenError::system("no memory for the slots of an endpoint", source);
        let (_, globals) = globals().map_err(system)?;
        let for_requests = (options.recv_count / PART_FOR_REQUESTS).max(LEAST_FOR_REQUESTS);
        let of_way = options.recv_count + for_requests;
        let recv_count = of_way * usize::from(options.ways.clamp(1, MOST_WAYS));
        let count = recv_count + options.send_count + options.rma_count;
        let all = globals.slots.take(count).map_err(system)?;
        if all.len() >= u32::MAX as usize {
            globals.slots.give(all);
            return Err(OpenError::new(Status::NoMem, "an endpoint cannot have as many slots as that"));
        }
        let (recv, rest) = all.split_at(recv_count);
        let (send, rma) = rest.split_at(options.send_count);
        let send_slots = send.as_ptr_range().start.addr()..send.as_ptr_range().end.addr();
        let pools = Pool::new(&recv[..of_way], options.recv_count).and_then(|first| {
            let ways = (options.ways > 0).then(|| ways_of(recv, of_way, options.recv_count)).transpose()?;
            Ok((first, ways, Pool::new(send, options.send_count)?, Pool::new(rma, options.rma_count)?))
        });
        let (recv, ways, send, rma) = pools.map_err(|_| {
            globals.slots.give(all);
            OpenError::new(Status::NoMem, "no memory for the slots of an endpoint")
        })?;
        let (recv_limit, send_limit) = (recv.limit(), send.limit());
        let asked = Vec::new();
        let slots = Self {
            endpoint,
            all,
            send_slots,
            recv,
            recv_limit,
            for_requests,
            asked,
            send,
            rma,
            send_limit,
            answers: 0,
        };
        Ok((slots, ways))
    }

    /// Swaps the pool of receive slots for another one.
    pub(super) fn swap_recv(&mut self, other: &mut SlotPool) {
        std::mem::swap(&mut self.recv, other);
    }

    pub(super) fn suppose_recv_borrowed(&mut self) {
        self.recv.suppose_borrowed();
    }

    pub(super) fn set_recv_limit(&mut self, limit: usize) {
        self.recv_limit = limit;
        if self.asked.is_empty() {
            self.recv.set_limit(limit);
        } else {
            self.check_requests();
        }
    }

    /// Forgets requests whose slots are free again, or have messages by now, so that the limit
    /// allows as many messages as ever. Returns how many requests of this way are left.
    #[cold]
    fn check_requests(&mut self) -> usize {
        let request = EventKind::ConnectRequest as u32;
        self.asked.retain(|slot| slot.state() != State::Free && slot.kind() == request);
        let asked = self.asked.iter().filter(|slot| self.recv.has(slot)).count();
        self.set_limit_beside(asked);
        asked
    }

    /// Lets messages take as many slots as ever beside so many requests, and not those of requests
    /// that were returned.
    fn set_limit_beside(&mut self, asked: usize) {
        if asked == 0 {
            self.recv.set_limit(self.recv_limit);
        } else {
            self.recv.set_limit_without_renewal(self.recv_limit + asked);
        }
    }

    /// A slot that messages may not take. None: as many requests have one as may.
    #[cold]
    fn take_for_request(&mut self, mut released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        self.recv.sweep(SWEEP, &mut released);
        let mut asked = self.check_requests();
        if asked >= self.for_requests {
            self.recv.sweep_all(released);
            asked = self.check_requests();
        }
        if asked >= self.for_requests || self.asked.try_reserve(1).is_err() {
            return None;
        }
        // More than the limit are taken where it was lowered.
        self.recv.set_limit(self.recv.in_use().max(self.recv_limit + asked) + 1);
        let slot = self.recv.take();
        self.set_limit_beside(asked + usize::from(slot.is_some()));
        self.asked.extend(slot);
        slot.inspect(|slot| slot.owner.set(Some(self.endpoint)))
    }

    /// The number of a slot among all of the endpoint.
    pub(super) fn number(&self, slot: &Slot) -> usize {
        (std::ptr::from_ref(slot).addr() - self.all.as_ptr().addr()) / size_of::<Slot>()
    }

    /// Limits sends that are no answers.
    fn limit_sends(&mut self) {
        self.send.set_limit(self.send_limit - self.answers);
    }

    /// All slots of the endpoint.
    pub(super) fn all(&self) -> &'static [Slot] {
        self.all
    }

    /// Slots in use, slots that the program has, and the limit, of the receive class.
    pub(super) fn recv_gauges(&self) -> [usize; 3] {
        [self.recv.in_use(), self.recv.borrowed(), self.recv_limit]
    }

    /// Slots in use and the limit: of the send class, and of RMA descriptors.
    pub(super) fn send_gauges(&self) -> [[usize; 2]; 2] {
        [[self.send.in_use(), self.send.limit()], [self.rma.in_use(), self.rma.limit()]]
    }

    /// Whether a slot of one of these classes ([`shortage::SEND`], [`shortage::RMA`]) can be taken.
    pub(super) fn has_free(&mut self, classes: u8) -> bool {
        classes & shortage::SEND != 0 && has_free(&mut self.send)
            || classes & shortage::RMA != 0 && has_free(&mut self.rma)
    }

    #[inline(always)]
    fn take_recv(&mut self, mut released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        match self.recv.renew(&mut released) {
            Some(slot) => Some(slot),
            None => self.take_another_recv(released),
        }
    }

    #[inline(never)]
    fn take_another_recv(&mut self, released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        if self.asked.is_empty() {
            return Self::take_another(&mut self.recv, self.endpoint, released);
        }
        self.take_beside_requests(released)
    }

    /// Takes a slot for a message where requests have slots of their own: what those leave is not
    /// for messages.
    #[cold]
    fn take_beside_requests(&mut self, mut released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        self.recv.sweep(SWEEP, &mut released);
        self.check_requests();
        if self.recv.in_use() >= self.recv.limit() {
            self.recv.sweep_all(released);
            self.check_requests();
        }
        self.recv.take().inspect(|slot| slot.owner.set(Some(self.endpoint)))
    }

    #[inline(always)]
    fn take_send(&mut self) -> Option<&'static Slot> {
        Self::take_from(&mut self.send, self.endpoint, |_| ())
    }

    #[inline(always)]
    fn take_rma(&mut self) -> Option<&'static Slot> {
        Self::take_from(&mut self.rma, self.endpoint, |_| ())
    }

    /// Gives a slot to the program.
    #[inline(always)]
    pub(super) fn hand_out(&mut self, slot: &'static Slot) {
        self.pool_of(slot).hand_out(slot);
    }

    #[inline(always)]
    fn take_from(
        pool: &mut SlotPool,
        endpoint: &'static Endpoint,
        mut released: impl FnMut(&'static Slot),
    ) -> Option<&'static Slot> {
        match pool.renew(&mut released) {
            Some(slot) => Some(slot),
            None => Self::take_another(pool, endpoint, released),
        }
    }

    #[inline(never)]
    fn take_another(
        pool: &mut SlotPool,
        endpoint: &'static Endpoint,
        mut released: impl FnMut(&'static Slot),
    ) -> Option<&'static Slot> {
        pool.sweep(SWEEP, &mut released);
        let slot = match pool.take() {
            Some(slot) => slot,
            None => {
                pool.sweep_all(released);
                pool.take()?
            }
        };
        slot.owner.set(Some(endpoint));
        Some(slot)
    }

    /// The class that a slot belongs to.
    #[inline]
    fn pool_of(&mut self, slot: &Slot) -> &mut SlotPool {
        let address = std::ptr::from_ref(slot).addr();
        if address < self.send_slots.start {
            &mut self.recv
        } else if address < self.send_slots.end {
            &mut self.send
        } else {
            &mut self.rma
        }
    }
}

/// The pools of ways with `count` slots each, `limit` of which are for messages, and none in place
/// of the first.
fn ways_of(recv: &'static [Slot], count: usize, limit: usize) -> Result<Vec<SlotPool>, TryReserveError> {
    let others = recv.chunks(count).skip(1).map(|slots| Pool::new(slots, limit));
    std::iter::once(Pool::new(&[], 0)).chain(others).collect()
}

/// Whether a slot of this class can be taken.
fn has_free(pool: &mut SlotPool) -> bool {
    if pool.in_use() >= pool.limit() {
        pool.sweep_all(|_| ());
    }
    pool.in_use() < pool.limit()
}
