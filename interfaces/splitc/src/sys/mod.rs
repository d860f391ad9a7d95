//! The unsafe code below the run time: mappings, bytes that others write meanwhile, and words that
//! several ranks change.

mod buffers;
mod bytes;
mod checked;
mod staging;
mod statics;
mod windows;
mod words;

pub(crate) use buffers::Buffers;
pub(crate) use bytes::Bits;
pub(crate) use bytes::{Target, view};
pub(crate) use checked::{copy_from, copy_to};
pub(crate) use staging::Staging;
pub(crate) use statics::Statics;
pub use windows::Way;
pub(crate) use windows::Windows;
pub use words::Change;
pub(crate) use words::change_checked;
