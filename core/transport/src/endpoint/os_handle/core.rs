//! The methods of [`Core`] for the OS handle.

use crate::Core;

impl Core {
    /// Records that the program has asked for the OS handle. From now on the transport arms it
    /// after a few empty calls.
    pub fn set_handle_in_use(&mut self) {
        self.handle.is_handed_out = true;
    }

    /// Begins a wait within the library: until its end the handle is in use. The wait looks for
    /// events itself before it sleeps.
    pub fn begin_wait(&mut self) {
        self.handle.waits += 1;
        self.handle.was_waited_on = true;
    }

    /// Ends a wait. The handle stays armed for the next one, until the program polls for long.
    pub fn end_wait(&mut self) {
        self.handle.waits = self.handle.waits.saturating_sub(1);
    }

    /// Whether somebody may sleep on the OS handle: the program has asked for it, or a wait within
    /// the library has begun and not ended.
    #[inline(always)]
    #[must_use]
    pub fn is_handle_in_use(&self) -> bool {
        self.handle.is_handed_out || self.handle.waits > 0
    }

    /// Whether the OS handle is armed for a wait that is over, and nobody sleeps on it.
    #[inline]
    #[must_use]
    pub(crate) fn is_armed_after_wait(&self) -> bool {
        self.handle.is_armed && self.handle.was_waited_on && !self.is_handle_in_use()
    }

    /// Records that the transport has armed the OS handle. Every call then ends with
    /// [`Transport::settle`](crate::Transport::settle).
    #[inline]
    pub fn on_armed(&mut self) {
        self.handle.is_armed = true;
    }

    /// Records that the transport has disarmed the OS handle.
    #[inline]
    pub fn on_disarmed(&mut self) {
        self.handle.is_armed = false;
    }

    /// Whether the OS handle is armed.
    #[inline(always)]
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.handle.is_armed
    }
}
