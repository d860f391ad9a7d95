//! Transfers of DMA queues: by RMA, by copies within a host, and to broadcast groups.

use crate::notices::Source;
use crate::operation::Operation;
use crate::partner::Partner;
use crate::queue::{Begun, Queue, QueueState, RemoteEnd, Transfer};
use crate::state::State;
use cci::{Endpoint, Rma, RmaError};

impl Transfer {
    fn begin(&self, endpoint: &Endpoint, state: &mut State, (token, is_first): (u64, bool), moved: &mut u64) -> Begun {
        if !self.remote.is_current() {
            return Begun::Failed;
        }
        let (peer, handle) = match self.end {
            RemoteEnd::Segment(Some(peer), handle) => (peer, handle),
            RemoteEnd::Segment(None, _) => return self.copy(),
            RemoteEnd::Group(id) => return state.cast_transfer(endpoint, (id, token), self, moved),
        };
        let Some(connection) = state.links.peers.connection(peer) else { return Begun::Failed };
        let rma = Rma::new(&self.own_handle, &handle, self.len)
            .local_offset(self.own_offset)
            .remote_offset(self.remote_offset);
        // In order.
        let rma = if is_first { rma } else { rma.fence() };
        let notify = Operation::transfer(token);
        let begun = match self.is_read {
            true => endpoint.read(connection, &rma, notify),
            false => endpoint.write(connection, &rma, notify),
        };
        match begun {
            Ok(()) => Begun::Open,
            Err(RmaError::NoBuffers) => Begun::NoRoom,
            Err(_) => Begun::Failed,
        }
    }

    /// Within this host.
    fn copy(&self) -> Begun {
        let mut part = [0; 4096];
        let (from, to) = if self.is_read { (&self.remote, &self.own) } else { (&self.own, &self.remote) };
        let (from_offset, to_offset) = match self.is_read {
            true => (self.remote_offset, self.own_offset),
            false => (self.own_offset, self.remote_offset),
        };
        let len = self.len as usize;
        for done in (0..len).step_by(part.len()) {
            let part = &mut part[..4096.min(len - done)];
            if !from.read(from_offset as usize + done, part) || !to.write(to_offset as usize + done, part) {
                return Begun::Failed;
            }
        }
        Begun::Ended
    }
}

impl State {
    /// Begins as many transfers of a posted queue as there is room for. Others are left alone here,
    /// whoever calls.
    pub(crate) fn advance(&mut self, endpoint: &Endpoint, token: u64) {
        if self.queues.get(&token).is_none_or(|queue| queue.state != QueueState::Posted) {
            return;
        }
        // Apart meanwhile: a transfer looks at the state of the links.
        let Some(mut queue) = self.queues.remove(&token) else { return };
        while !queue.is_ending() {
            let Some(transfer) = queue.transfers.get(queue.begun) else { break };
            if queue.open > 0 && !queue.follows_in_order(transfer) {
                break;
            }
            match transfer.begin(endpoint, self, (token, queue.begun == 0), &mut queue.moved) {
                Begun::Open => queue.open += 1,
                Begun::Ended => {}
                Begun::NoRoom => break,
                Begun::Failed => {
                    queue.has_failed = true;
                    break;
                }
            }
            (queue.begun, queue.moved) = (queue.begun + 1, 0);
        }
        let is_over = queue.is_ending() || queue.begun == queue.transfers.len();
        if queue.open == 0 && is_over {
            queue.state = match (queue.has_failed, queue.is_aborted) {
                (true, _) => QueueState::Error,
                (false, true) => QueueState::Aborted,
                (false, false) => QueueState::Done,
            };
            if queue.notices.callback.is_some() {
                queue.notices.events.push_back(queue.state);
                self.callbacks.ready.push_back(Source::Queue(token));
            }
            queue.transfers.clear();
            self.waits.has_changed = true;
        }
        self.queues.insert(token, queue);
    }

    pub(crate) fn on_transfer_ended(&mut self, endpoint: &Endpoint, token: u64, is_ok: bool) {
        let Some(queue) = self.queues.get_mut(&token) else { return };
        queue.open = queue.open.saturating_sub(1);
        queue.has_failed |= !is_ok;
        if queue.open == 0 || queue.begun < queue.transfers.len() && !queue.is_ending() {
            self.advance(endpoint, token);
        }
    }

    /// Whether a queue has nothing open, so that no end of its own has it go on.
    pub(crate) fn has_starved_queue(&self) -> bool {
        self.queues.values().any(Queue::is_starved)
    }

    /// Begins what had no room before. False: there is still none for something.
    pub(crate) fn advance_all(&mut self, endpoint: &Endpoint) -> bool {
        let starved = self.queues.iter().filter(|(_, queue)| queue.is_starved());
        let tokens: Vec<_> = starved.map(|(token, _)| *token).collect();
        tokens.into_iter().for_each(|token| self.advance(endpoint, token));
        self.advance_refreshes(endpoint) & self.answer_watches(endpoint) & !self.has_starved_queue()
    }

    /// A link is no more: transfers that have begun report their own ends. A queue that is posted
    /// later fails then.
    pub(crate) fn fail_queues(&mut self, endpoint: &Endpoint, partner: Partner) {
        let uses = |queue: &Queue| queue.transfers.iter().any(|transfer| transfer.partner() == partner);
        let tokens: Vec<_> = self.queues.iter().filter(|(_, queue)| uses(queue)).map(|(token, _)| *token).collect();
        for token in tokens {
            if let Some(queue) = self.queues.get_mut(&token) {
                queue.has_failed = true;
            }
            self.advance(endpoint, token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Error, Host, Nodes, Options};
    use cci_conformance::sm_device;

    /// Ends of others, room, and lost links come at any time.
    #[test]
    fn a_queue_that_is_not_posted_is_left_alone() {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let segment = host.create(fastrand::u32(..), 4096).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let remote = host.connect(host.node(), segment.id(), None).expect("published");
        let queue = host.dma_queue(1).expect("room");
        queue.enqueue((&segment, 0), (&remote, 64), 8, Direction::Write).expect("room");
        let token = |state: &State| *state.queues.keys().next().expect("a queue");
        let left = host.shared.with(|state| {
            let is_starved = state.has_starved_queue();
            state.advance(host.shared.endpoint(), token(state));
            Ok((is_starved, state.queues[&token(state)].begun))
        });
        assert_eq!((left, queue.state()), (Ok((false, 0)), Ok(QueueState::Gather)));
        // Nothing has begun: whoever looks has it go on.
        let began = host.shared.with_quietly(|state| {
            let token = token(state);
            state.queues.get_mut(&token).expect("a queue").state = QueueState::Posted;
            Ok(state.has_starved_queue())
        });
        assert_eq!(began, Ok(true));
        host.shared.drive_once().expect("an open host");
        assert_eq!(queue.state(), Ok(QueueState::Done));
    }

    #[test]
    fn a_queue_that_is_posted_takes_no_other_call() {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let queue = host.dma_queue(1).expect("room");
        let set = |state, open| {
            host.shared.with_quietly(|of| {
                of.queues.values_mut().for_each(|queue| (queue.state, queue.open) = (state, open));
                Ok(())
            })
        };
        set(QueueState::Posted, 1).expect("open");
        assert_eq!([queue.post(), queue.reset()], [Err(Error::IllegalOperation); 2]);
        assert_eq!(queue.remove(), Err(Error::Busy));
        set(QueueState::Done, 0).expect("open");
        assert_eq!(queue.abort(), Err(Error::IllegalOperation));
        assert_eq!([queue.reset(), queue.remove()], [Ok(()); 2]);
    }
}
