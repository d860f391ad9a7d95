//! Receives that wait for messages.

use crate::classes::Classes;
use crate::pattern::{Envelope, Pattern};
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
