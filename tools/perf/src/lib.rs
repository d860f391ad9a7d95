//! Measuring CCI: runs between two ends, the bare operations beside them, other libraries in turn,
//! and the methods that are more than a row over size.
//!
//! Everything here returns what it measured, as rows and findings of [`cci_report`]; nothing
//! prints. Measurements start this program again for their ends, each in a process of its own: a
//! program that measures calls [`child::run`] first in `main`.
#![deny(unsafe_code)]

pub mod child;
pub mod device;
pub mod effort;
#[doc(hidden)]
pub mod fuzzing;
pub mod interrupt;
pub mod machine;
pub mod measure;
mod meeting;
pub mod methods;
pub mod peers;
pub mod point;
mod probe;
pub mod reach;
mod task;
mod workers;
