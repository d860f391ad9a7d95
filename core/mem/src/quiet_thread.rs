//! Threads of the library, to which no signal of the program is delivered.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::thread::{Builder, JoinHandle};

/// Starts a thread with all signals blocked.
///
/// # Errors
///
/// The system has none to give.
pub fn spawn(name: &str, stack: usize, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    // A thread inherits its creator's signal mask, so that no signal is ever delivered to it.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let thread = Builder::new().name(name.into()).stack_size(stack).spawn(run);
    let _ = before.thread_set_mask();
    thread
}
