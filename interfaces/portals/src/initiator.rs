//! Operations that this process begins.

use crate::errors::Error;
use crate::handles::Handle;
use crate::operations::{Kind, Operation, Phase, Whom};
use crate::partner::Out;
use crate::queue::Facts;
use crate::state::{GIVEN, SENT, Sending, State};
use crate::types::{EventKind, ProcessId};
use crate::wire::{self, Answer, DONE, LONGEST, OFFERED, REPLY, Request};
use cci::{Connection, Endpoint, Notify, RegisterError, Rights};

/// Where an operation goes, and what it brings.
///
/// # Example
///
/// ```
/// use cci_portals::{ProcessId, Target};
///
/// let target = Target { bits: 7, ..Target::at(ProcessId { nid: 1, pid: 2 }, 4) };
/// assert_eq!((target.portal, target.offset), (4, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct Target {
    /// The process.
    pub process: ProcessId,
    /// The portal index.
    pub portal: u32,
    /// The entry of the target's access control table.
    pub access: u32,
    /// The match bits.
    pub bits: u64,
    /// The offset for a memory descriptor that is managed remotely.
    pub offset: u64,
    /// The word that a put brings.
    pub header: u64,
}

impl Target {
    /// A portal index of a process; everything else is 0.
    #[must_use]
    pub const fn at(process: ProcessId, portal: u32) -> Self {
        Self { process, portal, access: 0, bits: 0, offset: 0, header: 0 }
    }
}

impl Kind {
    pub(crate) fn is_initiator(self) -> bool {
        matches!(self, Self::Put | Self::Get | Self::GetPut)
    }
}

impl Operation {
    /// The answer of a target's operation with this number.
    fn reply(&self, number: u64, kind: u8) -> Answer {
        let (operation, offset) = (self.request.operation, self.facts.offset);
        Answer { kind, status: DONE, operation, length: self.length, offset, own: number }
    }
}

impl State {
    fn request(&self, kind: u8, to: &Target) -> Result<Request, Error> {
        if !to.process.is_definite() {
            return Err(Error::Process);
        }
        let portal = u16::try_from(to.portal).map_err(|_| Error::PortalIndex)?;
        let access = u16::try_from(to.access).map_err(|_| Error::AccessIndex)?;
        let Target { bits, offset, header, .. } = *to;
        Ok(Request { kind, portal, access, bits, offset, header, ..Request::default() })
    }

    /// Whether a region of a memory descriptor can take part now.
    fn check_region(&self, memory: Handle, region: Option<(u64, u64)>) -> Result<(u64, u64), Error> {
        let of = self.objects.memories.get(memory).ok_or(Error::Memory)?;
        if !of.is_active() {
            return Err(Error::Memory);
        }
        let (offset, length) = region.unwrap_or((0, of.region.len()));
        if of.region.contains(offset, length) { Ok((offset, length)) } else { Err(Error::IllegalMemory) }
    }

    /// An operation is pending on a memory descriptor. A send takes one from its threshold now, the
    /// reply to a get only when it comes.
    fn begin(&mut self, memory: Handle, is_send: bool) {
        if let Some(of) = self.objects.memories.get_mut(memory) {
            if is_send {
                of.count();
            }
            of.pending += 1;
        }
    }

    /// What events of a send have, of these bytes of a memory descriptor: offset and length.
    pub(crate) fn facts_of_send(&self, (offset, length): (u64, u64), request: &Request, link: u32) -> Facts {
        let Request { portal, bits, header, .. } = *request;
        Facts {
            initiator: self.own,
            uid: self.uid,
            jid: self.jid,
            portal: portal.into(),
            bits,
            rlength: length,
            mlength: length,
            offset,
            header,
            link,
            failure: 0,
        }
    }

    fn enter(
        &mut self,
        kind: Kind,
        memory: Handle,
        at: (u64, u64),
        request: Request,
        whom: Whom,
    ) -> Result<u64, Error> {
        if !self.operations.reserve() {
            return Err(Error::NoSpace);
        }
        self.begin(memory, kind == Kind::Put);
        let link = self.objects.next_link();
        let facts = self.facts_of_send(at, &request, link);
        Ok(self.operations.insert(|number| Operation {
            kind,
            phase: Phase::Queued,
            whom,
            on_link: 0,
            memory,
            source: Handle::INVALID,
            source_link: 0,
            offset: at.0,
            length: at.1,
            request: Request { operation: number, ..request },
            facts,
        }))
    }

    fn send_off(&mut self, endpoint: &Endpoint, number: u64) {
        if let Some(whom) = self.operations.get(number).map(|operation| operation.whom) {
            self.post(endpoint, whom, Out::Operation(number));
        }
    }

