//! The OS handle: whether the program has it, and whether it is armed.

use super::Core;

/// The state of the OS handle.
#[derive(Default)]
pub(super) struct OsHandle {
    is_in_use: bool,
    is_armed: bool,
}

impl OsHandle {
    pub(super) fn is_in_use(&self) -> bool {
        self.is_in_use
    }

    pub(super) fn is_armed(&self) -> bool {
        self.is_armed
    }
}

impl Core {
    /// Records that the program has asked for the OS handle. From now on the transport arms it
    /// after a few empty calls.
    pub fn set_handle_in_use(&mut self) {
        self.handle.is_in_use = true;
    }

    /// Whether the program has asked for the OS handle.
    #[inline(always)]
    #[must_use]
    pub fn is_handle_in_use(&self) -> bool {
        self.handle.is_in_use
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
