//! HMAC-SHA-256 and HKDF (RFC 5869). All of it leaves secrets on the stack: callers run it
//! [`on_clean_stack`](cci_mem::secrets::on_clean_stack).

#[cfg(test)]
mod tests;

use crate::sizes::KEY;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Returns the HMAC of parts, one after the other.
pub(crate) fn hmac<'p>(key: &[u8], parts: impl IntoIterator<Item = &'p [u8]>) -> [u8; KEY] {
    // A key of any length is right, so that this never fails.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; KEY] };
    parts.into_iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Returns the hash of parts, one after the other.
pub(crate) fn hash<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> [u8; KEY] {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// HKDF-Expand: fills `out`, at most 8,160 bytes, from a secret that is as good as random. The
/// parts of `label`, one after the other, say what for.
pub(crate) fn expand(secret: &[u8; KEY], label: &[&[u8]], out: &mut [u8]) {
    let mut before = [0; KEY];
    for (count, piece) in (1_u8..).zip(out.chunks_mut(KEY)) {
        let known = if count == 1 { &[][..] } else { &before };
        let count = [count];
        before = hmac(secret, [known].into_iter().chain(label.iter().copied()).chain([&count[..]]));
        piece.copy_from_slice(&before[..piece.len()]);
    }
}

/// HKDF of Noise: mixes input into a chaining key, and returns that and two more outputs.
pub(crate) fn mix(chaining: &[u8; KEY], input: &[u8]) -> [[u8; KEY]; 3] {
    let mut out = [[0; KEY]; 3];
    expand(&hmac(chaining, [input]), &[], out.as_flattened_mut());
    out
}
