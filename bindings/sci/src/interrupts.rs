//! Interrupts, with bytes and without.

use crate::answer::{Answer, WRONG, answer, check, offer};
use crate::callbacks::{DataCallback, InterruptCallback, callback, pointer, then};
use crate::devices::device;
use crate::flags::{self, has};
use crate::objects::{end, make};
use crate::registry::{Handle, Owned, check_adapter, limit, registry};
use cci_sci::{DataInterrupt, Error, Host, Interrupt, RemoteDataInterrupt, RemoteInterrupt};
use std::ffi::{c_uint, c_void};

/// The number that the program wants; `None`: any.
///
/// # Safety
///
/// `number` leads to a number, or is NULL.
unsafe fn wanted(number: *mut c_uint, adapter: c_uint, given: c_uint) -> Answer<Option<c_uint>> {
    flags::check(given, &[&flags::USE_CALLBACK, &flags::FIXED_INTNO], &[&flags::SHARED_INT])?;
    check_adapter(adapter)?;
    check(number)?;
    // SAFETY: by the contract.
    Ok(has(given, &flags::FIXED_INTNO).then(|| unsafe { number.read_unaligned() }))
}

pub(crate) unsafe fn create(
    sd: Handle,
    to: *mut Handle,
    (adapter, number): (c_uint, *mut c_uint),
    (function, arg): (Option<InterruptCallback>, *mut c_void),
    given: c_uint,
    error: *mut c_uint,
) {
    let act = || {
        check(to)?;
        // SAFETY: by the contract of the header.
        let fixed = unsafe { wanted(number, adapter, given) }?;
        let function = callback(given, function, arg)?;
        let (registry, device) = (registry()?, device(sd)?);
        let (handle, interrupt) = (registry.next(), device.host.interrupt(fixed)?);
        let interrupt = registry.interrupts.enter(handle, Owned::new(&device, interrupt));
        // Before a callback may need them. SAFETY: by the contract of the header.
        unsafe {
            offer(number, interrupt.object.number());
            offer(to, handle);
        }
        if let Some((function, arg)) = function {
            let name = handle.addr();
            interrupt.object.on_trigger(move |()| {
                // SAFETY: the program's function, called without any lock, as long as the interrupt
                // lives.
                then(unsafe { function(pointer(arg), std::ptr::without_provenance_mut(name), 0) })
            })?;
        }
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn remove(handle: Handle, given: c_uint, error: *mut c_uint) {
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.interrupts, handle, given, error, Interrupt::release) }
}

pub(crate) unsafe fn wait(handle: Handle, ms: c_uint, given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        Ok(registry()?.interrupts.find(handle)?.object.wait(limit(ms))?)
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn connect(
    sd: Handle,
    to: *mut Handle,
    (node, adapter, number): (c_uint, c_uint, c_uint),
    ms: c_uint,
    given: c_uint,
    error: *mut c_uint,
) {
    let connect = |host: &Host| host.connect_interrupt(node, number, limit(ms));
    // SAFETY: by the contract of the header.
    unsafe { make(|all| &all.remote_interrupts, (sd, adapter), to, given, error, connect) }
}

pub(crate) unsafe fn disconnect(handle: Handle, given: c_uint, error: *mut c_uint) {
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.remote_interrupts, handle, given, error, RemoteInterrupt::disconnect) }
}

pub(crate) unsafe fn trigger(handle: Handle, given: c_uint, error: *mut c_uint) {
    let act = || {
        flags::check(given, &[], &[])?;
        Ok(registry()?.remote_interrupts.find(handle)?.object.trigger()?)
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn create_data(
    sd: Handle,
    to: *mut Handle,
    (adapter, number): (c_uint, *mut c_uint),
    (function, arg): (Option<DataCallback>, *mut c_void),
    given: c_uint,
    error: *mut c_uint,
) {
    let act = || {
        check(to)?;
        // SAFETY: by the contract of the header.
        let fixed = unsafe { wanted(number, adapter, given) }?;
        let function = callback(given, function, arg)?;
        let (registry, device) = (registry()?, device(sd)?);
        let (handle, interrupt) = (registry.next(), device.host.data_interrupt(fixed)?);
        let interrupt = registry.data_interrupts.enter(handle, Owned::new(&device, interrupt));
        // Before a callback may need them. SAFETY: by the contract of the header.
        unsafe {
            offer(number, interrupt.object.number());
            offer(to, handle);
        }
        if let Some((function, arg)) = function {
            let name = handle.addr();
            interrupt.object.on_data(move |mut bytes| {
                let (handle, length) = (std::ptr::without_provenance_mut(name), bytes.len() as c_uint);
                // SAFETY: the program's function, called without any lock, as long as the interrupt
                // lives; the bytes are there until it returns.
                then(unsafe { function(pointer(arg), handle, bytes.as_mut_ptr().cast(), length, 0) })
            })?;
        }
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn remove_data(handle: Handle, given: c_uint, error: *mut c_uint) {
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.data_interrupts, handle, given, error, DataInterrupt::release) }
}

pub(crate) unsafe fn wait_data(
    handle: Handle,
    (to, length): (*mut c_void, *mut c_uint),
    ms: c_uint,
    given: c_uint,
    error: *mut c_uint,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        check(length)?;
        // SAFETY: by the contract of the header.
        let room = unsafe { length.read_unaligned() } as usize;
        if room > 0 {
            check(to)?;
        }
        let bytes = registry()?.data_interrupts.find(handle)?.object.wait(limit(ms))?;
        let fits = bytes.len().min(room);
        if fits > 0 {
            // SAFETY: there is room for so many bytes by the contract of the header.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), fits) };
        }
        // SAFETY: by the contract of the header.
        unsafe { offer(length, bytes.len() as c_uint) };
        if fits < bytes.len() { Err(Error::Overflow.into()) } else { Ok(()) }
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn connect_data(
    sd: Handle,
    to: *mut Handle,
    (node, adapter, number): (c_uint, c_uint, c_uint),
    ms: c_uint,
    given: c_uint,
    error: *mut c_uint,
) {
    let connect = |host: &Host| host.connect_data_interrupt(node, number, limit(ms));
    // SAFETY: by the contract of the header.
    unsafe { make(|all| &all.remote_data_interrupts, (sd, adapter), to, given, error, connect) }
}

pub(crate) unsafe fn disconnect_data(handle: Handle, given: c_uint, error: *mut c_uint) {
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.remote_data_interrupts, handle, given, error, RemoteDataInterrupt::disconnect) }
}

pub(crate) unsafe fn trigger_data(
    handle: Handle,
    (from, length): (*mut c_void, c_uint),
    given: c_uint,
    error: *mut c_uint,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        let remote = registry()?.remote_data_interrupts.find(handle)?;
        if length > 0 && from.is_null() {
            return Err(WRONG);
        }
        let bytes = match length {
            0 => &[],
            // SAFETY: so many bytes by the contract of the header, which nobody writes meanwhile.
            length => unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length as usize) },
        };
        // Programs try again on this code; the other one is of a wait with too little room.
        remote.object.trigger(bytes).map_err(|why| if why == Error::Overflow { Error::NoSpace } else { why })?;
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}
