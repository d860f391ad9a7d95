//! Objects of libfabric: what C has of each comes first in its memory, and what is ours behind it.

mod address;
mod counter;
mod domain;
mod endpoint;
mod event;
mod fabric;
mod memory;
mod message;
mod queue;
mod refused;
mod remote;
mod tagged;

pub(crate) use fabric::open as fabric;

use crate::boundary::guarded;
use cci_fabric::{Code, Segments};
use cci_fabric_sys::{FI_EAGAIN, FI_EOTHER, fi_ops, fid};
use cci_mem::boundary::caught;
use libc::iovec;
use refused::refused;
use std::ffi::{c_int, c_void};

/// An object: `C` is its structure in libfabric, which begins with a `fid`.
#[repr(C)]
pub(crate) struct Object<C, T> {
    c: C,
    own: T,
}

impl<C, T> Object<C, T> {
    /// Gives an object to C.
    fn give(c: C, own: T) -> *mut C {
        Box::into_raw(Box::new(Self { c, own })).cast()
    }

    /// What is ours of an object.
    ///
    /// # Safety
    ///
    /// `at` was given by [`Object::give`] of this type, and is not taken back while the result is
    /// used.
    #[inline]
    unsafe fn own<'a>(at: *mut impl Sized) -> &'a T {
        // SAFETY: the caller's promise; nobody has a mutable reference to what is ours.
        unsafe { &(*at.cast::<Self>()).own }
    }

    /// Takes an object back.
    ///
    /// # Safety
    ///
    /// As [`Object::own`]; nobody uses it any more.
    unsafe fn take(at: *mut fid) {
        // SAFETY: it was made from a box of this type.
        drop(unsafe { Box::from_raw(at.cast::<Self>()) });
    }
}

/// A static table as the structures have it. libfabric reads it alone.
const fn table<T>(of: &'static T) -> *mut T {
    std::ptr::from_ref(of).cast_mut()
}

/// The front of an object.
const fn front(fclass: usize, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass, context, ops: table(ops) }
}

/// Calls that each object has; others are refused.
const fn operations(close: unsafe extern "C" fn(*mut fid) -> c_int) -> fi_ops {
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
fn answered(call: impl FnOnce() -> Result<(), Code>) -> c_int {
    guarded(|| call().map_err(|code| code as c_int))
}

/// Runs a call of the data path: as [`answered`].
#[inline]
fn begun(call: impl FnOnce() -> Result<(), Code>) -> isize {
    match caught(call, || Err(Code::Other)) {
        Ok(()) => 0,
        Err(code) => -(code as isize),
    }
}

/// A number of entries, or a negated code.
#[inline]
fn counted(call: impl FnOnce() -> Result<usize, Code>) -> isize {
    match caught(call, || Err(Code::Other)) {
        Ok(count) => count as isize,
        Err(code) => -(code as isize),
    }
}

const _: () = assert!(Code::Again as c_int == FI_EAGAIN && Code::Other as c_int == FI_EOTHER);

/// The program's memory.
///
/// # Safety
///
/// The program leaves `len` bytes from `at` on to the operation until that has ended.
#[inline]
unsafe fn memory(at: *const c_void, len: usize) -> Result<Segments, Code> {
    match (at.is_null(), len) {
        (_, 0) => Ok(Segments::None),
        (true, _) => Err(Code::Invalid),
        // SAFETY: the caller's promise.
        (false, _) => Ok(Segments::One(unsafe { cci::Memory::new(at.cast_mut().cast(), len as u64) })),
    }
}

/// The program's memory, in pieces.
///
/// # Safety
///
/// `pieces` leads to `count` pieces, each as [`memory`] has it.
unsafe fn memories(pieces: *const iovec, count: usize) -> Result<Segments, Code> {
    if count > cci_fabric::MAX_SEGMENTS || count > 0 && pieces.is_null() {
        return Err(Code::Invalid);
    }
    let mut all = Vec::new();
    for at in 0..count {
        // SAFETY: the caller's promise.
        let piece = unsafe { pieces.add(at).read() };
        // SAFETY: likewise.
        if let Segments::One(piece) = unsafe { memory(piece.iov_base, piece.iov_len) }? {
            all.push(piece);
        }
    }
    Ok(match all.len() {
        0 => Segments::None,
        1 => all.pop().map_or(Segments::None, Segments::One),
        _ => Segments::Many(all),
    })
}

/// The bytes of a call that copies them.
///
/// # Safety
///
/// `at` leads to `len` bytes for the time of the call.
#[inline]
unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Result<&'a [u8], Code> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Code::Invalid),
        (false, len) if len > cci_fabric::INJECT_SIZE => Err(Code::MessageSize),
        // SAFETY: the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) }),
    }
}

/// A context of the program, as the engine has it.
#[inline]
fn number(context: *mut c_void) -> u64 {
    context.expose_provenance() as u64
}

/// The program's context of a number.
#[inline]
fn pointer(number: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(number as usize)
}
