//! Why an endpoint of a job, or what stands on one, could not be opened.

use crate::error::JobError;
use std::convert::Infallible;
use std::fmt;

/// Why [`Job::open`](crate::Job::open) failed, or why an interface could not be opened, which has
/// refusals `E` of its own.
///
/// ```
/// # fn show(failed: cci_job::OpenFailed) {
/// match failed {
///     cci_job::OpenFailed::Endpoint(why) => eprintln!("no endpoint: {why}"),
///     cci_job::OpenFailed::Job(why) => eprintln!("the other ranks: {why}"),
/// }
/// # }
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "an endpoint, its announcement, or what uses it")]
pub enum OpenFailed<E = Infallible> {
    /// The arguments do not fit.
    Refused(E),
    /// The endpoint cannot be opened.
    Endpoint(cci::OpenError),
    /// It cannot be announced to the other ranks, or they did not come.
    Job(JobError),
}

/// A refusal of an interface that has a number for whatever can fail.
///
/// # Example
///
/// ```
/// #[derive(Clone, Copy)]
/// enum Code {
///     NoDevice,
///     Failure,
/// }
/// impl cci_job::OpenCode for Code {
///     fn of_endpoint(why: &cci::OpenError) -> Self {
///         if why.status == cci::Status::NoDev { Self::NoDevice } else { Self::Failure }
///     }
///     fn of_job(_: &cci_job::JobError) -> Self {
///         Self::Failure
///     }
/// }
/// ```
pub trait OpenCode: Copy {
    /// Returns the code of an endpoint that cannot be opened.
    fn of_endpoint(why: &cci::OpenError) -> Self;

    /// Returns the code of a job that is gone, or whose ranks did not come.
    fn of_job(why: &JobError) -> Self;
}

impl<E: OpenCode> OpenFailed<E> {
    /// Returns the code of the interface.
    #[must_use]
    pub fn code(&self) -> E {
        match self {
            Self::Refused(why) => *why,
            Self::Endpoint(why) => E::of_endpoint(why),
            Self::Job(why) => E::of_job(why),
        }
    }
}

impl<E: fmt::Display> fmt::Display for OpenFailed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::Endpoint(why) => why.fmt(f),
            Self::Job(why) => why.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for OpenFailed<E> {}

impl<E> From<cci::OpenError> for OpenFailed<E> {
    fn from(why: cci::OpenError) -> Self {
        Self::Endpoint(why)
    }
}

impl<E> From<JobError> for OpenFailed<E> {
    fn from(why: JobError) -> Self {
        Self::Job(why)
    }
}
