//! X25519 of the implementation that was built in.

#[cfg(feature = "aws-lc")]
#[allow(unsafe_code)]
mod chosen {
    use crate::sizes::KEY;

    pub(crate) fn public_of(private: &[u8; KEY]) -> [u8; KEY] {
        let mut public = [0; KEY];
        // SAFETY: both are of 32 bytes.
        unsafe { aws_lc_sys::X25519_public_from_private(public.as_mut_ptr(), private.as_ptr()) };
        public
    }

    pub(crate) fn agree(private: &[u8; KEY], peer: &[u8; KEY], shared: &mut [u8; KEY]) -> bool {
        // SAFETY: all are of 32 bytes. It returns 0 where the result is zero.
        unsafe { aws_lc_sys::X25519(shared.as_mut_ptr(), private.as_ptr(), peer.as_ptr()) == 1 }
    }
}

#[cfg(not(feature = "aws-lc"))]
mod chosen {
    use crate::sizes::KEY;
    use x25519_dalek::{PublicKey, StaticSecret};

    pub(crate) fn public_of(private: &[u8; KEY]) -> [u8; KEY] {
        PublicKey::from(&StaticSecret::from(*private)).to_bytes()
    }

    pub(crate) fn agree(private: &[u8; KEY], peer: &[u8; KEY], shared: &mut [u8; KEY]) -> bool {
        let made = StaticSecret::from(*private).diffie_hellman(&PublicKey::from(*peer));
        shared.copy_from_slice(made.as_bytes());
        made.was_contributory()
    }
}

/// Returns the public key of a private one.
pub(crate) use chosen::public_of;

/// Computes what both sides share. False where the peer's key is one of the few that make it zero.
pub(crate) use chosen::agree;