    pub(crate) fn put(
        &mut self,
        endpoint: &Endpoint,
        memory: Handle,
        region: Option<(u64, u64)>,
        wants_ack: bool,
        to: &Target,
    ) -> Result<(), Error> {
        let request = Request { wants_ack, ..self.request(wire::PUT, to)? };
        let at = self.check_region(memory, region)?;
        let whom = self.whom(to.process).ok_or(Error::Process)?;
        if self.put_at_once(endpoint, whom, (memory, at.0, at.1), &request) {
            return Ok(());
        }
        let number = self.enter(Kind::Put, memory, at, request, whom)?;
        if let Some(operation) = self.operations.get(number) {
            self.objects.report(memory, EventKind::SendStart, &operation.facts);
        }
        if !self.send_at_once(endpoint, number) {
            self.send_off(endpoint, number);
        }
        Ok(())
    }

    pub(crate) fn get(
        &mut self,
        endpoint: &Endpoint,
        memory: Handle,
        region: Option<(u64, u64)>,
        to: &Target,
    ) -> Result<(), Error> {
        // It has no word to bring.
        let to = &Target { header: 0, ..*to };
        let request = self.request(wire::GET, to)?;
        let at = self.check_region(memory, region)?;
        let whom = self.whom(to.process).ok_or(Error::Process)?;
        let number = self.enter(Kind::Get, memory, at, Request { length: at.1, ..request }, whom)?;
        self.send_off(endpoint, number);
        Ok(())
    }

    /// What an operation has that cannot begin, although its call has returned.
    fn facts_of_refused(&mut self, memory: Handle, region: Option<(u64, u64)>, to: &Target) -> Facts {
        let whole = self.objects.memories.get(memory).map_or(0, |of| of.region.len());
        let (offset, rlength) = region.unwrap_or((0, whole));
        let link = self.objects.next_link();
        let &Target { portal, bits, header, .. } = to;
        let (initiator, uid, jid) = (self.own, self.uid, self.jid);
        Facts { initiator, uid, jid, portal, bits, rlength, mlength: 0, offset, header, link, failure: 1 }
    }

    /// Ends a put that cannot begin, although its call has returned.
    #[cold]
    pub(crate) fn refuse_put(&mut self, memory: Handle, region: Option<(u64, u64)>, to: &Target) {
        let facts = self.facts_of_refused(memory, region, to);
        self.objects.report(memory, EventKind::SendStart, &facts);
        self.objects.report(memory, EventKind::SendEnd, &facts);
    }

    /// Ends a get that cannot begin, although its call has returned.
    #[cold]
    pub(crate) fn refuse_get(&mut self, memory: Handle, region: Option<(u64, u64)>, from: &Target) {
        let initiator = from.process;
        let facts = Facts { initiator, ..self.facts_of_refused(memory, region, &Target { header: 0, ..*from }) };
        self.objects.report(memory, EventKind::ReplyStart, &facts);
        self.objects.report(memory, EventKind::ReplyEnd, &facts);
    }

    pub(crate) fn get_put(
        &mut self,
        endpoint: &Endpoint,
        memory: Handle,
        source: Handle,
        to: &Target,
    ) -> Result<(), Error> {
        let request = self.request(wire::GETPUT, to)?;
        let (at, from) = (self.check_region(memory, None)?, self.check_region(source, None)?);
        if at.1 < from.1 || from.1 > u64::from(self.objects.limits.max_getput_md) {
            return Err(Error::IllegalMemory);
        }
        // As many bytes come as go.
        let at = (at.0, from.1);
        let whom = self.whom(to.process).ok_or(Error::Process)?;
        let number = self.enter(Kind::GetPut, memory, at, request, whom)?;
        self.begin(source, true);
        let source_link = self.objects.next_link();
        if let Some(operation) = self.operations.get_mut(number) {
            (operation.source, operation.source_link) = (source, source_link);
            let facts = Facts { link: source_link, ..operation.facts };
            self.objects.report(source, EventKind::SendStart, &facts);
        }
        self.send_off(endpoint, number);
        Ok(())
    }

    /// Writes the message of an operation whole, with its bytes. False: its memory is gone.
    pub(crate) fn write_message(&mut self, number: u64, to: &mut Vec<u8>) -> bool {
        let Some((operation, bulk)) = self.operations.get_whole(number) else { return false };
        match operation.kind {
            Kind::Put | Kind::Get | Kind::GetPut => operation.request.emit(to),
            Kind::Take => return false,
            Kind::Supply => operation.reply(number, REPLY).emit(to),
        }
        let start = to.len();
        let from = match operation.kind {
            Kind::Get => return true,
            Kind::Supply if operation.request.kind == wire::GETPUT => {
                to.extend(&bulk.swapped.0[..operation.length as usize]);
                return true;
            }
            Kind::GetPut => operation.source,
            _ => operation.memory,
        };
        to.resize(start + operation.length as usize, 0);
        let memory = self.objects.memories.get(from);
        memory.is_some_and(|memory| memory.region.copy_out(operation.offset, &mut to[start..]))
    }

