//! Calls on NICs.

use crate::answer::{Answer, PARAMETER, code};
use crate::handles::{Handle, Kind, make};
use crate::layout::NicAttributes;
use crate::nic::{ErrorHandler, Nic};
use crate::table::{self, nic};
use cci_mem::arguments::{Out, Text};
use cci_mem::mutex::lock;
use cci_via::{Error, MAX_DESCRIPTORS, MAX_DISCRIMINATOR, MAX_OBJECTS, MAX_QUEUE_ENTRIES, MAX_SEGMENTS, MAX_TRANSFER};
use std::ffi::{c_char, c_ulong, c_void};

pub(crate) fn open(name: Text<'_>, nic: Out<'_, Handle>) -> Answer {
    name.check(PARAMETER)?;
    let nic = nic.variable(PARAMETER)?;
    let name = name.get().ok_or(PARAMETER)?.to_string_lossy();
    let number = table::enter(|number| Nic::open(&name, number))?;
    nic.put(make(Kind::Nic, number, 0));
    Ok(())
}

pub(crate) fn close(handle: Handle) -> Answer {
    let nic = nic(handle)?;
    nic.core.close().map_err(code)?;
    table::remove(&nic);
    nic.notifier.stop(&nic);
    Ok(())
}

pub(crate) fn query(handle: Handle, attributes: Out<'_, NicAttributes>) -> Answer {
    let nic = nic(handle)?;
    let attributes = attributes.variable(PARAMETER)?;
    let mut name = [0; 64];
    // One byte stays for the end of the string.
    for (target, byte) in name.iter_mut().take(63).zip(nic.name.bytes()) {
        *target = byte as c_char;
    }
    let found = NicAttributes {
        name,
        hardware_version: 0,
        provider_version: 1,
        nic_address_len: nic.address.len() as u16,
        local_nic_address: nic.address.as_ptr(),
        thread_safe: 1,
        max_discriminator_len: MAX_DISCRIMINATOR as u16,
        max_register_bytes: c_ulong::MAX,
        max_register_regions: MAX_OBJECTS as c_ulong,
        max_register_block_bytes: c_ulong::MAX,
        max_vi: MAX_OBJECTS as c_ulong,
        max_descriptors_per_queue: MAX_DESCRIPTORS as c_ulong,
        max_segments_per_desc: MAX_SEGMENTS as c_ulong,
        max_cq: MAX_OBJECTS as c_ulong,
        max_cq_entries: MAX_QUEUE_ENTRIES as c_ulong,
        max_transfer_size: MAX_TRANSFER,
        native_mtu: MAX_TRANSFER,
        max_ptags: MAX_OBJECTS as c_ulong,
        reliability_level_support: 7,
        rdma_read_support: 6,
    };
    attributes.put(found);
    Ok(())
}

/// There is nothing to be asked for.
pub(crate) fn query_system_management(handle: Handle) -> Answer {
    nic(handle)?;
    Err(code(Error::NotSupported))
}

pub(crate) fn error_callback(handle: Handle, context: *mut c_void, handler: Option<ErrorHandler>) -> Answer {
    let nic = nic(handle)?;
    *lock(&nic.handler) = handler.map(|handler| (handler, context.expose_provenance()));
    nic.tell_faults();
    Ok(())
}
