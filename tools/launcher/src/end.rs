//! How a rank ended.

use rustix::process::Signal;
use std::fmt;

/// How a rank ended, and what the job's status is then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Status(u8),
    Signal(u8),
    /// It has never begun, and why.
    NotStarted(String),
    /// It was not started, because another one before it could not be.
    NotTried,
}

/// The status of a shell for what cannot be started.
pub(crate) const NOT_STARTED: u8 = 127;

impl End {
    /// The status that the job has because of it: as a shell counts.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Status(status) => *status,
            Self::Signal(signal) => 128 | signal,
            Self::NotStarted(_) | Self::NotTried => NOT_STARTED,
        }
    }

    /// Whether a rank that ended so after another one had failed is a failure besides: it did not
    /// end well, and not because the job ended.
    pub(crate) fn is_failure_besides(&self) -> bool {
        let by_launcher = [Signal::TERM, Signal::KILL].map(|signal| 128 | signal.as_raw());
        !matches!(self, Self::NotTried) && self.status() != 0 && !by_launcher.contains(&self.status().into())
    }

    /// As bytes of a frame.
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            Self::Status(status) => vec![0, *status],
            Self::Signal(signal) => vec![1, *signal],
            Self::NotStarted(why) => [&[2], why.as_bytes()].concat(),
            Self::NotTried => vec![3],
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0, status] => Some(Self::Status(*status)),
            [1, signal] => Some(Self::Signal(*signal)),
            [3] => Some(Self::NotTried),
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
            Self::NotTried => f.write_str("was not started"),
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
        assert_eq!(End::parse(&End::NotTried.emit()), Some(End::NotTried));
        assert_eq!(End::parse(&[7]), None);
        assert_eq!(End::Signal(9).to_string(), "was killed by signal 9 (SIGKILL)");
    }

    #[test]
    fn what_the_end_of_the_job_does_to_a_rank_is_no_failure_besides() {
        for end in [End::Status(3), End::Signal(11), End::NotStarted("why".into())] {
            assert!(end.is_failure_besides(), "{end:?}");
        }
        for end in [End::Status(0), End::Status(143), End::Signal(15), End::Signal(9), End::NotTried] {
            assert!(!end.is_failure_besides(), "{end:?}");
        }
    }
}
