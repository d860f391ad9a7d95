//! The library as libfabric loads it: symbols, the record of the provider, `fi_getinfo`, and the
//! objects.

#![allow(missing_docs, reason = "tests")]

mod getinfo;
mod library;
mod memory;
mod objects;
mod symbols;
