//! Threads of the library, to which no signal of the program is delivered.
//!
//! A thread inherits the signal mask of its creator. So all signals are blocked while a thread
//! starts, but those that the thread's own faults raise: a program's handler reports them for
//! this thread as for any other.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::io::Result;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Bytes of the stack of a thread that runs code of the program, or of libraries that are not ours:
/// those of Rust's own threads.
pub const STACK: usize = 2 << 20;

/// Signals that a fault raises in the thread that made it. Blocked, they would end the process
/// without its handler.
const FAULTS: [Signal; 6] =
    [Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGSEGV, Signal::SIGSYS, Signal::SIGTRAP];

/// Runs `start` with all signals blocked but those of faults.
fn quietly<T>(start: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut blocked = SigSet::all();
    FAULTS.into_iter().for_each(|fault| blocked.remove(fault));
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = start();
    let _ = before.thread_set_mask();
    started
}

/// Starts a thread with all signals blocked, but those of its own faults.
///
/// ```
/// let thread = cci_mem::quiet_thread::spawn("quiet", 64 << 10, || ())?;
/// assert!(thread.join().is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// The system has none to give.
pub fn spawn(name: &str, stack: usize, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    quietly(|| Builder::new().name(name.into()).stack_size(stack).spawn(run))
}

/// As [`spawn`], for a thread that ends before its scope does.
///
/// # Errors
///
/// As [`spawn`].
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    stack: usize,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    quietly(|| Builder::new().name(name.into()).stack_size(stack).spawn_scoped(scope, run))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals that are blocked in the calling thread.
    fn blocked() -> SigSet {
        SigSet::thread_get_mask().expect("a mask")
    }

    #[test]
    fn all_signals_are_blocked_but_those_of_faults_and_the_caller_keeps_its_own() {
        let before = blocked();
        let of_scoped = std::thread::scope(|scope| {
            spawn_scoped(scope, "quiet", STACK, blocked).expect("a thread").join().expect("ends")
        });
        let (end, ended) = std::sync::mpsc::channel();
        let thread = spawn("quiet", STACK, move || end.send(blocked()).expect("a receiver")).expect("a thread");
        thread.join().expect("ends");
        for mask in [of_scoped, ended.recv().expect("a mask")] {
            let never = [Signal::SIGKILL, Signal::SIGSTOP];
            let delivered = Signal::iterator().filter(|signal| !mask.contains(*signal) && !never.contains(signal));
            let (mut delivered, mut faults) = (delivered.collect::<Vec<_>>(), FAULTS.to_vec());
            delivered.sort_unstable_by_key(|signal| *signal as i32);
            faults.sort_unstable_by_key(|signal| *signal as i32);
            assert_eq!(delivered, faults);
        }
        assert_eq!(blocked(), before);
    }
}
