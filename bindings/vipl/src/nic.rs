//! NICs.

use crate::answer::{Answer, PARAMETER, RESOURCE, code};
use crate::descriptor::Descriptor;
use crate::handles::{self, Handle, Kind, make};
use crate::layout::{ErrorDescriptor, NicAttributes, host_bytes};
use crate::notify::Notifier;
use cci::Context;
use cci_via::engine::Core;
use cci_via::{
    Asking, Error, FaultCode, MAX_DESCRIPTORS, MAX_DISCRIMINATOR, MAX_OBJECTS, MAX_QUEUE_ENTRIES, MAX_SEGMENTS,
    MAX_TRANSFER,
};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the program calls when something goes wrong outside of its calls.
pub(crate) type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut ErrorDescriptor);

/// An error handler, and its context.
pub(crate) type Told = (ErrorHandler, usize);

/// A NIC of a C program.
pub(crate) struct Nic {
    pub(crate) core: Core<Descriptor>,
    pub(crate) number: u32,
    name: String,
    /// Of the host, 4 or 16 bytes.
    address: Vec<u8>,
    /// Clients that have asked, by number; and the last number.
    pub(crate) asking: Mutex<(u32, HashMap<u32, Asking>)>,
    handler: Mutex<Option<Told>>,
    pub(crate) notifier: Notifier,
    pub(crate) has_names: Mutex<bool>,
}

/// A lock whose holder never leaves a mess.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls an error handler.
pub(crate) fn tell((handler, context): Told, descriptor: &mut ErrorDescriptor) {
    // SAFETY: the program's function, called without any lock.
    unsafe { handler(std::ptr::with_exposed_provenance_mut(context), std::ptr::from_mut(descriptor)) };
}

/// The NIC of a handle.
pub(crate) fn nic(handle: Handle) -> Result<Arc<Nic>, c_int> {
    handles::open(Kind::Nic, handle).map(|(nic, _)| nic)
}

impl Nic {
    fn open(name: &str, number: u32) -> Result<Arc<Self>, c_int> {
        let context = Context::new().map_err(|_| RESOURCE)?;
        let device = match context.devices().iter().find(|device| device.name == name) {
            Some(device) => device,
            None => context.default_device().map_err(|_| RESOURCE)?,
        };
        let core = Core::open(device).map_err(|_| RESOURCE)?;
        let address = host_bytes(core.host());
        Ok(Arc::new(Self {
            core,
            number,
            name: device.name.clone(),
            address,
            asking: Mutex::new((0, HashMap::new())),
            handler: Mutex::new(None),
            notifier: Notifier::new(),
            has_names: Mutex::new(false),
        }))
    }

    pub(crate) fn handle(&self) -> Handle {
        make(Kind::Nic, self.number, 0)
    }

    /// The code of a refusal, after the program has been told of faults.
    #[cold]
    pub(crate) fn refused(&self, why: Error) -> c_int {
        self.tell_faults();
        code(why)
    }

    /// Calls the error handler for each fault that it has not been called for.
    #[cold]
    pub(crate) fn tell_faults(&self) {
        let Some(told) = *lock(&self.handler) else { return };
        while let Some(fault) = self.core.fault() {
            let object = |kind, number: Option<u32>| {
                number.map_or(std::ptr::null_mut(), |number| make(kind, self.number, number))
            };
            let resource = match fault.code {
                FaultCode::Catastrophic => 0,
                FaultCode::Overrun => 2,
                FaultCode::PostDescriptor | FaultCode::CompletionProtection => 3,
                _ => 1,
            };
            let mut descriptor = ErrorDescriptor {
                nic: self.handle(),
                vi: object(Kind::Vi, fault.vi),
                queue: object(Kind::Queue, fault.queue),
                descriptor: std::ptr::null_mut(),
                op_code: 0,
                resource,
                error: fault.code as c_int,
            };
            tell(told, &mut descriptor);
        }
    }

    /// The error handler, unless a thread has its lock.
    pub(crate) fn try_handler(&self) -> Option<Told> {
        *self.handler.try_lock().ok()?
    }
}

pub(crate) unsafe fn open(name: *const c_char, nic: *mut Handle) -> Answer {
    if name.is_null() || nic.is_null() {
        return Err(PARAMETER);
    }
    // SAFETY: a string, by the contract.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let number = handles::enter(|number| Nic::open(&name, number))?;
    // SAFETY: by the contract.
    unsafe { nic.write(make(Kind::Nic, number, 0)) };
    Ok(())
}

pub(crate) fn close(handle: Handle) -> Answer {
    let nic = nic(handle)?;
    if !nic.core.is_unused() {
        return Err(RESOURCE);
    }
    handles::remove(&nic);
    nic.notifier.stop(&nic);
    Ok(())
}

pub(crate) unsafe fn query(handle: Handle, attributes: *mut NicAttributes) -> Answer {
    let nic = nic(handle)?;
    if attributes.is_null() {
        return Err(PARAMETER);
    }
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
    // SAFETY: by the contract.
    unsafe { attributes.write(found) };
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
