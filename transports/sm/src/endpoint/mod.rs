//! The endpoint: how it is opened, what the facade calls.

mod open;
mod operations;
mod pause;
