//! Several events by one call.

use crate::endpoint::{Body, Endpoint, Entered};
use crate::{Core, Slot, Transport};
use cci_proto::PollError;

impl Endpoint {
    /// Passes the next events to `take`, oldest first and `most` at most, and returns their number. Makes progress once, and further
    /// only as long as that brings messages at once. One lock.
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
        let Body { transport, core } = self.body_mut();
        let mut found = 0;
        let mut next: fn(&mut Core, &mut dyn Transport) -> Option<&'static Slot> = next_of_queue;
        let told = core.tells_room();
        if core.is_handle_in_use() || core.is_armed() || core.has_event() {
            transport.progress(core);
        } else {
            // Nobody waits on the handle: messages need not pass through the queue.
            next = next_of_any;
        }
        while found < most
            && let Some(slot) = next(core, &mut **transport)
        {
            take(slot);
            found += 1;
        }
        if found == 0 && most > 0 {
            if told {
                core.forget_room();
            }
            if core.is_handle_in_use() {
                if core.is_armed() {
                    core.note_empty();
                } else {
                    transport.leave_edge(core);
                }
            }
        }
        if core.is_armed() {
            transport.settle(core);
        }
        if found == 0 && most > 0 && core.holds_all_recv() { Err(PollError::NoBuffers) } else { Ok(found) }
    }
}

fn next_of_queue(core: &mut Core, _: &mut dyn Transport) -> Option<&'static Slot> {
    core.pop()
}

fn next_of_any(core: &mut Core, transport: &mut dyn Transport) -> Option<&'static Slot> {
    if core.has_event() { core.pop() } else { transport.poll(core) }
}
