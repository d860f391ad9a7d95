//! The transport `tcp`, between endpoints and between processes.

#![forbid(unsafe_code)]

mod conformance;
mod peers;
mod sizes;
mod sleepers;
mod streams;
