//! The unsafe code of the crate: a descriptor that the environment names.

#![allow(unsafe_code)]

use cci_mem::descriptors;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Takes an open descriptor over as a new one, which no program that this process starts inherits,
/// and has the old one inherited no more either.
pub(crate) fn take(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the caller has seen the descriptor open; should another thread close it meanwhile,
    // both calls are refused or duplicate another one, and neither touches memory.
    let inherited = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(descriptors::take_over(inherited)?)
}
