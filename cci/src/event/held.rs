//! What every event holds.

use crate::binding;
use crate::connection::Connection;
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, Status};
use cci_transport::Slot;
use std::fmt;
use std::marker::PhantomData;

/// A borrowed slot, given back when dropped.
pub(crate) struct Held<'e> {
    pub(super) slot: &'static Slot,
    pub(super) endpoint: PhantomData<&'e ()>,
}

impl Held<'_> {
    /// The slot, which is not given back.
    #[inline]
    pub(super) fn keep(self) -> &'static Slot {
        let slot = self.slot;
        std::mem::forget(self);
        slot
    }

    #[inline]
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        let detail = self.slot.detail();
        if detail == Status::Success as u32 { Ok(()) } else { Err(failure(detail)) }
    }

    #[inline]
    pub(super) fn connection(&self) -> Option<Connection> {
        self.slot.connection.get().map(|cell| Connection::of_life(cell, self.slot.mark.load(Ordering::Relaxed)))
    }
}

/// The failure behind the status of an event.
#[cold]
pub(super) fn failure(status: u32) -> Failure {
    Status::from_u32(status).and_then(Failure::from_status).unwrap_or(Failure::Disconnected)
}

impl Drop for Held<'_> {
    #[inline]
    #[expect(unsafe_code, reason = "the memory of the payload may be used again after this call")]
    fn drop(&mut self) {
        // SAFETY: what reads the payload in place borrows this value.
        unsafe { binding::put_back(self.slot) };
    }
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connection() {
            Some(connection) if self.slot.kind() != EventKind::ConnectRequest as u32 => connection.fmt(f),
            _ => f.write_str("no connection"),
        }
    }
}
