//! The callbacks of objects, one after the other.

use crate::notices::{Call, Source, call_of, retire};
use crate::state::State;
use cci::Endpoint;

impl State {
    /// The next callback that is due, with its event.
    pub(crate) fn next_call(&mut self, endpoint: &Endpoint) -> Option<(Source, Call, Option<u64>)> {
        if let Some((source, call)) = self.callbacks.due.pop_front() {
            // Of a posting that is over.
            return Some((source, call, None));
        }
        while let Some(source) = self.callbacks.ready.pop_front() {
            let call = match source {
                Source::Segment(id, life) => {
                    let segment = self.segments.get_mut(&id).filter(|segment| segment.life == life);
                    segment.and_then(|segment| call_of(&mut segment.notices))
                }
                Source::Remote(token) => self.remotes.get_mut(&token).and_then(|of| call_of(&mut of.notices)),
                Source::Interrupt(number, life) => {
                    let interrupt = self.interrupts.get_mut(&number).filter(|interrupt| interrupt.life == life);
                    let call = interrupt.and_then(|interrupt| {
                        let key = interrupt.notices.events.front().map(|(key, _)| *key)?;
                        let call = call_of(&mut interrupt.notices)?;
                        Some((call, interrupt.has_bytes.then_some(key)))
                    });
                    call.map(|(call, taken)| {
                        taken.into_iter().for_each(|key| self.on_taken(endpoint, number, key));
                        call
                    })
                }
                Source::Queue(token) => self.queues.get_mut(&token).and_then(|queue| call_of(&mut queue.notices)),
                Source::Connecting(key) => self.connect_call(key),
            };
            if let Some(call) = call {
                return Some((source, call, self.posting_of(source)));
            }
        }
        None
    }

    /// Which posting of a queue a callback is of; 0 of what is posted never.
    fn posting_of(&self, source: Source) -> Option<u64> {
        match source {
            Source::Queue(token) => self.queues.get(&token).map(|queue| queue.postings),
            _ => Some(0),
        }
    }

    /// A callback has returned, and is not to be called again. One that was set since is.
    pub(crate) fn cancel_call(&mut self, source: Source, posting: Option<u64>) {
        if posting.is_some() && posting == self.posting_of(source) {
            self.cancel(source);
        }
    }

    /// Ends of a queue that were not told yet: they are, whatever the program does with the queue,
    /// which it sees ended already.
    pub(crate) fn keep_calls(&mut self, token: u64) {
        let Some(queue) = self.queues.get_mut(&token) else { return };
        while let Some(call) = call_of(&mut queue.notices) {
            self.callbacks.due.push_back((Source::Queue(token), call));
        }
    }

    /// The callback of a connect that has ended.
    fn connect_call(&mut self, key: u64) -> Option<Call> {
        let pending = self.connecting.get_mut(&key).filter(|pending| pending.has_outcome)?;
        let call = pending.callback.take()?;
        pending.has_outcome = false;
        Some(call)
    }

    /// Removes a connect. Whether it had an outcome that nobody has taken.
    pub(crate) fn forget_connect(&mut self, key: u64) -> bool {
        let Some(pending) = self.connecting.remove(&key) else { return false };
        let has_outcome = pending.has_outcome;
        // Dropped without the lock.
        self.callbacks.retired.push(Box::new(pending));
        has_outcome
    }

    /// Removes a callback.
    pub(crate) fn cancel(&mut self, source: Source) {
        match source {
            Source::Segment(id, life) => {
                if let Some(segment) = self.segments.get_mut(&id).filter(|segment| segment.life == life) {
                    retire(&mut self.callbacks.retired, &mut segment.notices);
                }
            }
            Source::Remote(token) => {
                if let Some(remote) = self.remotes.get_mut(&token) {
                    retire(&mut self.callbacks.retired, &mut remote.notices);
                }
            }
            Source::Interrupt(number, life) => {
                if let Some(interrupt) = self.interrupts.get_mut(&number).filter(|of| of.life == life) {
                    retire(&mut self.callbacks.retired, &mut interrupt.notices);
                }
            }
            Source::Queue(token) => {
                if let Some(queue) = self.queues.get_mut(&token) {
                    retire(&mut self.callbacks.retired, &mut queue.notices);
                }
            }
            Source::Connecting(key) => {
                self.forget_connect(key);
            }
        }
    }
}
