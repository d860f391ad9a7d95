//! The library as libfabric loads it: symbols, the record of the provider, and `fi_getinfo`.

#![allow(missing_docs, reason = "tests")]

mod getinfo;
mod library;
mod memory;
mod symbols;
