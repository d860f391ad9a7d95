//! The methods of [`Core`] for slots.

use super::SWEEP;
use crate::endpoint::shortage;
use crate::{Core, Slot};
use cci_proto::OptionError;

impl Core {
    /// A slot for an arriving message. `released` sees slots that the program has returned, to free
    /// what they hold.
    #[inline]
    pub fn take_recv(&mut self, released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        self.slots.take_recv(released)
    }

    /// A slot for a connection request, of those that messages may not take. None: all of them have
    /// requests, and another one takes its turn among messages. `released` as for
    /// [`Core::take_recv`].
    pub fn take_recv_for_request(&mut self, released: impl FnMut(&'static Slot)) -> Option<&'static Slot> {
        self.slots.take_for_request(released)
    }

    /// The only receive slot that is taken, if the program has returned it: to be filled and handed
    /// out again (`Pool::sole_returned`).
    #[inline(always)]
    #[must_use]
    pub fn sole_returned_recv(&self) -> Option<&'static Slot> {
        self.slots.recv.sole_returned()
    }

    /// The only receive slot that is taken, whoever has it.
    #[inline(always)]
    #[must_use]
    pub fn sole_recv(&self) -> Option<&'static Slot> {
        self.slots.recv.sole()
    }

    /// Frees receive slots that the program has returned, a few at a time.
    #[inline]
    pub fn sweep_recv(&mut self, released: impl FnMut(&'static Slot)) {
        self.slots.recv.sweep(SWEEP, released);
    }

    /// Whether [`Core::sweep_recv`] could find something.
    #[inline(always)]
    #[must_use]
    pub fn has_borrowed_recv(&self) -> bool {
        self.slots.recv.borrowed() > 0
    }

    /// Frees all receive slots that the program has returned.
    pub fn sweep_all_recv(&mut self, released: impl FnMut(&'static Slot)) {
        self.slots.recv.sweep_all(released);
        if !self.slots.asked.is_empty() {
            self.slots.check_requests();
        }
    }

    /// A slot for a send or a control event.
    #[inline]
    pub fn take_send(&mut self) -> Option<&'static Slot> {
        let slot = self.slots.take_send();
        if slot.is_none() {
            self.begin_shortage_of(shortage::SEND);
        }
        slot
    }

    /// The slot that the last send had, if it is back: what [`Core::take_send`] gives in the usual
    /// case, for less.
    #[inline(always)]
    pub fn take_last_send(&mut self) -> Option<&'static Slot> {
        self.slots.send.take_last()
    }

    /// A send slot, if more than half of them are free: for events that a stranger causes, who is
    /// to take none from the program.
    pub fn take_spare_send(&mut self) -> Option<&'static Slot> {
        self.slots.send.sweep(SWEEP, |_| ());
        if self.slots.send.in_use() * 2 < self.slots.send.limit() { self.take_send() } else { None }
    }

    /// A slot for an RMA.
    #[inline]
    pub fn take_rma(&mut self) -> Option<&'static Slot> {
        let slot = self.slots.take_rma();
        if slot.is_none() {
            self.begin_shortage_of(shortage::RMA);
        }
        slot
    }

    /// Gives back a slot that no event has shown.
    pub fn release(&mut self, slot: &'static Slot) {
        self.slots.pool_of(slot).release(slot);
    }

    /// Whether the program holds every receive slot.
    #[must_use]
    pub fn holds_all_recv(&self) -> bool {
        self.slots.recv.all_borrowed() && self.others_hold_all_recv()
    }

    /// Receive slots for messages: limit and capacity, of the current way.
    #[must_use]
    pub fn recv_count(&self) -> (usize, usize) {
        (self.slots.recv_limit, self.slots.recv.capacity().saturating_sub(self.slots.for_requests))
    }

    /// All receive slots of a way, those for connection requests among them: who has a payload for
    /// each needs so many.
    #[must_use]
    pub fn recv_slots(&self) -> usize {
        self.slots.recv.capacity()
    }

    /// Receive slots that could be taken now, without those that the program has returned lately.
    #[must_use]
    pub fn recv_free(&self) -> usize {
        self.slots.recv.limit().saturating_sub(self.slots.recv.in_use())
    }

    /// Send slots: limit and capacity.
    #[must_use]
    pub fn send_count(&self) -> (usize, usize) {
        (self.slots.send_limit, self.slots.send.capacity())
    }

    /// Sets so many of the send slots aside for answers.
    ///
    /// # Errors
    ///
    /// So many leave none for other sends.
    pub fn set_answer_count(&mut self, count: usize) -> Result<(), OptionError> {
        if count >= self.slots.send_limit {
            return Err(OptionError::Range);
        }
        self.slots.answers = count;
        self.slots.limit_sends();
        Ok(())
    }

    /// Send slots that only answers may take.
    #[must_use]
    pub fn answer_count(&self) -> usize {
        self.slots.answers
    }

    /// Runs `send`, which may take the send slots that are set aside for answers.
    pub fn answering<T>(&mut self, send: impl FnOnce(&mut Self) -> T) -> T {
        self.slots.send.set_limit(self.slots.send_limit);
        let sent = send(self);
        self.slots.limit_sends();
        sent
    }

    /// RMA slots.
    #[must_use]
    pub fn rma_count(&self) -> usize {
        self.slots.rma.capacity()
    }

    /// Changes the number of receive slots.
    ///
    /// # Errors
    ///
    /// None, or more than the endpoint was opened with.
    pub fn set_recv_count(&mut self, count: u32) -> Result<(), OptionError> {
        let limit = in_range(count, self.recv_count().1)?;
        self.slots.set_recv_limit(limit);
        self.set_recv_limit_of_ways(limit);
        Ok(())
    }

    /// Changes the number of send slots.
    ///
    /// # Errors
    ///
    /// Those for answers would leave none for other sends, or the endpoint was opened with fewer.
    pub fn set_send_count(&mut self, count: u32) -> Result<(), OptionError> {
        let count = in_range(count, self.slots.send.capacity())?;
        if count <= self.slots.answers {
            return Err(OptionError::Range);
        }
        self.slots.send_limit = count;
        self.slots.limit_sends();
        Ok(())
    }
}

fn in_range(count: u32, capacity: usize) -> Result<usize, OptionError> {
    let count = count as usize;
    if count == 0 || count > capacity { Err(OptionError::Range) } else { Ok(count) }
}
