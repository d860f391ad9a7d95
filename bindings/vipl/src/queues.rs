//! Completion queues.

use crate::answer::{Answer, NOT_DONE, PARAMETER, code};
use crate::handles::{Handle, Kind, make};
use crate::nic::Nic;
use crate::table::{self, nic};
use crate::vis::limit;
use cci_mem::arguments::{Out, Variable};
use std::ffi::{c_int, c_ulong};

pub(crate) fn create(handle: Handle, entries: c_ulong, queue: Out<'_, Handle>) -> Answer {
    let nic = nic(handle)?;
    let queue = queue.variable(PARAMETER)?;
    let number = nic.core.create_queue(entries as usize).map_err(code)?;
    queue.put(make(Kind::Queue, nic.number, number));
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

fn hand(nic: &Nic, entry: (u32, bool), (vi, is_receive): (Variable<'_, Handle>, Variable<'_, c_int>)) -> Answer {
    vi.put(make(Kind::Vi, nic.number, entry.0));
    is_receive.put(entry.1.into());
    Ok(())
}

pub(crate) fn done(handle: Handle, vi: Out<'_, Handle>, is_receive: Out<'_, c_int>) -> Answer {
    let (nic, number) = table::open(Kind::Queue, handle)?;
    let variables = (vi.variable(PARAMETER)?, is_receive.variable(PARAMETER)?);
    match nic.core.take_entry(number).map_err(code)? {
        Some(entry) => hand(&nic, entry, variables),
        None => {
            nic.tell_faults();
            Err(NOT_DONE)
        }
    }
}

pub(crate) fn wait(handle: Handle, timeout: c_ulong, vi: Out<'_, Handle>, is_receive: Out<'_, c_int>) -> Answer {
    let (nic, number) = table::open(Kind::Queue, handle)?;
    let variables = (vi.variable(PARAMETER)?, is_receive.variable(PARAMETER)?);
    let entry = nic.core.wait_entry(number, limit(timeout)).map_err(|why| nic.refused(why))?;
    hand(&nic, entry, variables)
}
