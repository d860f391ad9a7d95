//! The [`simulation`] runs the engine in worlds of bad networks, and sees that it keeps its
//! promises. The tests of this package are those of transports, of the tree and of its pages; the
//! programs are the peers that these tests start. What they share with other packages is the crate
//! `cci-conformance`.

#![deny(unsafe_code)]

pub mod simulation;
