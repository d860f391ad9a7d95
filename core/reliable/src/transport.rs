//! The implementation of the trait `Transport`.

use super::Reliable;
use super::cookies::is_engines;
use super::deferred::index_of;
use super::host::HostCtx;
use crate::Link;
use cci_mem::memory::Memory;
use cci_proto::engine::{Index, Moved, Protection};
use cci_proto::{ConnectError, PauseError, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError, Time};
use cci_transport::{
    BackgroundWork, Connect, Connection, ConnectionReport, ConnectionState, Core, Message, Peer, Posted, Readiness,
    Rma, Slot, Transport, Unsent, send_rest,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

impl<L: Link> Transport for Reliable<L> {
    fn uri(&self) -> &str {
        self.link.uri()
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.link.handle()
    }

    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        self.background.on_call();
        let connected = if connect.attribute.is_multicast() {
            self.connect_group(core, connect)
        } else {
            self.connect_peer(core, connect)
        };
        self.after(core);
        connected
    }

    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
        self.background.on_call();
        let accepted = self.accept_request(core, request, context);
        self.after(core);
        accepted
    }

    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        let index = self.host.inbox.pending_requests.get(request)?.index;
        let mut peer = Peer::default();
        // A text refuses nothing.
        let _ = self.link.write_name(&self.engine.address(index)?, &mut peer.address);
        Some(peer)
    }

    fn reject(&mut self, core: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        self.background.on_call();
        self.reject_request(core, request);
        Ok(())
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        self.background.on_call();
        self.expect_client(core, token, context, limit)
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        self.forget_client(core, token)
    }

    fn redirect(&mut self, core: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        self.background.on_call();
        self.redirect_request(core, request, uri, token)
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        self.background.on_call();
        self.disconnect_peer(core, connection);
        self.after(core);
    }

    fn pause(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.background.on_call();
        self.host.inbox.pause(connection);
        core.landings().pause(connection);
        self.after(core);
        Ok(())
    }

    fn resume(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.background.on_call();
        core.landings().resume(connection);
        if self.host.inbox.resume(connection) {
            let now = self.link.now();
            self.engine.resume_paused(index_of(connection), &mut HostCtx { state: &mut self.host, core });
            if core.landings().is_waiting() {
                self.land(core);
            }
            self.transmit(core, now, false);
            self.run_deferred(core, now);
        }
        self.after(core);
        Ok(())
    }

    #[inline]
    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.background.on_call();
        let sent = self.send_message(core, connection, message, posted);
        self.after(core);
        sent
    }

    fn answers_reserved(&mut self, core: &Core) {
        self.engine.reserve_answers(u32::try_from(core.answer_count()).unwrap_or(u32::MAX));
    }

    fn answer(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.engine.set_answering(true);
        let sent = core.answering(|core| self.send(core, connection, message, posted));
        self.engine.set_answering(false);
        sent
    }

    fn send_large(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.background.on_call();
        let sent = self.start_large(core, connection, memory, posted);
        self.after(core);
        sent
    }

    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        self.background.on_call();
        let started = self.start_rma(core, connection, rma, posted);
        self.after(core);
        started
    }

    fn register(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        self.background.on_call();
        let handle = self.host.registry.register(memory, rights, only)?;
        if rights != Rights::NONE {
            self.background.require();
        }
        self.after(core);
        Ok(handle)
    }

    fn adopt(
        &mut self,
        core: &mut Core,
        handle: &RmaHandle,
        memory: Memory,
        rights: Rights,
    ) -> Result<(), RegisterError> {
        self.background.on_call();
        self.host.registry.adopt(handle, memory, rights)?;
        if rights != Rights::NONE {
            self.background.require();
        }
        self.after(core);
        Ok(())
    }

    fn deregister(&mut self, _: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        let memory = self.host.registry.deregister(handle)?;
        self.outbox.forget(&memory);
        if self.outbox.is_empty() {
            self.blocked = false;
        }
        Ok(())
    }

    #[inline]
    fn progress(&mut self, core: &mut Core) {
        self.background.on_call();
        let (count, now) = self.step(core, true);
        if !self.link.is_virtual() {
            self.background.on_polled(now);
        }
        if count > 0 || core.has_event() {
            self.on_found(core, now);
        } else {
            self.on_empty(core, now);
        }
        self.unwatch(core);
        self.publish_gauges(core, now, true);
        self.after(core);
    }

    fn step_in_background(&mut self, core: &mut Core) -> BackgroundWork {
        self.background_step(core)
    }

    fn arm(&mut self, core: &mut Core) -> bool {
        self.background.on_call();
        Readiness::arm_now(self, core)
    }

    fn disarm(&mut self, core: &mut Core) {
        Readiness::disarm_now(self, core);
    }

    fn arm_in_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        self.background.on_call();
        self.arm_for_call(core)
    }

    fn settle(&mut self, core: &mut Core) {
        let empty = core.take_empty();
        let popped = core.take_popped();
        let check = self.readiness.begin_settle(empty);
        if popped && self.is_readable_still() {
            return;
        }
        if popped && self.postpones_timer(core) {
            return core.publish_gauges();
        }
        if !Readiness::keep_readable(self, core, empty) {
            Readiness::settle(self, core, check);
        }
        core.publish_gauges();
    }

    fn leave_edge(&mut self, core: &mut Core) {
        Readiness::leave_edge(self, core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.link.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        self.host.inbox.sweep(core);
        core.set_starving(false);
        let now = self.link.now();
        self.engine.refill(&mut HostCtx { state: &mut self.host, core });
        if core.landings().is_waiting() {
            self.land(core);
        }
        self.transmit(core, now, false);
        self.run_deferred(core, now);
    }

    fn options_changed(&mut self, core: &mut Core, connection: &'static Connection) {
        self.background.on_call();
        let now = self.link.now();
        self.update_timeouts(core, now, connection);
    }

    fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport {
        let mut report = ConnectionReport::of(self.link.name(), connection);
        report.strays = self.engine.stats().strays;
        let peer = self.engine.address(index_of(connection)).filter(|_| is_engines(core, connection));
        let to = peer.or_else(|| self.group_address(connection)).unwrap_or_default();
        (report.path, report.why) = self.link.path(&to);
        if let Some(why) = core.why_broken(connection) {
            why.clone_into(&mut report.why);
        }
        if connection.attribute().is_multicast() {
            report.rma_path = "none: a group has no RMA".into();
        } else {
            report.rma_path = "frames, from registered memory into registered memory".into();
        }
        if is_engines(core, connection) && connection.state() != ConnectionState::Opening {
            let engine = self.engine.report(index_of(connection));
            (report.mtu, report.rtt, report.window) = (engine.mtu.into(), engine.rtt, engine.window);
            report.rnr += u64::from(engine.not_ready);
            report.protection = self.protection(engine.protection);
            report.moved = engine.moved.map(|moved| self.moved_sentence(&moved));
        }
        if let Some(moved) = &report.moved {
            report.why = format!("{}; {moved}", report.why);
        }
        if let Some(limitation) = self.background.limitation() {
            report.why = format!("{}; {limitation}", report.why);
        }
        report
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        self.host.inbox.closing = true;
        send_rest(self, core, limit, Self::handle, |transport, core| {
            if transport.engine.is_quiet() {
                return Unsent::Nothing;
            }
            transport.delivered = true;
            let (count, _) = transport.step(core, true);
            if count > 0 { Unsent::Moving } else { Unsent::Waiting }
        });
        self.say_farewell(core);
    }
}

