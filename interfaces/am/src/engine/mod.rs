//! The engine: what an endpoint does with messages, whatever mapping carries them.

mod clock;
mod context;
mod incoming;
mod local;
mod notices;
mod replies;
mod requests;
mod segment;
mod serving;
mod state;
mod time;

pub(crate) use context::Context;
pub(crate) use requests::{Attempt, Bulk, Patience};
pub(crate) use state::{Core, OwnSegment, Turn};

use crate::errors::{RequestError, Status};
use crate::mapping::{Incoming, Mapping};
use crate::message::Returned;
use crate::peers::Peer;
use crate::wire::{Head, MAX_ARGUMENTS};
use state::{Due, Unsent};

/// For the fuzz targets.
pub(crate) mod fuzzing {
    pub(crate) use super::incoming::{arguments_of, assembly};
}

/// Messages that one poll takes at most.
const BURST: usize = 64;

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Takes what has come, runs handlers, and sends what waits. Never waits.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<usize, RequestError> {
        let mapping = self.mapping;
        let mut found = mapping.poll(BURST, |incoming| self.take(incoming)).map_err(|_| RequestError::Unusable)?;
        // To look for another behind a single message would hold up its answer. It is done where
        // the poll before has found one, too, until it was in vain.
        if found > self.core.clock.single {
            found += self.take_more(found);
        }
        self.after(found);
        Ok(found)
    }

    /// Takes what else is there, up to the messages of one poll: a transport gives a few frames at
    /// a time. Of a program that polls rarely many wait, and long ones have many parts.
    #[inline(never)]
    fn take_more(&mut self, before: usize) -> usize {
        let (mapping, parts) = (self.mapping, self.core.parts);
        let mut found = 0;
        while before + found - self.core.parts.wrapping_sub(parts).min(found) < BURST {
            // Not the closure of `poll`: with two places to call it from, none would be inlined.
            match mapping.poll(BURST, |incoming| self.take_another(incoming)) {
                Ok(more) if more > 0 => found += more,
                // An endpoint that fails says so by the next poll.
                _ => break,
            }
        }
        self.core.clock.single = usize::from(before + found == 1);
        found
    }

    #[inline(never)]
    fn take_another(&mut self, incoming: Incoming<'_, M::Channel, M::Asking<'_>>) {
        self.take(incoming);
    }

    /// What follows each poll.
    #[inline]
    fn after(&mut self, found: usize) {
        let core = &*self.core;
        if core.outbox.buffers.queue.len() | core.unsent.len() | core.due.len() > 0 {
            self.flush();
        }
        self.count_poll(found);
    }

    /// Sends what waits, as far as there is room.
    #[inline(never)]
    fn flush(&mut self) {
        self.flush_replies();
        self.flush_unsent();
        self.flush_due();
    }

    /// Gives a request back to the program: it has ended.
    pub(crate) fn give_back(&mut self, peer: Peer, head: &Head, status: Status) {
        let mut arguments = [0; MAX_ARGUMENTS];
        let count = head.arguments(&mut arguments);
        if let Some(handler) = self.handlers.of_returned() {
            let arguments = &arguments[..count];
            let (sort, is_reply, at) = (head.sort(), head.is_reply(), head.handler());
            handler(self.state, Returned { status, handler: at, sort, is_reply, arguments, peer });
        }
    }

    /// Ends a record of a target and gives its request back.
    pub(crate) fn return_record(&mut self, id: u32, status: Status) {
        let Some(record) = self.core.records.get(id) else { return };
        let (index, head) = (record.target, record.head);
        self.core.records.end(id);
        let peer = self.core.targets.key(index);
        if let Some(target) = self.core.targets.at_mut(index) {
            target.on_end(0);
        }
        self.give_back(peer, &head, status);
    }
}
