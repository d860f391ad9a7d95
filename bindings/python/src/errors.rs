//! Errors of the library as exceptions of the package, with the library's sentence.

use cci::{BlockingError, Failure, Status};
use pyo3::prelude::*;

/// The exception for a status. `cci._errors` has one class for each kind.
pub(crate) fn error(py: Python<'_>, status: Status, sentence: &str) -> PyErr {
    let made = py
        .import("cci._errors")
        .and_then(|errors| errors.getattr("of_status"))
        .and_then(|make| make.call1((status as u32, sentence)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(why) => why,
    }
}

/// What has a status and a sentence.
pub(crate) trait Refusal: std::fmt::Display {
    fn status(&self) -> Status;

    fn raise(&self, py: Python<'_>) -> PyErr {
        error(py, Refusal::status(self), &self.to_string())
    }
}

macro_rules! refusals {
    ($($name:ty)+) => {
        $(impl Refusal for $name {
            fn status(&self) -> Status {
                <$name>::status(*self)
            }
        })+
    };
}

refusals! {
    cci::ConnectError cci::RequestError cci::SendError cci::RmaError cci::RegisterError cci::OptionError
    cci::PollError cci::Unusable Failure BlockingError<cci::SendError>
}

impl Refusal for cci::OpenError {
    fn status(&self) -> Status {
        self.status
    }
}

impl Refusal for cci_job::OpenFailed {
    fn status(&self) -> Status {
        match self {
            Self::Refused(never) => match *never {},
            Self::Endpoint(why) => why.status,
            Self::Job(why) => Refusal::status(why),
        }
    }
}

impl Refusal for cci_job::JobError {
    fn status(&self) -> Status {
        match self {
            Self::NoJob => Status::NotFound,
            Self::Refused(_) => Status::Inval,
            _ => Status::Error,
        }
    }
}

/// Turns a refusal of the library into an exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Refusal> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|why| why.raise(py))
    }
}
