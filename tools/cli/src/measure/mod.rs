//! Measurements: what is measured, the two ends that do it, and the rows that come of it.

mod blocks;
pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod driver;
pub(crate) mod ends;
pub(crate) mod environment;
pub(crate) mod finding;
pub(crate) mod interrupt;
pub(crate) mod local;
pub(crate) mod loops;
pub(crate) mod machine;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod points;
pub(crate) mod ports;
pub(crate) mod row;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod statistics;
pub(crate) mod usage;
pub(crate) mod virtual_time;
mod visits;

use std::fmt;

/// An error for the user: what is wrong, the value, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserError(pub(crate) String);

impl UserError {
    /// Makes an error of this text, without a full stop.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UserError {}

/// Returns a function that prefixes an error with the operation that failed.
pub(crate) fn while_doing<E: fmt::Display>(what: &str) -> impl Fn(E) -> UserError + '_ {
    move |error| UserError(format!("{what}: {error}"))
}
