//! Receives that wait for messages.

use crate::classes::Classes;
use crate::pattern::{Envelope, Offer, Pattern};
use crate::{NoMemory, Ticket};

/// Posted receives: a message goes to the oldest that matches.
///
/// Posting, taking and cancelling cost the same however many receives there are. Nothing is
/// allocated while their number stays below what it has been.
///
/// # Example
///
/// ```
/// use cci_matching::{Envelope, Pattern, Posted};
///
/// let mut posted = Posted::new();
/// posted.post(Pattern::new(0, 0, 7, !0), 1)?;
/// posted.post(Pattern::exact(4, 7), 2)?;
/// let message = Envelope { source: 4, bits: 7 };
/// assert_eq!([posted.take(&message), posted.take(&message), posted.take(&message)], [Some(1), Some(2), None]);
/// # Ok::<(), cci_matching::NoMemory<i32>>(())
/// ```
#[derive(Debug)]
pub struct Posted<T> {
    classes: Classes<T>,
    /// The next receive's place in the order.
    next: u64,
}

impl<T> Posted<T> {
    /// Creates a queue without receives.
    #[must_use]
    pub const fn new() -> Self {
        Self { classes: Classes::new(), next: 0 }
    }

    /// Posts a receive behind all others.
    ///
    /// # Errors
    ///
    /// There is no memory.
    #[inline]
    pub fn post(&mut self, pattern: Pattern, item: T) -> Result<Ticket, NoMemory<T>> {
        let ticket = self.classes.insert_last(pattern, self.next, item)?;
        self.next += 1;
        Ok(ticket)
    }

    /// Takes out the oldest receive that matches a message.
    #[inline]
    pub fn take(&mut self, message: &Envelope) -> Option<T> {
        self.classes.take(message)
    }

    /// Returns the oldest receive that matches a message, and leaves it in the queue.
    pub fn peek(&mut self, message: &Envelope) -> Option<(Ticket, &T)> {
        let at = self.classes.find(message, Offer::NONE, |_, _| true)?;
        let ticket = self.classes.entries.key(at);
        self.classes.entries.at(at).map(|entry| (ticket, &entry.item))
    }

    /// Takes out a receive that no message has matched.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        self.classes.entries.get(ticket)?;
        self.classes.remove(ticket.index).map(|entry| entry.item)
    }

    /// The number of receives.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Default for Posted<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_is_what_is_taken() {
        let mut random = fastrand::Rng::with_seed(52);
        let mut posted = Posted::new();
        for number in 0..5_000 {
            let (source, bits) = (random.u64(..4), random.u64(..4));
            if random.bool() {
                let (source_mask, mask) = (if random.bool() { 0 } else { !0 }, if random.bool() { 0 } else { !0 });
                posted.post(Pattern::new(source, source_mask, bits, mask), number).expect("memory");
                continue;
            }
            let message = Envelope { source, bits };
            let seen = posted.peek(&message).map(|(ticket, item)| (ticket, *item));
            if let Some((ticket, item)) = seen.filter(|_| random.bool()) {
                assert_eq!(posted.cancel(ticket), Some(item));
            } else {
                assert_eq!(posted.take(&message), seen.map(|(_, item)| item));
            }
        }
    }
}
