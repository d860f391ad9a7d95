//! What runs of `cci perf` give, and what is made of it: rows and findings, the documents that hold
//! them, tables, plots, pages, and the comparison of two builds.
//!
//! Nothing here measures, and nothing needs CCI: the tools that measure fill rows and findings, and
//! whoever has only documents reads them.
#![forbid(unsafe_code)]

pub mod comparison;
pub mod documents;
pub mod environment;
mod error;
pub mod finding;
#[doc(hidden)]
pub mod fuzzing;
pub mod html;
pub mod memory_curves;
pub mod names;
pub mod output;
pub mod row;
pub mod session;
pub mod sizes;
pub mod statistics;
pub mod thesis;

pub use error::{UserError, while_doing};
