//! The state that every endpoint has whatever its transport: slots, the queue of events, options.

use crate::endpoint::{Endpoint, globals};
use crate::shortage::{self, Shortage};
use crate::waits::Waits;
use crate::{Connection, OpenError, PeerCopy, Posted, Slot, WaitFor, monotonic};
use cci_mem::counters::{ARMED, Home, Page, STARVING, VIRTUAL};
use cci_mem::memory::Memory;
use cci_mem::pool::{Pool, Queue};
use cci_mem::slot::State;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, Failure, Places, Status};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;

/// Taken slots that one sweep checks: two for each slot newly taken keep up with the program.
const SWEEP: usize = 2;

/// Connections at most: one more is still a number.
const MOST: u32 = u32::MAX - 1;

/// Connections whose pointers get memory together.
const CONNECTIONS: usize = 128;

/// Calls of `get_event` that may return waiting events before one makes progress.
const POPS_BETWEEN_PROGRESS: u32 = 15;

/// What an endpoint is opened with.
#[derive(Clone, Copy, Debug)]
pub struct CoreOptions {
    /// Receive slots.
    pub recv_count: usize,
    /// Send slots.
    pub send_count: usize,
    /// RMA descriptors, beside the send slots.
    pub rma_count: usize,
    /// Whether to raise an event when a peer disconnects or dies.
    pub disconnect_events: bool,
}

impl Default for CoreOptions {
    fn default() -> Self {
        // Programs keep 8,192 sends and 8,192 RMAs outstanding on one connection and treat ENOBUFS
        // as fatal.
        Self { recv_count: 4096, send_count: 8192, rma_count: 16384, disconnect_events: false }
    }
}

/// The private part of an endpoint that does not depend on its transport.
pub struct Core {
    endpoint: &'static Endpoint,
    counters: Home,
    waits: Box<Waits>,
    slots: &'static [Slot],
    /// Addresses of the send slots, which stand between the others.
    send_slots: Range<usize>,
    recv: Pool<Connection, Endpoint>,
    send: Pool<Connection, Endpoint>,
    rma: Pool<Connection, Endpoint>,
    queue: Queue<Connection, Endpoint>,
    /// Default send timeout, microseconds.
    pub send_timeout: u32,
    /// Default keepalive timeout, microseconds.
    pub keepalive: u32,
    /// Whether to raise disconnect events.
    pub disconnect_events: bool,
    /// Peers may read and write every registration, whatever rights the program names: `rma_rights
    /// = open`.
    pub rights_are_open: bool,
    /// The program has asked for the OS handle: the transport arms it after a few empty calls.
    pub handle_in_use: bool,
    /// The transport has armed its handle: every call ends with `Transport::settle`.
    pub armed: bool,
    /// Copies of peers that were under way when the transport closed.
    pub unfinished: Vec<Box<dyn PeerCopy>>,
    /// Memory that the library owns while it is registered, by the words of its handle. True: the program has let go of it, and a
    /// peer was copying then.
    pub owned: BTreeMap<[u64; 2], (Memory, bool)>,
    /// The peer for which the last deregistration was refused.
    pub busy_peer: Option<String>,
    /// The program got an event since the transport last settled.
    popped: bool,
    /// A call answered that there is no event, since the transport last settled.
    empty: bool,
    /// Further calls of `get_event` that may return waiting events before one makes progress.
    pops_left: u32,
    /// Connections that are not free, by their places.
    connections: Places<&'static Connection, CONNECTIONS>,
    /// Why connects failed, by the address of the slot that tells it; at most one for each send
    /// slot.
    reasons: BTreeMap<usize, String>,
    shortage: Shortage,
}

