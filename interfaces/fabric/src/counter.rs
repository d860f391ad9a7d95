//! Counters.

use crate::code::Code;
use crate::domain::{Domain, Open};
use crate::watch::{Source, Watch};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Default)]
struct Count {
    done: u64,
    failed: u64,
}

/// Counts operations that have ended, each once. Serves several endpoints, and any thread; clones
/// are the same counter.
///
/// # Example
///
/// ```
/// use cci_fabric::{Code, Counter, Domain};
///
/// let counter = Counter::open(&Domain::open()?);
/// counter.add(3);
/// assert_eq!((counter.read(), counter.read_failed()), (3, 0));
/// assert_eq!(counter.wait(3, None), Ok(()));
/// # Ok::<(), Code>(())
/// ```
#[derive(Clone)]
pub struct Counter(Arc<Shared>);

struct Shared {
    watch: Watch<Count>,
    _open: Open,
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { done, failed } = self.0.watch.enter().value;
        write!(f, "Counter({done}, {failed} failed)")
    }
}

impl Counter {
    /// Opens one that has counted nothing.
    #[must_use]
    pub fn open(domain: &Domain) -> Self {
        let watch = Watch::new(Count::default(), domain.is_crowded());
        Self(Arc::new(Shared { watch, _open: domain.count() }))
    }

    /// Makes progress, and returns how many operations have ended well.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.watch.progress();
        self.0.watch.enter().value.done
    }

    /// Makes progress, and returns how many have failed.
    #[must_use]
    pub fn read_failed(&self) -> u64 {
        self.0.watch.progress();
        self.0.watch.enter().value.failed
    }

    /// Adds to those that have ended well.
    pub fn add(&self, more: u64) {
        self.0.watch.change(|count| count.done = count.done.wrapping_add(more));
    }

    /// Adds to those that have failed.
    pub fn add_failed(&self, more: u64) {
        self.0.watch.change(|count| count.failed = count.failed.wrapping_add(more));
    }

    /// Sets the number of those that have ended well.
    pub fn set(&self, value: u64) {
        self.0.watch.change(|count| count.done = value);
    }

    /// Sets the number of those that have failed.
    pub fn set_failed(&self, value: u64) {
        self.0.watch.change(|count| count.failed = value);
    }

    /// Waits until so many have ended well, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Code::Available`]: one has failed meanwhile. [`Code::TimedOut`]. No descriptor.
    pub fn wait(&self, threshold: u64, limit: Option<Duration>) -> Result<(), Code> {
        let failed = self.read_failed();
        let ready = |count: &mut Count| match *count {
            Count { done, .. } if done >= threshold => Some(Ok(())),
            Count { failed: now, .. } if now != failed => Some(Err(Code::Available)),
            _ => None,
        };
        match self.0.watch.wait(limit, ready) {
            Ok(result) => result,
            Err(Code::Again) => Err(Code::TimedOut),
            Err(why) => Err(why),
        }
    }

    /// Whether an endpoint has it.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn attach(&self, core: &Arc<dyn Source>) -> Result<(), Code> {
        self.0.watch.attach(core)
    }

    /// Has those look again who sleep.
    pub(crate) fn nudge(&self) {
        self.0.watch.nudge();
    }

    pub(crate) fn detach(&self, core: &Arc<dyn Source>) {
        self.0.watch.detach(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_by_the_number_by_a_failure_and_by_time() -> Result<(), Code> {
        let counter = Counter::open(&Domain::open()?);
        assert_eq!(counter.wait(1, Some(Duration::from_millis(1))), Err(Code::TimedOut));
        for fails in [false, true] {
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| counter.wait(1, None));
                while !counter.0.watch.has_sleeper() {
                    std::thread::yield_now();
                }
                if fails {
                    counter.add_failed(1);
                } else {
                    counter.add(1);
                }
                assert_eq!(waits.join().expect("no panic"), if fails { Err(Code::Available) } else { Ok(()) });
            });
            counter.set(0);
        }
        assert_eq!(counter.read_failed(), 1);
        counter.set_failed(0);
        assert_eq!(counter.read_failed(), 0);
        Ok(())
    }
}
