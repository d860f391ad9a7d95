//! Tests of Active Messages over the VI Architecture.

#![forbid(unsafe_code)]

mod below;
#[path = "../../../am/tests/am/conformance.rs"]
#[expect(dead_code, reason = "two checks do not hold over a reliable VI: see `suites.rs`")]
mod conformance;
mod refused;
mod suites;
#[path = "../../../am/tests/am/world.rs"]
mod world;
