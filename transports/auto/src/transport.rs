//! The implementation of the trait `Transport`: each call goes to the way that it is for.

use crate::auto::Auto;
use crate::way::NO_WAY;
use cci_mem::memory::Memory;
use cci_mem::source::Source;
use cci_proto::{
    Alignment, ConnectError, Flags, ImportError, PauseError, RegisterError, RequestError, Rights, RmaError, RmaHandle,
    SendError,
};
use cci_transport::{
    BackgroundWork, Connect, Connection, ConnectionReport, Core, Imported, Message, Peer, Posted, Readiness, Rma, Slot,
    Transport,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bits of a room's number that name its way.
const WAY_SHIFT: u32 = 61;

impl Transport for Auto {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.set.handle()
    }

    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        self.begin_connect(core, connect)
    }

    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
        self.accept_by_way(core, request, context)
    }

    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        // The others do not know the slot.
        self.ways.iter().find_map(|way| way.transport.peer(request))
    }

    fn reject(&mut self, core: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        self.end_request(core, request);
        self.call_for_request(core, request, |transport, core| transport.reject(core, request))
            .unwrap_or(Err(RequestError::NotARequest))
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        self.expect_client(core, token, context, limit)
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        self.forget_client(core, token)
    }

    fn redirect(&mut self, core: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        self.redirect_client(core, request, uri, token)
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        self.why.remove(&connection.place());
        self.call_for(core, connection, |transport, core| transport.disconnect(core, connection));
    }

    fn pause(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.call_for(core, connection, |transport, core| transport.pause(core, connection))
            .unwrap_or(Err(PauseError::Disconnected))
    }

    fn resume(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        self.call_for(core, connection, |transport, core| transport.resume(core, connection))
            .unwrap_or(Err(PauseError::Disconnected))
    }

    #[inline]
    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let number = connection.way();
        if number == self.plain
            && let Some(way) = self.ways.get_mut(usize::from(number))
        {
            return way.transport.send(core, connection, message, posted);
        }
        self.call(core, number, |transport, core| transport.send(core, connection, message, posted))
            .unwrap_or(Err(SendError::Disconnected))
    }

    fn answers_reserved(&mut self, core: &Core) {
        self.ways.iter_mut().for_each(|way| way.transport.answers_reserved(core));
    }

    fn answer(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.call_for(core, connection, |transport, core| transport.answer(core, connection, message, posted))
            .unwrap_or(Err(SendError::Disconnected))
    }

    #[inline]
    fn post(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
        flags: Flags,
    ) -> Result<(), SendError> {
        let number = connection.way();
        if number == self.plain
            && let Some(way) = self.ways.get_mut(usize::from(number))
        {
            return way.transport.post(message, context, connection, core, flags);
        }
        self.post_elsewhere(message, context, connection, core, flags)
    }

    fn reserve(&mut self, core: &mut Core, connection: &'static Connection, len: usize) -> Option<(Memory, u64)> {
        let number = connection.way();
        let (memory, room) = match self.ways.get_mut(usize::from(number)) {
            Some(way) if number == self.plain => way.transport.reserve(core, connection, len),
            _ => self.call(core, number, |transport, core| transport.reserve(core, connection, len)).flatten(),
        }?;
        if room >> WAY_SHIFT != 0 {
            self.within(core, number, |transport, core| transport.cancel(core, room));
            return None;
        }
        Some((memory, room | u64::from(number) << WAY_SHIFT))
    }

    fn commit(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        (room, len): (u64, usize),
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let (number, room) = way_of_room(room);
        if number == self.plain
            && let Some(way) = self.ways.get_mut(usize::from(number))
        {
            return way.transport.commit(core, connection, (room, len), posted);
        }
        self.call(core, number, |transport, core| transport.commit(core, connection, (room, len), posted))
            .unwrap_or(Err(SendError::NoRoom))
    }

    fn cancel(&mut self, core: &mut Core, room: u64) {
        let (number, room) = way_of_room(room);
        self.call(core, number, |transport, core| transport.cancel(core, room));
    }

    fn send_large(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.call_for(core, connection, |transport, core| transport.send_large(core, connection, memory, posted))
            .unwrap_or(Err(SendError::Disconnected))
    }

    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        self.call_for(core, connection, |transport, core| transport.rma(core, connection, rma, posted))
            .unwrap_or(Err(RmaError::Disconnected))
    }

    fn register(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        match only {
            None => self.register_everywhere(core, memory, rights),
            Some(connection) => self.register_for(core, memory, rights, connection),
        }
    }

    fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.end_everywhere(core, handle, true)
    }

    fn retire(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.end_everywhere(core, handle, false)
    }

    fn import(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        handle: &RmaHandle,
    ) -> Result<Imported, ImportError> {
        self.call_for(core, connection, |transport, core| transport.import(core, connection, handle))
            .unwrap_or(Err(ImportError::Disconnected))
    }

    fn alignment(&self) -> Alignment {
        self.ways.first().map_or_else(Alignment::default, |way| way.transport.alignment())
    }

    fn progress(&mut self, core: &mut Core) {
        self.make_progress(core);
    }

    #[inline]
    fn poll(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.poll_quickly(core)
    }

    fn step_in_background(&mut self, core: &mut Core) -> BackgroundWork {
        let way = core.background_way();
        let work = self.within(core, way, |transport, core| transport.step_in_background(core));
        self.end_call(core);
        work.unwrap_or(BackgroundWork::Done)
    }

    fn arm(&mut self, core: &mut Core) -> bool {
        Readiness::arm_now(self, core)
    }

    fn arm_in_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        self.arm_ways_in_call(core)
    }

    fn settle(&mut self, core: &mut Core) {
        let (popped, empty) = (core.take_popped(), core.take_empty());
        let check = self.readiness.begin_settle(empty);
        if Readiness::keep_readable(self, core, empty) || popped && self.readiness.is_signalled() {
            return;
        }
        Readiness::settle(self, core, check);
        core.publish_gauges();
    }

    fn leave_edge(&mut self, core: &mut Core) {
        Readiness::leave_edge(self, core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.set.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        for number in self.numbers() {
            self.within(core, number, |transport, core| transport.refill(core));
        }
        self.end_call(core);
    }

    fn options_changed(&mut self, core: &mut Core, connection: &'static Connection) {
        self.call_for(core, connection, |transport, core| transport.options_changed(core, connection));
    }

    fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport {
        let Some(way) = self.ways.get(usize::from(connection.way())) else { return ConnectionReport::default() };
        let mut report = way.transport.report(core, connection);
        (report.transport, report.path) = (crate::DRIVER.name, format!("{}: {}", way.name, report.path));
        // A connection that the peer asked for goes the way that the peer chose.
        let why = self.why.get(&connection.place()).filter(|(life, _)| *life == connection.generation());
        if let Some((_, why)) = why {
            report.why = format!("{}; not the other ways: {why}", report.why);
        }
        report
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        let begin = Instant::now();
        for number in self.numbers() {
            let left = limit.saturating_sub(begin.elapsed());
            core.enter_way(number);
            if let Some(way) = self.ways.get_mut(usize::from(number)) {
                way.transport.close(core, left);
            }
            core.leave_way();
        }
        self.plain = NO_WAY;
    }
}

/// The way of a room, and the way's number of it.
fn way_of_room(room: u64) -> (u8, u64) {
    ((room >> WAY_SHIFT) as u8, room & ((1 << WAY_SHIFT) - 1))
}

impl Auto {
    /// As `Transport::post`, by a way that is not the plain one.
    #[inline(never)]
    fn post_elsewhere(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
        flags: Flags,
    ) -> Result<(), SendError> {
        let posted = self
            .call_for(core, connection, |transport, core| transport.post(message, context, connection, core, flags));
        posted.unwrap_or(Err(SendError::Disconnected))
    }
}
