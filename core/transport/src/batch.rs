//! Several events by one call.

use crate::endpoint::{Endpoint, Entered};
use crate::{Body, Slot};
use cci_proto::PollError;

impl Endpoint {
    /// Passes the next events to `take`, oldest first and `most` at most, and returns their number.
    /// Makes progress as often as so many calls of [`Endpoint::next_event`]. One lock.
    ///
    /// `take` is called with the endpoint entered: it must not come back here.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::next_event`]: nothing was taken.
    #[inline]
    pub fn next_events(&self, most: usize, take: impl FnMut(&'static Slot)) -> Result<usize, PollError> {
        let entered = match self.enter_at_once() {
            Ok(entered) => entered,
            Err(outside) => {
                drop(outside);
                self.enter_by_lock()?
            }
        };
        entered.take_events(most, take)
    }
}

impl Entered<'_> {
    fn take_events(mut self, most: usize, mut take: impl FnMut(&'static Slot)) -> Result<usize, PollError> {
        let body = self.body_mut();
        let Body { transport, core } = body;
        let told = core.tells_room();
        // While nobody waits on the handle, the first message need not pass through the queue.
        let is_direct = !core.is_handle_in_use() && !core.is_armed();
        let mut next = None;
        if is_direct && !core.has_event() {
            next = if most > 0 { transport.poll(core) } else { None };
        } else if core.wants_progress() {
            transport.progress(core);
        }
        let mut found = 0;
        // Looking for more than what came at once would keep the handler from the first message.
        while found < most
            && let Some(slot) = next.take().or_else(|| core.pop_counted())
        {
            take(slot);
            found += 1;
        }
        let is_empty = found == 0 && most > 0;
        body.end_look(is_empty, told);
        if is_empty && body.core.holds_all_recv() { Err(PollError::NoBuffers) } else { Ok(found) }
    }
}
