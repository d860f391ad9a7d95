//! What calls return, and the boundary that no panic crosses.

use cci_mem::boundary::caught;
use cci_portals::Error;
use std::ffi::c_int;

/// Of the Cray dialect: the interface is open, and its handle was given.
pub(crate) const IFACE_DUP: c_int = 25;

/// Of this library: its device is one that uses another library, which may be this one.
const IFACE_CYCLE: c_int = 26;

/// Why a call does not return 0.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    Error(Error),
    Duplicate,
    Cycle,
}

impl From<Error> for Refusal {
    fn from(why: Error) -> Self {
        Self::Error(why)
    }
}

pub(crate) type Answer = Result<(), Refusal>;

/// Runs a call.
#[inline]
pub(crate) fn answer(act: impl FnOnce() -> Answer) -> c_int {
    match caught(act, || Err(Refusal::Error(Error::Unknown))) {
        Ok(()) => 0,
        Err(Refusal::Error(why)) => why.code(),
        Err(Refusal::Duplicate) => IFACE_DUP,
        Err(Refusal::Cycle) => IFACE_CYCLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one code that no program can provoke: it stands for faults of the library itself.
    #[test]
    fn a_fault_of_the_library_is_a_code() {
        // Without the message of the panic.
        let code = answer(|| std::panic::resume_unwind(Box::new(())));
        assert_eq!(code, Error::Unknown.code());
    }
}
