//! The layouts of libfabric's C interface, written by hand: structures, tables of functions,
//! numbers. Nothing here calls libfabric.
//!
//! Names are those of libfabric's headers, and its manual pages state what they mean: `fi_cq(3)`
//! is where to look. Layouts are the newest ones. libfabric lets structures grow at their ends
//! alone, so [`size_at`] gives how much of one a program has that was built for an older version.

#![forbid(unsafe_code)]
#![allow(non_camel_case_types, missing_docs, reason = "names and meanings are those of libfabric")]

#[macro_use]
mod declare;
mod atomic;
mod endpoint;
mod errors;
mod fabric;
mod flags;
mod info;
mod memory;
mod names;
mod nic;
mod object;
mod queue;
mod rma;
mod tagged;
mod vector;

pub use atomic::*;
pub use declare::{Constant, Field, Layout, Structure, size_at};
pub use endpoint::*;
pub use errors::*;
pub use fabric::*;
pub use flags::*;
pub use info::*;
pub use memory::*;
pub use names::*;
pub use nic::*;
pub use object::*;
pub use queue::*;
pub use rma::*;
pub use tagged::*;
pub use vector::*;

/// An address in an address vector.
pub type fi_addr_t = u64;

/// The number of a version of the API.
#[must_use]
pub const fn fi_version(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}

/// The version of the API whose layouts these are.
pub const NEWEST: u32 = fi_version(2, 7);

/// What is declared here and nowhere looked into.
macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name {
            _nothing: [u8; 0],
        }
    )* };
}

opaque! {
    fi_xpu_attr fid_av_set fid_mc fid_pep fid_poll fid_stx fid_wait fid_xpu_cntr fid_xpu_cq
    fid_xpu_ctx fid_xpu_ep
}

/// Every structure and table of functions.
pub const STRUCTURES: &[&[Structure]] = &[
    atomic::STRUCTURES,
    atomic::TABLES,
    endpoint::STRUCTURES,
    endpoint::TABLES,
    fabric::STRUCTURES,
    fabric::TABLES,
    info::STRUCTURES,
    memory::STRUCTURES,
    memory::TABLES,
    nic::STRUCTURES,
    object::STRUCTURES,
    object::TABLES,
    queue::STRUCTURES,
    queue::TABLES,
    rma::STRUCTURES,
    rma::TABLES,
    tagged::STRUCTURES,
    tagged::TABLES,
    vector::STRUCTURES,
    vector::TABLES,
];

/// Every number.
pub const CONSTANTS: &[&[Constant]] = &[errors::CONSTANTS, flags::CONSTANTS, names::CONSTANTS];
