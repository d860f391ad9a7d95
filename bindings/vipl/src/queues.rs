//! Completion queues.

use crate::answer::{Answer, NOT_DONE, PARAMETER, code};
use crate::handles::{Handle, Kind, make};
use crate::nic::Nic;
use crate::table::{self, nic};
use crate::vis::limit;
use std::ffi::{c_int, c_ulong};

pub(crate) unsafe fn create(handle: Handle, entries: c_ulong, queue: *mut Handle) -> Answer {
    let nic = nic(handle)?;
    if queue.is_null() {
        return Err(PARAMETER);
    }
    let number = nic.core.create_queue(entries as usize).map_err(code)?;
    // SAFETY: by the contract.
    unsafe { queue.write(make(Kind::Queue, nic.number, number)) };
    Ok(())
}

pub(crate) fn resize(handle: Handle, entries: c_ulong) -> Answer {
    let (nic, number) = table::open(Kind::Queue, handle)?;
    nic.core.resize_queue(number, entries as usize).map_err(code)
}

pub(crate) fn destroy(handle: Handle) -> Answer {
    let (nic, number) = table::open(Kind::Queue, handle)?;
    nic.core.destroy_queue(number).map_err(code)
}

unsafe fn hand(nic: &Nic, entry: (u32, bool), vi: *mut Handle, is_receive: *mut c_int) -> Answer {
    // SAFETY: by the contract.
    unsafe { vi.write(make(Kind::Vi, nic.number, entry.0)) };
    // SAFETY: by the contract.
    unsafe { is_receive.write(entry.1.into()) };
    Ok(())
}

pub(crate) unsafe fn done(handle: Handle, vi: *mut Handle, is_receive: *mut c_int) -> Answer {
    let (nic, number) = table::open(Kind::Queue, handle)?;
    if vi.is_null() || is_receive.is_null() {
        return Err(PARAMETER);
    }
    match nic.core.take_entry(number).map_err(code)? {
        // SAFETY: by the contract.
        Some(entry) => unsafe { hand(&nic, entry, vi, is_receive) },
        None => {
            nic.tell_faults();
            Err(NOT_DONE)
        }
    }
}

pub(crate) unsafe fn wait(handle: Handle, timeout: c_ulong, vi: *mut Handle, is_receive: *mut c_int) -> Answer {
    let (nic, number) = table::open(Kind::Queue, handle)?;
    if vi.is_null() || is_receive.is_null() {
        return Err(PARAMETER);
    }
    let entry = nic.core.wait_entry(number, limit(timeout)).map_err(|why| nic.refused(why))?;
    // SAFETY: by the contract.
    unsafe { hand(&nic, entry, vi, is_receive) }
}
