//! What the mapping reports.

use super::segment::accepts;
use super::{Context, Due, Turn};
use crate::credits::Loan;
use crate::errors::Status;
use crate::mapping::{Arrived, Asking, Incoming, Mapping, Outcome};
use crate::message::{Payload, Reply};
use crate::peers::{Assembly, Peer, Source, Way};
use crate::records::Of;
use crate::sort::Sort;
use crate::wire::{self, HEADER, Header, Hello, Kind, MAX_ARGUMENTS, RemoteSegment, SPAN, Span};

/// Flushes for which credits stay: the one of the poll that brings them, and that of the next poll.
/// Otherwise one that was asked back at once, because others wait too, would go from poll to poll
/// of those who wait, and none could use it.
const FRESH: u8 = 2;
/// Credits that a target can have given, at most: what comes back with replies is added to them.
const MOST_CREDITS: u32 = 1 << 30;

/// A peer has broken the protocol.
#[derive(Debug)]
pub(crate) struct Violation;

/// The header of a message.
#[inline]
pub(super) fn header_of(message: Arrived<'_>) -> Result<Header, Violation> {
    // Small messages are private: their header is one load.
    if let Some(bytes) = message.0.bytes() {
        return bytes.first_chunk().and_then(|bytes| Header::parse(*bytes)).ok_or(Violation);
    }
    message.0.array().and_then(Header::parse).ok_or(Violation)
}

/// Reads the arguments of a message: how many there are, and what follows them. In registers: what
/// goes by way of memory waits there behind the message, whose lines the peer has.
#[inline(always)]
pub(crate) fn arguments_of<'m>(
    header: Header,
    message: Arrived<'m>,
    into: &mut [u32; MAX_ARGUMENTS],
) -> Result<(usize, Payload<'m>), Violation> {
    let end = header.arguments_end().filter(|end| *end <= message.len()).ok_or(Violation)?;
    let count = match message.0.bytes() {
        Some(bytes) => wire::arguments(&bytes[HEADER..end], into),
        None if end == HEADER => 0,
        None => copied_arguments(message, end, into),
    };
    let payload = if end == message.len() { Payload::of_bytes(&[]) } else { message.0.from(end) };
    Ok((count, payload))
}

/// As [`arguments_of`], where the peer could still write the message.
#[inline(never)]
fn copied_arguments(message: Arrived<'_>, end: usize, into: &mut [u32; MAX_ARGUMENTS]) -> usize {
    let mut bytes = [0; 4 * MAX_ARGUMENTS];
    message.0.copy_to(HEADER, &mut bytes[..end - HEADER]);
    wire::arguments(&bytes[..end - HEADER], into)
}

