//! The thread of a domain whose endpoints go on while the program makes no call
//! (`FI_PROGRESS_AUTO`).

use crate::code::Code;
use crate::watch::{Source, Watch};
use cci_mem::quiet_thread;
use std::sync::Arc;
use std::time::Duration;

/// How long it leaves the endpoints to a program that has just called: no partner has to wake the
/// thread meanwhile.
const PAUSE: Duration = Duration::from_millis(1);

/// Sleeps on the endpoints of a domain, and has them go on. Ends when it is told to, or with the
/// process; a forked child has none.
pub(crate) struct Driver {
    /// Whether it is to end.
    watch: Watch<bool>,
}

impl Driver {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// [`Code::TooManyFiles`], [`Code::NoMemory`]: there is no descriptor, or no thread.
    pub(crate) fn start() -> Result<Arc<Self>, Code> {
        let driver = Arc::new(Self { watch: Watch::new(false, false) });
        driver.watch.wake()?;
        let of_thread = Arc::clone(&driver);
        let started = quiet_thread::spawn("cci-fabric", quiet_thread::STACK, move || of_thread.run());
        // Nobody waits for its end: it may be asleep in what a program closes.
        started.map(|_| driver).map_err(|_| Code::NoMemory)
    }

    pub(crate) fn attach(&self, source: &Arc<dyn Source>) -> Result<(), Code> {
        self.watch.attach(source)?;
        self.watch.nudge();
        Ok(())
    }

    pub(crate) fn detach(&self, source: &Arc<dyn Source>) {
        self.watch.detach(source);
    }

    /// Has the thread end.
    pub(crate) fn end(&self) {
        self.watch.change(|is_over| *is_over = true);
    }

    fn run(&self) {
        let mut before = None;
        while !self.watch.enter().value {
            let calls = Some(self.watch.drive());
            // Both fail only without the descriptor that `start` has made.
            let _ = if calls == before {
                self.watch.sleep(None, |held| held.value.then_some(()))
            } else {
                self.watch.rest(PAUSE)
            };
            before = calls;
        }
    }
}
