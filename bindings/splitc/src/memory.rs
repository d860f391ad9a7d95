//! `sc_malloc` and what belongs to it.

use crate::world::world;
use std::ffi::c_void;
use std::ptr;

/// Memory that the program gives back: NULL, of the run time, or of the C library, where nobody has
/// freed it.
#[repr(transparent)]
pub(crate) struct Allocated(*mut c_void);

// SAFETY: of the C library. Any length may be asked for; memory or NULL comes back.
unsafe extern "C" {
    safe fn malloc(len: usize) -> *mut c_void;
}

/// Allocates memory that others map, or memory of the C library.
pub(crate) fn allocate(len: usize) -> *mut c_void {
    let mapped = world().and_then(|world| world.allocate_local(len as u64));
    mapped.map_or_else(|| malloc(len), address)
}

fn address(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

pub(crate) fn free(Allocated(memory): Allocated) {
    let at = memory.expose_provenance() as u64;
    if !world().is_some_and(|world| world.free_local(at)) && !lies_in_spread(at) {
        // SAFETY: NULL, or of the C library and not freed: by the contract of the type, since it is
        // not of the run time.
        unsafe { libc::free(memory) };
    }
}

/// Whether an address is one of the run time's, which the C library does not know: memory that is
/// freed after the end, or twice.
fn lies_in_spread(at: u64) -> bool {
    const MOST: u64 = 1 << 36;
    (cci_splitc::World::base()..cci_splitc::World::base() + MOST).contains(&at)
}

pub(crate) fn resize(Allocated(memory): Allocated, len: usize) -> *mut c_void {
    let at = memory.expose_provenance() as u64;
    let Some(had) = world().and_then(|world| world.len_of_local(at)) else {
        // SAFETY: of the C library and not freed: by the contract of the type, since it is neither
        // NULL nor of the run time.
        return if memory.is_null() { allocate(len) } else { unsafe { libc::realloc(memory, len) } };
    };
    if len as u64 <= had && len > 0 {
        return memory;
    }
    let fresh = allocate(len);
    if !fresh.is_null() {
        // SAFETY: two allocations, each at least so long.
        unsafe { ptr::copy_nonoverlapping(memory.cast::<u8>(), fresh.cast(), len.min(had as usize)) };
        free(Allocated(memory));
    }
    fresh
}

/// Allocates zeroes.
pub(crate) fn allocate_zeroes(count: usize, len: usize) -> *mut c_void {
    let Some(len) = count.checked_mul(len) else { return ptr::null_mut() };
    let memory = allocate(len);
    if !memory.is_null() {
        // SAFETY: so many bytes were just allocated.
        unsafe { ptr::write_bytes(memory.cast::<u8>(), 0, len) };
    }
    memory
}