    /// Sends the message of an operation, or what stands for it where it is long.
    pub(crate) fn send_operation(&mut self, endpoint: &Endpoint, connection: Connection, number: u64) -> Sending {
        // It has failed meanwhile.
        let Some(operation) = self.operations.get(number) else { return Sending::Gone };
        let has_bytes = !matches!(operation.kind, Kind::Get);
        let length = if has_bytes { operation.length } else { 0 };
        if length.saturating_add(LONGEST as u64) > Self::short(connection) as u64 {
            return self.send_offer(endpoint, connection, number);
        }
        let is_given = matches!(operation.kind, Kind::Put | Kind::GetPut);
        let mut message = std::mem::take(&mut self.scratch);
        message.clear();
        let is_whole = self.write_message(number, &mut message);
        let notify = if is_given { Notify::Always(GIVEN | number) } else { Notify::OnFailure(SENT | number) };
        let sent = if is_whole { endpoint.send(connection, &message, notify) } else { Ok(()) };
        self.scratch = message;
        match sent {
            Ok(()) if is_whole => {
                self.undelivered += u32::from(is_given);
                self.on_written(number);
            }
            Ok(()) => self.abandon(endpoint, number),
            Err(_) => return Sending::Blocked,
        }
        Sending::Gone
    }

    /// The message has been given to CCI, or to this process, and the memory may change.
    pub(crate) fn on_written(&mut self, number: u64) {
        let Some(operation) = self.operations.get_mut(number) else { return };
        operation.phase = Phase::Sent;
        match operation.kind {
            Kind::Supply => self.finish_supply(number, true),
            Kind::Put => self.end_send(number),
            Kind::GetPut => self.end_source(number),
            Kind::Get | Kind::Take => {}
        }
    }

    /// Registers bytes of an operation's memory, which the partner of a link may read.
    fn register(&mut self, endpoint: &Endpoint, connection: Connection, number: u64) -> Result<(), Sending> {
        let Some((operation, bulk)) = self.operations.get_whole(number) else { return Err(Sending::Gone) };
        let memory = self.objects.memories.get(operation.memory);
        let Some(parts) = memory.and_then(|memory| memory.region.cut(operation.offset, operation.length)) else {
            self.abandon(endpoint, number);
            return Err(Sending::Gone);
        };
        // Its message may have found no room before.
        bulk.registered.clear();
        for part in parts {
            match endpoint.register_for(connection, part, Rights::READ) {
                Ok(registered) => bulk.registered.push(registered),
                Err(why) => {
                    bulk.registered.clear();
                    return Err(match why {
                        RegisterError::NoMemory | RegisterError::Disconnected => Sending::Blocked,
                        _ => {
                            self.abandon(endpoint, number);
                            Sending::Gone
                        }
                    });
                }
            }
        }
        Ok(())
    }

    fn send_offer(&mut self, endpoint: &Endpoint, connection: Connection, number: u64) -> Sending {
        if let Err(sending) = self.register(endpoint, connection, number) {
            return sending;
        }
        let Some((operation, bulk)) = self.operations.get_whole(number) else { return Sending::Gone };
        let mut message = std::mem::take(&mut self.scratch);
        message.clear();
        if operation.kind == Kind::Put {
            Request { kind: wire::OFFER, length: operation.length, ..operation.request }.emit(&mut message);
        } else {
            operation.reply(number, OFFERED).emit(&mut message);
        }
        let parts = bulk.registered.iter().map(|part| (part.len(), part.handle()));
        wire::emit_parts(parts, &mut message);
        let sent = endpoint.send(connection, &message, Notify::OnFailure(SENT | number));
        self.scratch = message;
        if sent.is_ok()
            && let Some(operation) = self.operations.get_mut(number)
        {
            operation.phase = Phase::Offered;
        }
        Sending::of(sent)
    }

    /// CCI has delivered the message of a put or swap, or could not: then a due ack or reply fails.
    #[inline]
    pub(crate) fn on_delivered(&mut self, number: u64, is_done: bool) {
        self.undelivered = self.undelivered.saturating_sub(1);
        if !is_done {
            self.fail(number);
        }
        if self.is_closing && self.undelivered == 0 {
            self.objects.changes.count();
        }
    }

    /// Ends the send of a put. What is left is an ack that is due.
    pub(crate) fn end_send(&mut self, number: u64) {
        let Some((operation, bulk)) = self.operations.get_whole(number) else { return };
        let (memory, facts, wants_ack) = (operation.memory, operation.facts, operation.request.wants_ack);
        operation.phase = Phase::AckDue;
        bulk.registered.clear();
        if !wants_ack {
            self.operations.remove(number);
        }
        self.objects.registers[4] += 1;
        self.objects.registers[5] += facts.rlength;
        self.objects.end(memory, EventKind::SendEnd, &facts);
    }

    /// Ends the send of a swap, once.
    pub(crate) fn end_source(&mut self, number: u64) {
        let Some(operation) = self.operations.get_mut(number) else { return };
        let source = std::mem::replace(&mut operation.source, Handle::INVALID);
        let facts = Facts { link: operation.source_link, ..operation.facts };
        self.objects.end(source, EventKind::SendEnd, &facts);
    }
}
