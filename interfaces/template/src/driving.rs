//! As in each interface: events, links, and what waits for room.

use crate::{Code, State};
use cci::{Endpoint, Event, Notify, PollError, SendError};
use cci_ground::{Changing, Drive};
use cci_peers::Change;
use std::iter::repeat;
use std::time::{Duration, Instant};

impl Changing for State {
    fn changes(&self) -> u64 {
        self.changes
    }

    fn left(&self) -> Option<Duration> {
        let due = self.peers.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
        let now = self.peers.has_changes().then_some(Duration::ZERO);
        now.into_iter().chain(due).chain((!self.outgoing.is_empty()).then_some(Duration::from_millis(1))).min()
    }
}

impl Drive for State {
    fn progress(&mut self, endpoint: &Endpoint) {
        // What more there is ends the next sleep at once.
        let taken = endpoint.poll(64, |event| match self.peers.handle_event(endpoint, event, Instant::now()) {
            // A message that breaks the rules is gone.
            Some(Event::Received(message)) => _ = self.on_message(&message),
            Some(Event::EndpointFailed(_)) => self.end(Code::Failed),
            // A stranger's request is dropped, and so rejected. Of lost sends their links tell.
            _ => {}
        });
        if taken.is_err_and(|why| why != PollError::NoBuffers) {
            self.end(Code::Failed);
        }
        self.peers.handle_timeout(endpoint, Instant::now());
        while let Some(change) = self.peers.poll_change() {
            match change {
                Change::Up { connection, waiting, .. } => self.outgoing.extend(repeat(connection).zip(waiting)),
                Change::Down { peer, .. } => self.on_lost(peer, Code::Gone),
                Change::Failed { peer, .. } => self.on_lost(peer, Code::Unreached),
                _ => {}
            }
        }
        self.pump(endpoint);
    }
}

impl State {
    /// Sends as far as there is room.
    pub(crate) fn pump(&mut self, endpoint: &Endpoint) {
        // Another refusal is of a link that is no more.
        while let Some((to, message)) = self.outgoing.front()
            && endpoint.send(*to, message, Notify::OnFailure(0)) != Err(SendError::NoBuffers)
        {
            self.outgoing.pop_front();
        }
    }

    pub(crate) fn end(&mut self, why: Code) {
        self.over.get_or_insert(why);
        self.changes += 1;
    }
}
