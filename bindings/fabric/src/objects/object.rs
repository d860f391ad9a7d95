//! What all objects have in common.

use super::refused::refused;
use crate::boundary::guarded;
use cci_fabric::Code;
use cci_fabric_sys::{FI_EAGAIN, FI_EOTHER, fi_ops, fid};
use cci_mem::boundary::caught;
use std::ffi::{c_int, c_void};

/// An object: `C` is its structure in libfabric, which begins with a `fid`.
#[repr(C)]
pub(crate) struct Object<C, T> {
    c: C,
    own: T,
}

impl<C, T> Object<C, T> {
    /// Gives an object to C.
    pub(super) fn give(c: C, own: T) -> *mut C {
        Box::into_raw(Box::new(Self { c, own })).cast()
    }

    /// What is ours of an object.
    ///
    /// # Safety
    ///
    /// `at` was given by [`Object::give`] of this type, and is not taken back while the result is
    /// used.
    #[inline]
    pub(super) unsafe fn own<'a>(at: *mut impl Sized) -> &'a T {
        // SAFETY: the caller's promise; nobody has a mutable reference to what is ours.
        unsafe { &(*at.cast::<Self>()).own }
    }

    /// Takes an object back.
    ///
    /// # Safety
    ///
    /// As [`Object::own`]; nobody uses it any more.
    pub(super) unsafe fn take(at: *mut fid) {
        // SAFETY: it was made from a box of this type.
        drop(unsafe { Box::from_raw(at.cast::<Self>()) });
    }
}

/// A static table as the structures have it. libfabric reads it alone.
pub(super) const fn table<T>(of: &'static T) -> *mut T {
    std::ptr::from_ref(of).cast_mut()
}

/// The front of an object.
pub(super) const fn front(fclass: usize, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass, context, ops: table(ops) }
}

/// Calls that each object has; others are refused.
pub(super) const fn operations(close: unsafe extern "C" fn(*mut fid) -> c_int) -> fi_ops {
    fi_ops {
        size: size_of::<fi_ops>(),
        close: Some(close),
        bind: refused(),
        control: refused(),
        ops_open: refused(),
        tostr: refused(),
        ops_set: refused(),
    }
}

/// Runs a call that returns 0 or a negated code.
pub(super) fn answered(call: impl FnOnce() -> Result<(), Code>) -> c_int {
    guarded(|| call().map_err(|code| code as c_int))
}

/// Runs a call of the data path: as [`answered`].
#[inline]
pub(super) fn begun(call: impl FnOnce() -> Result<(), Code>) -> isize {
    match caught(call, || Err(Code::Other)) {
        Ok(()) => 0,
        Err(code) => -(code as isize),
    }
}

/// A number of entries, or a negated code.
#[inline]
pub(super) fn counted(call: impl FnOnce() -> Result<usize, Code>) -> isize {
    match caught(call, || Err(Code::Other)) {
        Ok(count) => count as isize,
        Err(code) => -(code as isize),
    }
}

const _: () = assert!(Code::Again as c_int == FI_EAGAIN && Code::Other as c_int == FI_EOTHER);
