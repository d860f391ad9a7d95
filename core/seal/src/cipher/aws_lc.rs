//! AES-256-GCM of AWS-LC, on its C interface: the Rust interface keeps contexts on the heap.

use super::contract::{Cipher, NONCE};
use super::room::Room;
use crate::sizes::{KEY, TAG};
use aws_lc_sys as sys;
use cci_mem::secrets;
use cci_mem::source::Source;

/// Bytes of the stack that it uses: 1.9 KB with the instructions of AVX-512, and more in a build
/// without optimization.
const STACK: usize = if cfg!(debug_assertions) { 8192 } else { 2560 };

/// A context with the expanded key.
#[repr(transparent)]
pub(crate) struct AwsLc(sys::EVP_AEAD_CTX);

// SAFETY: a context of AES-GCM is plain memory that sealing and opening only read.
unsafe impl Send for AwsLc {}
// SAFETY: as above.
unsafe impl Sync for AwsLc {}

impl Cipher for AwsLc {
    const NAME: &'static str = "AES-256-GCM (AWS-LC)";

    fn expand(key: &[u8; KEY], room: &mut Room<Self>) -> bool {
        let make = |place: *mut Self| {
            // SAFETY: the place is writable and aligned. A context of AES-GCM has all of its state
            // inside, so that nothing is to be cleaned up before it is overwritten.
            unsafe {
                let aead = sys::EVP_aead_aes_256_gcm();
                let place = place.cast::<sys::EVP_AEAD_CTX>();
                sys::EVP_AEAD_CTX_zero(place);
                sys::EVP_AEAD_CTX_init(place, aead, key.as_ptr(), KEY, TAG, std::ptr::null_mut()) == 1
            }
        };
        // SAFETY: what returns 1 has made a context.
        unsafe { room.set(make) }
    }

    #[inline]
    fn seal(&self, nonce: &[u8; NONCE], aad: &[u8], len: usize, last: Source<'_>, out: &mut [u8]) -> bool {
        let (first, rest) = out.split_at_mut(len);
        if rest.len() != last.len() + TAG {
            return false;
        }
        let mut written = 0;
        // SAFETY: every range is that of a slice or source. Both outputs are exclusive; the first
        // is its own input, which the function allows. It reads each byte of an input once.
        let is_done = unsafe {
            sys::EVP_AEAD_CTX_seal_scatter(
                &raw const self.0,
                first.as_mut_ptr(),
                rest.as_mut_ptr(),
                &raw mut written,
                rest.len(),
                nonce.as_ptr(),
                NONCE,
                first.as_ptr(),
                first.len(),
                last.start(),
                last.len(),
                aad.as_ptr(),
                aad.len(),
            )
        };
        is_done == 1 && written == rest.len()
    }

    #[inline]
    fn open(&self, nonce: &[u8; NONCE], aad: &[u8], buffer: &mut [u8], tag: &[u8; TAG]) -> bool {
        let (place, len) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: both are the exclusive buffer.
        unsafe { self.gather(nonce, aad, (place.cast_const(), place), len, tag) }
    }

    #[inline]
    fn open_to(&self, nonce: &[u8; NONCE], aad: &[u8], sealed: &[u8], tag: &[u8; TAG], out: &mut [u8]) -> bool {
        // SAFETY: the output is exclusive, and as long as the input.
        sealed.len() == out.len()
            && unsafe { self.gather(nonce, aad, (sealed.as_ptr(), out.as_mut_ptr()), out.len(), tag) }
    }

    #[inline(always)]
    fn overwrite_stack() {
        secrets::overwrite_stack::<STACK>();
    }
}

impl AwsLc {
    /// Opens `len` bytes from one place to another.
    ///
    /// # Safety
    ///
    /// The first place is readable, the second writable and nobody else's. They are the same, or do
    /// not overlap.
    #[inline(always)]
    unsafe fn gather(
        &self,
        nonce: &[u8; NONCE],
        aad: &[u8],
        (from, to): (*const u8, *mut u8),
        len: usize,
        tag: &[u8; TAG],
    ) -> bool {
        // SAFETY: as the caller says; every other range is that of a slice.
        let is_done = unsafe {
            sys::EVP_AEAD_CTX_open_gather(
                &raw const self.0,
                to,
                nonce.as_ptr(),
                NONCE,
                from,
                len,
                tag.as_ptr(),
                TAG,
                aad.as_ptr(),
                aad.len(),
            )
        };
        is_done == 1
    }
}
