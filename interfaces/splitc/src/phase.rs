//! Split phases: gets and puts that are complete at their end.

use crate::fault::Fault;
use crate::number::Plain;
use crate::pointer::Global;
use crate::sys::{Target, view};
use crate::world::World;
use cci_mem::sync::{Ordering, fence};
use std::fmt;
use std::marker::PhantomData;

/// A split phase ([`World::split`]): what it gets is there, and what it puts is in place, once it
/// has ended. It lends its destinations until then.
///
/// # Example
///
/// ```no_run
/// cci_splitc::run(|world| {
///     let array = world.spread::<u32>(2)?;
///     let (mut a, mut b) = (0, 0);
///     world.split(|phase| {
///         phase.get(&mut a, array.at(0));
///         phase.get(&mut b, array.at(1));
///     })?;
///     assert_eq!((a, b), (0, 0));
///     Ok(())
/// })?
/// # ; Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Phase<'scope, 'env: 'scope> {
    world: &'scope World,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Phase<'scope, '_> {
    /// Gets a value.
    #[inline]
    pub fn get<T: Plain>(&'scope self, into: &'scope mut T, from: Global<T>) {
        self.get_bulk(std::slice::from_mut(into), from);
    }

    /// Gets values that follow each other on one rank.
    #[inline]
    pub fn get_bulk<T: Plain>(&'scope self, into: &'scope mut [T], from: Global<T>) {
        let started = self.world.safe_parts(from, into.len());
        self.note(
            started
                .and_then(|(rank, address)| self.world.start_read(rank, address, Target::of(into), false).map(|_| ())),
        );
    }

    /// Puts a value.
    #[inline]
    pub fn put<T: Plain>(&'scope self, to: Global<T>, value: T) {
        self.put_bulk(to, &[value]);
    }

    /// Puts values that follow each other on one rank. They are the caller's again on return.
    #[inline]
    pub fn put_bulk<T: Plain>(&'scope self, to: Global<T>, values: &[T]) {
        let started = self.world.safe_parts(to, values.len());
        self.note(
            started.and_then(|(rank, address)| self.world.start_write(rank, address, view(values), false).map(|_| ())),
        );
    }

    fn note(&self, outcome: Result<(), Fault>) {
        if let Err(fault) = outcome {
            self.world.traffic.borrow_mut().note(fault);
        }
    }
}

impl fmt::Debug for Phase<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phase of {:?}", self.world)
    }
}

/// Ends the split-phase operations of a scope, also where it unwinds: what they lend is the
/// caller's again afterwards.
struct Ending<'w>(&'w World);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if self.0.sync().is_err() {
            self.0.traffic.borrow_mut().cancel();
        }
    }
}

impl World {
    /// Runs a split phase, and returns once all of its gets and puts are complete.
    ///
    /// # Errors
    ///
    /// The first fault among them, or of stores before. The others are complete, or have been
    /// given up.
    pub fn split<'env, R>(
        &'env self,
        phase: impl for<'scope> FnOnce(&'scope Phase<'scope, 'env>) -> R,
    ) -> Result<R, Fault> {
        let scope = Phase { world: self, scope: PhantomData, env: PhantomData };
        let ending = Ending(self);
        let result = phase(&scope);
        self.sync()?;
        // Nothing is under way any more. After a fault the others are ended, or given up.
        std::mem::forget(ending);
        Ok(result)
    }

    /// Waits until all gets, puts and stores of this rank are complete.
    ///
    /// # Errors
    ///
    /// The first fault among them.
    pub fn sync(&self) -> Result<(), Fault> {
        fence(Ordering::SeqCst);
        self.flush_stores();
        let mut looks = 0;
        while !self.traffic.borrow().requests.is_idle() {
            self.look(&mut looks)?;
        }
        self.traffic.borrow_mut().take_fault().map_or(Ok(()), Err)
    }
}
