//! `libcci-fi.so`: CCI as a provider of libfabric.
//!
//! libfabric loads the library, and calls [`fi_prov_ini`](provider) for a record of functions. What
//! else a program calls it finds in tables of functions, to which the objects lead that it opens.
//! `docs/design/fabric.md` has the picture. Nothing here calls libfabric, and a panic never leaves.

mod answer;
mod attributes;
mod boundary;
mod hints;
mod job;
mod objects;
mod provider;
mod record;
mod words;
