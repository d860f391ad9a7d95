//! What Active Messages promise, and random programs against an oracle, over every transport.

#![forbid(unsafe_code)]

mod below;
mod bundle;
mod conformance;
mod gone;
mod liars;
mod names;
mod property;
mod room;
mod sealed;
mod suites;
mod world;
