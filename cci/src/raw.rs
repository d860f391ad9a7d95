//! From the endpoints, events and options of a program to the cells behind them, for bindings and
//! tools: a part of `cci::__binding`, whose promise each `unsafe` function needs.

use crate::binding::{
    ALL, Access, EndpointCell, EventCell, Flags, Source, Threading, deregister, register, rma, rma_blocking, send,
    send_blocking,
};
use crate::connection::Connection as Named;
use crate::endpoint::EndpointFor;
use crate::endpoint_options::EndpointOptions;
use crate::errors::BlockingError;
use crate::event::Event;
use crate::operations::Notify;
use cci_mem::memory::Memory;
use cci_proto::{RegisterError, Rights, RmaError, RmaHandle, SendError};
use std::ptr::NonNull;

/// The cell of an endpoint in its slab.
///
/// # Safety
///
/// The promise of `cci::__binding`.
#[expect(unsafe_code, reason = "a cell leads to slots that events hold")]
#[must_use]
pub unsafe fn cell<T>(endpoint: &EndpointFor<T>) -> &'static EndpointCell {
    endpoint.cell()
}

/// Leaves the endpoint open without its owner, for a binding that closes it by
/// [`crate::__binding::close`].
///
/// # Safety
///
/// The promise of `cci::__binding`.
#[expect(unsafe_code, reason = "a cell leads to slots that events hold")]
#[must_use]
pub unsafe fn into_cell<T>(endpoint: EndpointFor<T>) -> &'static EndpointCell {
    endpoint.leave_open()
}

/// The pointer that a binding's program holds until it returns the event by
/// `__binding::return_event`.
#[must_use]
pub fn into_raw(event: Event<'_>) -> NonNull<EventCell> {
    event.into_slot()
}

/// Changes who may use the endpoint, as run time checks it.
pub fn set_threading(options: &mut EndpointOptions, threading: Threading) {
    options.threading = threading;
}

/// As [`set_threading`] has set it.
#[must_use]
pub fn threading(options: &EndpointOptions) -> Threading {
    options.threading
}

/// Options of an endpoint whose layers are stamped.
#[cfg(feature = "trace")]
#[must_use]
pub fn with_stamps(
    options: EndpointOptions,
    stamps: Option<std::sync::Arc<cci_transport::trace::Stamps>>,
) -> EndpointOptions {
    EndpointOptions { stamps, ..options }
}

/// As [`EndpointFor::send_vectored`], for bytes that others may write meanwhile.
///
/// # Errors
///
/// As that.
#[inline]
pub fn send_gathered<T>(
    endpoint: &EndpointFor<T>,
    connection: Named,
    parts: &[Source<'_>],
    notify: Notify,
) -> Result<(), SendError> {
    let (context, flags) = notify.parts();
    send(endpoint.cell(), || connection.live(endpoint.cell()), parts.into(), context, flags)
}

/// The operations of the C contract with its flags and its handles, on an endpoint: what the
/// conformance suite tests.
pub trait Contract {
    /// [`send`] or, with BLOCKING, [`send_blocking`].
    ///
    /// # Errors
    ///
    /// As they.
    fn send_flags(
        &self,
        connection: Named,
        message: &[u8],
        context: u64,
        flags: Flags,
    ) -> Result<(), BlockingError<SendError>>;

    /// [`rma`] or, with BLOCKING, [`rma_blocking`]; exactly one of READ and WRITE, and FENCE as
    /// wanted.
    ///
    /// # Errors
    ///
    /// As they.
    fn rma(
        &self,
        connection: Named,
        rma: &crate::operations::Rma<'_>,
        context: u64,
        flags: Flags,
    ) -> Result<(), BlockingError<RmaError>>;

    /// [`register`].
    ///
    /// # Errors
    ///
    /// As it.
    fn register_memory(&self, memory: Memory, rights: Rights) -> Result<RmaHandle, RegisterError>;

    /// [`deregister`].
    ///
    /// # Errors
    ///
    /// As it.
    fn deregister(&self, handle: &RmaHandle) -> Result<(), RegisterError>;
}

impl<T> Contract for EndpointFor<T> {
    fn send_flags(
        &self,
        connection: Named,
        message: &[u8],
        context: u64,
        flags: Flags,
    ) -> Result<(), BlockingError<SendError>> {
        let flags = Flags::for_send(flags.bits()).ok_or(SendError::BadFlags)?;
        let live = || connection.live(self.cell());
        if flags.has(Flags::BLOCKING) {
            send_blocking(self.cell(), live, message.into(), flags)
        } else {
            Ok(send(self.cell(), live, message.into(), context, flags)?)
        }
    }

    fn rma(
        &self,
        connection: Named,
        wanted: &crate::operations::Rma<'_>,
        context: u64,
        flags: Flags,
    ) -> Result<(), BlockingError<RmaError>> {
        let flags = Flags::for_rma(flags.bits()).ok_or(RmaError::BadFlags)?;
        let mut wanted = wanted.with(if flags.has(Flags::READ) { Access::Read } else { Access::Write });
        wanted.fence |= flags.has(Flags::FENCE);
        let live = || connection.live(self.cell());
        if flags.has(Flags::BLOCKING) {
            rma_blocking(self.cell(), live, &wanted)
        } else {
            Ok(rma(self.cell(), live, &wanted, context, flags)?)
        }
    }

    fn register_memory(&self, memory: Memory, rights: Rights) -> Result<RmaHandle, RegisterError> {
        register(self.cell(), memory, rights, ALL)
    }

    fn deregister(&self, handle: &RmaHandle) -> Result<(), RegisterError> {
        Ok(deregister(self.cell(), handle)?)
    }
}
