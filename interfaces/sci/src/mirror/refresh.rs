//! An interrupt of an owner waits until the mirrors of its segments are read: loads behind it see
//! what the owner stored before it (`docs/design/sci-mirror.md`, Interrupts of the owner).

use crate::errors::Error;
use crate::mirror::reading::{Load, Refresh};
use crate::mirror::state::Twin;
use crate::state::State;
use crate::wire::{MOST_DATA, Message};
use cci::Endpoint;
use cci_peers::Peer;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long an interrupt waits for reads, at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection that a message which may wait is of.
fn token_of(message: &Message) -> Option<u64> {
    match message {
        Message::Trigger { token } | Message::Data { token, .. } | Message::Disconnect { token } => Some(*token),
        _ => None,
    }
}

impl State {
    /// One step of a load. `None`: it has not ended.
    pub(crate) fn load_step(
        &mut self,
        endpoint: &Endpoint,
        twin: &mut Twin,
        load: &mut Load,
    ) -> Option<Result<(), Error>> {
        if let Some(read) = load.read {
            self.advance_read(endpoint, twin);
            let failed = twin.failed_read == read;
            return (twin.reads >= read).then_some(if failed { Err(Error::NodeNotResponding) } else { Ok(()) });
        }
        if !self.own_pass(endpoint, twin, (&mut load.pass, true)) {
            return None;
        }
        if !twin.failed.is_empty() && twin.pass.is_none() {
            load.pass = None;
            return None;
        }
        // The owner has all that the twin has: the bytes that are read are no older.
        let is_busy = twin.reading.is_some() || twin.pass.is_some() || twin.writes > 0;
        if is_busy || twin.patches.confirmed < self.ask(endpoint, twin) {
            return None;
        }
        load.read = Some(twin.begin_read(load.blocks.clone()));
        self.advance_read(endpoint, twin);
        None
    }

    fn loads(&self, peer: Peer) -> Vec<(u64, Load)> {
        let of_peer = self.mirrors.all.values().filter(|twin| twin.partner == Some(peer) && twin.group.is_none());
        let mapped = of_peer.filter(|twin| !twin.loaded.is_empty());
        mapped.map(|twin| (twin.mirror.token, Load::new(twin.loaded.clone()))).collect()
    }

    /// Keeps a message back that is to come behind reads; any other one is given back.
    pub(crate) fn hold(&mut self, endpoint: &Endpoint, peer: Peer, message: Message) -> Option<Message> {
        let Some(token) = token_of(&message).filter(|_| !self.mirrors.all.is_empty()) else { return Some(message) };
        let is_end = matches!(message, Message::Disconnect { .. });
        if let Some(refresh) = self.mirrors.refreshes.get_mut(&peer) {
            let of_token = refresh.held.iter().filter(|held| token_of(held) == Some(token)).count();
            // It ends nothing that waits.
            if is_end && of_token == 0 {
                return Some(message);
            }
            let is_again = refresh.held.iter().skip(refresh.covered).any(|held| *held == message);
            if matches!(message, Message::Trigger { .. }) && is_again {
                return None;
            }
            // An honest peer has so many on their way, a trigger twice, and the end.
            if of_token > MOST_DATA as usize {
                self.break_link(endpoint, peer);
                return None;
            }
            refresh.held.push_back(message);
            return None;
        }
        let loads = if is_end { Vec::new() } else { self.loads(peer) };
        if loads.is_empty() {
            return Some(message);
        }
        let (until, held) = (Instant::now() + PATIENCE, VecDeque::from([message]));
        self.mirrors.refreshes.insert(peer, Refresh { loads, until, held, covered: 1 });
        self.advance_refresh(endpoint, peer);
        None
    }

    /// Goes on with all reads that interrupts wait for. False: there are some.
    pub(crate) fn advance_refreshes(&mut self, endpoint: &Endpoint) -> bool {
        if self.mirrors.refreshes.is_empty() {
            return true;
        }
        let peers: Vec<_> = self.mirrors.refreshes.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.advance_refresh(endpoint, peer));
        self.mirrors.refreshes.is_empty()
    }

    fn advance_refresh(&mut self, endpoint: &Endpoint, peer: Peer) {
        // Entered meanwhile, so that a link that breaks finds what waits.
        let Some(refresh) = self.mirrors.refreshes.get_mut(&peer) else { return };
        let mut loads = std::mem::take(&mut refresh.loads);
        let is_late = refresh.until <= Instant::now();
        loads.retain_mut(|(token, load)| {
            let step = self.with_twin(*token, |state, twin| state.load_step(endpoint, twin, load));
            // A mirror that is lost is read no more.
            step.is_some_and(|step| step.is_none()) && !is_late
        });
        let Some(refresh) = self.mirrors.refreshes.get_mut(&peer) else { return };
        refresh.loads = loads;
        if !refresh.loads.is_empty() {
            return;
        }
        let rest = refresh.held.split_off(refresh.covered.min(refresh.held.len()));
        let due = std::mem::replace(&mut refresh.held, rest);
        due.into_iter().for_each(|message| self.handle_now(endpoint, Some(peer), message));
        let loads = self.loads(peer);
        let Some(refresh) = self.mirrors.refreshes.get_mut(&peer) else { return };
        if refresh.held.is_empty() {
            self.mirrors.refreshes.remove(&peer);
            return;
        }
        (refresh.loads, refresh.covered) = (loads, refresh.held.len());
        refresh.until = Instant::now() + PATIENCE;
    }

    /// The link to a peer is no more: what it sent before is reported.
    pub(crate) fn release(&mut self, endpoint: &Endpoint, peer: Peer) {
        let Some(refresh) = self.mirrors.refreshes.remove(&peer) else { return };
        refresh.held.into_iter().for_each(|message| self.handle_now(endpoint, Some(peer), message));
    }
}

#[cfg(test)]
mod tests {
    use crate::mirror::fixture::{connected, connected_with};
    use crate::{Access, Options};
    use cci_conformance::LIMIT;

    /// Its interrupt came, and then it did not answer any more.
    #[test]
    fn an_interrupt_of_an_owner_that_does_not_answer_is_reported() {
        // A store under the lock of its host waits for nobody.
        let (owner, _segment, other, far) = connected_with(Options::new().protect(false));
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        let bell = other.interrupt(None).expect("free");
        let ring = owner.connect_interrupt(other.node(), bell.number(), Some(LIMIT)).expect("there");
        let takes_nothing = other.shared.lock().expect("open");
        ring.trigger().expect("there");
        window.store(0, 1_u64).expect("inside");
        // It cannot confirm the store that comes before the read.
        let is_stopped = owner.shared.lock().expect("open");
        drop(takes_nothing);
        assert_eq!(bell.wait(Some(LIMIT)), Ok(()));
        drop(is_stopped);
    }

    /// The end of the connection stays behind its interrupt.
    #[test]
    fn an_interrupt_is_reported_though_its_connection_ends_behind_it() {
        let (owner, segment, other, far) = connected();
        let own = segment.map(0..4096, Access::ReadWrite).expect("mapped");
        let window = far.map(0..4096, Access::ReadWrite).expect("mapped");
        let bell = other.data_interrupt(None).expect("free");
        for round in 1..20_u64 {
            let ring = owner.connect_data_interrupt(other.node(), bell.number(), Some(LIMIT)).expect("there");
            own.store(8, round).expect("inside");
            ring.trigger(b"last").expect("room");
            drop(ring);
            assert_eq!(bell.wait(Some(LIMIT)).as_deref(), Ok(&b"last"[..]));
            assert_eq!(window.load(8), Ok(round));
        }
    }
}
