//! The endpoint: how it is opened, what the facade calls, and its state that all lanes share.

mod open;
mod operations;
pub(crate) mod state;
