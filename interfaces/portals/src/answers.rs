//! What comes back for operations that this process has begun, and how they end.

use crate::memory::Source;
use crate::operations::{Kind, Operation, Phase, Whom};
use crate::partner::Out;
use crate::queue::Facts;
use crate::state::{READ, Sending, State};
use crate::target::offered;
use crate::types::EventKind;
use crate::wire::{self, Answer, DONE, OFFERED, REPLY};
use cci::{Connection, Endpoint};

impl State {
    /// An answer; false: it answers nothing.
    pub(crate) fn take_answer(
        &mut self,
        endpoint: &Endpoint,
        whom: Whom,
        answer: &Answer,
        (source, from): (&Source<'_>, usize),
    ) -> bool {
        let Some(operation) = self.operations.get(answer.operation).filter(|of| of.whom == whom) else { return false };
        let (kind, phase, has_rest) = (operation.kind, operation.phase, source.len() != from);
        match (answer.kind, kind, phase) {
            (wire::ACK, Kind::Put, Phase::AckDue) if !has_rest => {
                self.on_ack(answer);
                true
            }
            (wire::FIN, Kind::Put, Phase::Offered) if !has_rest => {
                self.on_fin(answer);
                true
            }
            (wire::FIN, Kind::Supply, Phase::Offered) if !has_rest => {
                self.finish_supply(answer.operation, answer.status == DONE);
                true
            }
            (REPLY, Kind::Get | Kind::GetPut, Phase::Sent) => self.on_reply(answer, (source, from)),
            (OFFERED, Kind::Get, Phase::Sent) => self.on_offered(endpoint, answer, (source, from)),
            _ => false,
        }
    }

    fn on_ack(&mut self, answer: &Answer) {
        let Some(operation) = self.operations.remove(answer.operation) else { return };
        if answer.status == DONE {
            self.acknowledge(&operation, answer.length, answer.offset, 0);
        }
    }

    fn on_fin(&mut self, answer: &Answer) {
        if answer.status == wire::FAILED {
            return self.fail(answer.operation);
        }
        let Some(operation) = self.operations.get(answer.operation) else { return };
        let wants_ack = operation.request.wants_ack;
        self.end_send(answer.operation);
        if let Some(operation) = self.operations.remove(answer.operation).filter(|_| wants_ack && answer.status == DONE)
        {
            self.acknowledge(&operation, answer.length, answer.offset, 0);
        }
    }

    /// What events of an ack or a reply have: their initiator is the process that answers, as the
    /// source of every message is that of its event.
    fn answered(&self, operation: &Operation) -> Facts {
        let facts = operation.facts;
        if let Some((initiator, uid, jid)) = self.identity(operation.whom) {
            return Facts { initiator, uid, jid, ..facts };
        }
        // It has failed before the process introduced itself.
        let asked = match operation.whom {
            Whom::Own => None,
            Whom::Peer(peer) => self.partners.get(peer).map(|partner| partner.id),
        };
        Facts { initiator: asked.unwrap_or(facts.initiator), ..facts }
    }

    /// Leaves the event of an ack, if the memory descriptor is active. It is dropped where that is
    /// gone.
    pub(crate) fn acknowledge(&mut self, operation: &Operation, mlength: u64, offset: u64, failure: u32) {
        let facts = Facts { portal: crate::types::ANY, mlength, offset, failure, ..self.answered(operation) };
        let Some(memory) = self.objects.memories.get_mut(operation.memory) else {
            return self.objects.drop_request(0);
        };
        if !memory.is_active() {
            return;
        }
        memory.count();
        self.objects.report(operation.memory, EventKind::Ack, &facts);
        self.objects.settle(operation.memory, &facts);
    }

    fn on_reply(&mut self, answer: &Answer, (source, from): (&Source<'_>, usize)) -> bool {
        let Some(operation) = self.operations.get(answer.operation) else { return false };
        let len = source.len() - from;
        if answer.length != len as u64 || answer.length > operation.length {
            return false;
        }
        let is_taken = self.start_reply(answer);
        let Some(operation) = self.operations.remove(answer.operation) else { return true };
        if !is_taken {
            if answer.status == DONE {
                self.objects.drop_request(0);
            }
            self.give_up(&operation);
            return true;
        }
        let memory = self.objects.memories.get(operation.memory);
        let is_in = answer.status == DONE
            && memory.is_some_and(|memory| memory.region.copy_from(operation.offset, source, from, len));
        self.end_reply(&operation, is_in);
        true
    }

    /// Takes what a reply needs of the threshold, and leaves its START; false: the memory
    /// descriptor is inactive.
    fn start_reply(&mut self, answer: &Answer) -> bool {
        let Some(operation) = self.operations.get(answer.operation) else { return false };
        let facts = Facts { rlength: answer.length, mlength: answer.length, ..self.answered(operation) };
        let memory = self.objects.memories.get_mut(operation.memory);
        let Some(memory) = memory.filter(|memory| memory.is_active()) else { return false };
        memory.count();
        self.objects.report(operation.memory, EventKind::ReplyStart, &facts);
        if let Some(operation) = self.operations.get_mut(answer.operation) {
            operation.facts = facts;
        }
        true
    }

    pub(crate) fn end_reply(&mut self, operation: &Operation, is_done: bool) {
        let mlength = if is_done { operation.facts.mlength } else { 0 };
        let facts = Facts { mlength, failure: u32::from(!is_done), ..operation.facts };
        self.objects.end(operation.memory, EventKind::ReplyEnd, &facts);
    }

    /// Ends a get that finds its memory descriptor inactive: no event.
    fn give_up(&mut self, operation: &Operation) {
        if let Some(memory) = self.objects.memories.get_mut(operation.memory) {
            memory.pending -= 1;
        }
        self.objects.settle(operation.memory, &operation.facts);
    }

    fn on_offered(&mut self, endpoint: &Endpoint, answer: &Answer, (source, from): (&Source<'_>, usize)) -> bool {
        let Some(remote) = offered(source, from, answer.length) else { return false };
        let on_link = self.operations.get(answer.operation).and_then(|of| self.link(of.whom));
        let Some((operation, reads)) = self.operations.get_whole(answer.operation) else { return false };
        if answer.length > operation.length || answer.length == 0 {
            return false;
        }
        let whom = operation.whom;
        operation.on_link = on_link.unwrap_or_default();
        operation.phase = Phase::Reading;
        operation.length = answer.length;
        operation.request.offset = answer.own;
        reads.remote = remote;
        if !self.start_reply(answer) {
            self.objects.drop_request(0);
            if let Some(operation) = self.operations.remove(answer.operation) {
                self.give_up(&operation);
            }
            self.send_fin(endpoint, whom, answer.own, (wire::FAILED, 0, 0));
            return true;
        }
        self.post(endpoint, whom, Out::Reads(answer.operation));
        true
    }

    pub(crate) fn send_fin(
        &mut self,
        endpoint: &Endpoint,
        whom: Whom,
        operation: u64,
        (status, length, offset): (u8, u64, u64),
    ) {
        let fin = Answer { kind: wire::FIN, status, operation, length, offset, own: 0 };
        self.post(endpoint, whom, Out::Answer(fin));
    }

    /// Ends an operation whose memory cannot take part, and tells a partner that waits.
    pub(crate) fn abandon(&mut self, endpoint: &Endpoint, number: u64) {
        let Some((operation, reads)) = self.operations.get_whole(number) else { return };
        let (whom, theirs) = (operation.whom, operation.request.operation);
        if operation.phase == Phase::Reading {
            reads.has_failed = true;
            return self.finish_reads(endpoint, number);
        }
        let is_served = operation.kind == Kind::Supply;
        self.fail(number);
        if is_served {
            let answer = Answer { kind: REPLY, status: wire::FAILED, operation: theirs, length: 0, offset: 0, own: 0 };
            self.post(endpoint, whom, Out::Answer(answer));
        }
    }

    /// Ends an operation that has failed, with one event.
    pub(crate) fn fail(&mut self, number: u64) {
        // Reads end by themselves when their link does; the memory is theirs until then.
        if let Some((_, reads)) = self.operations.get_whole(number)
            && reads.open > 0
        {
            reads.has_failed = true;
            return;
        }
        let Some(operation) = self.operations.remove(number) else { return };
        self.end_failed(operation);
    }

    pub(crate) fn end_failed(&mut self, operation: Operation) {
        let facts = Facts { failure: 1, mlength: 0, ..operation.facts };
        // Where nothing was replied, that is the length.
        let rlength = if operation.phase == Phase::Reading { operation.facts.rlength } else { 0 };
        let answered = Facts { failure: 1, rlength, mlength: 0, ..self.answered(&operation) };
        let objects = &mut self.objects;
        match (operation.kind, operation.phase) {
            (Kind::Put, Phase::AckDue) => self.acknowledge(&operation, 0, 0, 1),
            (Kind::Put, _) => objects.end(operation.memory, EventKind::SendEnd, &facts),
            (Kind::Get | Kind::GetPut, phase) => {
                // None, but of a swap whose send has not ended.
                objects.end(operation.source, EventKind::SendEnd, &Facts { link: operation.source_link, ..facts });
                // START and END are a pair.
                if phase != Phase::Reading {
                    let memory = objects.memories.get_mut(operation.memory);
                    let Some(memory) = memory.filter(|memory| memory.is_active()) else {
                        return self.give_up(&operation);
                    };
                    memory.count();
                    objects.report(operation.memory, EventKind::ReplyStart, &answered);
                }
                objects.end(operation.memory, EventKind::ReplyEnd, &answered);
            }
            (Kind::Take | Kind::Supply, _) => self.end_served(&operation, false),
        }
    }

    /// Begins reads of what a peer has offered, as far as there is room.
    pub(crate) fn begin_reads(&mut self, endpoint: &Endpoint, connection: Connection, number: u64) -> Sending {
        if self.operations.get_whole(number).is_some_and(|(_, reads)| reads.own.is_none())
            && let Err(sending) = self.register_own(endpoint, number)
        {
            return sending;
        }
        let Some((operation, reads)) = self.operations.get_whole(number) else { return Sending::Gone };
        let sending =
            crate::transfer::begin(endpoint, connection, (operation.offset, operation.length, reads), READ | number);
        self.has_begun_reads |= reads.open > 0;
        if matches!(sending, Sending::Gone) && reads.open == 0 {
            self.finish_reads(endpoint, number);
        }
        sending
    }
}
