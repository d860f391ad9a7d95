//! From the pointers that programs hold to the cells behind them.
//!
//! Every function here trusts one promise of the program: a pointer is NULL, or was handed out by
//! this library as what the program now uses it for. Cells are never unmapped and keep their type
//! ([`cci::__binding::Slab`], and the slots of an endpoint), so the promise is enough for pointers
//! to what is closed, disconnected, or returned, and in a forked child.

use crate::status::Refusal;
use cci::__binding::{ConnectionCell, ConnectionState, EndpointCell, Entered, EventCell, Outside, Source};
use std::ffi::{c_char, c_void};

/// A connection that a program names; it may be closed.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    /// The endpoint it belongs to, or did.
    pub(crate) endpoint: &'static EndpointCell,
    cell: &'static ConnectionCell,
}

impl Named {
    /// The endpoint entered at once, and the connection, if a message of so many bytes may be sent
    /// on it.
    #[inline(always)]
    pub(crate) fn enter_taking(
        self,
        bytes: usize,
    ) -> Result<(Entered<'static>, &'static ConnectionCell), Outside<'static>> {
        let entered = self.endpoint.enter_at_once()?;
        let same = self.cell.endpoint.get().is_some_and(|owner| std::ptr::eq(owner, self.endpoint));
        if same && self.cell.takes(bytes) { Ok((entered, self.cell)) } else { Err(entered.outside()) }
    }

    /// The connection, unless it is closed. To be asked with the lock of `endpoint` held: a cell
    /// changes its owner only under the lock of the endpoint that has it.
    #[inline(always)]
    pub(crate) fn live(self) -> Option<&'static ConnectionCell> {
        let owner = self.cell.endpoint.get();
        let same = owner.is_some_and(|owner| std::ptr::eq(owner, self.endpoint));
        (same && self.cell.state() != ConnectionState::Free).then_some(self.cell)
    }
}

/// The endpoint.
///
/// # Safety
///
/// The promise of this module.
#[inline(always)]
pub(crate) unsafe fn endpoint(pointer: *const EndpointCell) -> Result<&'static EndpointCell, Refusal> {
    // SAFETY: NULL, or a cell of a slab (see above).
    unsafe { pointer.as_ref() }.ok_or(Refusal::Argument("the endpoint is NULL"))
}

/// The connection.
///
/// # Safety
///
/// The promise of this module.
#[inline(always)]
pub(crate) unsafe fn connection(pointer: *const ConnectionCell) -> Result<Named, Refusal> {
    // SAFETY: NULL, or a cell of a slab (see above).
    let cell = unsafe { pointer.as_ref() }.ok_or(Refusal::Argument("the connection is NULL"))?;
    let endpoint = cell.endpoint.get().ok_or(Refusal::Argument("no such connection"))?;
    Ok(Named { endpoint, cell })
}

/// The event.
///
/// # Safety
///
/// The promise of this module.
#[inline(always)]
pub(crate) unsafe fn event(pointer: *const EventCell) -> Result<&'static EventCell, Refusal> {
    // SAFETY: NULL, or a slot of a region (see above).
    unsafe { pointer.as_ref() }.ok_or(Refusal::Argument("the event is NULL"))
}

/// The bytes of a buffer; NULL with length 0 is an empty one.
///
/// # Safety
///
/// `len` bytes are readable at `start` while the result is used.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(start: *const c_void, len: u32) -> Result<Source<'a>, Refusal> {
    // SAFETY: readable by the program's promise; 32 bits of length fit an object.
    let source = unsafe { Source::new(start.cast(), len as usize) };
    if source.is_missing() {
        return Err(Refusal::Argument("the buffer is NULL and its length is not 0"));
    }
    Ok(source)
}

/// A copy of a text.
///
/// # Safety
///
/// NULL, or a NUL-terminated string that is readable during the call.
pub(crate) unsafe fn text(start: *const c_char, missing: &'static str) -> Result<String, Refusal> {
    if start.is_null() {
        return Err(Refusal::Argument(missing));
    }
    // SAFETY: a NUL-terminated string by the program's promise.
    let bytes = unsafe { Source::new(start.cast(), libc::strlen(start)) };
    String::from_utf8(bytes.to_vec()).map_err(|_| Refusal::Argument("the text is not UTF-8"))
}

/// A copy of an argument that may be missing.
///
/// # Safety
///
/// NULL, or a `T` is readable there during the call.
pub(crate) unsafe fn load<T: Copy>(place: *const T) -> Option<T> {
    // SAFETY: readable by the program's promise; C aligns it, and nobody is hurt if it did not.
    (!place.is_null()).then(|| unsafe { place.read_unaligned() })
}

/// Where a result goes.
///
/// # Safety
///
/// NULL, or writable for a `T` as long as the call lasts.
pub(crate) unsafe fn store<T>(place: *mut T, value: T) -> Result<(), Refusal> {
    present(place)?;
    // SAFETY: writable by the program's promise; C aligns it, and nobody is hurt if it did not.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Refuses a NULL place for a result before anything is done.
pub(crate) fn present<T>(place: *mut T) -> Result<(), Refusal> {
    if place.is_null() { Err(Refusal::Argument("the place for the result is NULL")) } else { Ok(()) }
}

/// A pointer of the program's own, as the library carries it.
#[inline(always)]
pub(crate) fn context(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}
