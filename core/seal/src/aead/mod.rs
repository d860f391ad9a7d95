//! Seals and opens buffers: AES-256-GCM under nonces that the caller never repeats.

#[cfg(test)]
mod tests;

use crate::Refused;
use crate::cipher::{Chosen, Cipher, NONCE, Room};
use crate::sizes::{KEY, TAG};
use cci_mem::secrets::{self, Secret};
use cci_mem::source::Source;
use std::fmt;

/// Bytes of the shortest last part that is sealed from where it lies. A copy of fewer is faster.
const LONG: usize = 512;

/// Which side of a connection seals: the first 4 bytes of each nonce.
///
/// Each direction has a key of its own. So a frame that is sent back to its sender fails twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sealed by the side that connects.
    FromInitiator,
    /// Sealed by the side that accepts.
    FromResponder,
}

impl Direction {
    /// Returns the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::FromInitiator => Self::FromResponder,
            Self::FromResponder => Self::FromInitiator,
        }
    }

    const fn salt(self) -> [u8; 4] {
        match self {
            Self::FromInitiator => *b"ccii",
            Self::FromResponder => *b"ccir",
        }
    }
}

/// 12 bytes that one key seals once: a salt of 4 bytes, then a number, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; NONCE]);

impl Nonce {
    /// Returns the nonce of a direction's frame.
    #[inline]
    #[must_use]
    pub fn new(direction: Direction, number: u64) -> Self {
        Self::salted(direction.salt(), number)
    }

    /// Returns the nonce of a salt and a number. Noise has the salt zero.
    #[inline]
    #[must_use]
    pub fn salted(salt: [u8; 4], number: u64) -> Self {
        let mut bytes = [0; NONCE];
        bytes[..4].copy_from_slice(&salt);
        bytes[4..].copy_from_slice(&number.to_be_bytes());
        Self(bytes)
    }
}

/// An expanded key, in a cell of the arena.
///
/// # Example
///
/// ```
/// use cci_seal::TAG;
/// use cci_seal::aead::{Direction, Key, Nonce};
///
/// let key = Key::new(&[7; 32])?;
/// let nonce = Nonce::new(Direction::FromInitiator, 1);
/// let mut frame = [0; 5 + TAG];
/// key.seal(nonce, b"header", &[(&b"bytes"[..]).into()], &mut frame)?;
/// assert_eq!(key.open(nonce, b"header", &mut frame)?, b"bytes");
/// # Ok::<(), cci_seal::Refused>(())
/// ```
pub struct Key(Expanded<Chosen>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Expands a key.
    ///
    /// # Errors
    ///
    /// [`Refused::NoMemory`].
    pub fn new(key: &[u8; KEY]) -> Result<Self, Refused> {
        Expanded::new(key).map(Self)
    }

    /// Returns a cell without a key, which seals and opens nothing.
    ///
    /// # Errors
    ///
    /// [`Refused::NoMemory`].
    pub fn unset() -> Result<Self, Refused> {
        Ok(Self(Expanded(Secret::zeroed()?)))
    }

    /// Expands another key in the same cell.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`].
    pub fn replace(&mut self, key: &[u8; KEY]) -> Result<(), Refused> {
        self.0.replace(key)
    }

    /// As [`Key::replace`], for callers that clean the stack themselves.
    pub(crate) fn replace_unclean(&mut self, key: &[u8; KEY]) -> Result<(), Refused> {
        self.0.replace_unclean(key)
    }

    /// Zeroes the key. The cell stays.
    pub fn wipe(&mut self) {
        self.0.0.wipe();
    }

    /// Seals parts, one after the other, into `out`, with the tag behind them.
    ///
    /// `out` is exactly [`TAG`] bytes longer than the parts together. Every byte of a part is read
    /// once: who writes a part meanwhile spoils the text, never the key.
    ///
    /// # Errors
    ///
    /// [`Refused::Length`], [`Refused::NoKey`] after [`Key::wipe`], [`Refused::Forked`].
    #[inline]
    pub fn seal(&self, nonce: Nonce, aad: &[u8], parts: &[Source<'_>], out: &mut [u8]) -> Result<(), Refused> {
        self.0.seal(nonce, aad, parts, out)
    }

    /// Seals all but the last [`TAG`] bytes of a buffer, which become the tag.
    ///
    /// # Errors
    ///
    /// As [`Key::seal`].
    #[inline]
    pub fn seal_in_place(&self, nonce: Nonce, aad: &[u8], buffer: &mut [u8]) -> Result<(), Refused> {
        self.0.seal_in_place(nonce, aad, buffer)
    }

    /// Opens a buffer whose last [`TAG`] bytes are the tag, and returns the text, which begins
    /// where the buffer does. A buffer with a wrong tag is filled with zeroes: no text is ever
    /// released.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`]; [`Refused::Length`] below [`TAG`] bytes; [`Refused::NoKey`] after
    /// [`Key::wipe`]; [`Refused::Forked`].
    #[inline]
    pub fn open<'b>(&self, nonce: Nonce, aad: &[u8], buffer: &'b mut [u8]) -> Result<&'b mut [u8], Refused> {
        let (text, tag) = buffer.split_last_chunk_mut::<TAG>().ok_or(Refused::Length)?;
        self.0.open(nonce, aad, text, tag)?;
        Ok(text)
    }

    /// Opens a buffer into another one, which is [`TAG`] bytes shorter. The buffer stays as it is.
    /// A wrong tag leaves zeroes in `out`.
    ///
    /// # Errors
    ///
    /// As [`Key::open`]; [`Refused::Length`] also where `out` does not fit.
    #[inline]
    pub fn open_to(&self, nonce: Nonce, aad: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<(), Refused> {
        self.0.open_to(nonce, aad, sealed, out)
    }
}

