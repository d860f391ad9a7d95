//! Handles: a kind, the number of a NIC, and a number there, in the shape of a pointer.

use crate::answer::PARAMETER;
use crate::nic::Nic;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError, RwLock};

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

const NIC_BITS: u32 = 20;

/// NICs by number: each number once in the life of a process.
struct Nics {
    last: u32,
    open: Vec<Arc<Nic>>,
}

static NICS: RwLock<Nics> = RwLock::new(Nics { last: 0, open: Vec::new() });

pub(crate) fn make(kind: Kind, nic: u32, number: u32) -> Handle {
    let bits = (kind as usize) << (32 + NIC_BITS) | (nic as usize) << 32 | number as usize;
    std::ptr::without_provenance_mut(bits)
}

/// The NIC of a handle, and the number there.
pub(crate) fn open(kind: Kind, handle: Handle) -> Result<(Arc<Nic>, u32), c_int> {
    let bits = handle.addr();
    if bits >> (32 + NIC_BITS) != kind as usize {
        return Err(PARAMETER);
    }
    let nic = (bits >> 32) as u32 & ((1 << NIC_BITS) - 1);
    let nics = NICS.read().unwrap_or_else(PoisonError::into_inner);
    let found = nics.open.iter().find(|other| other.number == nic);
    found.map(|nic| (Arc::clone(nic), bits as u32)).ok_or(PARAMETER)
}

/// The number of an object that belongs to this NIC.
pub(crate) fn of_nic(kind: Kind, nic: &Nic, handle: Handle) -> Option<u32> {
    let bits = handle.addr();
    (bits >> 32 == (kind as usize) << NIC_BITS | nic.number as usize).then_some(bits as u32)
}

/// Enters a NIC that is made with its number; none when all numbers are used up.
pub(crate) fn enter(make: impl FnOnce(u32) -> Result<Arc<Nic>, c_int>) -> Result<u32, c_int> {
    let mut nics = NICS.write().unwrap_or_else(PoisonError::into_inner);
    let number = nics.last + 1;
    if number >= 1 << NIC_BITS {
        return Err(crate::answer::RESOURCE);
    }
    let nic = make(number)?;
    nics.last = number;
    nics.open.push(nic);
    Ok(number)
}

pub(crate) fn remove(nic: &Arc<Nic>) {
    let mut nics = NICS.write().unwrap_or_else(PoisonError::into_inner);
    nics.open.retain(|other| !Arc::ptr_eq(other, nic));
}
