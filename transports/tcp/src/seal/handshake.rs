//! The handshake: Noise_NNpsk0 behind HELLO. The first message and its answer are 48 bytes each.
//!
//! The prologue is the HELLO of the side that dials, and what the answer binds is the HELLO of the
//! side that listens. So every field of both is authenticated before a frame leaves or is handled.

use super::keys::Sealing;
use super::record::Sealed;
use crate::frame::HELLO;
use cci_proto::Time;
use cci_seal::Refused;
use cci_seal::noise::{Initiator, OVERHEAD, Responder};
use std::net::IpAddr;

/// Bytes of each message of the handshake.
pub(crate) const SHARE: usize = OVERHEAD;
/// Begins the prologue.
const PROLOGUE: &[u8] = b"cci tcp sealed 1";

/// What the side that dials a further stream has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) hello: [u8; HELLO],
    pub(crate) share: [u8; SHARE],
}

/// The HELLO of a listener and its message of the handshake.
pub(crate) type Answer = [u8; HELLO + SHARE];

impl Sealing {
    /// Begins a handshake behind this HELLO of the side that dials.
    pub(crate) fn ask(&self, hello: &[u8; HELLO]) -> Result<(Sealed, [u8; SHARE]), Refused> {
        let initiator = Initiator::begin(&self.secret.psk, &[PROLOGUE, hello], &[])?;
        let share = *initiator.message().first_chunk().ok_or(Refused::Length)?;
        Ok((Sealed::asking(initiator), share))
    }

    /// Reads the answer to a handshake.
    pub(crate) fn finish(
        &mut self,
        seal: &Sealed,
        hello: &[u8; HELLO],
        answer: &[u8; SHARE],
    ) -> Result<Sealed, Refused> {
        let initiator = seal.initiator().ok_or(Refused::NoKey)?;
        let finished = initiator.finish(&[hello], answer, &mut []);
        self.forged += u64::from(matches!(finished, Err(Refused::Forged)));
        self.enter(&finished?).map(Sealed::new)
    }

    /// Answers a handshake by this HELLO. `None`: there were too many.
    pub(crate) fn answer(
        &mut self,
        (now, ip): (Time, IpAddr),
        (hello, share): (&[u8; HELLO], &[u8; SHARE]),
        own: &[u8; HELLO],
    ) -> Result<Option<(Answer, Sealed)>, Refused> {
        if !self.limit.take(now, ip) {
            return Ok(None);
        }
        // The tag comes before any Diffie-Hellman.
        let read = Responder::read(&self.secret.psk, &[PROLOGUE, hello], share, &mut []);
        let answered = read.and_then(|responder| responder.answer(&[own], &[]));
        if matches!(answered, Err(Refused::Forged)) {
            self.forged += 1;
            self.limit.on_wrong(now, ip);
        }
        let (message, session) = answered?;
        let mut answer = [0; HELLO + SHARE];
        answer[..HELLO].copy_from_slice(own);
        answer[HELLO..].copy_from_slice(&message);
        Ok(Some((answer, Sealed::new(self.enter(&session)?))))
    }
}
