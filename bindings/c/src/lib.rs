//! The C binding: every function of `cci.h` and `ccix.h`, one module per family.
//!
//! A binding of pointers: what C programs hold are addresses of the library's own cells (endpoint,
//! connection, event), whose first bytes are the structures of `cci.h`. The cells are never
//! unmapped and never hold another type, so that a pointer that was valid once is looked at safely
//! and refused by its state. A panic never leaves: see [`guard`].

mod arguments;
mod batch;
mod connection;
mod device;
mod endpoint;
mod event;
mod extension;
mod guard;
mod handles;
mod import;
mod init;
mod job;
mod large;
mod layout;
mod library;
mod option;
mod rma;
mod room;
mod send;
mod status;
mod table;
