//! Sealed streams: a handshake behind HELLO, then records (`docs/design/sealed-tcp.md`).
//!
//! Everything above a stream is as in clear: a record has any bytes of it. What reads and writes
//! streams asks here what to seal, and gets only what was opened.

mod handshake;
mod keys;
mod limit;
mod record;

#[cfg(test)]
pub(crate) use cci_seal::records::OF_ONE_KEY;
pub(crate) use cci_seal::records::{RECORD, whole};
pub(crate) use handshake::{Asked, SHARE};
pub(crate) use keys::{Sealing, Secret};
pub(crate) use record::Sealed;
