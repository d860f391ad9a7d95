//! The wire format: what is written is what is read, it is what `docs/wire.md` says, and what
//! should never come is refused.

mod dissector;
mod document;
mod frames;
mod malformed;
mod properties;
mod round_trips;
mod sealed;