impl Core {
    /// The core of an endpoint.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn new(endpoint: &'static Endpoint, options: &CoreOptions) -> Result<Self, OpenError> {
        let system = |source: rustix::io::Errno| OpenError::system("no memory for the slots of an endpoint", source);
        let (_, globals) = globals().map_err(system)?;
        let counters = Home::new().map_err(system)?;
        let count = options.recv_count + options.send_count + options.rma_count;
        let slots = globals.slots.take(count).map_err(system)?;
        if slots.len() >= u32::MAX as usize {
            globals.slots.give(slots);
            return Err(OpenError::new(Status::NoMem, "an endpoint cannot have as many slots as that"));
        }
        let (recv, rest) = slots.split_at(options.recv_count);
        let (send, rma) = rest.split_at(options.send_count);
        let send_slots = send.as_ptr_range().start.addr()..send.as_ptr_range().end.addr();
        let pools = Pool::new(recv, options.recv_count)
            .and_then(|recv| Ok((recv, Pool::new(send, options.send_count)?, Pool::new(rma, options.rma_count)?)));
        let (recv, send, rma) = pools.map_err(|_| {
            globals.slots.give(slots);
            OpenError::new(Status::NoMem, "no memory for the slots of an endpoint")
        })?;
        Ok(Self {
            endpoint,
            counters,
            waits: Box::default(),
            slots,
            send_slots,
            recv,
            send,
            rma,
            queue: Queue::new(slots),
            send_timeout: 0,
            keepalive: 0,
            disconnect_events: options.disconnect_events,
            rights_are_open: false,
            handle_in_use: false,
            armed: false,
            unfinished: Vec::new(),
            owned: BTreeMap::new(),
            busy_peer: None,
            popped: false,
            empty: false,
            pops_left: POPS_BETWEEN_PROGRESS,
            connections: Places::new(),
            reasons: BTreeMap::new(),
            shortage: Shortage::default(),
        })
    }

    /// The endpoint of this core.
    #[inline(always)]
    #[must_use]
    pub fn endpoint(&self) -> &'static Endpoint {
        self.endpoint
    }

    /// The counters page of this endpoint.
    #[inline(always)]
    #[must_use]
    pub fn counters(&self) -> &Page {
        &self.counters
    }

    /// Lets other processes of this user read the counters (`docs/design/counters.md`). Where the
    /// system does not allow that, they stay private.
    pub fn publish_counters(&mut self, transport: &str, uri: &str) {
        let page = &self.counters;
        let now = monotonic().0;
        page.transport.set(transport);
        page.uri.set(uri);
        page.opened.store(now, Ordering::Relaxed);
        if page.flags.load(Ordering::Relaxed) & VIRTUAL == 0 {
            page.progress.store(now, Ordering::Relaxed);
        }
        self.publish_gauges();
        // An endpoint works without public counters.
        let _ = self.counters.publish();
    }

    /// Publishes the gauges: how many slots are in use. Not called for each message
    /// (`docs/design/counters.md`).
    pub fn publish_gauges(&self) {
        let state = if self.armed { ARMED } else { 0 } | if self.is_starving() { STARVING } else { 0 };
        let page = &self.counters;
        for (word, value) in [
            (&page.recv_taken, self.recv.in_use()),
            (&page.recv_lent, self.recv.lent()),
            (&page.recv_limit, self.recv.limit()),
            (&page.send_taken, self.send.in_use()),
            (&page.send_limit, self.send.limit()),
            (&page.rma_taken, self.rma.in_use()),
            (&page.rma_limit, self.rma.limit()),
        ] {
            word.store(value as u64, Ordering::Relaxed);
        }
        page.state.store(state, Ordering::Relaxed);
    }

    /// Publishes a peer for which the endpoint waits. `key`: the transport's number of the peer;
    /// `since`: when the wait began, nanoseconds of the transport's clock.
    pub fn wait_for(&mut self, key: u64, what: WaitFor, since: u64, operations: u64, peer: impl Display) {
        self.waits.show(&self.counters, key, (what, since, operations), peer);
    }

    /// Removes the wait for the peer with this key.
    pub fn wait_over(&mut self, key: u64) {
        self.waits.hide(&self.counters, key);
    }

    /// Begins a new list of waits, which [`Core::end_waits`] ends.
    pub fn begin_waits(&mut self) {
        self.waits.begin();
    }

    /// Removes the waits that were not published since [`Core::begin_waits`].
    pub fn end_waits(&mut self) {
        self.waits.end(&self.counters);
    }

    /// Whether a wait is published.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// A slot for an arriving message or request. `released` sees slots that the program has
    /// returned, to free what they hold.
    #[inline]
    pub fn take_recv(&mut self, released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        Self::take_from(&mut self.recv, self.endpoint, released)
    }

    /// The only receive slot that is taken, if the program has returned it: to be filled and lent
    /// again (`Pool::sole_returned`).
    #[inline(always)]
    #[must_use]
    pub fn sole_returned_recv(&self) -> Option<&'static Slot> {
        self.recv.sole_returned()
    }

    /// The only receive slot that is taken, whoever has it.
    #[inline(always)]
    #[must_use]
    pub fn sole_recv(&self) -> Option<&'static Slot> {
        self.recv.sole()
    }

    /// Frees receive slots that the program has returned, a few at a time.
    #[inline]
    pub fn sweep_recv(&mut self, released: impl FnMut(&'static Slot)) {
        self.recv.sweep(SWEEP, released);
    }

    /// Whether [`Core::sweep_recv`] could find something.
    #[inline(always)]
    #[must_use]
    pub fn has_lent_recv(&self) -> bool {
        self.recv.lent() > 0
    }

    /// Frees all receive slots that the program has returned.
    pub fn sweep_all_recv(&mut self, released: impl FnMut(&'static Slot)) {
        self.recv.sweep_all(released);
    }

    /// A slot for a send or a control event.
    #[inline]
    pub fn take_send(&mut self) -> Option<&'static Slot> {
        let slot = Self::take_from(&mut self.send, self.endpoint, |_| ());
        if slot.is_none() {
            self.begin_shortage_of(shortage::SEND);
        }
        slot
    }

    /// The slot that the last send had, if it is back: what [`Core::take_send`] gives in the usual
    /// case, for less.
    #[inline(always)]
    pub fn take_last_send(&mut self) -> Option<&'static Slot> {
        self.send.take_last()
    }

    /// A slot for an RMA.
    #[inline]
    pub fn take_rma(&mut self) -> Option<&'static Slot> {
        let slot = Self::take_from(&mut self.rma, self.endpoint, |_| ());
        if slot.is_none() {
            self.begin_shortage_of(shortage::RMA);
        }
        slot
    }

    /// The transport refuses a call for lack of something of its own; [`Core::end_shortage`] is to
    /// follow once it has it.
    pub fn begin_shortage(&mut self) {
        self.begin_shortage_of(shortage::OTHER);
    }

    /// What the transport lacked at [`Core::begin_shortage`] may be there again.
    pub fn end_shortage(&mut self) {
        self.shortage.end_other(self.endpoint);
    }

    /// Records a shortage. A program that only polls needs no wake-up.
    #[cold]
    fn begin_shortage_of(&mut self, what: u8) {
        if self.handle_in_use {
            self.shortage.note(what);
        }
    }

    /// Whether the handle is to be readable because a call that was refused for lack of buffers can
    /// succeed now. Stays so until [`Core::forget_room`].
    #[inline]
    pub fn has_room_again(&mut self) -> bool {
        self.shortage.is_on() && self.look_for_room()
    }

    #[cold]
    fn look_for_room(&mut self) -> bool {
        let Self { shortage, endpoint, send, rma, .. } = self;
        shortage.is_over(endpoint, |lacks| {
            lacks & shortage::SEND != 0 && shortage::has_free(send)
                || lacks & shortage::RMA != 0 && shortage::has_free(rma)
        })
    }

    /// Whether [`Core::has_room_again`] has said so.
    #[inline(always)]
    #[must_use]
    pub fn tells_room(&self) -> bool {
        self.shortage.is_told()
    }

    /// The program, which the handle has told of room, has found no further event: what it was
    /// refused it tries again now.
    pub fn forget_room(&mut self) {
        self.shortage.forget();
    }

    #[inline(always)]
    fn take_from(
        pool: &mut Pool<Connection, Endpoint>,
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
        pool: &mut Pool<Connection, Endpoint>,
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

    /// Gives back a slot that no event has shown.
    pub fn release(&mut self, slot: &'static Slot) {
        self.pool_of(slot).release(slot);
    }

    /// The class that a slot belongs to.
    #[inline]
    fn pool_of(&mut self, slot: &Slot) -> &mut Pool<Connection, Endpoint> {
        let address = std::ptr::from_ref(slot).addr();
        if address < self.send_slots.start {
            &mut self.recv
        } else if address < self.send_slots.end {
            &mut self.send
        } else {
            &mut self.rma
        }
    }

    /// Queues a filled slot.
    #[inline]
    pub fn push(&mut self, slot: &'static Slot) {
        self.queue.push(slot);
    }

    /// Takes the oldest event. The program owns it from now on.
    #[inline]
    pub fn pop(&mut self) -> Option<&'static Slot> {
        let slot = self.lend_oldest()?;
        self.popped = true;
        Some(slot)
    }

    #[inline(always)]
    fn lend_oldest(&mut self) -> Option<&'static Slot> {
        let slot = self.queue.pop()?;
        self.pool_of(slot).lend(slot);
        Some(slot)
    }

    /// The oldest event, now the program's, if one waits and [`Core::wants_progress`] would say no.
    /// For a call that [`Transport::settle`](crate::Transport::settle) does not end.
    #[inline(always)]
    pub fn pop_at_once(&mut self) -> Option<&'static Slot> {
        if self.queue.is_empty() || self.pops_left == 0 {
            return None;
        }
        self.pops_left -= 1;
        self.lend_oldest()
    }

    /// Whether the call that ends returned an event. Clears the record.
    #[inline]
    pub fn take_popped(&mut self) -> bool {
        std::mem::take(&mut self.popped)
    }

    /// Records that a call returns EAGAIN: an edge-triggered program may sleep after it.
    #[inline]
    pub fn note_empty(&mut self) {
        self.empty = true;
    }

    /// Whether the call that ends returned EAGAIN to a program that has the handle. Clears the
    /// record.
    #[inline]
    pub fn take_empty(&mut self) -> bool {
        std::mem::take(&mut self.empty)
    }

    /// Whether an event waits.
    #[inline(always)]
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether `get_event` must make progress first: when no event waits, and on every 16th call
    /// although one waits, so that a program that always finds its own SEND events also receives
    /// from peers.
    #[inline(always)]
    pub fn wants_progress(&mut self) -> bool {
        if self.queue.is_empty() {
            return true;
        }
        let is_due = self.pops_left == 0;
        self.pops_left = if is_due { POPS_BETWEEN_PROGRESS } else { self.pops_left - 1 };
        is_due
    }

    /// Whether the program holds every receive slot.
    #[must_use]
    pub fn holds_all_recv(&self) -> bool {
        self.recv.all_borrowed()
    }

    /// Receive slots: limit and capacity.
    #[must_use]
    pub fn recv_count(&self) -> (usize, usize) {
        (self.recv.limit(), self.recv.capacity())
    }

    /// Receive slots that could be taken now, without those that the program has returned lately.
    #[must_use]
    pub fn recv_free(&self) -> usize {
        self.recv.limit().saturating_sub(self.recv.in_use())
    }

    /// Send slots: limit and capacity.
    #[must_use]
    pub fn send_count(&self) -> (usize, usize) {
        (self.send.limit(), self.send.capacity())
    }

    /// A send slot, if more than half of them are free: for events that a stranger causes, who is
    /// to take none from the program.
    pub fn take_spare_send(&mut self) -> Option<&'static Slot> {
        self.send.sweep(SWEEP, |_| ());
        if self.send.in_use() * 2 < self.send.limit() { self.take_send() } else { None }
    }

    /// RMA slots.
    #[must_use]
    pub fn rma_count(&self) -> usize {
        self.rma.capacity()
    }

    /// Changes the number of receive slots, up to the capacity.
    pub fn set_recv_count(&mut self, count: usize) {
        self.recv.set_limit(count);
    }

    /// Changes the number of send slots, up to the capacity.
    pub fn set_send_count(&mut self, count: usize) {
        self.send.set_limit(count);
    }

    /// Ends an operation: queues its SEND event.
    #[inline]
    pub fn finish(
        &mut self,
        slot: &'static Slot,
        connection: &'static Connection,
        context: u64,
        outcome: Result<(), Failure>,
    ) {
        let status = outcome.map_or_else(Failure::status, |()| Status::Success);
        slot.fill(EventKind::Send as u32, status as u32, [connection.address(), context]);
        tag_event(slot, connection);
        self.queue.push(slot);
    }

    /// Ends an operation whose thread waits.
    pub fn finish_waited(&mut self, slot: &'static Slot, outcome: Result<(), Failure>) {
        let status = outcome.map_or_else(Failure::status, |()| Status::Success);
        slot.fill(EventKind::Send as u32, status as u32, [0, 0]);
        slot.set_state(State::Ended);
    }

    /// Ends an operation that was posted: releases its slot, or queues its event, or wakes the
    /// thread that waits.
    #[inline]
    pub fn end_operation(
        &mut self,
        slot: &'static Slot,
        connection: &'static Connection,
        posted: Posted,
        outcome: Result<(), Failure>,
    ) {
        connection.open.store(connection.open.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        match posted {
            Posted::Silent(_) if outcome.is_ok() => self.release(slot),
            Posted::Event(context) | Posted::Silent(context) => self.finish(slot, connection, context, outcome),
            Posted::Waited => self.finish_waited(slot, outcome),
        }
    }

    /// Drops the events that wait. For an endpoint that closes: no program takes them, and their
    /// slots must not run out while operations end.
    pub fn drop_events(&mut self) {
        while let Some(slot) = self.pop() {
            let _ = slot.give_back();
        }
    }

    /// Queues a CONNECT or ACCEPT event.
    pub fn finish_opening(
        &mut self,
        slot: &'static Slot,
        kind: EventKind,
        context: u64,
        outcome: Result<&'static Connection, Failure>,
    ) {
        let (status, address) = match outcome {
            Ok(connection) => (Status::Success, connection.address()),
            Err(failure) => (failure.status(), 0),
        };
        self.reasons.remove(&std::ptr::from_ref(slot).addr());
        slot.fill(kind as u32, status as u32, [context, address]);
        match outcome {
            Ok(connection) => tag_event(slot, connection),
            Err(_) => slot.connection.set(None),
        }
        self.queue.push(slot);
    }

    /// Stores why the connect failed whose event [`Core::finish_opening`] has queued: a sentence,
    /// beyond the status.
    pub fn explain(&mut self, slot: &'static Slot, reason: String) {
        self.reasons.insert(std::ptr::from_ref(slot).addr(), reason);
    }

    /// The reason that [`Core::explain`] stored for the CONNECT event in this slot.
    #[must_use]
    pub fn reason(&self, slot: &'static Slot) -> Option<&str> {
        self.reasons.get(&std::ptr::from_ref(slot).addr()).map(String::as_str)
    }

    /// Queues an event that is about a connection only; false when no slot is free (to be tried
    /// again).
    #[must_use]
    pub fn notify(&mut self, kind: EventKind, connection: &'static Connection) -> bool {
        let Some(slot) = self.take_send() else { return false };
        slot.fill(kind as u32, 0, [connection.address(), 0]);
        tag_event(slot, connection);
        self.queue.push(slot);
        true
    }

    /// A connection of this endpoint, opening.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn open_connection(
        &mut self,
        attribute: Attribute,
        context: u64,
        max_send_size: u32,
    ) -> rustix::io::Result<&'static Connection> {
        let (_, globals) = globals()?;
        let place = self.connections.reserve(MOST).ok_or(rustix::io::Errno::NOMEM)?;
        let connection = globals.connections.take();
        connection.begin(self.endpoint, attribute, context, max_send_size);
        connection.send_timeout.store(self.send_timeout, Ordering::Relaxed);
        connection.keepalive.store(self.keepalive, Ordering::Relaxed);
        connection.place.store(place, Ordering::Relaxed);
        self.connections.put(place, connection);
        self.count_connections();
        Ok(connection)
    }

    fn count_connections(&self) {
        self.counters.connections.store(self.connections.len() as u64, Ordering::Relaxed);
    }

    /// Ends a connection; handles to it are stale, its public part stays readable.
    pub fn end_connection(&mut self, connection: &'static Connection) {
        if self.has_connection(connection) {
            self.connections.remove(connection.place());
            connection.end();
            self.count_connections();
            if let Ok((_, globals)) = globals() {
                globals.connections.give(connection);
            }
        }
    }

    /// Connections that are not free, by their places.
    pub fn connections(&self) -> impl Iterator<Item = &'static Connection> + '_ {
        self.connections.iter().copied()
    }

    /// How many connections are not free.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// The connection at this place, if it is not free.
    #[inline]
    #[must_use]
    pub fn connection(&self, place: u32) -> Option<&'static Connection> {
        self.connections.get(place).copied()
    }

    /// Whether a connection is of this endpoint and not free.
    #[must_use]
    pub fn has_connection(&self, connection: &'static Connection) -> bool {
        let place = connection.place();
        self.connection(place).is_some_and(|other| std::ptr::eq(other, connection))
    }

    /// The program holds every receive slot and a peer waits: returning an event must call
    /// `refill`.
    pub fn set_starving(&mut self, starving: bool) {
        self.shortage.set_starving(self.endpoint, starving);
    }

    /// Whether [`Core::set_starving`] was called.
    #[must_use]
    pub fn is_starving(&self) -> bool {
        self.shortage.is_starving()
    }
}

/// Tags an event with a connection and its generation, so that a kept event never refers to a later
/// connection in the same cell.
#[inline(always)]
pub fn tag_event(slot: &Slot, connection: &'static Connection) {
    slot.connection.set(Some(connection));
    slot.mark.store(connection.generation(), Ordering::Relaxed);
}

impl Drop for Core {
    fn drop(&mut self) {
        // In a forked child the slabs are the parent's, or the child's own: neither is to get
        // these.
        if !self.endpoint.is_here() {
            return;
        }
        for place in (0..self.connections.used()).rev() {
            if let Some(connection) = u32::try_from(place).ok().and_then(|place| self.connection(place)) {
                self.end_connection(connection);
            }
        }
        if let Ok((_, globals)) = globals() {
            globals.slots.give(self.slots);
        }
    }
}
