//! What the progress thread learns from a transport.

use std::time::Duration;

/// What is left to do after
/// [`Transport::step_in_background`](crate::Transport::step_in_background).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundWork {
    /// There is no work until the program makes a call.
    Done,
    /// There is more work.
    Pending {
        /// Time until the work is due if no frame arrives; `None`: it is due when a frame arrives.
        limit: Option<Duration>,
        /// Whether arriving frames wake the thread.
        watches: bool,
        /// The handle is armed: the program may sleep on it, and gets time to wake up and make the
        /// call itself.
        armed: bool,
    },
}
