//! Protection tags and registered memory.

use crate::answer::{Answer, PARAMETER, code};
use crate::handles::{Handle, Kind, make, of_nic};
use crate::layout::MemAttributes;
use crate::table::nic;
use cci::Memory;
use cci_mem::arguments::{In, Out};
use cci_via::{Error, Tag};
use std::ffi::{c_ulong, c_void};

pub(crate) fn create_tag(handle: Handle, tag: Out<'_, Handle>) -> Answer {
    let nic = nic(handle)?;
    let tag = tag.variable(PARAMETER)?;
    let made = nic.core.create_tag().map_err(code)?;
    tag.put(make(Kind::Tag, nic.number, made.number()));
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

/// Registers memory.
///
/// # Safety
///
/// What the process has mapped of it stays mapped until it is deregistered.
pub(crate) unsafe fn register(
    handle: Handle,
    start: *mut c_void,
    length: c_ulong,
    attributes: In<'_, MemAttributes>,
    memory: Out<'_, u32>,
) -> Answer {
    let nic = nic(handle)?;
    if start.is_null() || length == 0 {
        return Err(PARAMETER);
    }
    attributes.check(PARAMETER)?;
    let memory = memory.variable(PARAMETER)?;
    if start.addr().checked_add(length as usize).is_none() {
        return Err(PARAMETER);
    }
    // Peers may copy from it, or to it, at any later time: a fault would end the program then.
    if !is_mapped(start.addr(), length as usize) {
        return Err(PARAMETER);
    }
    let (tag, access) = attributes.get().ok_or(PARAMETER)?.read(nic.number);
    // SAFETY: it is mapped, as far as the system says, and stays so while it is registered.
    let range = unsafe { Memory::new(start.cast(), length) };
    let number = nic.core.register(range, start.addr() as u64, tag, access).map_err(code)?;
    memory.put(number);
    Ok(())
}

pub(crate) fn deregister(handle: Handle, start: *mut c_void, memory: u32) -> Answer {
    nic(handle)?.core.deregister(memory, start.addr() as u64).map_err(code)
}

pub(crate) fn query(handle: Handle, start: *mut c_void, memory: u32, attributes: Out<'_, MemAttributes>) -> Answer {
    let nic = nic(handle)?;
    let (tag, access) = nic.core.query_memory(memory, start.addr() as u64).map_err(code)?;
    attributes.variable(PARAMETER)?.put(MemAttributes::of(nic.number, tag, access));
    Ok(())
}

pub(crate) fn set(handle: Handle, start: *mut c_void, memory: u32, attributes: In<'_, MemAttributes>) -> Answer {
    let nic = nic(handle)?;
    let (tag, access) = attributes.get().ok_or(PARAMETER)?.read(nic.number);
    nic.core.set_memory(memory, start.addr() as u64, tag, access).map_err(code)
}
