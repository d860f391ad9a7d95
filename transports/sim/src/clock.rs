//! Virtual time and the virtual processor, as the program of an endpoint sees them.

use crate::network::Time;
use crate::shared::Shared;
use std::sync::Arc;

/// The clock of an open endpoint of this process, and the processor of its node. A program that
/// measures over a virtual network takes the time here, and says here what its own work costs. The
/// network lives as long as this.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Shared>,
    seat: u32,
}

impl Clock {
    /// The clock of the endpoint with this URI; none when no open endpoint of this process has it.
    #[must_use]
    pub fn of(uri: &str) -> Option<Self> {
        Shared::find(uri).map(|(shared, seat)| Self { shared, seat })
    }

    /// The virtual time of the network.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.lock().now()
    }

    /// When the node's processor has done what it was charged with; now when it is idle. Where this
    /// is later than [`Clock::now`], it is the time that the program would see: its next call
    /// begins then.
    #[must_use]
    pub fn busy_until(&self) -> Time {
        self.shared.lock().busy_until(self.seat)
    }

    /// Keeps the node's processor busy for so many nanoseconds, with the program's own work.
    pub fn charge(&self, time: u64) {
        self.shared.lock().charge(self.seat, time);
    }

    /// From now on time moves by [`Clock::advance`] alone, and not when an endpoint of the network
    /// polls and finds nothing: for a process that knows when all of its endpoints wait. Not while
    /// an endpoint is closed: that waits for its peers.
    pub fn hold(&self) {
        self.shared.lock().hold(true);
    }

    /// From now on time moves again when an endpoint polls and finds nothing.
    pub fn release(&self) {
        self.shared.lock().hold(false);
    }

    /// Moves time: to the next frame that an endpoint can take, to the moment at which a busy
    /// processor is idle again, or by 50 µs (the granularity of the engine's timers), whichever is
    /// first.
    pub fn advance(&self) {
        self.shared.lock().advance();
    }

    /// Frames that the endpoint can take without time moving.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting(self.seat)
    }
}
