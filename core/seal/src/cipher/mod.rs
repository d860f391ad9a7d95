//! AES-256-GCM in place: contexts with the expanded key lie in cells of the arena.
//!
//! Two implementations have the same trait. A build has one of them; its tests have both where
//! there is a C compiler.

#[cfg(feature = "aws-lc")]
#[allow(unsafe_code)]
mod aws_lc;
mod contract;
#[cfg(any(test, not(feature = "aws-lc")))]
#[allow(unsafe_code)]
mod portable;
#[allow(unsafe_code)]
mod room;

#[cfg(feature = "aws-lc")]
pub(crate) use aws_lc::AwsLc;
pub(crate) use contract::{Cipher, NONCE};
#[cfg(any(test, not(feature = "aws-lc")))]
pub(crate) use portable::Portable;
pub(crate) use room::Room;

/// The implementation of this build.
#[cfg(feature = "aws-lc")]
pub(crate) type Chosen = AwsLc;
/// The implementation of this build.
#[cfg(not(feature = "aws-lc"))]
pub(crate) type Chosen = Portable;
