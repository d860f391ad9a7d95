//! What calls return, and the boundary that no panic crosses.

use cci_mem::arguments::Out;
use cci_mem::boundary::caught;
use cci_sci::Error;
use std::ffi::{c_char, c_int, c_uint};

/// Why a call was refused: a code of SISCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) c_uint);

impl From<Error> for Refusal {
    fn from(why: Error) -> Self {
        Self(why.code())
    }
}

/// Codes that the engine does not have.
pub(crate) const FLAG_NOT_IMPLEMENTED: Refusal = Refusal(0x4000_0901);
pub(crate) const NOT_IMPLEMENTED: Refusal = Refusal(0x4000_0907);
pub(crate) const ILLEGAL_FLAG: Refusal = Refusal(0x4000_0902);
pub(crate) const NO_SUCH_ADAPTER: Refusal = Refusal(0x4000_0909);
pub(crate) const ILLEGAL_QUERY: Refusal = Refusal(0x4000_0917);
pub(crate) const TRANSFER_FAILED: Refusal = Refusal(0x4000_0a06);
/// A pointer that must lead somewhere is NULL, or a handle is none.
pub(crate) const WRONG: Refusal = Refusal(0x4000_0912);

/// Where a call puts its code.
pub(crate) type Code<'call> = Out<'call, c_uint>;

pub(crate) type Answer<R> = Result<R, Refusal>;

/// Runs a call, and writes its code.
#[inline]
pub(crate) fn answer<R>(error: Code<'_>, otherwise: R, act: impl FnOnce() -> Answer<R>) -> R {
    let (result, code) = match caught(act, || Err(Error::System.into())) {
        Ok(result) => (result, 0),
        Err(Refusal(code)) => (otherwise, code),
    };
    error.offer(code);
    result
}

/// What a call gives that has panicked before it could put a code anywhere.
pub(crate) trait Otherwise {
    const OTHERWISE: Self;
}

impl Otherwise for () {
    const OTHERWISE: Self = ();
}

impl Otherwise for c_int {
    const OTHERWISE: Self = 0;
}

impl Otherwise for c_uint {
    const OTHERWISE: Self = 0;
}

impl Otherwise for usize {
    const OTHERWISE: Self = 0;
}

impl<T> Otherwise for *const T {
    const OTHERWISE: Self = std::ptr::null();
}

impl<T> Otherwise for *mut T {
    const OTHERWISE: Self = std::ptr::null_mut();
}

/// Runs a call: no panic crosses it, even of one that does not use [`answer`].
#[inline]
pub(crate) fn guarded<R: Otherwise>(act: impl FnOnce() -> R) -> R {
    caught(act, || R::OTHERWISE)
}

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`, and `PTHREAD_CANCEL_DEFERRED`.
const HELD: c_int = 1;
const DEFERRED: c_int = 0;

/// How a thread may be cancelled.
#[derive(Clone, Copy)]
pub(crate) struct Cancellation {
    state: c_int,
    kind: c_int,
}

/// Has a thread of the program that is cancelled go on until the call ends: its stack would be
/// unwound through the library, which may hold locks. How it could be cancelled before.
#[inline]
pub(crate) fn hold_cancellation() -> Cancellation {
    let mut before = Cancellation { state: HELD, kind: DEFERRED };
    // Both: a signal that is on its way looks at the kind alone.
    // SAFETY: the system writes what was before.
    unsafe {
        pthread_setcanceltype(DEFERRED, &raw mut before.kind);
        pthread_setcancelstate(HELD, &raw mut before.state);
    }
    before
}

/// Lets the thread be cancelled as before.
#[inline]
pub(crate) fn release_cancellation(before: Cancellation) {
    // SAFETY: what the system has given. It may end the thread here.
    unsafe {
        pthread_setcancelstate(before.state, std::ptr::null_mut());
        pthread_setcanceltype(before.kind, std::ptr::null_mut());
    }
}

/// Refuses NULL where memory must be given.
pub(crate) fn check<T>(to: *mut T) -> Answer<()> {
    if to.is_null() { Err(WRONG) } else { Ok(()) }
}

/// Declares the texts that C programs get, each with its NUL.
macro_rules! texts {
    ($($code:pat => $text:literal,)+) => {
        fn own_text(code: c_uint) -> Option<&'static str> {
            Some(match code {
                $($code => concat!($text, "\0"),)+
                _ => return None,
            })
        }
    };
}

texts! {
    0 => "success",
    0x4000_0901 => "this library does not have the flag yet; call without it",
    0x4000_0902 => "the call does not have the flag; call without it",
    0x4000_0905 | 0x4000_0906 => "no space of this kind is left; free some",
    0x4000_0908 | 0x4000_0909 => "there is no such adapter; name adapter 0",
    0x4000_0910 => "the size is not aligned; align it",
    0x4000_0912 => "an argument is out of range, a pointer is NULL, or a handle is none; pass what a call has returned",
    0x4000_0915 => "the address is none of the object; pass one of its own",
    0x4000_0917 => "there is no such query; name one that the header defines",
    0x4000_091c => "the object is not available; try again",
    0x4000_091d => "program and library have other versions; compile the program with this library's headers",
    0x4000_091e => "another interrupt came meanwhile; try again",
    0x4000_0a04 | 0x4000_0a05 => "the link does not work; try again",
    0x4000_0a06 => "the transfer has failed: the connection to the segment is no more; connect again",
}

/// The text of a code, which stays.
pub(crate) fn error_string(code: c_uint) -> *const c_char {
    if let Some(text) = own_text(code) {
        return text.as_ptr().cast();
    }
    Error::from_code(code).map_or(c"no code of SISCI", Error::c_text).as_ptr()
}
