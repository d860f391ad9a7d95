//! The cryptography of sealed transports: secrets, the handshake, keys, and the cipher.
//!
//! This crate sends nothing and knows no frames. A transport asks it to seal and open buffers under
//! the keys of a connection ([`Vault`]), and to run a handshake whose messages the transport
//! carries ([`noise`]). `docs/design/sealed-keys.md` shows how long each key lives, and where.
//!
//! Every secret lies in the arena of [`cci_mem::secrets`]: no core dump holds it, and a forked
//! child does not have it. Each use of a key in such a child is refused with [`Refused::Forked`].

#![deny(unsafe_code)]

pub mod aead;
mod cipher;
mod curve;
mod kdf;
pub mod keys;
mod labels;
pub mod noise;
#[allow(unsafe_code)]
mod plain;
pub mod records;
mod refused;
pub mod secret;
mod sizes;
pub mod vault;

pub use keys::Session;
pub use refused::Refused;
pub use secret::Psk;
pub use sizes::{KEY, TAG};
pub use vault::{Phase, Vault};

/// Returns which implementation of AES-256-GCM was built in: `AES-256-GCM (AWS-LC)` or `AES-256-GCM
/// (RustCrypto)`. Both seal alike.
///
/// ```
/// assert!(cci_seal::cipher_name().starts_with("AES-256-GCM"));
/// ```
#[must_use]
pub const fn cipher_name() -> &'static str {
    <cipher::Chosen as cipher::Cipher>::NAME
}
