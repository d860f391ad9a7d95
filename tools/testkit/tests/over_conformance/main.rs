//! The transports over the API of a library keep every rule of the API, over our own libraries.

#![forbid(unsafe_code)]

mod mx;
mod portals;
