//! Fuzz targets: functions that take any bytes and panic when something is wrong. `make fuzz` has
//! libFuzzer look for such bytes, guided by coverage; the tests replay the corpus.

#![forbid(unsafe_code)]

mod bytes;
mod engine;
mod tcp;
mod wire_parse;

pub use engine::engine;
pub use tcp::tcp;
pub use wire_parse::wire_parse;
