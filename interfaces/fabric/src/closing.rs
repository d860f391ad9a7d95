//! The end of an endpoint (`docs/design/fabric.md`, Closing).

use crate::core::Core;
use crate::queue::Bound;
use crate::requests::Stage;
use crate::send::FLUSH;
use crate::state::State;
use crate::watch::Source as _;
use crate::wire::CREDIT;
use cci::{Endpoint, Notify};
use cci_rendezvous::Header;
use std::time::{Duration, Instant};

/// How long the end waits while nothing goes on.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it sleeps between two looks, at most.
const PAUSE: Duration = Duration::from_millis(100);

/// What a close still waits for: another value means that something went on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Left {
    waiting: usize,
    flushes: usize,
    /// Operations that have not ended.
    open: usize,
}

impl State {
    /// Drops what only this side would notice.
    fn begin_close(&mut self) {
        let is_receive =
            |stage: &Stage| matches!(stage, Stage::Posted { .. } | Stage::Multi(_) | Stage::Claimed { .. });
        let dropped: Vec<u32> =
            self.requests.all().filter(|(_, slot)| is_receive(&slot.stage)).map(|(index, _)| index).collect();
        for index in dropped {
            // A message that was claimed has told its entry.
            if let Some(slot) = self.requests.remove(index)
                && !matches!(slot.stage, Stage::Claimed { .. })
            {
                self.setup.receive.iter_mut().for_each(Bound::pass);
            }
        }
        for matching in &mut self.spaces {
            (matching.posted, matching.multis) = (cci_matching::Posted::new(), 0);
        }
    }

    /// What has still to leave.
    fn left_to_send(&self) -> Left {
        let of = |partner: &crate::partner::Partner| {
            let answers = if partner.connection.is_some() { partner.done.len() } else { 0 };
            usize::from(!partner.outbox.is_empty()) + answers
        };
        let waiting = self.partners.iter().flatten().map(of).sum();
        // Nothing leaves an endpoint that has failed.
        let waiting = if self.failed.is_some() { 0 } else { waiting };
        Left { waiting, flushes: self.flushes, open: self.requests.all().count() }
    }

    /// Sends each partner a last message, whose end tells that all before has arrived.
    fn flush(&mut self, endpoint: &Endpoint) {
        let last = Header::new(CREDIT, 0, 0, 0).emit();
        let ready = self.partners.iter().flatten().filter_map(|partner| partner.ready());
        // Without room there is nothing to wait for but time.
        self.flushes = ready.filter(|to| endpoint.send(*to, &last, Notify::Always(FLUSH)).is_ok()).count();
    }

    /// Ends all without entries.
    fn close(&mut self, endpoint: &Endpoint) {
        self.is_closed = true;
        self.failed = Some(crate::Code::BadState);
        self.peers.close(endpoint);
        while self.peers.poll_change().is_some() {}
        self.registered.clear();
        self.partners.clear();
        self.blocked.clear();
        self.owing.clear();
        self.by_address.clear();
        self.setup.transmit = None;
        self.setup.receive = None;
        self.setup.counters = crate::state::Counters::default();
    }
}

impl Core {
    /// Goes on until what was reported as done has left, or nothing goes on any more; then ends
    /// all. Blocks, usually for less than a millisecond, at most for 10 s beyond what goes on.
    pub(crate) fn close(&self) {
        self.with(|state, _| state.begin_close());
        self.wait_while(|left| left.waiting > 0);
        self.with(State::flush);
        self.wait_while(|left| left.flushes > 0);
        self.with(State::close);
    }

    fn wait_while(&self, is_left: impl Fn(&Left) -> bool) {
        let (mut before, mut since) = (None, Instant::now());
        loop {
            self.progress();
            let left = self.with(|state, _| state.left_to_send());
            if !is_left(&left) {
                return;
            }
            if before.replace(left) != Some(left) {
                since = Instant::now();
            } else if since.elapsed() >= PATIENCE {
                return;
            }
            self.sleep(PAUSE);
        }
    }
}
