//! What calls answer, and the boundary that no panic crosses.

use crate::dialect::Dialect;
use crate::refusal::{Answer, Refusal};
use cci_mem::boundary::{caught, uncancelled};
use std::ffi::c_int;

/// Runs a call: its code, in the numbers of the dialect.
#[inline]
pub(crate) fn answer<D: Dialect>(name: &str, act: impl FnOnce() -> Answer) -> c_int {
    match caught(act, || Err(Refusal::Resource("a mistake of the library; please report it"))) {
        Ok(()) => 0,
        Err(refusal) => refused::<D>(name, refusal),
    }
}

/// Runs a call off the fast path that has no code for a failure; a panic in it becomes `otherwise`.
pub(crate) fn guarded<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    caught(|| uncancelled(act), || otherwise)
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
    // One write, so that lines of several processes do not mix. A write is a cancellation point.
    let line = format!("{name}: {sentence}\n");
    uncancelled(|| eprint!("{line}"));
}
