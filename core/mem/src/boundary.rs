//! The boundary to C programs, which no panic crosses.

use crate::cancellation::Uncancelled;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call of a C program, or what stands for a call that has panicked.
///
/// # Example
///
/// ```
/// let code = cci_mem::boundary::caught(|| std::panic::resume_unwind(Box::new(())), || 7);
/// assert_eq!(code, 7);
/// ```
#[inline]
pub fn caught<R>(call: impl FnOnce() -> R, otherwise: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        // Its destructor could panic in turn.
        std::mem::forget(payload);
        otherwise()
    })
}

/// Runs a call off the fast path, in which no thread is cancelled (`pthread_cancel`): it opens,
/// closes or looks up, which reaches cancellation points of the C library. A thread that was
/// cancelled meanwhile ends at its next cancellation point after the call.
///
/// # Example
///
/// ```
/// assert_eq!(cci_mem::boundary::uncancelled(|| 7), 7);
/// ```
#[inline]
pub fn uncancelled<R>(call: impl FnOnce() -> R) -> R {
    let _held = Uncancelled::new();
    call()
}
