//! AES-256-GCM of RustCrypto, for builds without a C compiler.

use super::contract::{Cipher, NONCE};
use super::room::Room;
use crate::sizes::{KEY, TAG};
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use cci_mem::secrets;
use cci_mem::source::Source;

/// Bytes of the stack that it uses: far more without optimization.
const STACK: usize = if cfg!(debug_assertions) { 32 << 10 } else { 8192 };

/// A context with the expanded key.
#[repr(transparent)]
pub(crate) struct Portable(Aes256Gcm);

impl Cipher for Portable {
    const NAME: &'static str = "AES-256-GCM (RustCrypto)";

    fn expand(key: &[u8; KEY], room: &mut Room<Self>) -> bool {
        let make = |place: *mut Self| {
            // SAFETY: the place is writable and aligned. What it held has no memory of its own.
            unsafe { place.write(Self(Aes256Gcm::new(key.into()))) };
            true
        };
        // SAFETY: it was just written.
        unsafe { room.set(make) }
    }

    fn seal(&self, nonce: &[u8; NONCE], aad: &[u8], len: usize, last: Source<'_>, out: &mut [u8]) -> bool {
        if out.len() != len + last.len() + TAG {
            return false;
        }
        let (text, tag) = out.split_at_mut(len + last.len());
        last.copy_to(0, &mut text[len..]);
        match self.0.encrypt_inout_detached(nonce.into(), aad, InOutBuf::from(text)) {
            Ok(made) => {
                tag.copy_from_slice(&made);
                true
            }
            Err(_) => false,
        }
    }

    fn open(&self, nonce: &[u8; NONCE], aad: &[u8], buffer: &mut [u8], tag: &[u8; TAG]) -> bool {
        self.0.decrypt_inout_detached(nonce.into(), aad, InOutBuf::from(buffer), tag.into()).is_ok()
    }

    fn open_to(&self, nonce: &[u8; NONCE], aad: &[u8], sealed: &[u8], tag: &[u8; TAG], out: &mut [u8]) -> bool {
        let Ok(buffers) = InOutBuf::new(sealed, out) else { return false };
        self.0.decrypt_inout_detached(nonce.into(), aad, buffers, tag.into()).is_ok()
    }

    #[inline(always)]
    fn overwrite_stack() {
        secrets::overwrite_stack::<STACK>();
    }
}
