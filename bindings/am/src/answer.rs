//! What calls answer, and the boundary that no panic crosses.

use crate::dialect::Dialect;
use crate::refusal::{Answer, Refusal};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
