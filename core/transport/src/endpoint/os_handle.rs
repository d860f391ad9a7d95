//! The OS handle: whether the program has it or waits on it, and whether it is armed.

mod core;

/// The state of the OS handle.
#[derive(Default)]
pub(super) struct OsHandle {
    /// The program has it, for ever.
    is_handed_out: bool,
    /// Waits within the library, which end.
    waits: u32,
    /// There was such a wait, and there may be another one.
    was_waited_on: bool,
    is_armed: bool,
}

impl OsHandle {
    /// Whether somebody may sleep on it, now or later.
    pub(super) fn may_be_used(&self) -> bool {
        self.is_handed_out || self.was_waited_on
    }

    pub(super) fn is_armed(&self) -> bool {
        self.is_armed
    }
}
