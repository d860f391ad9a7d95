//! From the pointers that programs hold to the cells behind them.
//!
//! Exported functions take a [`Handle`]. Its values come from C programs, which promise one thing:
//! it is NULL, or was handed out by this library as what the program now uses it for. Cells are
//! never unmapped and keep their type ([`cci::__binding::Slab`], and the slots of an endpoint), so
//! the promise is enough for pointers to what is closed, disconnected, or returned, and in a forked
//! child.

use crate::status::Refusal;
use cci::__binding::{ConnectionCell, ConnectionState, EndpointCell, Entered, EventCell, Outside};
use std::ffi::c_void;

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

/// What a program holds of a cell.
#[repr(transparent)]
pub(crate) struct Handle<T: 'static>(*const T);

impl<T> Handle<T> {
    /// # Safety
    ///
    /// The promise of this module.
    #[inline(always)]
    pub(crate) unsafe fn new(pointer: *const T) -> Self {
        Self(pointer)
    }

    #[inline(always)]
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    fn cell(&self) -> Option<&'static T> {
        // SAFETY: NULL, or a cell of a slab, or a slot of a region (see above).
        unsafe { self.0.as_ref() }
    }
}

impl Handle<EndpointCell> {
    #[inline(always)]
    pub(crate) fn get(&self) -> Result<&'static EndpointCell, Refusal> {
        self.cell().ok_or(Refusal::Argument("the endpoint is NULL"))
    }
}

impl Handle<ConnectionCell> {
    #[inline(always)]
    pub(crate) fn get(&self) -> Result<Named, Refusal> {
        let cell = self.cell().ok_or(Refusal::Argument("the connection is NULL"))?;
        let endpoint = cell.endpoint.get().ok_or(Refusal::Argument("no such connection"))?;
        Ok(Named { endpoint, cell })
    }
}

impl Handle<EventCell> {
    #[inline(always)]
    pub(crate) fn get(&self) -> Result<&'static EventCell, Refusal> {
        self.cell().ok_or(Refusal::Argument("the event is NULL"))
    }
}

/// A pointer of the program's own, as the library carries it.
#[inline(always)]
pub(crate) fn context(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}
