//! The secret of a job.

use cci_seal::secret::SecretError;
use cci_seal::{KEY, Psk, Refused};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The 256 bits that the processes of one job share. They lie where no core dump has them, and a
/// forked child does not. Its debugging print does not show them.
///
/// ```
/// let secret = cci_job::Secret::fresh()?;
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Secret(Arc<Psk>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// In constant time. A forked child has none, which equals no other.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&other.0).unwrap_or(false)
    }
}

impl Secret {
    /// Draws a secret from the system's generator.
    ///
    /// # Errors
    ///
    /// The system has none, or no memory for one.
    pub fn fresh() -> io::Result<Self> {
        Psk::fresh().map(Self::from).map_err(io::Error::other)
    }

    /// The secret of these bytes.
    pub(crate) fn from_bytes(bytes: &[u8; KEY]) -> Result<Self, Refused> {
        Psk::from_bytes(bytes).map(Self::from)
    }

    /// Its bytes: a key, and nothing to show or to pass as an argument.
    pub(crate) fn bytes(&self) -> Result<&[u8; KEY], Refused> {
        self.0.bytes()
    }

    /// What the handshake of a connection to the store is keyed by.
    pub(crate) fn psk(&self) -> &Psk {
        &self.0
    }

    /// Reads a file, in the format of all secrets (`docs/design/sealed-keys.md`).
    pub(crate) fn read(path: &Path) -> Result<Self, SecretError> {
        Psk::from_file(path).map(Self::from)
    }

    /// Its hexadecimal digits, for the key of a device. A forked child gets none, which no device
    /// takes for a secret.
    #[cfg(feature = "cci")]
    pub(crate) fn digits(&self) -> String {
        let digits = self.0.digits();
        let text = digits.as_ref().ok().and_then(|digits| digits.get().ok());
        text.map_or_else(String::new, |digits| String::from_utf8_lossy(digits).into_owned())
    }
}

impl From<Psk> for Secret {
    fn from(psk: Psk) -> Self {
        Self(Arc::new(psk))
    }
}
