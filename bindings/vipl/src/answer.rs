//! What calls return, and the boundary that no panic crosses.

use cci_mem::boundary::caught;
use cci_via::Error;
use std::ffi::c_int;

pub(crate) const NOT_DONE: c_int = 1;
pub(crate) const DESCRIPTOR_ERROR: c_int = 11;

/// Success, or a code of VIPL.
pub(crate) type Answer = Result<(), c_int>;

/// The code of a refusal.
pub(crate) fn code(why: Error) -> c_int {
    match why {
        Error::Resource(_) => 3,
        Error::Timeout => 4,
        Error::Reject => 5,
        Error::Reliability => 6,
        Error::TransferSize => 7,
        Error::Qos => 8,
        Error::Tag => 9,
        Error::RdmaRead => 10,
        Error::State(_) => 12,
        Error::NameService => 13,
        Error::NoMatch => 14,
        Error::NotReachable => 15,
        Error::NotSupported => 16,
        // And whatever later versions add.
        _ => 2,
    }
}

pub(crate) const PARAMETER: c_int = 2;
pub(crate) const RESOURCE: c_int = 3;

/// Runs a call.
#[inline]
pub(crate) fn answer(act: impl FnOnce() -> Answer) -> c_int {
    caught(act, || Err(RESOURCE)).err().unwrap_or(0)
}
