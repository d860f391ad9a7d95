//! The endpoint: how it is opened, what the facade calls.

mod open;
pub(crate) mod operations;
mod pause;
