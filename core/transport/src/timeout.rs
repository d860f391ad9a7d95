//! Timeouts of connections.

use cci_proto::OptionError;
use std::time::Duration;

/// A send or keepalive timeout of a connection: whole microseconds, less than 72 minutes, or none.
///
/// # Example
///
/// ```
/// use cci_transport::Timeout;
/// use std::time::Duration;
///
/// let timeout = Timeout::new(Some(Duration::from_nanos(2001)))?;
/// assert_eq!(timeout.duration(), Some(Duration::from_micros(3)));
/// assert_eq!(Timeout::NONE.duration(), None);
/// # Ok::<(), cci_proto::OptionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeout {
    micros: u32,
}

impl Timeout {
    /// No timeout.
    pub const NONE: Self = Self { micros: 0 };

    /// A timeout of this length, or none. Fractions of a microsecond count as one.
    ///
    /// # Errors
    ///
    /// Zero, or more microseconds than a `u32` holds.
    pub fn new(length: Option<Duration>) -> Result<Self, OptionError> {
        let Some(length) = length else { return Ok(Self::NONE) };
        let micros = u32::try_from(length.as_nanos().div_ceil(1000)).ok().filter(|micros| *micros > 0);
        Ok(Self { micros: micros.ok_or(OptionError::Range)? })
    }

    /// Reads the number of the C contract and of [`Connection`](crate::Connection): microseconds;
    /// 0: none.
    #[must_use]
    pub const fn from_micros(micros: u32) -> Self {
        Self { micros }
    }

    /// The number that [`Timeout::from_micros`] reads.
    #[must_use]
    pub const fn micros(self) -> u32 {
        self.micros
    }

    /// The length; `None`: no timeout.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        (self.micros > 0).then(|| Duration::from_micros(u64::from(self.micros)))
    }
}

#[cfg(test)]
mod tests {
    use super::{OptionError, Timeout};
    use std::time::Duration;

    #[test]
    fn times_are_rounded_up_and_never_to_none() {
        let micros = |length| Timeout::new(length).map(Timeout::micros);
        assert_eq!(micros(None), Ok(0));
        assert_eq!(micros(Some(Duration::ZERO)), Err(OptionError::Range));
        assert_eq!(micros(Some(Duration::from_nanos(1))), Ok(1));
        assert_eq!(micros(Some(Duration::from_nanos(2001))), Ok(3));
        let longest = Duration::from_micros(u64::from(u32::MAX));
        assert_eq!(micros(Some(longest)), Ok(u32::MAX));
        assert_eq!(micros(Some(longest + Duration::from_nanos(1))), Err(OptionError::Range));
        assert_eq!(Timeout::NONE.duration(), None);
        assert_eq!(Timeout::from_micros(u32::MAX).duration(), Some(longest));
    }
}