/// What a short or medium message has after its arguments.
#[inline]
pub(super) fn payload_of(header: Header, rest: Payload<'_>) -> Result<Payload<'_>, Violation> {
    match header.kind {
        Kind::RequestMedium | Kind::ReplyMedium => Ok(rest),
        _ if rest.is_empty() => Ok(Payload::none()),
        _ => Err(Violation),
    }
}

/// The place of a bulk payload.
pub(super) fn span_of(rest: Payload<'_>) -> Result<Span, Violation> {
    let mut bytes = [0; SPAN];
    let is_whole = rest.len() == SPAN && rest.copy_to(0, &mut bytes) == SPAN;
    Span::parse(&bytes).filter(|_| is_whole).ok_or(Violation)
}

/// The peer's segment in a notice.
fn segment_of(message: Arrived<'_>) -> Result<Option<RemoteSegment>, Violation> {
    RemoteSegment::parse(&message.0.to_vec()).ok_or(Violation)
}

/// The longest message of a channel, no longer than a length of 32 bits.
fn longest<M: Mapping>(mapping: &M, channel: M::Channel) -> u32 {
    u32::try_from(mapping.longest(channel)).unwrap_or(u32::MAX)
}

/// Begins a message in parts. One of more than `most` bytes is refused, and its parts are passed
/// over.
pub(crate) fn assembly(
    header: Header,
    arguments: [u32; MAX_ARGUMENTS],
    rest: Payload<'_>,
    most: usize,
    refused: Option<Status>,
) -> Result<Box<Assembly>, Violation> {
    let mut total = [0; 4];
    if rest.copy_to(0, &mut total) < total.len() {
        return Err(Violation);
    }
    let total = u32::from_le_bytes(total) as usize;
    let refused = refused.or((total > most).then_some(Status::BadLength));
    let mut assembly = Box::new(Assembly { header, arguments, total, came: 0, bytes: Vec::new(), refused });
    assembly.add(rest.from(4))?;
    // A whole one would not have been cut.
    if assembly.came < total { Ok(assembly) } else { Err(Violation) }
}

impl Assembly {
    /// Adds a part; whether it was the last.
    pub(crate) fn add(&mut self, part: Payload<'_>) -> Result<bool, Violation> {
        let came = self.came + part.len();
        if came > self.total || part.is_empty() {
            return Err(Violation);
        }
        if self.refused.is_none() {
            self.bytes.resize(came, 0);
            part.copy_to(0, &mut self.bytes[self.came..]);
        }
        self.came = came;
        Ok(came == self.total)
    }
}

impl<S, M: Mapping> Turn<'_, S, M> {
    #[inline]
    pub(crate) fn take(&mut self, incoming: Incoming<'_, M::Channel, M::Asking<'_>>) {
        match incoming {
            Incoming::Message(context, message) => self.take_message(context, message),
            other => self.take_control(other),
        }
    }

    #[inline]
    fn take_message(&mut self, context: u64, message: Arrived<'_>) {
        if let Some((header, arguments)) = message.0.bytes().and_then(Header::of_short) {
            // The usual ones: nothing follows their arguments.
            let nothing = Payload::none();
            match (Context::unpack(context), header.kind) {
                (Context::Source(from), Kind::Request) => {
                    let count = wire::arguments(arguments, &mut self.core.arguments);
                    let taken = self.request(from, header, count, nothing);
                    return taken.unwrap_or_else(|Violation| self.drop_known_source(from));
                }
                (Context::Target(from), Kind::Reply) => {
                    let count = wire::arguments(arguments, &mut self.core.arguments);
                    let taken = self.reply(from, header, count, nothing);
                    return taken.unwrap_or_else(|Violation| self.break_known_target(from));
                }
                _ => {}
            }
        }
        self.take_any_message(context, message);
    }

    #[inline(never)]
    fn take_any_message(&mut self, context: u64, message: Arrived<'_>) {
        message.0.prefetch();
        match Context::unpack(context) {
            Context::Source(from) => {
                let taken = self.source_message(from, message);
                taken.unwrap_or_else(|Violation| self.drop_known_source(from));
            }
            Context::Target(from) => {
                let taken = self.target_message(from, message);
                taken.unwrap_or_else(|Violation| self.break_known_target(from));
            }
            _ => {}
        }
    }

    /// The source has broken the protocol, unless it is another one's place by now.
    #[cold]
    #[inline(never)]
    fn drop_known_source(&mut self, source: Peer) {
        if self.core.sources.get(source).is_some() {
            self.drop_source(source.index());
        }
    }

    /// Likewise a target.
    #[cold]
    #[inline(never)]
    fn break_known_target(&mut self, target: Peer) {
        if self.core.targets.get(target).is_some() {
            self.break_target(target.index());
        }
    }

    #[inline(never)]
    fn take_control(&mut self, incoming: Incoming<'_, M::Channel, M::Asking<'_>>) {
        match incoming {
            Incoming::Message(..) => {}
            Incoming::Ended(context, outcome) => self.ended(Context::unpack(context), outcome),
            Incoming::Asks(peer) => self.admit(peer),
            Incoming::Opened(context, channel) => self.opened(Context::unpack(context), channel),
            Incoming::Closed(context) => self.closed(Context::unpack(context)),
        }
    }

    fn admit(&mut self, peer: impl Asking) {
        let bytes = peer.hello();
        let Some((hello, segment)) =
            Hello::parse(&bytes).and_then(|hello| RemoteSegment::parse(&hello.segment).map(|segment| (hello, segment)))
        else {
            return peer.reject();
        };
        let from = self.core.sources.insert_with(|_| Source {
            channel: None,
            name: hello.name.into(),
            tag: hello.tag,
            is_accepted: accepts(self.core.tag, hello.tag),
            segment,
            longest: 0,
            loan: Loan::default(),
            ended: Vec::new(),
            kept: 0,
            grant: 0,
            asked_at: 0,
            segment_is_due: true,
            revoke_is_due: false,
            assembly: None,
        });
        if !peer.accept(Context::Source(from).pack()) {
            self.core.sources.remove(from);
        }
    }

    fn opened(&mut self, context: Context, channel: M::Channel) {
        let (core, most) = (&mut *self.core, longest(self.mapping, channel));
        match context {
            Context::Target(from) => match core.targets.get_mut(from) {
                Some(target) => {
                    (target.way, target.longest) = (Way::Open(channel), most);
                    core.due.push_back(Due::Target(from.index()));
                }
                // Unmapped meanwhile.
                None => self.mapping.close(channel),
            },
            Context::Source(from) => match core.sources.get_mut(from) {
                Some(source) => {
                    (source.channel, source.longest) = (Some(channel), most);
                    source.grant = core.pool.welcome(&mut source.loan);
                    core.due.push_back(Due::Source(from.index()));
                }
                None => self.mapping.close(channel),
            },
            _ => {}
        }
    }

    fn closed(&mut self, context: Context) {
        match context {
            Context::Target(from) => self.break_known_target(from),
            Context::Source(from) => self.drop_known_source(from),
            _ => {}
        }
    }

    fn ended(&mut self, context: Context, outcome: Outcome) {
        match context {
            Context::Staged(buffer, id) => {
                self.core.staging.free(buffer);
                self.bulk_ended(id, outcome);
            }
            Context::InPlace(id) => self.bulk_ended(id, outcome),
            Context::Reply(buffer) => self.bulk_reply_ended(buffer, outcome),
            Context::Get(id) => self.get_ended(id, outcome),
            channel @ (Context::Target(..) | Context::Source(..)) => {
                if outcome != Outcome::Done {
                    self.closed(channel);
                }
            }
        }
    }

    /// The bytes of a bulk request have gone, or not.
    fn bulk_ended(&mut self, id: u32, outcome: Outcome) {
        let Some(index) = self.core.records.get(id).map(|record| record.target) else { return };
        match outcome {
            Outcome::Done => {}
            Outcome::Rejected => self.ask_why(index, id),
            Outcome::Broken => self.break_target(index),
        }
    }

    /// The target's memory was not there as it had been described. The target itself has not seen
    /// the request, and tells which status it has: the tag may be the reason.
    fn ask_why(&mut self, index: u32, id: u32) {
        let core = &mut *self.core;
        let (Some(record), Some(target)) = (core.records.get(id), core.targets.at_mut(index)) else { return };
        let Way::Open(channel) = target.way else { return };
        let mut head = record.head;
        head.set_kind(Kind::RequestUnplaced, Status::BadOffset as u8);
        let context = Context::Target(core.targets.key(index)).pack();
        if self.mapping.send(channel, head.bytes(), context).is_err() {
            if let Some(target) = self.core.targets.at_mut(index) {
                target.available += 1;
            }
            self.return_record(id, Status::BadOffset);
        }
    }

    fn get_ended(&mut self, id: u32, outcome: Outcome) {
        let Some(record) = self.core.records.get(id) else { return };
        let (index, head, of) = (record.target, record.head, record.of);
        match (outcome, of) {
            (Outcome::Done, Of::Get(span)) => {
                let memory = self.core.segment.range(span.offset, span.len).cloned();
                if memory.is_none() || span.epoch != self.core.segment.epoch {
                    return self.return_record(id, Status::BadOffset);
                }
                self.core.records.end(id);
                if let Some(target) = self.core.targets.at_mut(index) {
                    target.on_end(0);
                }
                let mut arguments = [0; MAX_ARGUMENTS];
                let count = head.arguments(&mut arguments);
                if let Some(memory) = memory {
                    let payload = Payload::of_segment(&memory, span.offset, span.len);
                    self.run_reply(self.core.targets.key(index), head.handler(), &arguments[..count], payload);
                }
            }
            (Outcome::Broken, _) => self.break_target(index),
            _ => self.return_record(id, Status::BadOffset),
        }
    }

    /// A message of a target: of one that this endpoint sends requests to.
    fn target_message(&mut self, from: Peer, message: Arrived<'_>) -> Result<(), Violation> {
        let header = header_of(message)?;
        let index = from.index();
        if self.core.targets.get(from).is_none() {
            return Ok(());
        }
        match header.kind {
            Kind::Reply | Kind::ReplyMedium => {
                let (count, rest) = arguments_of(header, message, &mut self.core.arguments)?;
                self.reply(from, header, count, payload_of(header, rest)?)
            }
            Kind::Ended => self.batch(index, header, message),
            Kind::Returned => self.returned(index, header),
            Kind::Grant => self.granted(index, header.id),
            Kind::ReplyLong => self.reply_long(index, header, message),
            Kind::Part => self.reply_part(index, message),
            Kind::ReplyBulk => self.reply_bulk(index, header, message),
            Kind::Revoke => self.revoked(index, header.id),
            Kind::Segment => {
                let segment = segment_of(message)?;
                self.core.targets.at_mut(index).ok_or(Violation)?.segment = segment;
                Ok(())
            }
            _ => Err(Violation),
        }
    }

    /// Ends an open request of this target, and takes the credits that come back with it; or finds
    /// that there is no such request.
    #[inline]
    fn end_of(&mut self, index: u32, id: u32, kept: u32) -> Result<(), Violation> {
        if !self.core.records.end_request(id, index) {
            return Err(Violation);
        }
        self.core.targets.at_mut(index).ok_or(Violation)?.on_end(kept);
        Ok(())
    }

    /// Ends the request of a reply, whose arguments have been read, and runs its handler.
    #[inline(always)]
    fn reply(&mut self, from: Peer, header: Header, count: usize, payload: Payload<'_>) -> Result<(), Violation> {
        let core = &mut *self.core;
        let Some(target) = core.targets.get_mut(from) else { return Ok(()) };
        if !core.records.end_request(header.id, from.index()) {
            return Err(Violation);
        }
        target.on_end(header.kept());
        let Some(handler) = self.handlers.of_reply(header.handler) else {
            let arguments = core.arguments;
            self.reject(from, payload.sort(), header.handler, &arguments[..count]);
            return Ok(());
        };
        handler(self.state, Reply { arguments: &core.arguments[..count], payload, from });
        Ok(())
    }

    /// Runs the handler of a reply whose request has ended.
    pub(super) fn run_reply(&mut self, from: Peer, at: u8, arguments: &[u32], payload: Payload<'_>) {
        match self.handlers.of_reply(at) {
            Some(handler) => handler(self.state, Reply { arguments, payload, from }),
            None => self.reject(from, payload.sort(), at, arguments),
        }
    }

    /// A reply has no handler here, or no place.
    #[inline(never)]
    fn reject(&mut self, from: Peer, sort: Sort, at: u8, arguments: &[u32]) {
        let kind = match sort {
            Sort::Short => Kind::Reply,
            Sort::Medium => Kind::ReplyMedium,
            Sort::Bulk => Kind::ReplyBulk,
        };
        self.give_back(from, &wire::Head::new(kind, at, 0, arguments), Status::ReplyRejected);
    }

    fn reply_long(&mut self, index: u32, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut arguments = [0; MAX_ARGUMENTS];
        let (_, rest) = arguments_of(header, message, &mut arguments)?;
        let most = self.core.outbox.buffers.longest().max(self.core.options.longest_medium);
        let is_open = self.core.records.get(header.id).is_some_and(|record| record.target == index);
        let target = self.core.targets.at_mut(index).filter(|target| target.assembly.is_none() && is_open);
        target.ok_or(Violation)?.assembly = Some(assembly(header, arguments, rest, most, None)?);
        self.core.count_part();
        Ok(())
    }

    fn reply_part(&mut self, index: u32, message: Arrived<'_>) -> Result<(), Violation> {
        let target = self.core.targets.at_mut(index).ok_or(Violation)?;
        let whole = target.assembly.as_mut().ok_or(Violation)?.add(message.0.from(HEADER))?;
        target.is_alive = true;
        let Some(whole) = target.assembly.take_if(|_| whole) else {
            self.core.count_part();
            return Ok(());
        };
        self.end_of(index, whole.header.id, whole.header.kept())?;
        let (from, at) = (self.core.targets.key(index), whole.header.handler);
        let arguments = &whole.arguments[..usize::from(whole.header.count)];
        if whole.refused.is_some() {
            self.reject(from, Sort::Medium, at, arguments);
        } else {
            self.run_reply(from, at, arguments, Payload::of_bytes(&whole.bytes));
        }
        Ok(())
    }

    fn reply_bulk(&mut self, index: u32, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut arguments = [0; MAX_ARGUMENTS];
        let (count, rest) = arguments_of(header, message, &mut arguments)?;
        let span = span_of(rest)?;
        if span.epoch != self.core.segment.epoch {
            // The segment has changed since: the bytes went into the old one.
            self.end_of(index, header.id, header.kept())?;
            self.reject(self.core.targets.key(index), Sort::Bulk, header.handler, &arguments[..count]);
            return Ok(());
        }
        let memory = self.core.segment.range(span.offset, span.len).cloned().ok_or(Violation)?;
        self.end_of(index, header.id, header.kept())?;
        let payload = Payload::of_segment(&memory, span.offset, span.len);
        self.run_reply(self.core.targets.key(index), header.handler, &arguments[..count], payload);
        Ok(())
    }

    fn returned(&mut self, index: u32, header: Header) -> Result<(), Violation> {
        let status = Status::of(header.handler).ok_or(Violation)?;
        let record = self.core.records.get(header.id).ok_or(Violation)?;
        if record.target != index || record.of != Of::Request {
            return Err(Violation);
        }
        if let Some(target) = self.core.targets.at_mut(index) {
            target.available += header.kept();
        }
        self.return_record(header.id, status);
        Ok(())
    }

    /// Requests have ended without a reply.
    fn batch(&mut self, index: u32, header: Header, message: Arrived<'_>) -> Result<(), Violation> {
        let mut ids = [0; MAX_ARGUMENTS];
        let (count, _) = arguments_of(header, message, &mut ids)?;
        let kept = u32::from(header.handler);
        if kept as usize > count {
            return Err(Violation);
        }
        for id in &ids[..count] {
            self.end_of(index, *id, 0)?;
        }
        self.core.targets.at_mut(index).ok_or(Violation)?.available += kept;
        Ok(())
    }

    fn granted(&mut self, index: u32, count: u32) -> Result<(), Violation> {
        let target = self.core.targets.at_mut(index).ok_or(Violation)?;
        let available = target.available.checked_add(count).filter(|available| *available <= MOST_CREDITS);
        target.available = available.ok_or(Violation)?;
        target.is_wanting = false;
        if std::mem::replace(&mut target.fresh, FRESH) == 0 {
            self.core.due.push_back(Due::Fresh(index));
        }
        Ok(())
    }

    fn revoked(&mut self, index: u32, count: u32) -> Result<(), Violation> {
        let target = self.core.targets.at_mut(index).ok_or(Violation)?;
        target.revoked = target.revoked.saturating_add(count);
        if target.fresh == 0 {
            self.notify_target(index);
        }
        Ok(())
    }

    /// A message of a source: of one that sends requests to this endpoint.
    fn source_message(&mut self, from: Peer, message: Arrived<'_>) -> Result<(), Violation> {
        let header = header_of(message)?;
        let index = from.index();
        if self.core.sources.get(from).is_none() {
            return Ok(());
        }
        match header.kind {
            Kind::Request | Kind::RequestMedium => {
                let (count, rest) = arguments_of(header, message, &mut self.core.arguments)?;
                self.request(from, header, count, payload_of(header, rest)?)
            }
            Kind::RequestLong => self.request_long(index, header, message),
            Kind::Part => self.request_part(from, message),
            Kind::RequestBulk => self.request_bulk(from, header, message),
            Kind::RequestUnplaced => self.request_unplaced(from, header),
            Kind::Want => self.wanted(index),
            Kind::Release => self.released(index, header.id),
            Kind::Segment => {
                let segment = segment_of(message)?;
                self.core.sources.at_mut(index).ok_or(Violation)?.segment = segment;
                Ok(())
            }
            _ => Err(Violation),
        }
    }

    fn wanted(&mut self, index: u32) -> Result<(), Violation> {
        let core = &mut *self.core;
        let source = core.sources.at_mut(index).ok_or(Violation)?;
        source.grant += core.pool.want(index, &mut source.loan);
        self.notify_source(index);
        self.serve_waiting();
        Ok(())
    }

    fn released(&mut self, index: u32, count: u32) -> Result<(), Violation> {
        let core = &mut *self.core;
        let source = core.sources.at_mut(index).ok_or(Violation)?;
        if !core.pool.release(&mut source.loan, count) {
            return Err(Violation);
        }
        self.serve_waiting();
        Ok(())
    }
}
