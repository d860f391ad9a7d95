//! A link that stamps the time of what passes and does nothing else (`cci_transport::trace`).

use crate::{Incoming, Link, Outgoing};
use cci_proto::{Address, ConnectError, Time};
use cci_transport::trace::{Layer, Stamps};
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A link that stamps. What is done with a frame while the link shows it is the transport's time.
pub struct TracedLink<L> {
    inner: L,
    stamps: Arc<Stamps>,
}

impl<L: Link> TracedLink<L> {
    /// This link, stamped.
    #[must_use]
    pub fn new(inner: L, stamps: Arc<Stamps>) -> Self {
        Self { inner, stamps }
    }
}

impl<L: Link> Link for TracedLink<L> {
    fn send_burst(&mut self, frames: &[Outgoing<'_>]) -> usize {
        self.stamps.enter(Layer::Link);
        let taken = self.inner.send_burst(frames);
        self.stamps.enter(Layer::Transport);
        taken
    }

    fn recv_burst(&mut self, budget: usize, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let stamps = &self.stamps;
        stamps.enter(Layer::Link);
        let count = self.inner.recv_burst(budget, &mut |incoming| {
            stamps.enter(Layer::Transport);
            sink(incoming);
            stamps.enter(Layer::Link);
        });
        stamps.enter(Layer::Transport);
        count
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn uri(&self) -> &str {
        self.inner.uri()
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    fn mtu(&self) -> u16 {
        self.inner.mtu()
    }

    fn base_mtu(&self) -> u16 {
        self.inner.base_mtu()
    }

    fn recv_buffer(&self) -> u32 {
        self.inner.recv_buffer()
    }

    fn resolve(&mut self, uri: &str) -> Result<Address, ConnectError> {
        self.inner.resolve(uri)
    }

    fn begin_resolve(&mut self, uri: &str, number: u64) -> Result<Option<Address>, ConnectError> {
        self.inner.begin_resolve(uri, number)
    }

    fn next_name(&mut self) -> Option<(u64, Result<Address, String>)> {
        self.inner.next_name()
    }

    fn forget_name(&mut self, number: u64) {
        self.inner.forget_name(number);
    }

    fn is_writable(&mut self) -> bool {
        self.inner.is_writable()
    }

    fn join(&mut self, uri: &str, number: u32) -> Result<(), ConnectError> {
        self.inner.join(uri, number)
    }

    fn leave(&mut self, number: u32) {
        self.inner.leave(number);
    }

    fn group(&mut self, uri: &str) -> Result<Address, ConnectError> {
        self.inner.group(uri)
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.inner.handle()
    }

    fn arm(&mut self, deadline: Option<Time>, wants_write: bool) -> bool {
        self.inner.arm(deadline, wants_write)
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn ring(&mut self, at: Time) -> bool {
        self.inner.ring(at)
    }

    fn rearm(&mut self, deadline: Option<Time>, wants_write: bool, signalled: bool) -> bool {
        self.inner.rearm(deadline, wants_write, signalled)
    }

    fn watch(&mut self, on: bool) -> bool {
        self.inner.watch(on)
    }

    fn waker(&self) -> Arc<OwnedFd> {
        self.inner.waker()
    }

    fn path(&self, to: &Address) -> (String, String) {
        self.inner.path(to)
    }

    fn write_name(&self, to: &Address, text: &mut dyn fmt::Write) -> fmt::Result {
        self.inner.write_name(to, text)
    }

    fn is_virtual(&self) -> bool {
        self.inner.is_virtual()
    }
}
