//! The endpoint: how it is opened, what the facade calls, and what all lanes share.

mod open;
mod operations;
pub(crate) mod shared;
