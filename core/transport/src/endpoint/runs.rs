//! The cells of an endpoint's connections.
//!
//! A call of an endpoint counts in the cell of its connection. Cells of two endpoints in one line
//! of the caches, or in two that the processor fetches together, would send that line to and fro
//! between their threads: 80 ns a message where two threads have an endpoint each. So an endpoint
//! takes cells in runs of its own.

pub(super) mod cells;

use crate::Connection;
use cci_mem::slab::Slab;

/// Connections of a run: as few as fill lines that are fetched together.
const RUN: usize = 8;

/// Connections that lie together, and no others in their lines.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Run([Connection; RUN]);

const _: () = assert!(size_of::<Run>() == RUN * size_of::<Connection>());

/// Freed cells that wait before the first of them is used again, so that a stale pointer is found
/// stale by its own generation.
const QUARANTINE: usize = 64;

/// Runs that no endpoint has.
pub(super) type Runs = Slab<Run, { QUARANTINE / RUN }>;
