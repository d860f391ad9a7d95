//! Requests of this endpoint: they take a credit, and poll while there is none.

use super::replies::cut;
use super::time::ROOM;
use super::{Context, Turn, Unsent};
use crate::errors::{RequestError, Status};
use crate::mapping::{Mapping, Refused, Transfer};
use crate::peers::{Peer, Way};
use crate::records::Of;
use crate::wire::{HEAD, HEADER, Head, Kind, MAX_ARGUMENTS, RemoteSegment, SPAN, Span};
use std::io::IoSlice;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Polls between two readings of the clock, of a request that waits.
const SPINS: u32 = 64;
/// How long a request polls in vain before it sleeps: about what a sleep and a wake-up take.
const SPIN: Duration = Duration::from_micros(30);
/// A message no longer than this is put together on the stack; on `sm` it is copied anyway.
const SMALL: usize = 128;

/// Whether a request polls while it has no credit or no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Polls,
    Immediate,
}

/// Where the bytes of a bulk request are.
#[derive(Clone, Debug)]
pub(crate) enum Bulk<'a> {
    Bytes(&'a [u8]),
    /// In this endpoint's segment.
    Own(Range<u64>),
}

impl Bulk<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Own(range) => range.end.saturating_sub(range.start),
        }
    }
}

/// What a request finds of its target.
enum Ready<C> {
    /// A credit, and the longest message.
    Open(C, usize),
    Local,
    /// It comes back at once.
    Closed(Status),
    /// No credit or no channel yet; with this status it comes back once it has waited for long.
    NotYet(Status),
}

/// How far a request has come once its target was ready.
pub(crate) enum Attempt<T> {
    Sent(T),
    Local,
    /// It comes back at once.
    Closed(Status),
}

/// How long a request has polled.
#[derive(Debug, Default)]
struct Waited {
    empty: u32,
    rounds: u32,
    since: Option<Instant>,
    is_over: bool,
}

