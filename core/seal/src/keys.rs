//! The secrets of a connection, and what is derived from them.
//!
//! | label of HKDF-Expand | from | gives |
//! |---|---|---|
//! | `cci ke` | secret of a direction and phase | the key of the cipher |
//! | `cci ku` | secret of a direction and phase | the secret of the next phase |
//! | `cci st`, number (4 bytes, big-endian) | secret of a direction | the secret of a stream |
//! | `cci ex`, purpose | secret of the initiator's direction | a secret for another purpose |
//! | `cci lb` | pre-shared secret | the fingerprint that may be printed |
//! | `cci rt` | pre-shared secret | the key of reset tokens |
//! | `cci dn` | chaining key after the first message | the key of a refusal |

use crate::aead::Direction;
use crate::labels::{EXPORT, STREAM};
use crate::sizes::KEY;
use crate::{Psk, Refused, kdf};
use cci_mem::secrets::{Secret, on_clean_stack};

/// The two secrets that a handshake gives a connection, one a direction. They lie in the arena.
///
/// [`Vault::insert`](crate::Vault::insert) takes it.
#[derive(Debug)]
pub struct Session {
    /// That of the initiator's frames, then that of the responder's.
    secrets: Secret<[[u8; KEY]; 2]>,
    sending: Direction,
}

impl Session {
    /// A session whose secrets `fill` writes: that of the initiator's direction first.
    pub(crate) fn of(sending: Direction, fill: impl FnOnce(&mut [[u8; KEY]; 2])) -> Result<Self, Refused> {
        let mut secrets = Secret::zeroed()?;
        fill(secrets.get_mut()?);
        Ok(Self { secrets, sending })
    }

    /// Returns the direction in which this side seals.
    #[must_use]
    pub fn sending(&self) -> Direction {
        self.sending
    }

    pub(crate) fn secrets(&self) -> Result<&[[u8; KEY]; 2], Refused> {
        Ok(self.secrets.get()?)
    }

    /// Derives the session of a stream: both sides get the same by the same number.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    pub fn stream(&self, number: u32) -> Result<Self, Refused> {
        let secrets = self.secrets()?;
        Self::of(self.sending, |derived| {
            on_clean_stack(|| {
                for (secret, derived) in secrets.iter().zip(derived) {
                    kdf::expand(secret, &[STREAM, &number.to_be_bytes()], derived);
                }
            });
        })
    }

    /// Derives a secret for another purpose, which says nothing of the keys of the connection.
    ///
    /// # Errors
    ///
    /// As [`Session::stream`].
    pub fn export(&self, purpose: &[u8]) -> Result<Psk, Refused> {
        let [secret, _] = self.secrets()?;
        Psk::filled(|derived| on_clean_stack(|| kdf::expand(secret, &[EXPORT, purpose], derived)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, KEY, Session};

    fn session(first: u8) -> Session {
        Session::of(Direction::FromInitiator, |secrets| *secrets = [[first; KEY], [first + 1; KEY]]).expect("memory")
    }

    #[test]
    fn each_stream_and_purpose_has_secrets_of_its_own() {
        let all = session(1);
        let streams = [0, 1, 256].map(|number| all.stream(number).expect("derived"));
        let mut secrets: Vec<_> = streams.iter().chain([&all]).flat_map(|one| *one.secrets().expect("here")).collect();
        for purpose in [&b"resumption"[..], b"resumptio", b""] {
            secrets.push(*all.export(purpose).expect("derived").bytes().expect("here"));
        }
        let count = secrets.len();
        secrets.sort_unstable();
        secrets.dedup();
        assert_eq!(secrets.len(), count);
        let again = session(1).stream(256).expect("derived");
        assert_eq!(again.secrets(), streams[2].secrets(), "both sides derive the same");
    }

    /// HMAC-SHA-256 of `cci st`, the number 5 and 1, by `openssl mac`, under 32 bytes of 0x01.
    #[test]
    fn a_stream_is_derived_as_the_table_says() {
        let stream = session(1).stream(5).expect("derived");
        let known = [0x17, 0xdb, 0x4c, 0x8f, 0x05, 0x3a, 0x66, 0x82];
        assert_eq!(stream.secrets().expect("here")[0][..8], known);
    }
}
