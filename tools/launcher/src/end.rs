//! How a rank ended.

use std::fmt;

/// How a rank ended, and what the job's status is then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Status(u8),
    Signal(u8),
    /// It has never begun, and why.
    NotStarted(String),
}

/// The status of a shell for what cannot be started.
pub(crate) const NOT_STARTED: u8 = 127;

impl End {
    /// The status that the job has because of it: as a shell counts.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Status(status) => *status,
            Self::Signal(signal) => 128 | signal,
            Self::NotStarted(_) => NOT_STARTED,
        }
    }

    /// As bytes of a frame.
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            Self::Status(status) => vec![0, *status],
            Self::Signal(signal) => vec![1, *signal],
            Self::NotStarted(why) => [&[2], why.as_bytes()].concat(),
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0, status] => Some(Self::Status(*status)),
            [1, signal] => Some(Self::Signal(*signal)),
            [2, why @ ..] => Some(Self::NotStarted(String::from_utf8_lossy(why).into_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) => match signal_hook::low_level::signal_name((*signal).into()) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Self::NotStarted(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_the_same_on_the_other_host() {
        for (end, status) in [(End::Status(3), 3), (End::Signal(9), 137), (End::NotStarted("why".into()), 127)] {
            assert_eq!(End::parse(&end.emit()), Some(end.clone()));
            assert_eq!(end.status(), status);
        }
        assert_eq!(End::parse(&[7]), None);
        assert_eq!(End::Signal(9).to_string(), "was killed by signal 9 (SIGKILL)");
    }
}