/// A key of one implementation.
pub(crate) struct Expanded<C>(Secret<Room<C>>);

impl<C: Cipher> Expanded<C> {
    pub(crate) fn new(key: &[u8; KEY]) -> Result<Self, Refused> {
        let mut made = Self(Secret::zeroed()?);
        made.replace(key)?;
        Ok(made)
    }

    fn replace(&mut self, key: &[u8; KEY]) -> Result<(), Refused> {
        secrets::on_clean_stack(|| self.replace_unclean(key))
    }

    fn replace_unclean(&mut self, key: &[u8; KEY]) -> Result<(), Refused> {
        if C::expand(key, self.0.get_mut()?) { Ok(()) } else { Err(Refused::NoMemory) }
    }

    #[inline(always)]
    fn context(&self) -> Result<&C, Refused> {
        self.0.get()?.context().ok_or(Refused::NoKey)
    }

    #[inline]
    fn seal(&self, nonce: Nonce, aad: &[u8], parts: &[Source<'_>], out: &mut [u8]) -> Result<(), Refused> {
        let context = self.context()?;
        let len: usize = parts.iter().map(Source::len).sum();
        if out.len().checked_sub(TAG) != Some(len) {
            return Err(Refused::Length);
        }
        let is_long = parts.last().is_some_and(|last| last.len() >= LONG);
        let copied = &parts[..parts.len() - usize::from(is_long)];
        let mut at = 0;
        for part in copied {
            at += part.copy_to(0, &mut out[at..]);
        }
        let last = if is_long { parts[copied.len()] } else { Source::from(&[][..]) };
        let is_done = context.seal(&nonce.0, aad, at, last, out);
        C::overwrite_stack();
        if is_done { Ok(()) } else { Err(Refused::Length) }
    }

    #[inline]
    fn seal_in_place(&self, nonce: Nonce, aad: &[u8], buffer: &mut [u8]) -> Result<(), Refused> {
        let context = self.context()?;
        let len = buffer.len().checked_sub(TAG).ok_or(Refused::Length)?;
        let is_done = context.seal(&nonce.0, aad, len, Source::from(&[][..]), buffer);
        C::overwrite_stack();
        if is_done { Ok(()) } else { Err(Refused::Length) }
    }

    #[inline]
    fn open(&self, nonce: Nonce, aad: &[u8], text: &mut [u8], tag: &[u8; TAG]) -> Result<(), Refused> {
        let is_right = self.context()?.open(&nonce.0, aad, text, tag);
        checked::<C>(is_right, text)
    }

    #[inline]
    fn open_to(&self, nonce: Nonce, aad: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<(), Refused> {
        let context = self.context()?;
        let (text, tag) = sealed.split_last_chunk::<TAG>().ok_or(Refused::Length)?;
        if text.len() != out.len() {
            return Err(Refused::Length);
        }
        let is_right = context.open_to(&nonce.0, aad, text, tag, out);
        checked::<C>(is_right, out)
    }
}

/// Releases a text only where its tag was right.
#[inline(always)]
fn checked<C: Cipher>(is_right: bool, text: &mut [u8]) -> Result<(), Refused> {
    C::overwrite_stack();
    if is_right {
        return Ok(());
    }
    text.fill(0);
    Err(Refused::Forged)
}
