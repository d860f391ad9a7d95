//! The C library `libmyriexpress`: the calls of Myrinet Express over `cci-mx`.
//!
//! `docs/design/mx.md` has the picture. Endpoints and requests are numbers in the shape of
//! pointers, so that one that is stale or invented is refused. A panic never leaves.

mod answer;
mod boundary;
mod calls;
mod exports;
mod information;
mod layout;
mod names;
mod registry;
