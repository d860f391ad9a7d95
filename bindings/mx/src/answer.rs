//! What calls return, and error handlers.

use cci_mx::Error;
use std::ffi::{CStr, c_char, c_uint};
use std::io::Write;

/// Codes that the engine does not have.
pub(crate) const BAD_BAD_BAD: u32 = 1;
pub(crate) const ALREADY_INITIALIZED: u32 = 3;
pub(crate) const NOT_INITIALIZED: u32 = 4;
/// Of this library.
pub(crate) const DEVICE_CYCLE: u32 = 64;

/// Why a call does not return 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal(pub(crate) u32);

impl From<Error> for Refusal {
    fn from(why: Error) -> Self {
        Self(why.code())
    }
}

pub(crate) type Answer = Result<(), Refusal>;

/// A pointer that must lead somewhere is NULL.
pub(crate) const NULL: Refusal = Refusal(BAD_BAD_BAD);

/// The text of a code.
pub(crate) fn text_of(code: u32) -> &'static CStr {
    match code {
        0 => c"success",
        BAD_BAD_BAD => c"a pointer is NULL; pass the address of a variable",
        ALREADY_INITIALIZED => c"the library is initialised already; call mx_init once before mx_finalize",
        NOT_INITIALIZED => c"the library is not initialised in this process; call mx_init",
        DEVICE_CYCLE => c"the device uses another library, which may be this one; name another device by CCI_MX_DEVICE",
        code => Error::from_code(code).map_or(c"no code of MX", Error::c_text),
    }
}

/// What the program calls for an error.
pub(crate) type ErrorHandler = unsafe extern "C" fn(*mut c_char, c_uint) -> c_uint;

/// The default handler.
///
/// # Safety
///
/// `text` leads to a string.
#[unsafe(no_mangle)]
#[expect(clippy::disallowed_methods, reason = "MX promises that this handler ends the program")]
pub(crate) unsafe extern "C" fn MX_ERRORS_ARE_FATAL(text: *mut c_char, code: c_uint) -> c_uint {
    // SAFETY: it leads to a text with its end.
    let text = unsafe { CStr::from_ptr(text) };
    let line = format!("{} (code {code})\n", text.to_string_lossy());
    // Nothing is left to be done where that fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(1)
}

/// The handler that only returns the code.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn MX_ERRORS_RETURN(_text: *mut c_char, code: c_uint) -> c_uint {
    code
}

/// The handler to which a program's pointer leads; NULL: the default one.
pub(crate) fn handler_of(given: Option<ErrorHandler>) -> ErrorHandler {
    given.unwrap_or(MX_ERRORS_ARE_FATAL)
}
