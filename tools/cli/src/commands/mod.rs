//! The commands of `cci perf` that have methods of their own: arguments, and what is done with what
//! the method finds.

pub(crate) mod am;
pub(crate) mod breakdown;
pub(crate) mod footprints;
pub(crate) mod gups;
pub(crate) mod logp;
pub(crate) mod mpi;
pub(crate) mod mx;
pub(crate) mod portals;
pub(crate) mod sci;
pub(crate) mod splitc;
pub(crate) mod threads;
pub(crate) mod via;
