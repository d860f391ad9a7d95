//! Refusals as C programs see them: a number now, and a sentence on request.

use cci::{
    BlockingError, CloseError, ConnectError, Failure, ImportError, OpenError, OptionError, PollError, RegisterError,
    RequestError, RmaError, SendError, Status, Unusable,
};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::fmt;

/// Why a call was refused. Small and without text of its own, so that a refused send costs next to
/// nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// An argument that no call accepts.
    Argument(&'static str),
    /// `cci_init` has not been called, in this process.
    NotInitialized,
    /// No memory for the binding's own tables.
    NoMemory,
    /// Something could not be opened; [`keep`] has kept the text.
    Open(Status),
    /// The same with a sentence that takes no memory.
    Fixed(Status, &'static str),
    /// A panic was caught at the boundary.
    Panic,
    Connect(ConnectError),
    /// A call that waited for its operation: the operation failed.
    Failed(Failure),
    Import(ImportError),
    Option(OptionError),
    Poll(PollError),
    Register(RegisterError),
    Request(RequestError),
    Rma(RmaError),
    Send(SendError),
    Unusable(Unusable),
}

macro_rules! refused_as {
    ($($variant:ident($error:ty)),+) => {
        $(impl From<$error> for Refusal {
            #[inline]
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

refused_as!(
    Connect(ConnectError),
    Import(ImportError),
    Option(OptionError),
    Poll(PollError),
    Register(RegisterError),
    Request(RequestError),
    Rma(RmaError),
    Send(SendError),
    Unusable(Unusable)
);

impl<E: Into<Self>> From<BlockingError<E>> for Refusal {
    fn from(error: BlockingError<E>) -> Self {
        match error {
            BlockingError::Refused(why) => why.into(),
            BlockingError::Failed(why) => Self::Failed(why),
        }
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        if let Some(sentence) = error.fixed() {
            return Self::Fixed(error.status, sentence);
        }
        keep(&error.to_string());
        Self::Open(error.status)
    }
}

impl From<CloseError> for Refusal {
    fn from(error: CloseError) -> Self {
        match error {
            CloseError::Unusable(why) => why.into(),
            busy => OpenError::new(Status::Busy, busy.to_string()).into(),
        }
    }
}

impl Refusal {
    fn status(self) -> Status {
        match self {
            Self::Argument(_) => Status::Inval,
            Self::NotInitialized | Self::Panic => Status::Error,
            Self::NoMemory => Status::NoMem,
            Self::Open(status) | Self::Fixed(status, _) => status,
            Self::Connect(error) => error.status(),
            Self::Failed(error) => error.status(),
            Self::Import(error) => error.status(),
            Self::Option(error) => error.status(),
            Self::Poll(error) => error.status(),
            Self::Register(error) => error.status(),
            Self::Request(error) => error.status(),
            Self::Rma(error) => error.status(),
            Self::Send(error) => error.status(),
            Self::Unusable(why) => why.status(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(sentence) | Self::Fixed(_, sentence) => f.write_str(sentence),
            Self::NotInitialized => f.write_str("the library is not initialized in this process; call cci_init first"),
            Self::NoMemory => f.write_str("no memory"),
            Self::Open(status) => status.fmt(f),
            Self::Panic => f.write_str("the library failed inside; its message is on standard error"),
            Self::Connect(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::Import(error) => error.fmt(f),
            Self::Option(error) => error.fmt(f),
            Self::Poll(error) => error.fmt(f),
            Self::Register(error) => error.fmt(f),
            Self::Request(error) => error.fmt(f),
            Self::Rma(error) => error.fmt(f),
            Self::Send(error) => error.fmt(f),
            Self::Unusable(why) => why.fmt(f),
        }
    }
}

/// Room for the longest sentence of [`Refusal::Fixed`], bytes; a longer one is cut.
const LONGEST_FIXED: usize = 256;

thread_local! {
    static LAST: Cell<Option<Refusal>> = const { Cell::new(None) };
    /// What `ccix_last_error` has handed out, or the kept text of [`Refusal::Open`].
    static TEXT: RefCell<CString> = RefCell::default();
    /// What `ccix_last_error` has handed out of [`Refusal::Fixed`], with a NUL: made without
    /// memory.
    static FIXED: Cell<[u8; LONGEST_FIXED]> = const { Cell::new([0; LONGEST_FIXED]) };
    /// What `ccix_event_reason` has handed out.
    static REASON: RefCell<CString> = RefCell::default();
}

/// The number for C, and the refusal kept as this thread's last error.
#[cold]
pub(crate) fn refused(refusal: Refusal) -> c_int {
    LAST.set(Some(refusal));
    code(refusal.status())
}

/// A status as C functions return it.
pub(crate) fn code(status: Status) -> c_int {
    // The discriminants are errno values and smaller.
    status as c_int
}

/// Keeps a text for `ccix_last_error`.
fn keep(text: &str) {
    // A thread that is ending has no text any more, and nobody to read it.
    let _ = TEXT.try_with(|kept| kept.replace(c_string(text)));
}

/// The text as C reads it, without NUL bytes.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.bytes().filter(|byte| *byte != 0).collect::<Vec<_>>()).unwrap_or_default()
}

/// The last error's sentence, valid until this thread's next failing call.
pub(crate) fn last_error() -> *const c_char {
    match LAST.get() {
        None => c"".as_ptr(),
        Some(Refusal::Open(_)) => TEXT.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr()),
        Some(Refusal::Fixed(_, sentence)) => fixed(sentence),
        Some(refusal) => {
            keep(&refusal.to_string());
            TEXT.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
        }
    }
}

/// A sentence as C reads it, without memory of its own.
fn fixed(sentence: &str) -> *const c_char {
    let mut text = [0; LONGEST_FIXED];
    let bytes = sentence.bytes().filter(|byte| *byte != 0);
    text[..LONGEST_FIXED - 1].iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    let kept = FIXED.try_with(|fixed| {
        fixed.set(text);
        fixed.as_ptr().cast::<c_char>().cast_const()
    });
    kept.unwrap_or(c"".as_ptr())
}

/// A reason as C reads it, valid until this thread's next one.
pub(crate) fn reason(text: &str) -> *const c_char {
    let keep = |kept: &RefCell<CString>| {
        kept.replace(c_string(text));
        kept.borrow().as_ptr()
    };
    REASON.try_with(keep).unwrap_or(c"".as_ptr())
}

/// `cci_strerror`: the endpoint does not matter, and may be stale or NULL.
#[unsafe(no_mangle)]
extern "C" fn cci_strerror(_endpoint: *const cci::__binding::EndpointCell, status: c_uint) -> *const c_char {
    Status::from_u32(status).map_or(std::ptr::null(), |status| CStr::as_ptr(status.c_sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: a NUL-terminated text of this thread, copied before the next call.
        unsafe { CStr::from_ptr(last_error()) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn last_error_is_the_sentence_of_the_last_refusal() {
        assert_eq!(last(), "");
        assert_eq!(refused(Refusal::Argument("the sky is down")), libc::EINVAL);
        assert_eq!(last(), "the sky is down");
        let open = OpenError::new(Status::NoDev, "no device\0 at all");
        assert_eq!(refused(open.into()), libc::ENODEV);
        assert_eq!(last(), "no device at all");
        assert_eq!(refused(SendError::TooLong.into()), libc::EMSGSIZE);
        assert_eq!(last(), SendError::TooLong.to_string());
    }

    #[test]
    fn a_fixed_sentence_is_told_as_it_is() {
        let none = OpenError::new(Status::NoMem, "no memory, and nothing to do about it");
        assert_eq!((refused(none.into()), last().as_str()), (libc::ENOMEM, "no memory, and nothing to do about it"));
        let system = OpenError::system("no memory for slots", std::io::Error::from_raw_os_error(libc::ENOMEM));
        assert_eq!((refused(system.into()), last().as_str()), (libc::ENOMEM, "no memory for slots"));
        let large = OpenError::system("cannot open", std::io::Error::from_raw_os_error(libc::EFBIG));
        assert_eq!(refused(large.into()), libc::ENOMEM);
        assert!(last().contains("ulimit -f"), "{}", last());
        let many = OpenError::system("cannot open", std::io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(refused(many.into()), libc::ENOMEM);
        assert!(last().starts_with("cannot open: "), "the reason is missing: {}", last());
    }

    #[test]
    fn another_thread_has_another_last_error() {
        refused(Refusal::NotInitialized);
        let other = std::thread::spawn(last).join().expect("the thread ends");
        assert_eq!(other, "");
        assert_ne!(last(), "");
    }
}
