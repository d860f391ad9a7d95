//! Work of the send queue: what may begin, and what becomes of it.

use crate::attributes::Reliability;
use crate::errors::{FaultCode, Status};
use crate::state::{Area, CONTROL, Grant, LAST, State, Vi, ViState, are_usable, check, context};
use crate::task::{Op, Token};
use crate::wire::{self, HEADER, Header};
use cci::{Endpoint, Failure, Notify, Rights, Rma, RmaError, RmaHandle, SendError};

/// How far the next entry has come.
enum Step {
    /// On with the next one.
    Next,
    /// It waits for another one, or for the peer.
    Wait,
    /// It waits for room in CCI.
    Full,
    /// The connection is gone.
    Gone,
    /// It failed with this status.
    Failed(Status),
}

impl From<SendError> for Step {
    fn from(why: SendError) -> Self {
        if why == SendError::NoBuffers { Self::Full } else { Self::Gone }
    }
}

impl<T: Token> State<T> {
    /// Starts and continues what can be.
    pub(crate) fn pump(&mut self, endpoint: &Endpoint, number: u32) {
        loop {
            let step = match self.send_owed(endpoint, number) {
                Step::Next => self.advance(endpoint, number),
                other => other,
            };
            match step {
                Step::Next => {}
                Step::Wait => break,
                Step::Full => {
                    if !self.blocked.contains(&number) {
                        self.blocked.push(number);
                    }
                    break;
                }
                Step::Gone => {
                    self.report(FaultCode::ConnectionLost, Some(number), None);
                    return self.close(endpoint, number, ViState::Error, Status::TRANSPORT);
                }
                Step::Failed(status) => self.fail_next(endpoint, number, status),
            }
        }
        self.publish(endpoint, number);
    }

    /// Ends the next entry in error, which breaks a reliable VI.
    fn fail_next(&mut self, endpoint: &Endpoint, number: u32, status: Status) {
        let Some(vi) = self.vis.get_mut(number) else { return };
        let Some(entry) = vi.send.entries.get_mut(vi.send.next) else { return };
        let op = entry.task.op;
        if op != Op::Send && entry.open > 0 {
            // Its memory is in use until these have ended.
            entry.failure = entry.failure | status;
            entry.is_sent = true;
            return;
        }
        let was_counted = entry.has_begun && !entry.is_finished;
        // The peer waits for the other parts.
        let is_torn = op == Op::Send && entry.handed > 0;
        entry.fail(status);
        if was_counted {
            count_end(vi, op);
        }
        if is_torn || vi.attributes.reliability != Reliability::Unreliable {
            self.break_vi(endpoint, number, told(op, status));
        }
    }

