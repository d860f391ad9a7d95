//! Where a process finds its secret.

use super::error::SecretError;
use super::psk::Psk;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variable that names a file.
const VARIABLE: &str = "CCI_SECRET_FILE";

/// What the configuration of a device says.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// The key `secret`: 64 digits.
    Digits(&'a str),
    /// The key `secret_file`.
    File(&'a Path),
}

/// Where a secret was found. It prints as a noun: "the key secret_file (/run/secret)".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The key `secret`.
    Digits,
    /// The key `secret_file`.
    File(PathBuf),
    /// The variable `CCI_SECRET_FILE`.
    Variable(PathBuf),
    /// What `cci run` has handed down.
    Job,
    /// The file of the user.
    Home(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits => f.write_str("the key secret"),
            Self::File(path) => write!(f, "the key secret_file ({})", path.display()),
            Self::Variable(path) => write!(f, "{VARIABLE} ({})", path.display()),
            Self::Job => f.write_str("the job"),
            Self::Home(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A secret and where it was found.
#[derive(Debug)]
pub struct Found {
    /// The secret.
    pub psk: Psk,
    /// Where it was found.
    pub origin: Origin,
}

/// Searches for the secret of this process. The first of these counts: what the configuration
/// gives; the file that the environment variable `CCI_SECRET_FILE` names; the secret of the job;
/// the file of [`default_path`]. `None`: there is none of them.
///
/// A file that is named and missing is an error, as is any file that is there and cannot be used:
/// nothing falls through to a weaker choice. Only the user's own file may be missing. An empty
/// variable counts as none.
///
/// # Errors
///
/// As [`Psk::parse`] and [`Psk::from_file`].
///
/// # Example
///
/// ```
/// use cci_seal::secret::{Given, Origin, search};
///
/// let digits = "5f".repeat(32);
/// let found = search(Some(Given::Digits(&digits)), None)?.expect("a secret was given");
/// assert_eq!(found.origin, Origin::Digits);
/// # Ok::<(), cci_seal::secret::SecretError>(())
/// ```
pub fn search(given: Option<Given<'_>>, job: Option<Psk>) -> Result<Option<Found>, SecretError> {
    search_in(given, job, |name| std::env::var_os(name))
}

pub(super) fn search_in(
    given: Option<Given<'_>>,
    job: Option<Psk>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Found>, SecretError> {
    let found = |psk: Psk, origin| Ok(Some(Found { psk, origin }));
    match given {
        Some(Given::Digits(digits)) => return found(Psk::parse(digits)?, Origin::Digits),
        Some(Given::File(path)) => return found(Psk::from_file(path)?, Origin::File(path.to_owned())),
        None => {}
    }
    if let Some(path) = variable(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) {
        return found(Psk::from_file(&path)?, Origin::Variable(path));
    }
    if let Some(psk) = job {
        return found(psk, Origin::Job);
    }
    let Some(path) = path_in(variable) else { return Ok(None) };
    match Psk::from_file(&path) {
        Ok(psk) => found(psk, Origin::Home(path)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the file of the user: `$XDG_CONFIG_HOME/cci/secret`, or `~/.config/cci/secret`. `None`:
/// the environment has neither `XDG_CONFIG_HOME` nor `HOME`, as absolute paths.
#[must_use]
pub fn default_path() -> Option<PathBuf> {
    path_in(|name| std::env::var_os(name))
}

fn path_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(configuration.join("cci").join("secret"))
}