/// The kind and the bytes of a medium request, or of a short one.
#[inline]
fn kind_of(payload: Option<&[u8]>) -> (Kind, &[u8]) {
    match payload {
        Some(bytes) => (Kind::RequestMedium, bytes),
        None => (Kind::Request, &[]),
    }
}

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Looks at a target, and asks it for a credit if it needs one.
    fn look(&mut self, peer: Peer, needs_credit: bool) -> Result<Ready<M::Channel>, RequestError> {
        let target = self.core.targets.get_mut(peer).ok_or(RequestError::NotMapped)?;
        Ok(match target.way {
            Way::Open(channel) if (target.available > 0 || !needs_credit) && !target.is_cut => {
                Ready::Open(channel, target.longest as usize)
            }
            Way::Open(_) => {
                self.want(peer.index());
                Ready::NotYet(Status::Congested)
            }
            Way::Connecting => Ready::NotYet(Status::Unreachable),
            Way::Broken => Ready::Closed(Status::Unreachable),
            Way::Local => Ready::Local,
        })
    }

    #[inline(never)]
    fn want(&mut self, index: u32) {
        let Some(target) = self.core.targets.at_mut(index) else { return };
        if !target.is_wanting && target.available == 0 {
            (target.is_wanting, target.want_is_due) = (true, true);
            self.notify_target(index);
        }
    }

    /// Polls once, and sleeps when that has been in vain for long, at most for `limit`.
    #[inline(never)]
    fn pause(&mut self, patience: Patience, waited: &mut Waited, limit: Duration) -> Result<(), RequestError> {
        if patience == Patience::Immediate {
            return Err(RequestError::WouldBlock);
        }
        waited.empty = if self.poll()? == 0 { waited.empty + 1 } else { 0 };
        waited.rounds += 1;
        if waited.rounds.is_multiple_of(SPINS) {
            let since = *waited.since.get_or_insert_with(Instant::now);
            let elapsed = since.elapsed();
            let left = self.core.options.send_timeout.saturating_sub(elapsed);
            waited.is_over = left.is_zero();
            if waited.empty >= SPINS && elapsed >= SPIN {
                self.sleep(left.min(limit))?;
            }
        }
        Ok(())
    }

    /// Has `attempt` send as soon as the target is ready, and again while there is no room.
    pub(crate) fn when_ready<T>(
        &mut self,
        peer: Peer,
        patience: Patience,
        needs_credit: bool,
        mut attempt: impl FnMut(&mut Self, M::Channel, usize) -> Result<T, Refused>,
    ) -> Result<Attempt<T>, RequestError> {
        let mut waited = Waited::default();
        loop {
            let (status, limit) = match self.look(peer, needs_credit)? {
                Ready::Open(channel, most) => match attempt(self, channel, most) {
                    Ok(sent) => return Ok(Attempt::Sent(sent)),
                    // Its coming wakes nobody.
                    Err(Refused::NoRoom) => (Status::Congested, ROOM),
                    Err(Refused::Unusable) => return Err(RequestError::Unusable),
                    // The next look finds it broken, also in an immediate request.
                    Err(Refused::Gone) => {
                        self.break_target(peer.index());
                        continue;
                    }
                },
                Ready::NotYet(status) => (status, Duration::MAX),
                Ready::Local => return Ok(Attempt::Local),
                Ready::Closed(status) => return Ok(Attempt::Closed(status)),
            };
            if waited.is_over {
                return Ok(Attempt::Closed(status));
            }
            self.pause(patience, &mut waited, limit)?;
        }
    }

    /// Sends a medium request, or a short one. Inlined wherever it is called, so that each form has
    /// only what it needs.
    #[inline(always)]
    pub(crate) fn send_request(
        &mut self,
        peer: Peer,
        (at, arguments): (u8, &[u32]),
        payload: Option<&[u8]>,
        patience: Patience,
    ) -> Result<(), RequestError> {
        let (kind, bytes) = kind_of(payload);
        self.check(arguments, bytes)?;
        if self.send_at_once(peer, kind, (at, arguments), bytes) {
            return Ok(());
        }
        self.send_when_ready(peer, (at, arguments), payload, patience)
    }

    /// Sends a request as one message to a target with a credit at hand; it is written into its
    /// record. False: nothing has happened.
    #[inline(always)]
    fn send_at_once(&mut self, peer: Peer, kind: Kind, (at, arguments): (u8, &[u32]), bytes: &[u8]) -> bool {
        let core = &mut *self.core;
        let Some(target) = core.targets.get_mut(peer) else { return false };
        let Way::Open(channel) = target.way else { return false };
        if target.available == 0 || target.is_cut {
            return false;
        }
        let Some((id, head)) = core.records.next() else { return false };
        head.fill(kind, at, id, arguments);
        let context = Context::Target(peer).pack();
        let sent = if bytes.is_empty() {
            self.mapping.send(channel, head.bytes(), context)
        } else {
            transmit(self.mapping, channel, target.longest as usize, (head, bytes), context)
        };
        if sent.is_err() {
            return false;
        }
        core.records.open(peer.index(), Of::Request);
        target.on_begin(1);
        true
    }

    /// As [`Turn::send_request`], whatever is in the way.
    #[inline(never)]
    fn send_when_ready(
        &mut self,
        peer: Peer,
        (at, arguments): (u8, &[u32]),
        payload: Option<&[u8]>,
        patience: Patience,
    ) -> Result<(), RequestError> {
        let (kind, bytes) = kind_of(payload);
        let sent = self.when_ready(peer, patience, true, |turn, channel, most| {
            let (id, _) = turn.core.records.next().ok_or(Refused::NoRoom)?;
            let head = Head::new(kind, at, id, arguments);
            let len = head.bytes().len() + bytes.len();
            if len > most && !bytes.is_empty() {
                turn.transmit_parts(peer, channel, most, &head, bytes)?;
            } else {
                let context = Context::Target(peer).pack();
                transmit(turn.mapping, channel, most, (&head, bytes), context)?;
            }
            turn.begun(peer.index(), Of::Request, &head);
            Ok(())
        })?;
        match sent {
            Attempt::Sent(()) => {}
            Attempt::Local => self.run_local(peer, (at, arguments), payload),
            Attempt::Closed(status) => self.give_back(peer, &Head::new(kind, at, 0, arguments), status),
        }
        Ok(())
    }

    #[inline]
    fn check(&self, arguments: &[u32], bytes: &[u8]) -> Result<(), RequestError> {
        if arguments.len() > MAX_ARGUMENTS {
            return Err(RequestError::TooManyArguments);
        }
        if bytes.len() > self.core.options.longest_medium { Err(RequestError::TooLong) } else { Ok(()) }
    }

    /// A request has left: notes it as open.
    pub(crate) fn begun(&mut self, index: u32, of: Of, head: &Head) {
        if let Some((_, place)) = self.core.records.next() {
            *place = *head;
        }
        self.core.records.open(index, of);
        if let Some(target) = self.core.targets.at_mut(index) {
            target.on_begin(u32::from(of == Of::Request));
        }
    }

    /// Sends as many parts as there is room for; the others follow by polls.
    fn transmit_parts(
        &mut self,
        peer: Peer,
        channel: M::Channel,
        most: usize,
        head: &Head,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let context = Context::Target(peer).pack();
        let mut long = *head;
        long.set_kind(Kind::RequestLong, 0);
        let mut sent = 0;
        while sent < bytes.len() {
            let read = |from: usize, into: &mut [u8]| into.copy_from_slice(&bytes[from..][..into.len()]);
            let count = cut(&mut self.core.scratch, most, long.bytes(), (bytes.len(), sent), read);
            match self.mapping.send(channel, &self.core.scratch, context) {
                Ok(()) => sent += count,
                Err(why) if sent == 0 => return Err(why),
                Err(_) => {
                    self.core.unsent.push_back(Unsent { target: peer.index(), bytes: bytes.to_vec(), sent });
                    if let Some(target) = self.core.targets.at_mut(peer.index()) {
                        target.is_cut = true;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Sends parts of requests that found no room, as far as there is room now.
    pub(super) fn flush_unsent(&mut self) {
        for _ in 0..self.core.unsent.len() {
            let Some(mut unsent) = self.core.unsent.pop_front() else { return };
            match self.send_parts(&mut unsent) {
                Ok(()) => {
                    if let Some(target) = self.core.targets.at_mut(unsent.target) {
                        target.is_cut = false;
                    }
                }
                Err(Refused::NoRoom) => self.core.unsent.push_back(unsent),
                Err(Refused::Gone | Refused::Unusable) => self.break_target(unsent.target),
            }
        }
    }

    fn send_parts(&mut self, unsent: &mut Unsent) -> Result<(), Refused> {
        let core = &mut *self.core;
        let target = core.targets.at_mut(unsent.target).ok_or(Refused::Gone)?;
        let Way::Open(channel) = target.way else { return Err(Refused::Gone) };
        let most = target.longest as usize;
        let context = Context::Target(core.targets.key(unsent.target)).pack();
        while unsent.sent < unsent.bytes.len() {
            let read = |from: usize, into: &mut [u8]| into.copy_from_slice(&unsent.bytes[from..][..into.len()]);
            let count = cut(&mut core.scratch, most, &[0; HEADER], (unsent.bytes.len(), unsent.sent), read);
            self.mapping.send(channel, &core.scratch, context)?;
            unsent.sent += count;
        }
        Ok(())
    }

    /// Sends a request whose bytes go into the target's segment.
    pub(crate) fn send_bulk_request(
        &mut self,
        peer: Peer,
        (at, arguments): (u8, &[u32]),
        bulk: &Bulk<'_>,
        offset: u64,
        patience: Patience,
    ) -> Result<(), RequestError> {
        self.check(arguments, &[])?;
        match bulk {
            Bulk::Bytes(bytes) if bytes.len() > self.core.staging.longest() => return Err(RequestError::TooLong),
            Bulk::Own(range) => self.check_own(range)?,
            Bulk::Bytes(_) => {}
        }
        let sent = self.when_ready(peer, patience, true, |turn, channel, _| {
            let head = turn.start_bulk(peer, channel, (at, arguments), bulk, offset)?;
            turn.begun(peer.index(), Of::Request, &head);
            Ok(())
        })?;
        match sent {
            Attempt::Sent(()) => {}
            Attempt::Local => self.run_local_bulk(peer, (at, arguments), bulk, offset),
            Attempt::Closed(status) => self.give_back(peer, &Head::new(Kind::RequestBulk, at, 0, arguments), status),
        }
        Ok(())
    }

    pub(super) fn check_own(&self, range: &Range<u64>) -> Result<(), RequestError> {
        let len = range.end.checked_sub(range.start).filter(|len| *len > 0).ok_or(RequestError::BadRange)?;
        self.core.segment.range(range.start, len).map(drop).ok_or(RequestError::BadRange)
    }

    fn start_bulk(
        &mut self,
        peer: Peer,
        channel: M::Channel,
        (at, arguments): (u8, &[u32]),
        bulk: &Bulk<'_>,
        offset: u64,
    ) -> Result<Head, Refused> {
        let core = &mut *self.core;
        let (id, _) = core.records.next().ok_or(Refused::NoRoom)?;
        let segment = core.targets.at_mut(peer.index()).and_then(|target| target.segment);
        let mut head = Head::new(Kind::RequestBulk, at, id, arguments);
        let context = Context::Target(peer).pack();
        let segment = match place(segment, offset, bulk.len()) {
            Ok(segment) => segment,
            Err(status) => {
                head.set_kind(Kind::RequestUnplaced, status as u8);
                self.mapping.send(channel, head.bytes(), context)?;
                return Ok(head);
            }
        };
        let (mut message, end) = ([0; HEAD + SPAN], head.bytes().len());
        message[..end].copy_from_slice(head.bytes());
        let span = Span { offset, len: bulk.len(), epoch: segment.epoch }.emit();
        message[end..end + span.len()].copy_from_slice(&span);
        let message = &message[..end + span.len()];
        if bulk.len() == 0 {
            self.mapping.send(channel, message, context)?;
            return Ok(head);
        }
        let transfer = |local, local_offset| Transfer {
            local,
            local_offset,
            remote: &segment.handle,
            remote_offset: offset,
            len: bulk.len(),
        };
        match bulk {
            Bulk::Bytes(bytes) => {
                let (buffer, begin) = core.staging.fill(bytes).ok_or(Refused::NoRoom)?;
                let transfer = transfer(M::handle(&core.staging.region), begin);
                let written = self.mapping.write(channel, &transfer, message, Context::Staged(buffer, id).pack());
                if written.is_err() {
                    self.core.staging.free(buffer);
                }
                written?;
            }
            Bulk::Own(range) => {
                let (_, region) = core.segment.now.as_ref().ok_or(Refused::NoRoom)?;
                let transfer = transfer(M::handle(region), range.start);
                self.mapping.write(channel, &transfer, message, Context::InPlace(id).pack())?;
            }
        }
        Ok(head)
    }

    /// Reads from a target's segment into this endpoint's own; then the reply handler runs here.
    pub(crate) fn send_get(
        &mut self,
        peer: Peer,
        (at, arguments): (u8, &[u32]),
        from: u64,
        into: &Range<u64>,
        patience: Patience,
    ) -> Result<(), RequestError> {
        self.check(arguments, &[])?;
        self.check_own(into)?;
        let head = Head::new(Kind::RequestBulk, at, 0, arguments);
        let sent = self.when_ready(peer, patience, false, |turn, channel, _| {
            let segment = turn.core.targets.at_mut(peer.index()).and_then(|target| target.segment);
            match place(segment, from, into.end - into.start) {
                Ok(segment) => {
                    let span = turn.start_get(channel, &segment, from, into)?;
                    turn.begun(peer.index(), Of::Get(span), &head);
                }
                Err(status) => turn.give_back(peer, &head, status),
            }
            Ok(())
        })?;
        match sent {
            Attempt::Sent(()) => {}
            Attempt::Local => self.run_local_get(peer, (at, arguments), from, into),
            Attempt::Closed(status) => self.give_back(peer, &head, status),
        }
        Ok(())
    }

    fn start_get(
        &mut self,
        channel: M::Channel,
        segment: &RemoteSegment,
        from: u64,
        into: &Range<u64>,
    ) -> Result<Span, Refused> {
        let core = &mut *self.core;
        let (id, _) = core.records.next().ok_or(Refused::NoRoom)?;
        let (_, region) = core.segment.now.as_ref().ok_or(Refused::NoRoom)?;
        let len = into.end - into.start;
        let transfer = Transfer {
            local: M::handle(region),
            local_offset: into.start,
            remote: &segment.handle,
            remote_offset: from,
            len,
        };
        self.mapping.read(channel, &transfer, Context::Get(id).pack())?;
        Ok(Span { offset: into.start, len, epoch: core.segment.epoch })
    }
}

/// Sends a request whose payload fits its message.
#[inline(never)]
fn transmit<M: Mapping>(
    mapping: &M,
    channel: M::Channel,
    most: usize,
    (head, bytes): (&Head, &[u8]),
    context: u64,
) -> Result<(), Refused> {
    let (begin, len) = (head.bytes().len(), head.bytes().len() + bytes.len());
    if len > most {
        return Err(Refused::Gone);
    }
    if len <= SMALL {
        let mut message = [0; SMALL];
        message[..begin].copy_from_slice(head.bytes());
        message[begin..len].copy_from_slice(bytes);
        return mapping.send(channel, &message[..len], context);
    }
    mapping.send_vectored(channel, &[IoSlice::new(head.bytes()), IoSlice::new(bytes)], context)
}

/// The segment, if these bytes lie within it.
pub(super) fn place(segment: Option<RemoteSegment>, offset: u64, len: u64) -> Result<RemoteSegment, Status> {
    let segment = segment.ok_or(Status::BadOffset)?;
    let fits = offset.checked_add(len).is_some_and(|end| end <= segment.len);
    if fits { Ok(segment) } else { Err(Status::BadLength) }
}
