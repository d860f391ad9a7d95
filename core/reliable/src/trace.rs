//! A link that stamps the time of what passes and does nothing else (`cci_transport::trace`).

use crate::{Incoming, Link, Outgoing, Wait};
use cci_proto::Time;
use cci_transport::trace::{Layer, Stamps};
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

impl<L: Link> Wait for TracedLink<L> {
    crate::link::forward! { exclusive:
        arm(deadline: Option<Time>, wants_write: bool) -> bool;
        rearm(deadline: Option<Time>, wants_write: bool, signalled: bool) -> bool;
    }
    crate::link::forward_wait!();
}

impl<L: Link> Link for TracedLink<L> {
    crate::link::forward_most!();

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
}
