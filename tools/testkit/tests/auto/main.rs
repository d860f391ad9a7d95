//! The transport `auto`, over each of its ways.

#![forbid(unsafe_code)]

mod conformance;
mod sealed;
mod secret;
mod ways;
