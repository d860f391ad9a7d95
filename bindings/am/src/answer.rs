//! What calls answer, and the boundary that no panic crosses.

use crate::dialect::Dialect;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call was refused. The dialects number these differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotInit,
    /// `AM_Init` without `AM_Terminate` before: of the dialect of 1996 alone.
    NotTerm,
    BadArg(&'static str),
    Resource(&'static str),
    /// An answer that is no mistake of the program, of whom nothing is said.
    No,
    NotSent(&'static str),
}

impl Refusal {
    fn sentence(self) -> &'static str {
        match self {
            Self::NotInit => "the library is not initialised; call AM_Init first",
            Self::NotTerm => "the library is initialised already; call AM_Terminate before",
            Self::No => "no",
            Self::BadArg(why) | Self::Resource(why) | Self::NotSent(why) => why,
        }
    }
}

pub(crate) type Answer = Result<(), Refusal>;

/// What a handler may not do.
pub(crate) const IN_HANDLER: Refusal = Refusal::Resource("a handler of this bundle runs; call after it has returned");

/// A variable that C programs set before they start threads.
#[repr(transparent)]
pub(crate) struct Shared<T>(UnsafeCell<T>);

// SAFETY: set by the program's one thread, by the contract of the headers.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> T {
        // SAFETY: see `Sync`.
        unsafe { self.0.get().read() }
    }
}

/// Runs a call: its code, in the numbers of the dialect.
#[inline]
pub(crate) fn answer<D: Dialect>(name: &str, act: impl FnOnce() -> Answer) -> c_int {
    let done = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| {
        // Its destructor could panic in turn.
        std::mem::forget(payload);
        Err(Refusal::Resource("a mistake of the library; please report it"))
    });
    match done {
        Ok(()) => 0,
        Err(refusal) => refused::<D>(name, refusal),
    }
}

/// Runs a call that has no code for a failure; a panic in it becomes `otherwise`.
pub(crate) fn guarded<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| {
        // Its destructor could panic in turn.
        std::mem::forget(payload);
        otherwise
    })
}

#[cold]
fn refused<D: Dialect>(name: &str, refusal: Refusal) -> c_int {
    if D::is_verbose() && refusal != Refusal::No {
        say(name, refusal.sentence());
    }
    D::code(refusal)
}

#[expect(clippy::print_stderr, reason = "the program has asked for it by AMX_VerboseErrors")]
pub(crate) fn say(name: &str, sentence: &str) {
    // One write, so that lines of several processes do not mix.
    let line = format!("{name}: {sentence}\n");
    eprint!("{line}");
}
