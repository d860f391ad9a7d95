//! Errors of the slow path: could not start.

use cci_proto::Status;
use std::fmt;

/// Something could not be opened. Reads as a sentence that says what to do.
#[derive(Debug)]
pub struct OpenError {
    /// What could not be done, and what to do about it.
    pub what: String,
    /// The status that a C program sees.
    pub status: Status,
    /// The system's error behind it.
    pub source: Option<std::io::Error>,
}

impl OpenError {
    /// An error without a system error behind it.
    pub fn new(status: Status, what: impl Into<String>) -> Self {
        Self { what: what.into(), status, source: None }
    }

    /// An error of the system; the status follows from it.
    pub fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        let source = source.into();
        let status = match source.kind() {
            std::io::ErrorKind::AddrInUse | std::io::ErrorKind::AddrNotAvailable => Status::AddrNotAvail,
            std::io::ErrorKind::OutOfMemory => Status::NoMem,
            std::io::ErrorKind::InvalidInput => Status::Inval,
            _ => match source.raw_os_error() {
                // Too many descriptors here or in the system: a resource of creation is missing.
                Some(23 | 24 | 28) => Status::NoMem,
                _ => Status::Error,
            },
        };
        Self { what: what.into(), status, source: Some(source) }
    }
}

/// Sees whether so many bytes can be had, `what` for. To be asked before allocations whose pages stay untouched until they are
/// used: those cannot fail but by ending the process.
///
/// # Errors
///
/// No memory.
pub fn room_for(what: &str, bytes: usize) -> Result<(), OpenError> {
    let mut trial = Vec::<u8>::new();
    let refused = trial.try_reserve_exact(bytes).is_err();
    // Otherwise the compiler leaves out what nobody looks at.
    std::hint::black_box(&trial);
    if refused {
        return Err(OpenError::new(Status::NoMem, format!("no memory for {what}: {bytes} bytes are not to be had")));
    }
    Ok(())
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.source {
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
