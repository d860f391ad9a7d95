//! Protection tags and registered memory.

use crate::answer::{Answer, PARAMETER, code};
use crate::handles::{Handle, Kind, make, of_nic};
use crate::layout::MemAttributes;
use crate::table::nic;
use cci::Memory;
use cci_via::{Error, Tag};
use std::ffi::{c_ulong, c_void};

pub(crate) unsafe fn create_tag(handle: Handle, tag: *mut Handle) -> Answer {
    let nic = nic(handle)?;
    if tag.is_null() {
        return Err(PARAMETER);
    }
    let made = nic.core.create_tag().map_err(code)?;
    // SAFETY: by the contract.
    unsafe { tag.write(make(Kind::Tag, nic.number, made.number())) };
    Ok(())
}

pub(crate) fn destroy_tag(handle: Handle, tag: Handle) -> Answer {
    let nic = nic(handle)?;
    let number = of_nic(Kind::Tag, nic.number, tag).ok_or(code(Error::Tag))?;
    nic.core.destroy_tag(Tag::of_number(number)).map_err(code)
}

/// Whether the process has memory at each address of a range that does not wrap. Linux starts no
/// write-back for `MS_ASYNC`: it walks the mappings, not their pages, and touches none of them.
fn is_mapped(start: usize, length: usize) -> bool {
    // SAFETY: reads a value of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let within = start % usize::try_from(page).unwrap_or(0).max(1);
    let first = std::ptr::without_provenance_mut(start - within);
    // SAFETY: the call neither reads nor writes the memory.
    let answer = unsafe { libc::msync(first, length + within, libc::MS_ASYNC) };
    // A system that forbids the call does not say.
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOMEM)
}

pub(crate) unsafe fn register(
    handle: Handle,
    start: *mut c_void,
    length: c_ulong,
    attributes: *const MemAttributes,
    memory: *mut u32,
) -> Answer {
    let nic = nic(handle)?;
    if start.is_null() || length == 0 || attributes.is_null() || memory.is_null() {
        return Err(PARAMETER);
    }
    if start.addr().checked_add(length as usize).is_none() {
        return Err(PARAMETER);
    }
    // Peers may copy from it, or to it, at any later time: a fault would end the program then.
    if !is_mapped(start.addr(), length as usize) {
        return Err(PARAMETER);
    }
    // SAFETY: by the contract.
    let (tag, access) = unsafe { &*attributes }.read(nic.number);
    // SAFETY: the program keeps it mapped while it is registered, by the contract.
    let range = unsafe { Memory::new(start.cast(), length) };
    let number = nic.core.register(range, start.addr() as u64, tag, access).map_err(code)?;
    // SAFETY: by the contract.
    unsafe { memory.write(number) };
    Ok(())
}

pub(crate) fn deregister(handle: Handle, start: *mut c_void, memory: u32) -> Answer {
    nic(handle)?.core.deregister(memory, start.addr() as u64).map_err(code)
}

pub(crate) unsafe fn query(handle: Handle, start: *mut c_void, memory: u32, attributes: *mut MemAttributes) -> Answer {
    let nic = nic(handle)?;
    let (tag, access) = nic.core.query_memory(memory, start.addr() as u64).map_err(code)?;
    if attributes.is_null() {
        return Err(PARAMETER);
    }
    // SAFETY: by the contract.
    unsafe { attributes.write(MemAttributes::of(nic.number, tag, access)) };
    Ok(())
}

pub(crate) unsafe fn set(handle: Handle, start: *mut c_void, memory: u32, attributes: *const MemAttributes) -> Answer {
    let nic = nic(handle)?;
    if attributes.is_null() {
        return Err(PARAMETER);
    }
    // SAFETY: by the contract.
    let (tag, access) = unsafe { &*attributes }.read(nic.number);
    nic.core.set_memory(memory, start.addr() as u64, tag, access).map_err(code)
}
