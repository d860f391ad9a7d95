//! Connecting.

use crate::answer::{Answer, NOT_DONE, PARAMETER, RESOURCE, code};
use crate::handles::{Handle, Kind, make, of_nic};
use crate::layout::{CViAttributes, read_address, write_address};
use crate::nic::lock;
use crate::table::{self, nic};
use crate::vis::{limit, vi};
use cci_via::ViAttributes;
use std::ffi::c_ulong;

/// # Safety
///
/// NULL, or a place for attributes.
unsafe fn write_attributes(target: *mut CViAttributes, attributes: &ViAttributes) {
    if !target.is_null() {
        // SAFETY: by the contract.
        unsafe { target.write(CViAttributes::of(attributes, None)) };
    }
}

pub(crate) unsafe fn wait(
    handle: Handle,
    local: *const u8,
    timeout: c_ulong,
    remote: *mut u8,
    attributes: *mut CViAttributes,
    connection: *mut Handle,
) -> Answer {
    let nic = nic(handle)?;
    if connection.is_null() {
        return Err(PARAMETER);
    }
    // SAFETY: by the contract.
    let local = unsafe { read_address(local) }.map_err(code)?;
    let asking = nic.core.listen(&local, limit(timeout)).map_err(|why| nic.refused(why))?;
    let address = asking.address();
    // SAFETY: by the contract.
    unsafe { write_address(remote, address.host, &address.discriminator) };
    // SAFETY: by the contract.
    unsafe { write_attributes(attributes, asking.attributes()) };
    let mut table = lock(&nic.asking);
    table.0 = table.0.checked_add(1).ok_or(RESOURCE)?;
    let number = table.0;
    table.1.insert(number, asking);
    // SAFETY: by the contract.
    unsafe { connection.write(make(Kind::Connection, nic.number, number)) };
    Ok(())
}

pub(crate) fn accept(connection: Handle, handle: Handle) -> Answer {
    let (nic, number) = table::open(Kind::Connection, connection)?;
    let vi = of_nic(Kind::Vi, nic.number, handle).ok_or(PARAMETER)?;
    // Nobody else answers meanwhile.
    let mut asking = lock(&nic.asking).1.remove(&number).ok_or(PARAMETER)?;
    let accepted = nic.core.accept(&mut asking, vi);
    if accepted.is_err() {
        // It may be tried again with another VI, or rejected.
        lock(&nic.asking).1.insert(number, asking);
    }
    accepted.map_err(|why| nic.refused(why))
}

pub(crate) fn reject(connection: Handle) -> Answer {
    let (nic, number) = table::open(Kind::Connection, connection)?;
    let asking = lock(&nic.asking).1.remove(&number).ok_or(PARAMETER)?;
    nic.core.reject(asking);
    Ok(())
}

pub(crate) unsafe fn request(
    handle: Handle,
    local: *const u8,
    remote: *const u8,
    timeout: c_ulong,
    attributes: *mut CViAttributes,
) -> Answer {
    let (nic, number) = vi(handle)?;
    // SAFETY: by the contract.
    let (local, remote) = unsafe { (read_address(local), read_address(remote)) };
    let (local, remote) = (local.map_err(code)?, remote.map_err(code)?);
    let peer = nic.core.request(number, &local, &remote, limit(timeout)).map_err(|why| nic.refused(why))?;
    // SAFETY: by the contract.
    unsafe { write_attributes(attributes, &peer) };
    Ok(())
}

pub(crate) unsafe fn peer_request(handle: Handle, local: *const u8, remote: *const u8, timeout: c_ulong) -> Answer {
    let (nic, number) = vi(handle)?;
    // SAFETY: by the contract.
    let (local, remote) = unsafe { (read_address(local), read_address(remote)) };
    let (local, remote) = (local.map_err(code)?, remote.map_err(code)?);
    nic.core.peer_request(number, &local, &remote, limit(timeout)).map_err(|why| nic.refused(why))
}

pub(crate) unsafe fn peer_done(handle: Handle, attributes: *mut CViAttributes) -> Answer {
    let (nic, number) = vi(handle)?;
    let peer = nic.core.peer_done(number).map_err(|why| nic.refused(why))?.ok_or(NOT_DONE)?;
    // SAFETY: by the contract.
    unsafe { write_attributes(attributes, &peer) };
    Ok(())
}

pub(crate) unsafe fn peer_wait(handle: Handle, attributes: *mut CViAttributes) -> Answer {
    let (nic, number) = vi(handle)?;
    let peer = nic.core.peer_wait(number).map_err(|why| nic.refused(why))?;
    // SAFETY: by the contract.
    unsafe { write_attributes(attributes, &peer) };
    Ok(())
}
