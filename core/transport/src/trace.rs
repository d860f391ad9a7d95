//! Time stamps where one layer of the library calls the next: a transport that stamps what passes
//! and does nothing else. Links have another (`cci-reliable`).
//!
//! An endpoint that is opened without stamps has neither: its types contain no stamp, and its
//! operations not one instruction for them. `docs/design/perf-logp.md` describes what is made of
//! the stamps.

use crate::{
    BackgroundWork, Connect, Connection, ConnectionReport, Core, Imported, Message, Peer, Posted, Rma, Slot, Transport,
};
use cci_mem::memory::Memory;
use cci_mem::source::Source;
use cci_mem::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use cci_proto::{
    Alignment, ConnectError, Flags, ImportError, RegisterError, RequestError, Rights, RmaError, RmaHandle, SendError,
};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The library's interface: checks, the endpoint's lock, the connection's state.
    Semantics,
    /// From the moment at which the transport has found something until the program has given its
    /// event back.
    Event,
    /// The transport without its link: sequence, acknowledgement, window, timers, buffers.
    Transport,
    /// The link: system calls.
    Link,
}

impl Layer {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// All, in the order in which [`Spent`] has them.
    pub const ALL: [Self; Self::COUNT] = [Self::Semantics, Self::Event, Self::Transport, Self::Link];
}

/// What one call spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Ticks of the clock in each layer.
    pub ticks: [u64; Layer::COUNT],
    /// Stamps that ended a stay in each layer: each contains about one reading of the clock.
    pub stamps: [u64; Layer::COUNT],
}

/// The stamps of an endpoint that one thread uses. They are taken between [`Stamps::begin`] and
/// [`Stamps::end`] only.
#[derive(Debug)]
pub struct Stamps {
    clock: fn() -> u64,
    // Relaxed everywhere: a progress thread may see any of them at any time, and the endpoint's
    // lock orders it with the program.
    on: AtomicBool,
    layer: AtomicUsize,
    last: AtomicU64,
    ticks: [AtomicU64; Layer::COUNT],
    stamps: [AtomicU64; Layer::COUNT],
}

