//! What the calls for objects of every kind do alike.

use crate::answer::{Answer, Code, WRONG, answer};
use crate::devices::device;
use crate::flags;
use crate::registry::{Handle, Owned, Registry, Table, check_adapter, registry};
use cci_mem::arguments::Out;
use cci_sci::{Error, Host};
use std::ffi::c_uint;

/// The table of objects of one kind.
type Kind<T> = fn(&'static Registry) -> &'static Table<Owned<T>>;

/// Makes an object with the host of a device, and gives the program its handle: for calls without
/// flags.
pub(crate) fn make<T>(
    kind: Kind<T>,
    (sd, adapter): (Handle, c_uint),
    to: Out<'_, Handle>,
    given: c_uint,
    error: Code<'_>,
    make: impl FnOnce(&Host) -> Result<T, Error>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        check_adapter(adapter)?;
        to.check(WRONG)?;
        let (registry, device) = (registry()?, device(sd)?);
        let object = make(&device.host)?;
        let handle = registry.next();
        kind(registry).enter(handle, Owned::new(&device, object));
        to.offer(handle);
        Ok(())
    };
    answer(error, (), act)
}

/// Keeps a new object whose callback was set. One whose callback was refused is ended: the call has
/// made nothing.
pub(crate) fn keep<T>(table: &Table<T>, handle: Handle, was_set: Answer<()>) -> Answer<()> {
    if was_set.is_err() {
        drop(table.remove(handle));
    }
    was_set
}

/// Ends an object, and takes its handle back: for calls without flags.
pub(crate) fn end<T>(
    kind: Kind<T>,
    handle: Handle,
    given: c_uint,
    error: Code<'_>,
    end: impl FnOnce(&T) -> Result<(), Error>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        let table = kind(registry()?);
        end(&table.find(handle)?.object)?;
        drop(table.remove(handle));
        Ok(())
    };
    answer(error, (), act)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Refusal;

    /// No program can provoke it: the host of a device does not end before its objects.
    #[test]
    fn an_object_whose_callback_is_refused_is_none() {
        let table = Table::default();
        let handle: Handle = std::ptr::without_provenance_mut(16);
        let object = table.enter(handle, ());
        assert_eq!((keep(&table, handle, Ok(())), std::sync::Arc::strong_count(&object)), (Ok(()), 2));
        let why = Refusal::from(Error::NotInitialized);
        assert_eq!((keep(&table, handle, Err(why)), std::sync::Arc::strong_count(&object)), (Err(why), 1));
        assert!(table.remove(handle).is_none());
    }
}
