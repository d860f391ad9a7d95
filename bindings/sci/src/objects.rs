//! What the calls for objects of every kind do alike.

use crate::answer::{answer, check, offer};
use crate::devices::device;
use crate::flags;
use crate::registry::{Handle, Owned, Registry, Table, check_adapter, registry};
use cci_sci::{Error, Host};
use std::ffi::c_uint;

/// The table of objects of one kind.
type Kind<T> = fn(&'static Registry) -> &'static Table<Owned<T>>;

/// Makes an object with the host of a device, and gives the program its handle: for calls without
/// flags.
///
/// # Safety
///
/// `to` and `error` lead to variables of their types, or are NULL.
pub(crate) unsafe fn make<T>(
    kind: Kind<T>,
    (sd, adapter): (Handle, c_uint),
    to: *mut Handle,
    given: c_uint,
    error: *mut c_uint,
    make: impl FnOnce(&Host) -> Result<T, Error>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        check_adapter(adapter)?;
        check(to)?;
        let (registry, device) = (registry()?, device(sd)?);
        let object = make(&device.host)?;
        let handle = registry.next();
        kind(registry).enter(handle, Owned::new(&device, object));
        // SAFETY: by the contract.
        unsafe { offer(to, handle) };
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { answer(error, (), act) }
}

/// Ends an object, and takes its handle back: for calls without flags.
///
/// # Safety
///
/// `error` leads to a code, or is NULL.
pub(crate) unsafe fn end<T>(
    kind: Kind<T>,
    handle: Handle,
    given: c_uint,
    error: *mut c_uint,
    end: impl FnOnce(&T) -> Result<(), Error>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        let table = kind(registry()?);
        end(&table.find(handle)?.object)?;
        drop(table.remove(handle));
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { answer(error, (), act) }
}
