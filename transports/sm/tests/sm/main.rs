//! The transport `sm`: the conformance suite, and what of it concerns no other process.

#![forbid(unsafe_code)]

mod conformance;
mod imports;
mod many_registrations;
mod relay;
mod sizes;
mod sleepers;
