//! The error of opening a device or an endpoint.

use cci_mem::region::has_room;
use cci_proto::Status;
use rustix::io::Errno;
use std::borrow::Cow;
use std::fmt;

/// A device or an endpoint could not be opened. Its text names the cause and the remedy.
///
/// # Example
///
/// ```
/// # use cci_transport as cci;
/// use cci::OpenError;
/// # use cci_proto::Status;
///
/// fn is_taken(error: &OpenError) -> bool {
///     error.status == Status::AddrNotAvail
/// }
/// let error = OpenError::new(Status::NoDev, "no usable device; configure one");
/// assert_eq!((error.to_string().as_str(), is_taken(&error)), ("no usable device; configure one", false));
/// ```
#[derive(Debug)]
pub struct OpenError {
    /// What could not be done, and what to do about it.
    pub what: Cow<'static, str>,
    /// The status that a C program sees.
    pub status: Status,
    /// The system's error behind it.
    pub source: Option<std::io::Error>,
}

impl OpenError {
    /// An error without a system error behind it.
    pub fn new(status: Status, what: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), status, source: None }
    }

    /// An error of the system; the status follows from it.
    pub fn system(what: impl Into<Cow<'static, str>>, source: impl Into<std::io::Error>) -> Self {
        let source = source.into();
        let status = match source.kind() {
            std::io::ErrorKind::AddrInUse | std::io::ErrorKind::AddrNotAvailable => Status::AddrNotAvail,
            std::io::ErrorKind::OutOfMemory => Status::NoMem,
            std::io::ErrorKind::InvalidInput => Status::Inval,
            _ => match source.raw_os_error() {
                // Too many descriptors in the system or here: a resource of creation is missing.
                Some(23 | DESCRIPTORS | 28) => Status::NoMem,
                // EFBIG: shared memory is a file to the kernel.
                Some(27) => return Self::new(Status::NoMem, FILE_LIMIT),
                _ => Status::Error,
            },
        };
        Self { what: what.into(), status, source: Some(source) }
    }

    /// An error of the system whose call is named, so that whoever reads it knows what to allow.
    pub fn call(what: &'static str, refused: CallError) -> Self {
        match refused.error {
            // Nothing is allocated when memory has run out.
            Errno::NOMEM => Self::system(what, refused.error),
            error => Self::system(format!("{what}: {}", refused.call), error),
        }
    }

    /// The text, if it needs no allocation and the system's error adds nothing. For use when memory
    /// has run out.
    #[must_use]
    pub fn fixed(&self) -> Option<&'static str> {
        let is_memory = |source: &std::io::Error| source.kind() == std::io::ErrorKind::OutOfMemory;
        match self.what {
            Cow::Borrowed(what) if self.source.as_ref().is_none_or(is_memory) => Some(what),
            _ => None,
        }
    }
}

/// An error of the system, and the call that met it.
///
/// # Example
///
/// ```
/// use cci_transport::{NameCall, OpenError};
/// use rustix::io::Errno;
///
/// let refused: rustix::io::Result<()> = Err(Errno::NOSYS);
/// let error = refused.by("epoll_create1").map_err(|refused| OpenError::call("cannot open it", refused));
/// let text = error.expect_err("refused").to_string();
/// assert_eq!(text, "cannot open it: epoll_create1: Function not implemented (os error 38)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The name of the call.
    pub call: &'static str,
    /// What it has returned.
    pub error: Errno,
}

impl From<CallError> for Errno {
    fn from(refused: CallError) -> Self {
        refused.error
    }
}

/// Names the call behind an error of the system: see [`CallError`].
pub trait NameCall<T> {
    /// The result, whose error is that of the call of this name.
    ///
    /// # Errors
    ///
    /// That of the result.
    fn by(self, call: &'static str) -> Result<T, CallError>;
}

impl<T> NameCall<T> for rustix::io::Result<T> {
    fn by(self, call: &'static str) -> Result<T, CallError> {
        self.map_err(|error| CallError { call, error })
    }
}

const FILE_LIMIT: &str = "the limit of file sizes leaves no room for shared memory; raise it (ulimit -f)";
/// EMFILE: this process has as many descriptors as its limit allows.
const DESCRIPTORS: i32 = 24;
const DESCRIPTOR_LIMIT: &str = "raise the limit of descriptors (ulimit -n), or close endpoints";
const NO_ROOM: &str = "not enough memory or address space for an endpoint; raise the limit (ulimit -v), or lower recv_buffers and send_buffers";

/// Checks that `bytes` of address space can be reserved. Call it before allocations whose failure
/// would abort the process. Neither the check nor its error allocates memory.
///
/// # Errors
///
/// No memory.
pub fn room_for(bytes: usize) -> Result<(), OpenError> {
    if has_room(bytes) { Ok(()) } else { Err(OpenError::new(Status::NoMem, NO_ROOM)) }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.source {
            Some(source) if source.raw_os_error() == Some(DESCRIPTORS) => write!(f, ": {source}; {DESCRIPTOR_LIMIT}"),
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
