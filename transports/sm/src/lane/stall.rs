//! What a lane waits for, as `cci top` shows it (`docs/design/counters.md`).

use crate::clock::coarse_now;
use crate::lane::Lane;
use crate::lane::operation::Stage;
use crate::lane::queue::Op;
use cci_proto::Time;
use cci_transport::{Core, WaitFor};

/// Beside a lane's number in the key of an entry: it tells of connects, not of messages and RMA.
const CONNECTS: u64 = 1 << 32;
/// The same for large messages.
const MEMORY: u64 = 1 << 33;
/// Nanoseconds of a millisecond.
pub(crate) const MILLI: u64 = 1_000_000;

impl Lane {
    fn key(&self) -> u64 {
        u64::from(self.number)
    }

    /// What the operation at the front of the queue waits for; none: nothing but its turn.
    fn waits_for(&self) -> Option<WaitFor> {
        match self.queue.operations().front()? {
            Op::Rma(pending) => match pending.stage {
                Stage::Copy(_) => None,
                Stage::Relay(_) | Stage::Await => Some(WaitFor::Rma),
                Stage::Ask | Stage::Message => Some(WaitFor::Room),
                Stage::AwaitMemory => Some(WaitFor::Memory),
            },
            _ => Some(WaitFor::Room),
        }
    }

    /// The first operation of the queue has to wait.
    #[cold]
    pub(crate) fn on_stall(&mut self, core: &mut Core) {
        if self.waits_for() == Some(WaitFor::Room) {
            core.counters().on_not_ready();
        }
        self.show_queue(core, coarse_now());
    }

    /// Operations of the queue have ended, or got on.
    pub(crate) fn on_moved(&mut self, core: &mut Core) {
        self.stall.moved = true;
        if self.queue.operations().is_empty() {
            self.stall.queue = 0;
            core.wait_over(self.key());
        }
    }

    pub(crate) fn show_queue(&mut self, core: &mut Core, now: u64) {
        let moved = std::mem::take(&mut self.stall.moved);
        let Some(what) = self.waits_for() else {
            self.stall.queue = 0;
            return;
        };
        if self.stall.queue == 0 || moved {
            self.stall.queue = now;
        }
        self.show(core, self.key(), (what, self.stall.queue, self.queue.operations().len()));
    }

    /// Shows the connects that wait for the peer's answer.
    pub(crate) fn show_connects(&mut self, core: &mut Core, now: u64) {
        let count = self.table.all_pending().count();
        if count == 0 {
            self.stall.connects = 0;
            return;
        }
        if self.stall.connects == 0 {
            self.stall.connects = now;
        }
        self.show(core, self.key() | CONNECTS, (WaitFor::Connection, self.stall.connects, count));
    }

    /// A connect has its answer.
    pub(crate) fn on_answered(&mut self, core: &mut Core) {
        if self.table.all_pending().next().is_none() {
            self.stall.connects = 0;
            core.wait_over(self.key() | CONNECTS);
        }
    }

    /// Shows the large messages that wait for memory of the peer: each waits a little, so only
    /// those that a look finds.
    pub(crate) fn show_parked(&mut self, core: &mut Core, now: u64) {
        let count = self.queue.parked();
        if count == 0 {
            self.stall.memory = 0;
            return;
        }
        if self.stall.memory == 0 {
            self.stall.memory = now;
        }
        self.show(core, self.key() | MEMORY, (WaitFor::Memory, self.stall.memory, count));
    }

    /// The peer has given a large message memory, or none.
    #[inline]
    pub(crate) fn on_unparked(&mut self, core: &mut Core) {
        if self.stall.memory != 0 && self.queue.parked() == 0 {
            self.stall.memory = 0;
            core.wait_over(self.key() | MEMORY);
        }
    }

    fn show(&self, core: &mut Core, key: u64, (what, since, count): (WaitFor, u64, usize)) {
        let since = Time(since.saturating_mul(MILLI));
        match self.peer.address() {
            Some(address) => core.wait_for(key, what, since, count as u64, address),
            None => core.wait_for(key, what, since, count as u64, self.peer.uri()),
        }
    }
}
