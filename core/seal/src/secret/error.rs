//! Why there is no secret, each in one sentence with its remedy.

use crate::Refused;
use rustix::io::Errno;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a secret cannot be used or written. It has no byte of the secret in it.
#[derive(Debug)]
pub struct SecretError {
    path: Option<PathBuf>,
    fault: Fault,
}

/// What is wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system has refused to read it.
    Unreadable(std::io::Error),
    /// The system has refused to write it.
    Unwritable(std::io::Error),
    /// It is a folder, a pipe or a device.
    NotRegular,
    /// Another user owns it.
    Owner(u32),
    /// Others may use it.
    Mode(u32),
    /// It is something else than digits.
    Digits,
    /// There is a file already.
    Exists,
    /// There is no memory for it.
    Refused(Refused),
}

impl SecretError {
    pub(super) fn of(path: &Path, fault: Fault) -> Self {
        Self { path: Some(path.to_owned()), fault }
    }

    pub(super) fn digits() -> Self {
        Self { path: None, fault: Fault::Digits }
    }

    pub(super) fn refused(refused: Refused) -> Self {
        Self { path: None, fault: Fault::Refused(refused) }
    }

    /// Returns whether it is not the secret but a limit of this process or of the system: without
    /// it the same secret can be used.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        let limits = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        match &self.fault {
            Fault::Unreadable(error) => Errno::from_io_error(error).is_some_and(|errno| limits.contains(&errno)),
            Fault::Refused(refused) => *refused == Refused::NoMemory,
            _ => false,
        }
    }

    /// Returns whether there is simply no such file.
    pub(super) fn is_missing(&self) -> bool {
        let missing = [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory];
        matches!(&self.fault, Fault::Unreadable(error) if missing.contains(&error.kind()))
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if matches!(self.fault, Fault::Unwritable(_) | Fault::Exists) { "write" } else { "use" };
        match &self.path {
            Some(path) => write!(f, "cannot {verb} the secret file {}: ", path.display())?,
            None => f.write_str("cannot use the secret: ")?,
        }
        match &self.fault {
            Fault::Unreadable(error) if Errno::from_io_error(error) == Some(Errno::NFILE) => {
                write!(f, "{error}; raise the system's limit of open files (fs.file-max)")
            }
            Fault::Unreadable(error) if self.is_limit() => {
                write!(f, "{error}; raise the limits of open files and of memory (ulimit -n, ulimit -v)")
            }
            Fault::Unreadable(error) => write!(f, "{error}; name another file, or make one with `cci key new`"),
            Fault::Unwritable(error) => write!(f, "{error}; name a file in a folder of this user"),
            Fault::NotRegular => f.write_str("it is no regular file; name a regular file"),
            Fault::Owner(user) => write!(f, "user {user} owns it; chown it to this user or to root"),
            Fault::Mode(mode) => write!(f, "its mode {mode:04o} lets others use it; chmod 600 it"),
            Fault::Digits => {
                f.write_str("it is not 64 hexadecimal digits and at most a newline; make one with `cci key new`")
            }
            Fault::Exists => f.write_str("it exists; remove it first, or name another file"),
            Fault::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for SecretError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            Fault::Unreadable(error) | Fault::Unwritable(error) => Some(error),
            Fault::Refused(refused) => Some(refused),
            _ => None,
        }
    }
}
