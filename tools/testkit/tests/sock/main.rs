//! The transport `sock`, between endpoints and between processes.

#![forbid(unsafe_code)]

mod conformance;
mod kill;
