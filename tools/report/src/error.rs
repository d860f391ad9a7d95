//! Errors for the user.

use std::fmt;

/// An error for the user: what is wrong, the value, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError(pub String);

impl UserError {
    /// Makes an error of this text, without a full stop.
    pub fn new(text: impl Into<String>) -> Self {
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
pub fn while_doing<E: fmt::Display>(what: &str) -> impl Fn(E) -> UserError + '_ {
    move |error| UserError(format!("{what}: {error}"))
}
