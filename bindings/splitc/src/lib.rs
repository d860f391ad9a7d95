//! The C library `libsplitc`: the run time of Split-C, `cci-splitc`, for C programs.
//!
//! `docs/design/splitc.md` has the picture. An operation that fails ends the program with a
//! sentence: the language has no other way to report it. A panic ends it too, and never leaves.

mod ending;
mod exports;
mod memory;
mod program;
mod world;
