//! Pre-shared secrets: 32 bytes that every member of a group has, and where they are found.
//!
//! A secret is written in one way everywhere: 64 hexadecimal digits and an optional newline.
//! Nothing else is taken, least of all a passphrase: whoever has recorded a handshake can try
//! guesses without asking anybody.

mod error;
mod file;
mod psk;
mod search;
#[cfg(test)]
mod tests;

pub use error::SecretError;
pub use psk::{Label, Psk};
pub use search::{Found, Given, Origin, default_path, search};
