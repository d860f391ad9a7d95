//! Interrupts, with bytes and without.

use crate::answer::{Answer, Code, Refusal, WRONG, answer, check};
use crate::callbacks::{CodeCallback, DataCallback, Function, callback};
use crate::devices::device;
use crate::flags::{self, has};
use crate::objects::{end, keep, make};
use crate::registry::{Handle, Owned, check_adapter, limit, registry};
use cci_mem::arguments::Out;
use cci_sci::{DataInterrupt, Error, Host, Interrupt, RemoteDataInterrupt, RemoteInterrupt};
use std::ffi::{c_uint, c_void};

/// The number that the program wants; `None`: any.
///
/// # Safety
///
/// With the flag for it the program has put its number there.
unsafe fn wanted(number: Out<'_, c_uint>, adapter: c_uint, given: c_uint) -> Answer<Option<c_uint>> {
    flags::check(given, &[&flags::USE_CALLBACK, &flags::FIXED_INTNO], &[&flags::SHARED_INT])?;
    check_adapter(adapter)?;
    let number = number.variable(WRONG)?;
    // SAFETY: with the flag the program has put its number there.
    Ok(has(given, &flags::FIXED_INTNO).then(|| unsafe { number.get() }))
}

/// Creates an interrupt.
///
/// # Safety
///
/// With the flag for it the program has put the number that it wants into `number`, unless that is
/// NULL.
pub(crate) unsafe fn create(
    sd: Handle,
    to: Out<'_, Handle>,
    (adapter, number): (c_uint, Out<'_, c_uint>),
    (function, arg): (Function<CodeCallback>, *mut c_void),
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        to.check(WRONG)?;
        // SAFETY: as for this function.
        let fixed = unsafe { wanted(number, adapter, given) }?;
        let function = callback(given, function, arg)?;
        let (registry, device) = (registry()?, device(sd)?);
        let (handle, interrupt) = (registry.next(), device.host.interrupt(fixed)?);
        let interrupt = registry.interrupts.enter(handle, Owned::new(&device, interrupt));
        // Before a callback may need them.
        number.offer(interrupt.object.number());
        to.offer(handle);
        if let Some(function) = function {
            let name = handle.addr();
            let set = interrupt.object.on_trigger(move |()| function.call(name, 0));
            keep(&registry.interrupts, handle, set.map_err(Refusal::from))?;
        }
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn remove(handle: Handle, given: c_uint, error: Code<'_>) {
    end(|all| &all.interrupts, handle, given, error, Interrupt::release)
}

pub(crate) fn wait(handle: Handle, ms: c_uint, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        Ok(registry()?.interrupts.find(handle)?.object.wait(limit(ms))?)
    };
    answer(error, (), act)
}

pub(crate) fn connect(
    sd: Handle,
    to: Out<'_, Handle>,
    (node, adapter, number): (c_uint, c_uint, c_uint),
    ms: c_uint,
    given: c_uint,
    error: Code<'_>,
) {
    let connect = |host: &Host| host.connect_interrupt(node, number, limit(ms));
    make(|all| &all.remote_interrupts, (sd, adapter), to, given, error, connect)
}

pub(crate) fn disconnect(handle: Handle, given: c_uint, error: Code<'_>) {
    end(|all| &all.remote_interrupts, handle, given, error, RemoteInterrupt::disconnect)
}

pub(crate) fn trigger(handle: Handle, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        Ok(registry()?.remote_interrupts.find(handle)?.object.trigger()?)
    };
    answer(error, (), act)
}

/// Creates an interrupt with bytes.
///
/// # Safety
///
/// As for [`create`].
pub(crate) unsafe fn create_data(
    sd: Handle,
    to: Out<'_, Handle>,
    (adapter, number): (c_uint, Out<'_, c_uint>),
    (function, arg): (Function<DataCallback>, *mut c_void),
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        to.check(WRONG)?;
        // SAFETY: as for this function.
        let fixed = unsafe { wanted(number, adapter, given) }?;
        let function = callback(given, function, arg)?;
        let (registry, device) = (registry()?, device(sd)?);
        let (handle, interrupt) = (registry.next(), device.host.data_interrupt(fixed)?);
        let interrupt = registry.data_interrupts.enter(handle, Owned::new(&device, interrupt));
        // Before a callback may need them.
        number.offer(interrupt.object.number());
        to.offer(handle);
        if let Some(function) = function {
            let name = handle.addr();
            let set = interrupt.object.on_data(move |mut bytes| function.call(name, &mut bytes));
            keep(&registry.data_interrupts, handle, set.map_err(Refusal::from))?;
        }
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn remove_data(handle: Handle, given: c_uint, error: Code<'_>) {
    end(|all| &all.data_interrupts, handle, given, error, DataInterrupt::release)
}

/// Waits for an interrupt with bytes.
///
/// # Safety
///
/// `length` is NULL, or the program has put the size of a room there; `to` is NULL or leads to that
/// room.
pub(crate) unsafe fn wait_data(
    handle: Handle,
    (to, length): (*mut c_void, Out<'_, c_uint>),
    ms: c_uint,
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        // SAFETY: not NULL, so that the program has put the size of its room there.
        let room = unsafe { length.variable(WRONG)?.get() } as usize;
        if room > 0 {
            check(to)?;
        }
        let bytes = registry()?.data_interrupts.find(handle)?.object.wait(limit(ms))?;
        let fits = bytes.len().min(room);
        if fits > 0 {
            // SAFETY: `to` is not NULL, as checked above, so that it leads to at least so much
            // room.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), fits) };
        }
        length.offer(bytes.len() as c_uint);
        if fits < bytes.len() { Err(Error::Overflow.into()) } else { Ok(()) }
    };
    answer(error, (), act)
}

pub(crate) fn connect_data(
    sd: Handle,
    to: Out<'_, Handle>,
    (node, adapter, number): (c_uint, c_uint, c_uint),
    ms: c_uint,
    given: c_uint,
    error: Code<'_>,
) {
    let connect = |host: &Host| host.connect_data_interrupt(node, number, limit(ms));
    make(|all| &all.remote_data_interrupts, (sd, adapter), to, given, error, connect)
}

pub(crate) fn disconnect_data(handle: Handle, given: c_uint, error: Code<'_>) {
    end(|all| &all.remote_data_interrupts, handle, given, error, RemoteDataInterrupt::disconnect)
}

/// Triggers an interrupt with bytes.
///
/// # Safety
///
/// `from` is NULL or leads to `length` bytes, which nobody writes during the call.
pub(crate) unsafe fn trigger_data(
    handle: Handle,
    (from, length): (*mut c_void, c_uint),
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        let remote = registry()?.remote_data_interrupts.find(handle)?;
        if length > 0 && from.is_null() {
            return Err(WRONG);
        }
        let bytes = match length {
            0 => &[],
            // SAFETY: not NULL, so that it leads to so many bytes, which nobody writes meanwhile.
            length => unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length as usize) },
        };
        // Programs try again on this code; the other one is of a wait with too little room.
        remote.object.trigger(bytes).map_err(|why| if why == Error::Overflow { Error::NoSpace } else { why })?;
        Ok(())
    };
    answer(error, (), act)
}
