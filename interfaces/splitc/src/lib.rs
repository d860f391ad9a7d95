//! Split-C over CCI: a global address space for the ranks of a job.
//!
//! A [`World`] is a rank's view of it. A [`Global`] pointer is a rank and an address there; a
//! [`Spread`] pointer walks over all ranks. Reads and writes wait; gets and puts complete together
//! ([`World::split`]); a store is noticed by its target ([`World::store_sync`]). Ranks of one host
//! map each other's memory, so that an access costs what memory costs; others are reached by
//! messages, which their owner serves in any call that waits, and in [`World::poll`].
//!
//! `docs/design/splitc.md` has the figure, the states, and what can fail.
//!
//! ```no_run
//! cci_splitc::run(|world| {
//!     let next = (world.me() + 1) % world.procs();
//!     let cells = world.spread::<u32>(u64::from(world.procs()))?;
//!     world.store(cells.at(u64::from(next)), world.me())?;
//!     world.store_sync(4)?;
//!     println!("rank {} has {}", world.me(), world.read(cells.at(u64::from(world.me())))?);
//!     world.barrier()
//! })?;
//! # Ok::<(), cci_splitc::Error>(())
//! ```

#![deny(unsafe_code)]

mod access;
mod am;
mod carrier;
mod collective;
mod fault;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod layout;
mod looks;
mod mapping;
mod memory;
mod messages;
mod number;
mod phase;
mod pieces;
mod pointer;
mod ranges;
#[allow(unsafe_code)]
mod raw;
mod requests;
mod rma;
mod server;
mod start;
#[allow(unsafe_code)]
mod sys;
mod traffic;
mod vi;
mod wait;
mod world;

pub use fault::{Fault, StartError};
pub use layout::MOST_RANKS;
pub use number::{Number, Op, Plain};
pub use phase::Phase;
pub use pointer::{Global, Spread, SpreadArray};
pub use raw::Completion;
pub use start::{Error, run};
pub use sys::{Change, Way};
pub use world::World;