impl Stamps {
    /// Stamps by this clock, off.
    #[must_use]
    pub fn new(clock: fn() -> u64) -> Self {
        Self {
            clock,
            on: AtomicBool::new(false),
            layer: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            ticks: std::array::from_fn(|_| AtomicU64::new(0)),
            stamps: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// A call into the library begins.
    #[inline]
    pub fn begin(&self) {
        for (ticks, stamps) in self.ticks.iter().zip(&self.stamps) {
            ticks.store(0, Ordering::Relaxed);
            stamps.store(0, Ordering::Relaxed);
        }
        self.layer.store(Layer::Semantics as usize, Ordering::Relaxed);
        self.on.store(true, Ordering::Relaxed);
        self.last.store((self.clock)(), Ordering::Relaxed);
    }

    /// From now on it is another layer's time.
    #[inline]
    pub fn enter(&self, layer: Layer) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let now = (self.clock)();
        let (at, last) = (self.layer.load(Ordering::Relaxed), self.last.load(Ordering::Relaxed));
        if let (Some(ticks), Some(stamps)) = (self.ticks.get(at), self.stamps.get(at)) {
            ticks.store(ticks.load(Ordering::Relaxed) + now.saturating_sub(last), Ordering::Relaxed);
            stamps.store(stamps.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        self.layer.store(layer as usize, Ordering::Relaxed);
        self.last.store(now, Ordering::Relaxed);
    }

    /// The call is over: what it spent.
    #[inline]
    pub fn end(&self) -> Spent {
        self.enter(Layer::Semantics);
        self.on.store(false, Ordering::Relaxed);
        let values = |of: &[AtomicU64; Layer::COUNT]| std::array::from_fn(|at| of[at].load(Ordering::Relaxed));
        Spent { ticks: values(&self.ticks), stamps: values(&self.stamps) }
    }
}

/// A transport that stamps.
pub struct Traced {
    inner: Box<dyn Transport>,
    stamps: Arc<Stamps>,
}

impl Traced {
    /// This transport, stamped.
    #[must_use]
    pub fn new(inner: Box<dyn Transport>, stamps: Arc<Stamps>) -> Self {
        Self { inner, stamps }
    }
}

impl Transport for Traced {
    fn send(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.stamps.enter(Layer::Transport);
        let sent = self.inner.send(core, connection, message, posted);
        self.stamps.enter(Layer::Semantics);
        sent
    }

    fn post(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
        flags: Flags,
    ) -> Result<(), SendError> {
        self.stamps.enter(Layer::Transport);
        let sent = self.inner.post(message, context, connection, core, flags);
        self.stamps.enter(Layer::Semantics);
        sent
    }

    fn send_large(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        memory: Memory,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.stamps.enter(Layer::Transport);
        let sent = self.inner.send_large(core, connection, memory, posted);
        self.stamps.enter(Layer::Semantics);
        sent
    }

    fn answers_reserved(&mut self, core: &Core) {
        self.inner.answers_reserved(core);
    }

    fn answer(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.stamps.enter(Layer::Transport);
        let sent = self.inner.answer(core, connection, message, posted);
        self.stamps.enter(Layer::Semantics);
        sent
    }

    fn reserve(&mut self, core: &mut Core, connection: &'static Connection, len: usize) -> Option<(Memory, u64)> {
        self.inner.reserve(core, connection, len)
    }

    fn commit(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        room: (u64, usize),
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        self.stamps.enter(Layer::Transport);
        let sent = self.inner.commit(core, connection, room, posted);
        self.stamps.enter(Layer::Semantics);
        sent
    }

    fn cancel(&mut self, core: &mut Core, room: u64) {
        self.inner.cancel(core, room);
    }

    fn rma(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        rma: &Rma<'_>,
        posted: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        self.stamps.enter(Layer::Transport);
        let started = self.inner.rma(core, connection, rma, posted);
        self.stamps.enter(Layer::Semantics);
        started
    }

    fn progress(&mut self, core: &mut Core) {
        self.stamps.enter(Layer::Transport);
        self.inner.progress(core);
        self.stamps.enter(Layer::Event);
    }

    fn poll(&mut self, core: &mut Core) -> Option<&'static Slot> {
        self.stamps.enter(Layer::Transport);
        let found = self.inner.poll(core);
        self.stamps.enter(Layer::Event);
        found
    }

    fn uri(&self) -> &str {
        self.inner.uri()
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.inner.handle()
    }

    fn connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        self.inner.connect(core, connect)
    }

    fn accept(&mut self, core: &mut Core, request: &'static Slot, context: u64) -> Result<(), RequestError> {
        self.inner.accept(core, request, context)
    }

    fn peer(&self, request: &'static Slot) -> Option<Peer> {
        self.inner.peer(request)
    }

    fn reject(&mut self, core: &mut Core, request: &'static Slot) -> Result<(), RequestError> {
        self.inner.reject(core, request)
    }

    fn expect(&mut self, core: &mut Core, token: u64, context: u64, limit: Duration) -> Result<(), RequestError> {
        self.inner.expect(core, token, context, limit)
    }

    fn forget_expected(&mut self, core: &mut Core, token: u64) -> bool {
        self.inner.forget_expected(core, token)
    }

    fn redirect(&mut self, core: &mut Core, request: &'static Slot, uri: &str, token: u64) -> Result<(), RequestError> {
        self.inner.redirect(core, request, uri, token)
    }

    fn disconnect(&mut self, core: &mut Core, connection: &'static Connection) {
        self.inner.disconnect(core, connection);
    }

    fn register(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
        only: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        self.inner.register(core, memory, rights, only)
    }

    fn deregister(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.inner.deregister(core, handle)
    }

    fn import(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        handle: &RmaHandle,
    ) -> Result<Imported, ImportError> {
        self.inner.import(core, connection, handle)
    }

    fn retire(&mut self, core: &mut Core, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.inner.retire(core, handle)
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn step_in_background(&mut self, core: &mut Core) -> BackgroundWork {
        self.inner.step_in_background(core)
    }

    fn arm(&mut self, core: &mut Core) -> bool {
        self.inner.arm(core)
    }

    fn arm_in_call(&mut self, core: &mut Core) -> Option<Arc<OwnedFd>> {
        self.inner.arm_in_call(core)
    }

    fn settle(&mut self, core: &mut Core) {
        self.inner.settle(core);
    }

    fn leave_edge(&mut self, core: &mut Core) {
        self.inner.leave_edge(core);
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.inner.waker()
    }

    fn refill(&mut self, core: &mut Core) {
        self.inner.refill(core);
    }

    fn options_changed(&mut self, core: &mut Core, connection: &'static Connection) {
        self.inner.options_changed(core, connection);
    }

    fn report(&self, core: &Core, connection: &'static Connection) -> ConnectionReport {
        self.inner.report(core, connection)
    }

    fn close(&mut self, core: &mut Core, limit: Duration) {
        self.inner.close(core, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static TIME: Cell<u64> = const { Cell::new(100) };
    }

    fn clock() -> u64 {
        TIME.get()
    }

    fn pass(ticks: u64) {
        TIME.set(TIME.get() + ticks);
    }

    #[test]
    fn each_layer_gets_its_own_time() {
        let stamps = Stamps::new(clock);
        stamps.begin();
        pass(3);
        stamps.enter(Layer::Transport);
        pass(10);
        stamps.enter(Layer::Link);
        pass(100);
        stamps.enter(Layer::Transport);
        pass(20);
        stamps.enter(Layer::Event);
        pass(7);
        assert_eq!(stamps.end(), Spent { ticks: [3, 7, 30, 100], stamps: [1, 1, 2, 1] });
        // Off: nothing is taken, and the next call begins anew.
        stamps.enter(Layer::Link);
        pass(1000);
        stamps.begin();
        pass(1);
        assert_eq!(stamps.end(), Spent { ticks: [1, 0, 0, 0], stamps: [1, 0, 0, 0] });
    }
}