    /// Sends acknowledgements and answers, before anything of the program.
    fn send_owed(&mut self, endpoint: &Endpoint, number: u32) -> Step {
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.state == ViState::Connected) else { return Step::Wait };
        let Some(connection) = vi.connection else { return Step::Wait };
        if vi.acks_owed > 0 {
            let header = Header { kind: wire::RECEIVED, flags: 0, length: 0, value: vi.acks_owed.into() };
            if let Err(why) = endpoint.send(connection, &header.emit(), Notify::OnFailure(context(number, CONTROL))) {
                return why.into();
            }
            vi.acks_owed = 0;
        }
        while let Some(&handle) = vi.answers_owed.front() {
            let mut message = [0; HEADER + 48];
            let area = self.areas.get(handle).filter(|area| area.tag == vi.attributes.tag);
            let granted = area.and_then(|area| Some((area, grant(endpoint, vi, handle, area)?)));
            let (flags, length) = match granted {
                None => (0, HEADER),
                Some((area, (flags, rma))) => {
                    message[HEADER..HEADER + 8].copy_from_slice(&area.base.to_le_bytes());
                    message[HEADER + 8..HEADER + 16].copy_from_slice(&area.memory.len().to_le_bytes());
                    message[HEADER + 16..].copy_from_slice(&rma.to_bytes());
                    (flags, message.len())
                }
            };
            let header = Header { kind: wire::RESOLVED, flags, length: 0, value: handle.into() };
            message[..HEADER].copy_from_slice(&header.emit());
            if let Err(why) = endpoint.send(connection, &message[..length], Notify::OnFailure(context(number, CONTROL)))
            {
                return why.into();
            }
            vi.answers_owed.pop_front();
        }
        Step::Next
    }

    fn advance(&mut self, endpoint: &Endpoint, number: u32) -> Step {
        let Some(vi) = self.vis.get_mut(number) else { return Step::Wait };
        let Some(entry) = vi.send.entries.get_mut(vi.send.next) else { return Step::Wait };
        if entry.is_sent {
            vi.send.next += 1;
            return Step::Next;
        }
        if !entry.has_begun {
            let is_plain_write = matches!(entry.task.op, Op::Write(_)) && entry.task.immediate.is_none();
            if (entry.task.fence && vi.reads_open > 0) || (vi.writes_open > 0 && !is_plain_write) {
                return Step::Wait;
            }
            if entry.task.fault.is_error() {
                return Step::Failed(entry.task.fault);
            }
            if entry.task.total() > vi.attributes.max_transfer {
                return Step::Failed(Status::LENGTH);
            }
            if !are_usable(&self.areas, vi.attributes.tag, &entry.task) {
                return Step::Failed(Status::PROTECTION);
            }
            entry.has_begun = true;
            match entry.task.op {
                Op::Send => {}
                Op::Write(_) => vi.writes_open += 1,
                Op::Read(_) => vi.reads_open += 1,
            }
        }
        match entry.task.op {
            Op::Send => self.hand_send(endpoint, number),
            Op::Write(remote) => self.hand_rdma(endpoint, number, remote, true),
            Op::Read(remote) => self.hand_rdma(endpoint, number, remote, false),
        }
    }

    /// Hands the parts of a send to CCI, each gathered from memory as it is then.
    fn hand_send(&mut self, endpoint: &Endpoint, number: u32) -> Step {
        let Self { vis, areas, staging, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return Step::Wait };
        let Some(connection) = vi.connection else { return Step::Gone };
        let Some(longest) = connection.max_send_size() else { return Step::Gone };
        let seq = vi.send.first.wrapping_add(vi.send.next as u32);
        let Some(entry) = vi.send.entries.get_mut(vi.send.next) else { return Step::Wait };
        let total = entry.task.total() as u32;
        loop {
            let is_first = entry.handed == 0;
            let part = (total - entry.handed).min(longest - HEADER as u32);
            let immediate = entry.task.immediate.filter(|_| is_first);
            let header = Header {
                kind: if is_first { wire::SEND } else { wire::PART },
                flags: if immediate.is_some() { wire::IMMEDIATE } else { 0 },
                length: total,
                value: immediate.unwrap_or(0),
            };
            staging.resize(HEADER + part as usize, 0);
            staging[..HEADER].copy_from_slice(&header.emit());
            let (mut skip, mut filled) = (entry.handed, HEADER);
            for segment in entry.task.segments() {
                if skip >= segment.length {
                    skip -= segment.length;
                    continue;
                }
                let count = ((segment.length - skip) as usize).min(staging.len() - filled);
                if count == 0 {
                    break;
                }
                let copied = check(areas, vi.attributes.tag, segment).is_some_and(|(area, offset)| {
                    area.memory.copy_out(offset + u64::from(skip), &mut staging[filled..filled + count])
                });
                if !copied {
                    return Step::Failed(Status::PROTECTION);
                }
                (skip, filled) = (0, filled + count);
            }
            // The parts come in order, so that the last one reports for all. An unreliable send has
            // ended already, and one that is acknowledged ends by that.
            let is_reported = vi.attributes.reliability == Reliability::Delivery && entry.handed + part == total;
            let context = context(number, seq);
            let report = if is_reported { Notify::Always(context) } else { Notify::OnFailure(context) };
            if let Err(why) = endpoint.send(connection, staging, report) {
                return why.into();
            }
            entry.open += u32::from(is_reported);
            entry.handed += part;
            if entry.handed == total {
                break;
            }
        }
        entry.is_sent = true;
        match vi.attributes.reliability {
            Reliability::Unreliable => entry.finish(Status(0), total, None),
            Reliability::Delivery => {}
            Reliability::Reception => {
                entry.awaits_reply = true;
                vi.unacknowledged.push_back(seq);
            }
        }
        Step::Next
    }

    /// Hands the segments of an RDMA operation to CCI, once the peer's handle is known.
    fn hand_rdma(&mut self, endpoint: &Endpoint, number: u32, remote: crate::task::Remote, is_write: bool) -> Step {
        let Self { vis, areas, .. } = self;
        let Some(vi) = vis.get_mut(number) else { return Step::Wait };
        let Some(connection) = vi.connection else { return Step::Gone };
        let seq = vi.send.first.wrapping_add(vi.send.next as u32);
        let Some(entry) = vi.send.entries.get_mut(vi.send.next) else { return Step::Wait };
        let total = entry.task.total();
        let note = entry.task.immediate.filter(|_| is_write).map(|immediate| {
            let (kind, flags) = (wire::NOTE, wire::IMMEDIATE);
            Header { kind, flags, length: total as u32, value: immediate }.emit()
        });
        if total == 0 {
            if let Some(note) = note {
                if let Err(why) = endpoint.send(connection, &note, context(number, seq)) {
                    return why.into();
                }
                entry.open += 1;
            }
        } else {
            let Some(at) = vi.peer_memory.iter().position(|memory| memory.handle == remote.handle) else {
                if vi.asked.is_none() {
                    let header = Header { kind: wire::RESOLVE, flags: 0, length: 0, value: remote.handle.into() };
                    if let Err(why) =
                        endpoint.send(connection, &header.emit(), Notify::OnFailure(context(number, CONTROL)))
                    {
                        return why.into();
                    }
                    vi.asked = Some(remote.handle);
                }
                return Step::Wait;
            };
            let memory = &vi.peer_memory[at];
            let right = if is_write { wire::MAY_WRITE } else { wire::MAY_READ };
            let begin = remote.address.checked_sub(memory.base);
            let is_inside = begin.and_then(|begin| begin.checked_add(total)).is_some_and(|end| end <= memory.length);
            let (Some(rma), Some(begin), true) = (memory.rma, begin, is_inside && memory.flags & right != 0) else {
                // The peer may allow it later: it is asked again.
                vi.peer_memory.swap_remove(at);
                return Step::Failed(Status::RDMA_PROTECTION);
            };
            let segments = entry.task.segments();
            let last = segments.iter().rposition(|segment| segment.length > 0).unwrap_or(0);
            let mut done: u64 = segments[..entry.handed as usize].iter().map(|segment| u64::from(segment.length)).sum();
            for (index, segment) in segments.iter().enumerate().skip(entry.handed as usize) {
                if segment.length > 0 {
                    let Some((area, offset)) = check(areas, vi.attributes.tag, segment) else {
                        return Step::Failed(Status::PROTECTION);
                    };
                    let local = area.registration.handle();
                    let mut transfer = Rma::new(local, &rma, segment.length.into());
                    transfer = transfer.local_offset(offset).remote_offset(begin + done);
                    if let Some(note) = note.as_ref().filter(|_| index == last) {
                        transfer = transfer.message(&note[..]);
                        if index > 0 {
                            transfer = transfer.fence();
                        }
                    }
                    let asked = match is_write {
                        true => endpoint.write(connection, &transfer, context(number, seq)),
                        false => endpoint.read(connection, &transfer, context(number, seq)),
                    };
                    match asked {
                        Ok(()) => entry.open += 1,
                        Err(RmaError::NoBuffers) => return Step::Full,
                        Err(RmaError::LocalHandle) => return Step::Failed(Status::PROTECTION),
                        Err(_) => return Step::Gone,
                    }
                }
                entry.handed += 1;
                done += u64::from(segment.length);
            }
        }
        entry.is_sent = true;
        if note.is_some() && vi.attributes.reliability == Reliability::Reception {
            entry.awaits_reply = true;
            vi.unacknowledged.push_back(seq);
        }
        if entry.open == 0 && !entry.awaits_reply {
            entry.finish(entry.task.op_bits(), 0, None);
            let op = entry.task.op;
            count_end(vi, op);
        }
        Step::Next
    }

    /// An operation of CCI has ended.
    pub(crate) fn ended(&mut self, endpoint: &Endpoint, context: u64, outcome: Result<(), Failure>) {
        let (number, seq) = ((context >> 32) as u32, context as u32);
        let Some(vi) = self.vis.get_mut(number) else { return };
        if seq == LAST && vi.state == ViState::Error {
            return self.close(endpoint, number, ViState::Error, Status::TRANSPORT);
        }
        if let Err(why) = outcome
            && why.breaks_connection()
        {
            return self.lost(endpoint, number);
        }
        let Some((at, entry)) = vi.send.by_number(seq).filter(|(_, entry)| !entry.is_finished) else {
            return self.pump(endpoint, number);
        };
        entry.open = entry.open.saturating_sub(1);
        match outcome {
            Ok(()) => {}
            Err(Failure::RemoteHandle) => entry.is_stale = true,
            Err(_) => entry.failure = entry.failure | Status::TRANSPORT,
        }
        if entry.open == 0 && entry.is_sent {
            self.settle(endpoint, number, at);
        }
        self.pump(endpoint, number);
    }

    /// All operations of an entry have ended.
    fn settle(&mut self, endpoint: &Endpoint, number: u32, at: usize) {
        let Some(vi) = self.vis.get_mut(number) else { return };
        let Some(entry) = vi.send.entries.get_mut(at) else { return };
        let failed = if entry.is_stale && entry.was_retried {
            Some(Status::RDMA_PROTECTION)
        } else {
            Some(entry.failure).filter(|status| status.is_error())
        };
        let op = entry.task.op;
        if let Some(status) = failed {
            entry.fail(status);
            count_end(vi, op);
            if vi.attributes.reliability != Reliability::Unreliable {
                self.break_vi(endpoint, number, told(op, status));
            }
        } else if entry.is_stale {
            (entry.is_stale, entry.was_retried, entry.is_sent, entry.handed) = (false, true, false, 0);
            // Its note was not sent either: it is acknowledged once, after the next attempt.
            let seq = vi.send.first.wrapping_add(at as u32);
            vi.unacknowledged.retain(|other| *other != seq);
            entry.awaits_reply = false;
            vi.send.next = vi.send.next.min(at);
            if let Op::Write(remote) | Op::Read(remote) = op {
                vi.peer_memory.retain(|memory| memory.handle != remote.handle);
            }
        } else if !entry.awaits_reply {
            let length = entry.task.total() as u32;
            entry.finish(entry.task.op_bits(), length, None);
            count_end(vi, op);
        }
    }

    /// The peer has received the oldest sends.
    pub(crate) fn acknowledged(&mut self, endpoint: &Endpoint, number: u32, count: u64) {
        for _ in 0..count {
            let Some(vi) = self.vis.get_mut(number) else { return };
            let Some(seq) = vi.unacknowledged.pop_front() else { return self.violated(endpoint, number) };
            let Some((at, entry)) = vi.send.by_number(seq) else { continue };
            entry.awaits_reply = false;
            if entry.open == 0 && entry.is_sent && !entry.is_finished {
                self.settle(endpoint, number, at);
            }
        }
        self.pump(endpoint, number);
    }

    /// The peer is gone.
    pub(crate) fn lost(&mut self, endpoint: &Endpoint, number: u32) {
        let Some(vi) = self.vis.get(number) else { return };
        match vi.state {
            ViState::Connected => {
                self.report(FaultCode::ConnectionLost, Some(number), None);
                self.close(endpoint, number, ViState::Error, Status::TRANSPORT);
            }
            // What it still has open must not touch memory any more.
            ViState::Error => self.close(endpoint, number, ViState::Error, Status::TRANSPORT),
            // A pending one has no connection that could be lost.
            ViState::Idle | ViState::ConnectPending => {}
        }
    }

    /// The peer has broken the rules.
    pub(crate) fn violated(&mut self, endpoint: &Endpoint, number: u32) {
        self.lost(endpoint, number);
    }
}

