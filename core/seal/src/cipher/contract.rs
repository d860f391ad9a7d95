//! What an implementation does.

use super::room::Room;
use crate::sizes::{KEY, TAG};
use cci_mem::source::Source;

/// Bytes of a nonce.
pub(crate) const NONCE: usize = 12;

/// An implementation of AES-256-GCM, whose contexts are plain memory without pointers to
/// themselves.
pub(crate) trait Cipher: Sized {
    /// What `cci info` prints.
    const NAME: &'static str;

    /// Returns the context of a key. It may leave parts of the key on the stack.
    fn expand(key: &[u8; KEY], room: &mut Room<Self>) -> bool;

    /// Seals the first `len` bytes of `out` in place, and `last` behind them. The tag goes behind
    /// that, to the end of `out`.
    fn seal(&self, nonce: &[u8; NONCE], aad: &[u8], len: usize, last: Source<'_>, out: &mut [u8]) -> bool;

    /// Opens a buffer in place, if the tag is right. What a wrong tag leaves in the buffer is
    /// undefined.
    fn open(&self, nonce: &[u8; NONCE], aad: &[u8], buffer: &mut [u8], tag: &[u8; TAG]) -> bool;

    /// As [`Cipher::open`], into a buffer that is as long as the sealed text.
    fn open_to(&self, nonce: &[u8; NONCE], aad: &[u8], sealed: &[u8], tag: &[u8; TAG], out: &mut [u8]) -> bool;

    /// Overwrites what sealing or opening has left on the stack, called from the same frame.
    fn overwrite_stack();
}
