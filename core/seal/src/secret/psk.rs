//! A secret in memory, its digits, and what is derived from it.

use super::error::SecretError;
use crate::sizes::{KEY, TAG};
use crate::{Refused, kdf, labels};
use cci_mem::secrets::{Secret, on_clean_stack};
use std::fmt;
use subtle::ConstantTimeEq;

/// Hexadecimal digits of a secret.
pub(super) const DIGITS: usize = 2 * KEY;

/// A pre-shared secret of 32 bytes, in the arena. Its debugging print does not show it.
///
/// # Example
///
/// ```
/// use cci_seal::Psk;
///
/// let digits = "0123456789abcdef".repeat(4);
/// let (ours, theirs) = (Psk::parse(&digits)?, Psk::parse(&format!("{digits}\n"))?);
/// assert!(ours.is_same(&theirs)?);
/// assert_eq!(ours.label()?, theirs.label()?);
/// assert!(Psk::parse("a passphrase").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Psk(Secret<[u8; KEY]>);

impl Psk {
    pub(crate) fn filled(fill: impl FnOnce(&mut [u8; KEY])) -> Result<Self, Refused> {
        let mut secret = Secret::zeroed()?;
        fill(secret.get_mut()?);
        Ok(Self(secret))
    }

    /// Draws a secret from the system's generator.
    ///
    /// # Errors
    ///
    /// [`Refused::NoMemory`], also where the system has no random bytes.
    pub fn fresh() -> Result<Self, Refused> {
        let mut filled = Ok(0);
        let secret = Self::filled(|bytes| {
            filled = rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty());
        })?;
        // Up to 256 bytes come whole.
        if filled? == KEY { Ok(secret) } else { Err(Refused::NoMemory) }
    }

    /// Copies a secret of a job, which the caller wipes.
    ///
    /// # Errors
    ///
    /// [`Refused::NoMemory`].
    pub fn from_bytes(bytes: &[u8; KEY]) -> Result<Self, Refused> {
        Self::filled(|secret| secret.copy_from_slice(bytes))
    }

    /// Reads 64 hexadecimal digits and an optional newline. The digits stay where the caller has
    /// them.
    ///
    /// # Errors
    ///
    /// The sentence of the error names `cci key new`, and never shows the text.
    pub fn parse(digits: &str) -> Result<Self, SecretError> {
        Self::of_digits(digits.as_bytes()).ok_or_else(SecretError::digits)?.map_err(SecretError::refused)
    }

    /// The secret of digits, or why there is no memory for it. `None`: these are no such digits.
    pub(super) fn of_digits(text: &[u8]) -> Option<Result<Self, Refused>> {
        let digits = text.strip_suffix(b"\n").unwrap_or(text);
        if digits.len() != DIGITS || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        Some(Self::filled(|secret| {
            on_clean_stack(|| {
                for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
                    *byte = value(pair[0]) << 4 | value(pair[1]);
                }
            });
        }))
    }

    /// Returns the secret as 64 digits, in the arena, for `cci key show --secret`.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    pub fn digits(&self) -> Result<Secret<[u8; DIGITS]>, Refused> {
        let (bytes, mut digits) = (self.0.get()?, Secret::zeroed()?);
        let place: &mut [u8; DIGITS] = digits.get_mut()?;
        on_clean_stack(|| {
            for (pair, byte) in place.chunks_exact_mut(2).zip(bytes) {
                (pair[0], pair[1]) = (digit(byte >> 4), digit(byte & 15));
            }
        });
        Ok(digits)
    }

    /// Returns the fingerprint of the secret: public, and the same wherever the secret is.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`].
    pub fn label(&self) -> Result<Label, Refused> {
        let (bytes, mut label) = (self.0.get()?, [0; 4]);
        on_clean_stack(|| kdf::expand(bytes, &[labels::LABEL], &mut label));
        Ok(Label(label))
    }

    /// Returns whether two secrets are the same, in constant time.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`].
    pub fn is_same(&self, other: &Self) -> Result<bool, Refused> {
        Ok(self.0.get()?.ct_eq(other.0.get()?).into())
    }

    /// Returns the token by which an endpoint that was started again ends a connection of its
    /// predecessor: 16 bytes that whoever has the secret can compute.
    ///
    /// `endpoint` names this endpoint and none other with the same secret, such as its address:
    /// else another member, asked about a connection that it does not have, would give away a token
    /// that ends it. `identifiers` are those of the connection, that of this endpoint first.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`].
    pub fn reset_token(&self, endpoint: &[u8], identifiers: [u64; 2]) -> Result<[u8; TAG], Refused> {
        let (bytes, mut token) = (self.0.get()?, [0; TAG]);
        let [own, peers] = identifiers.map(u64::to_be_bytes);
        on_clean_stack(|| {
            let mut key = [0; KEY];
            kdf::expand(bytes, &[labels::RESET], &mut key);
            token.copy_from_slice(&kdf::hmac(&key, [&own[..], &peers, endpoint])[..TAG]);
        });
        Ok(token)
    }

    /// Returns the bytes: a key, and nothing to show or to pass as an argument.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`].
    pub fn bytes(&self) -> Result<&[u8; KEY], Refused> {
        Ok(self.0.get()?)
    }
}

/// The value of a hexadecimal digit, without a table or a branch that a cache would show.
fn value(digit: u8) -> u8 {
    // Letters have bit 0x40, of either case: they stand for 9 more than their low bits.
    (digit & 15) + 9 * (digit >> 6)
}

/// The digit of a value below 16, likewise.
fn digit(value: u8) -> u8 {
    // 39 more where it is above 9: from behind `9` to `a`.
    b'0' + value + 39 * ((value + 6) >> 4)
}

/// The fingerprint of a secret, printed as 8 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(pub [u8; 4]);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}