/// What the peer of a VI may do with memory of the VI's tag, and a handle for its connection alone;
/// none if it may do nothing.
fn grant<T>(endpoint: &Endpoint, vi: &mut Vi<T>, handle: u32, area: &Area) -> Option<(u8, RmaHandle)> {
    let may_write = area.access.write && vi.attributes.access.write;
    let may_read = area.access.read && vi.attributes.access.read;
    let (flags, rights) = match (may_write, may_read) {
        (false, false) => return None,
        (true, false) => (wire::MAY_WRITE, Rights::WRITE),
        (false, true) => (wire::MAY_READ, Rights::READ),
        (true, true) => (wire::MAY_WRITE | wire::MAY_READ, Rights::READ_WRITE),
    };
    if let Some(grant) = vi.grants.iter().find(|grant| grant.handle == handle) {
        return Some((flags, *grant.registration.handle()));
    }
    // Without room for another registration the peer gets none.
    let registration = endpoint.register_for(vi.connection?, area.memory.clone(), rights).ok()?;
    let rma = *registration.handle();
    vi.grants.push(Grant { handle, registration });
    Some((flags, rma))
}

/// What the peer is told of a descriptor that broke the VI: its own error handler is for RDMA that
/// it has refused.
fn told(op: Op, status: Status) -> Status {
    let refused = Status(status.0 & Status::RDMA_PROTECTION.0);
    match op {
        Op::Read(_) => refused | Status::OP_READ,
        _ => refused,
    }
}

fn count_end<T>(vi: &mut Vi<T>, op: Op) {
    match op {
        Op::Send => {}
        Op::Write(_) => vi.writes_open = vi.writes_open.saturating_sub(1),
        Op::Read(_) => vi.reads_open = vi.reads_open.saturating_sub(1),
    }
}
