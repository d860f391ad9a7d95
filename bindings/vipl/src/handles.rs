//! Handles: a kind, the number of a NIC, and a number there, in the shape of a pointer.

use std::ffi::c_void;

/// A handle as C has it. It is compared and taken apart, never followed.
pub(crate) type Handle = *mut c_void;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nic = 1,
    Vi = 2,
    Queue = 3,
    Tag = 4,
    Connection = 5,
}

/// Of the number of a NIC.
pub(crate) const NIC_BITS: u32 = 20;

pub(crate) fn make(kind: Kind, nic: u32, number: u32) -> Handle {
    let bits = (kind as usize) << (32 + NIC_BITS) | (nic as usize) << 32 | number as usize;
    std::ptr::without_provenance_mut(bits)
}

/// The numbers of a NIC and of an object there; `None`: the handle is of another kind.
#[inline]
pub(crate) fn parts(kind: Kind, handle: Handle) -> Option<(u32, u32)> {
    let bits = handle.addr();
    (bits >> (32 + NIC_BITS) == kind as usize).then_some(((bits >> 32) as u32 & ((1 << NIC_BITS) - 1), bits as u32))
}

/// The number of an object that belongs to this NIC.
pub(crate) fn of_nic(kind: Kind, nic: u32, handle: Handle) -> Option<u32> {
    let bits = handle.addr();
    (bits >> 32 == (kind as usize) << NIC_BITS | nic as usize).then_some(bits as u32)
}
