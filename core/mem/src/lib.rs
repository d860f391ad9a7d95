//! Lock-free code and raw memory: rings, locks, fences, slots, segments, and the atomics on which
//! other crates build.
//!
//! Elsewhere, on these atomics and without a model: the entries of published registrations in `sm`
//! (`memory/registry.rs`), and words that only count (the holders of an endpoint, the calls of a
//! program). `sm` and `sock` have raw memory and system calls of their own.
//!
//! Everything here keeps its promises against a peer that writes arbitrary bytes into shared memory
//! at any moment: words of shared memory are atomics, read once; payload is copied through raw
//! pointers.

#![deny(unsafe_code)]

// Models replace the atomics by larger ones that cannot stand in mapped memory or in statics.
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod address_space;
pub mod announcement;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod arena;
#[allow(unsafe_code)]
pub mod arguments;
pub mod barrier;
pub mod boundary;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod buffers;
#[allow(unsafe_code)]
pub mod cancellation;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod counters;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod crc;
#[cfg(not(loom))]
pub mod descriptors;
pub mod directory;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod fork;
mod futex;
#[allow(unsafe_code)]
pub mod guarded;
pub mod handover;
pub mod hazard;
pub mod hints;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod inherited;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod interfaces;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod landed;
pub mod life;
pub mod lock;
#[cfg(not(loom))]
pub mod lookup;
pub mod meminfo;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod memory;
pub mod mutex;
pub mod overwriting;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod pages;
pub mod pool;
#[allow(unsafe_code)]
pub mod prefetch;
#[cfg(not(loom))]
pub mod quiet_thread;
pub mod random;
#[allow(unsafe_code)]
pub mod region;
pub mod ring;
pub mod schedule;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod secrets;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod segment;
#[allow(unsafe_code)]
pub mod slab;
pub mod sleep;
#[allow(unsafe_code)]
pub mod slot;
#[allow(unsafe_code)]
pub mod source;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod streaming;
pub mod sync;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod view;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod words;
