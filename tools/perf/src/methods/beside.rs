//! A measurement, and beside it what the other end does meanwhile: two threads, each on a processor
//! of its own.

use crate::machine::{pin, two_processors};
use cci_report::{UserError, while_doing};
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the other thread that all is over, also when the measurement has failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What `measured` finds, while `serve` runs until it sees that all is over. The caller's thread
/// stays where it may run.
pub(super) fn beside<T: Send>(
    serve: impl FnOnce(&AtomicBool) + Send,
    measured: impl FnOnce() -> Result<T, UserError> + Send,
) -> Result<T, UserError> {
    let [here, there] = two_processors();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pin(there);
            serve(&is_over);
        });
        let measured = scope.spawn(|| {
            let _over = Over(&is_over);
            pin(here).map_err(while_doing("cannot pin this process to its processor"))?;
            measured()
        });
        measured.join().unwrap_or_else(|_| Err(UserError::new("the measuring thread failed")))
    })
}
