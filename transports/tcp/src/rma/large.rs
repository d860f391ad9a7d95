//! Messages that are longer than the connection's maximum: the peer gives memory, and they are
//! written there (`docs/design/extensions.md`).

use crate::frame::{self, Fields, Header, Kind, Violation};
use crate::lane::operation::{Local, Operation, Stage};
use crate::lane::shared::{Shared, name_of};
use crate::lane::{Lane, Phase, send};
use cci_mem::memory::Memory;
use cci_mem::slot::Access as Writable;
use cci_proto::{Access, Failure, Rights, RmaHandle, SendError};
use cci_transport::{Asked, Connection, Core, Landing, Placed, Posted, Slot};

impl Lane {
    /// Sends a message that is longer than the maximum of an open connection.
    pub(crate) fn send_large(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        cell: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        if self.phase != Phase::Open {
            return Err(SendError::Disconnected);
        }
        let slot = core.take_rma().ok_or(SendError::NoBuffers)?;
        let len = memory.len();
        cell.on_begun();
        cell.counters.on_sent();
        core.counters().on_sent(usize::try_from(len).unwrap_or(usize::MAX));
        s.open_operations += 1;
        let ending = send::ending(slot, cell, posted);
        if let Some(deadline) = ending.deadline {
            s.check_by(deadline);
        }
        let place = self.work(s).operations.add(Operation {
            ending,
            access: Access::Large,
            local: Local::Own(memory),
            local_offset: 0,
            handle: [0; 2],
            remote_offset: 0,
            len,
            message: None,
            fence: false,
            stage: Stage::Waiting,
            done: 0,
            number: None,
            in_parts: false,
            outcome: None,
            order: 0,
        });
        self.queue_operation(s, core, place);
        Ok((posted == Posted::Waited).then_some(slot))
    }

    /// The peer has given memory for a large message, or refuses.
    pub(crate) fn on_landing(&mut self, s: &mut Shared, core: &mut Core, fields: &mut Fields<'_>) {
        let number = fields.u32();
        let (outcome, handle) = (frame::parse_outcome(fields), fields.words());
        let place = self.work.as_ref().and_then(|work| work.operations.place_of(number));
        let operation = place.and_then(|place| self.work.as_mut()?.operations.get_mut(place));
        let (Some(place), Some(operation)) = (place, operation.filter(|other| other.stage == Stage::AwaitMemory))
        else {
            return self.on_late_landing(s, number, outcome);
        };
        if let Err(failure) = outcome {
            if let Some(work) = &mut self.work {
                work.operations.answered(number);
            }
            return self.end_operation(s, core, place, Err(failure));
        }
        (operation.handle, operation.stage) = (handle, Stage::Sending);
        if let Some(work) = &mut self.work {
            work.operations.ready.push_back(place);
        }
        self.activate(s);
    }

    /// Memory for a message that was given up meanwhile: it is given back.
    fn on_late_landing(&mut self, s: &mut Shared, number: u32, outcome: Result<(), Failure>) {
        s.strays += 1;
        let Some(work) = &mut self.work else { return };
        if outcome.is_err() {
            work.operations.answered(number);
        } else if work.operations.place_of(number).is_none() {
            // Its connection has ended at this side, and with it the memory at the other.
            work.operations.answered(number);
        }
        self.activate_ready(s);
    }

    /// The peer wants memory for a large message.
    pub(crate) fn on_large(&mut self, s: &mut Shared, core: &mut Core, header: &Header, fields: &mut Fields<'_>) {
        let (operation, len) = (fields.u64(), fields.u64());
        let operation = u32::try_from(operation).unwrap_or(0);
        let Some(connection) = self.table.open_cell(header.connection).filter(|cell| cell.attribute().is_reliable())
        else {
            s.strays += 1;
            return self.send_landing(s, operation, Err(Failure::RemoteHandle));
        };
        match core.landings().ask(Asked { connection, operation, len }) {
            Ok(()) => s.landings_wait = true,
            Err(failure) => self.send_landing(s, operation, Err(failure)),
        }
    }

    fn send_landing(&mut self, s: &mut Shared, operation: u32, landing: Result<[u64; 2], Failure>) {
        let [first, secret] = landing.unwrap_or_default().map(u64::to_le_bytes);
        let outcome = frame::emit_outcome(landing.map(drop));
        self.answer(s, Kind::Landing, 0, &[&operation.to_le_bytes(), &outcome, &first, &secret]);
    }

    /// Gives the peer memory for a large message; without memory, refuses.
    pub(crate) fn place(&mut self, s: &mut Shared, core: &mut Core, asked: &Asked, memory: Option<Memory>) -> Placed {
        let Some(memory) = memory else {
            self.send_landing(s, asked.operation, Err(Failure::TooLong));
            return Placed::Refused;
        };
        if s.inbox.spare(core) == 0 && !(s.inbox.starve(core) && s.inbox.spare(core) > 0) {
            s.is_short = true;
            return Placed::Later;
        }
        let Some(slot) = s.inbox.take_bare(core) else { return Placed::Later };
        let only = Some(name_of(asked.connection));
        let Ok((_, handle)) = s.registrations.register(memory, Rights::WRITE, only, ()) else {
            core.release(slot);
            return Placed::Later;
        };
        s.count_exposed(Rights::WRITE, true);
        self.send_landing(s, asked.operation, Ok(handle.name()));
        Placed::Open(Some(slot), handle)
    }

    /// The peer has written a large message, or gives it up.
    pub(crate) fn on_landed(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        let number = fields.u32();
        if self.is_reading(number) {
            return Err(Violation);
        }
        let outcome = frame::parse_outcome(fields);
        let is_written = outcome.is_ok() && self.is_written(number);
        let cell = self.table.open_cell(header.connection);
        let landing = cell.and_then(|cell| core.landings().take(cell, number));
        if let Some(landing) = landing {
            end_registration(s, &landing.handle);
            match landing.slot {
                Some(slot) if is_written => {
                    s.inbox.has_delivered = true;
                    core.deliver_landing(landing, slot, Writable::Private);
                }
                slot => {
                    slot.into_iter().for_each(|slot| core.release(slot));
                    core.landings().give_up(landing);
                }
            }
            s.landings_wait |= core.landings().is_waiting();
        }
        if self.work.as_mut().is_some_and(|work| work.serving.get_mut(number).is_some()) {
            self.end_served(s, number);
        } else {
            self.send_result(s, number, Err(Failure::RemoteHandle), 0);
        }
        Ok(())
    }

    /// A connection has ended, and with it the large messages that were on their way.
    pub(crate) fn end_landings(&mut self, s: &mut Shared, core: &mut Core, cell: &'static Connection) {
        while let Some(landing) = core.landings().forget(cell) {
            give_up(s, core, landing);
        }
    }
}

fn end_registration(s: &mut Shared, handle: &RmaHandle) {
    if s.registrations.deregister(handle).is_ok() {
        s.count_exposed(Rights::WRITE, false);
    }
}

fn give_up(s: &mut Shared, core: &mut Core, landing: Landing) {
    end_registration(s, &landing.handle);
    landing.slot.into_iter().for_each(|slot| core.release(slot));
    core.landings().give_up(landing);
    s.landings_wait |= core.landings().is_waiting();
}
