//! The trait `Transport`: each method is a few lines here.

use super::Tcp;
use crate::lane::shared::name_of;
use crate::sys;
use cci_mem::memory::Memory;
use cci_mem::sync::Ordering;
use cci_proto::{ConnectError, PauseError, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError};
use cci_transport::{
    BackgroundWork, Connect, Connection, ConnectionReport, Core, Message, Peer, Posted, Readiness, Rma, Slot,
    Transport, monotonic,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

impl Transport for Tcp {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.shared.set.handle()
    }

    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        self.background.on_call();
        let connected = self.begin_connect(core, connect);
        self.background.require();
        self.bury_ended(core);
        self.after(core);
        connected
    }

    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
        self.background.on_call();
        let accepted = self.accept_request(core, request, context);
        self.background.require();
        self.after(core);
        accepted
    }

    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        let lane = self.shared.inbox.requests.get(request)?.lane;
        let mut peer = Peer::default();
        peer.address = self.lanes.get(lane as usize)?.as_ref()?.peer_uri();
        Some(peer)
    }

    fn reject(&mut self, core: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        self.background.on_call();
        self.reject_request(core, request);
        Ok(())
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        let deadline = monotonic() + limit;
        self.shared.expected.expect(core, token, context, deadline)?;
        self.shared.check_by(deadline);
        Ok(())
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        self.shared.expected.forget(core, token)
    }

    fn redirect(&mut self, core: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        self.background.on_call();
        self.redirect_request(core, request, uri, token);
        Ok(())
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        self.background.on_call();
        self.disconnect_peer(core, connection);
        self.after(core);
    }

    fn pause(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.background.on_call();
        let (lane, shared) = self.lane_of(connection).ok_or(PauseError::Disconnected)?;
        lane.pause_connection(shared, connection.local.load(Ordering::Relaxed));
        lane.flush(shared, core);
        core.landings().pause(connection);
        self.after(core);
        Ok(())
    }

    fn resume(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.background.on_call();
        let (lane, shared) = self.lane_of(connection).ok_or(PauseError::Disconnected)?;
        lane.end_pause(shared, connection.local.load(Ordering::Relaxed));
        core.landings().resume(connection);
        if self.shared.grants_due {
            self.give_grants(core);
        }
        if core.landings().is_waiting() {
            self.land(core);
        }
        self.send_rest_now(core);
        self.bury_ended(core);
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
        let (lane, shared) = self.lane_of(connection).ok_or(SendError::Disconnected)?;
        let sent = lane.send(shared, core, connection, message, posted);
        self.after(core);
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
        let (lane, shared) = self.lane_of(connection).ok_or(SendError::Disconnected)?;
        let sent = lane.send_large(shared, core, connection, memory, posted);
        lane.flush(shared, core);
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
        let (lane, shared) = self.lane_of(connection).ok_or(RmaError::Disconnected)?;
        let is_alone = !lane.has_unsent();
        let begun = lane.rma(shared, core, connection, rma, posted);
        if is_alone {
            lane.flush(shared, core);
        }
        self.after(core);
        begun
    }

    fn register(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        self.background.on_call();
        let (_, handle) = self.shared.registrations.register(memory, rights, only.map(name_of), ())?;
        self.shared.count_exposed(rights, true);
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
        self.shared.registrations.adopt(handle, memory, rights, ())?;
        self.shared.count_exposed(rights, true);
        if rights != Rights::NONE {
            self.background.require();
        }
        self.after(core);
        Ok(())
    }

    fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        let (rights, _) = self.shared.registrations.deregister(handle)?;
        self.shared.count_exposed(rights, false);
        // No lane touches it in a later call: each looks the registration up again, but for a
        // fragment that is half sent.
        for number in 0..self.lanes.len() {
            if let Some((lane, shared)) = self.lane(u32::try_from(number).unwrap_or(u32::MAX)) {
                lane.forget_memory(shared, core);
            }
        }
        Ok(())
    }

    #[inline]
    fn progress(&mut self, core: &mut Core) {
        self.background.on_call();
        let (found, now) = self.step(core, true);
        self.background.on_polled(now);
        Readiness::on_progress(self, core, found, now);
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
        let (popped, is_empty) = (core.take_popped(), core.take_empty());
        let check = self.readiness.begin_settle(is_empty);
        if popped && self.readiness.is_signalled() && !self.readiness.waits_in_call() {
            return;
        }
        if !Readiness::keep_readable(self, core, is_empty) {
            Readiness::settle(self, core, check);
        }
        self.publish_gauges(core);
    }

    fn leave_edge(&mut self, core: &mut Core) {
        Readiness::leave_edge(self, core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.shared.set.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        self.shared.inbox.sweep(core);
        core.set_starving(false);
        for number in 0..self.lanes.len() {
            if let Some((lane, shared)) = self.lane(u32::try_from(number).unwrap_or(u32::MAX))
                && lane.is_stalled()
            {
                lane.resume(shared, core);
            }
        }
        self.give_grants(core);
        if self.shared.landings_wait || core.landings().is_waiting() {
            self.land(core);
        }
        self.send_rest_now(core);
        self.bury_ended(core);
    }

    fn options_changed(&mut self, core: &mut Core, connection: &'static Connection) {
        let now = monotonic();
        if let Some((lane, shared)) = self.lane_of(connection) {
            lane.is_watched = true;
            lane.heard = now;
            lane.restart_timeouts(connection, now);
            shared.check_by(now);
        }
        self.shared.now = now;
        self.check_timers(core, now);
    }

    fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport {
        let mut report = ConnectionReport {
            path: "TCP".into(),
            rma_path: "fragments of the stream, from registered memory into registered memory".into(),
            strays: self.shared.strays,
            ..ConnectionReport::of("tcp", connection)
        };
        let number = connection.lane.load(Ordering::Relaxed) as usize;
        let Some(lane) = self.lanes.get(number).and_then(Option::as_deref) else {
            report.why = core.why_broken(connection).unwrap_or("the peer is gone").into();
            return report;
        };
        if lane.checks {
            report.rma_path = "fragments of the stream, copied and checked".into();
        }
        let family = if lane.peer.is_ipv4() { "IPv4" } else { "IPv6" };
        let congestion = lane.socket.as_ref().and_then(|socket| rustix::net::sockopt::tcp_congestion(socket).ok());
        report.path =
            format!("TCP over {family} to {}, congestion control {}", lane.peer, congestion.unwrap_or_default());
        let streams = self.shared.settings.streams;
        if streams > 1 {
            report.path = format!("{}, {}", report.path, lane.streams_in_words(streams));
            report.is_opening = lane.is_opening();
        }
        report.protection = if lane.is_sealed() {
            format!("sealed by {}", cci_seal::cipher_name())
        } else {
            "plain, since this side or the peer has no secret".into()
        };
        if lane.is_sealed() {
            report.path = format!("{}, sealed by {}", report.path, cci_seal::cipher_name());
            report.rma_path = "fragments of the stream, sealed from registered memory, opened, then copied".into();
        }
        report.rtt = lane.socket.as_ref().and_then(sys::info).map(|info| info.rtt);
        report.why = if lane.dialed { "this side dialed" } else { "the peer dialed" }.into();
        if let Some(limitation) = self.background.limitation() {
            report.why = format!("{}; {limitation}", report.why);
        }
        report
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        self.close_all(core, limit);
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.background.detach();
    }
}