impl<L: Link> Reliable<L> {
    /// What a connection is protected by: a clause.
    fn protection(&self, protection: Protection) -> String {
        match (protection, &self.host.keys) {
            (Protection::Sealed { send_phase, receive_phase }, _) => {
                let phases = [send_phase, receive_phase].map(u8::from);
                format!("{}; key phases {} and {}", self.security, phases[0], phases[1])
            }
            (Protection::Plain, Some(_)) => "plain, since the peer asked for that".into(),
            (Protection::Plain, None) => self.security.to_string(),
        }
    }

    /// A sentence about frames of a peer that came from another address.
    #[cold]
    fn moved_sentence(&self, moved: &Moved) -> String {
        let mut from = String::new();
        // A string takes everything.
        let _ = self.link.write_name(&moved.from, &mut from);
        format!(
            "{} frames of this connection came from {from} and were dropped, because its peer is known at another address: \
             a NAT between has mapped the peer anew; connect again, and set a keepalive shorter than the NAT remembers",
            moved.frames
        )
    }

    /// Sends CLOSE to every peer, twice to one that was heard lately, and closes all connections.
    fn say_farewell(&mut self, core: &mut Core) {
        let now = self.link.now();
        self.forget_names();
        // The program's memory is not accessed once its endpoint is closed.
        self.outbox.forget_memory();
        self.host.registry.clear();
        let asked: Vec<Index> = self.host.inbox.pending_requests.iter().map(|request| request.index).collect();
        for index in asked {
            let _ = self.engine.reject(now, index, &mut HostCtx { state: &mut self.host, core });
        }
        let cells: Vec<&'static Connection> =
            core.connections().filter(|cell| !cell.attribute().is_multicast()).collect();
        for cell in cells {
            self.close_index(core, now, index_of(cell));
            self.transmit(core, now, true);
        }
        self.transmit_all(core, now);
        self.engine.repeat_closes(now);
        self.transmit(core, now, true);
        self.transmit_all(core, now);
        while let Some(group) = self.groups.pop() {
            if let Some(number) = group.joined() {
                self.leave_number(number);
            }
        }
    }

    /// Sends the frames that are left, as long as the link takes them.
    fn transmit_all(&mut self, core: &mut Core, now: Time) {
        while self.more && !self.blocked {
            self.transmit(core, now, true);
        }
    }
}
