//! Records: how the bytes of a reliable stream are sealed.
//!
//! ```text
//!     len u32, little-endian | 1 to 65,536 bytes, sealed | tag, 16 bytes
//! ```
//!
//! `len` is in clear and authenticated. Nothing else of a record is used before its tag was right.
//! The number of a record is not sent: it is its place in the stream. It is the nonce, and it tells
//! both sides when the key changes.

use crate::sizes::TAG;
use crate::{Phase, Refused, Vault};
use cci_mem::source::Source;

/// Bytes of text in a record, at most.
pub const RECORD: usize = 64 << 10;
/// Bytes of the length before a record.
pub const LEN: usize = 4;
/// Bytes of a record besides its text.
pub const OVERHEAD: usize = LEN + TAG;
/// Records of one key. GCM allows 2^23 (RFC 9001, 6.6).
pub const OF_ONE_KEY: u64 = 1 << 22;

/// Which keys of a vault a stream has, and how many records have gone each way.
///
/// # Example
///
/// ```
/// use cci_seal::noise::{Initiator, Responder};
/// use cci_seal::records::{OVERHEAD, Records};
/// use cci_seal::{Psk, Vault};
///
/// # let psk = Psk::fresh()?;
/// # let initiator = Initiator::begin(&psk, &[], b"")?;
/// # let responder = Responder::read(&psk, &[], initiator.message(), &mut [])?;
/// # let (answer, server_session) = responder.answer(&[], b"")?;
/// # let client_session = initiator.finish(&[], &answer, &mut [])?;
/// let (mut client, mut server) = (Vault::new(4), Vault::new(4));
/// client.insert(0, &client_session)?;
/// server.insert(7, &server_session)?;
///
/// let (mut bytes, mut text) = ([0; 5 + OVERHEAD], [0; 64]);
/// Records::new(0).seal(&mut client, &[(&b"bytes"[..]).into()], &mut bytes)?;
/// let opened = Records::new(7).open_next(&mut server, &bytes, &mut text)?;
/// assert_eq!((opened, &text[..5]), (Some((bytes.len(), 5)), &b"bytes"[..]));
/// # Ok::<(), cci_seal::Refused>(())
/// ```
#[derive(Debug)]
pub struct Records {
    index: u32,
    sent: u64,
    received: u64,
}

impl Records {
    /// A stream that has the keys of this index of a vault, from its first record on.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self { index, sent: 0, received: 0 }
    }

    /// Which keys of the vault it has.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// How many records were sealed, and how many opened.
    #[must_use]
    pub const fn numbers(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Goes on after so many records each way, as after a long run: for tests of the change of
    /// keys. Never goes back, since what was opened once would be opened again.
    #[doc(hidden)]
    pub fn skip_to(&mut self, sent: u64, received: u64) {
        (self.sent, self.received) = (self.sent.max(sent), self.received.max(received));
    }

    /// Seals parts, at most [`RECORD`] bytes together, into a record at the beginning of `out`.
    /// Returns the bytes of the record: [`OVERHEAD`] more than the parts have.
    ///
    /// # Errors
    ///
    /// Those of [`Vault::seal`]. The stream is of no use any more.
    pub fn seal(&mut self, vault: &mut Vault, parts: &[Source<'_>], out: &mut [u8]) -> Result<usize, Refused> {
        let len: usize = parts.iter().map(Source::len).sum();
        if !(1..=RECORD).contains(&len) {
            return Err(Refused::Length);
        }
        if self.sent > 0 && self.sent.is_multiple_of(OF_ONE_KEY) {
            vault.advance_sending(self.index)?;
        }
        let head = u32::try_from(len).map_err(|_| Refused::Length)?.to_le_bytes();
        let (first, rest) = out.split_first_chunk_mut::<LEN>().ok_or(Refused::Length)?;
        *first = head;
        vault.seal(self.index, self.sent, &head, parts, rest.get_mut(..len + TAG).ok_or(Refused::Length)?)?;
        self.sent += 1;
        Ok(len + OVERHEAD)
    }

    /// Opens the record that these bytes begin with into a text. Returns the bytes of the record
    /// and of its text. `None`: it is not there as a whole, or the text has no room for it.
    ///
    /// # Errors
    ///
    /// Those of [`Vault::open_to`], and [`Refused::Length`]: no record is so long, or has no text.
    /// The stream is of no use any more.
    pub fn open_next(
        &mut self,
        vault: &mut Vault,
        bytes: &[u8],
        text: &mut [u8],
    ) -> Result<Option<(usize, usize)>, Refused> {
        let Some(len) = whole(bytes)?.filter(|len| *len <= text.len()) else { return Ok(None) };
        if self.received > 0 && self.received.is_multiple_of(OF_ONE_KEY) {
            vault.advance_receiving(self.index)?;
            vault.forget_previous(self.index);
        }
        let (head, sealed) = bytes[..len + OVERHEAD].split_at(LEN);
        vault.open_to(self.index, Phase::Present, self.received, head, sealed, &mut text[..len])?;
        self.received += 1;
        Ok(Some((len + OVERHEAD, len)))
    }
}

/// The text's length of the record that these bytes begin with. `Ok(None)`: it is not there as a
/// whole.
///
/// # Errors
///
/// [`Refused::Length`]: no record is so long, or has no text.
pub fn whole(bytes: &[u8]) -> Result<Option<usize>, Refused> {
    let Some((head, rest)) = bytes.split_first_chunk::<LEN>() else { return Ok(None) };
    match u32::from_le_bytes(*head) as usize {
        len @ 1..=RECORD => Ok((rest.len() >= len + TAG).then_some(len)),
        _ => Err(Refused::Length),
    }
}
