//! The handshake: Noise_NNpsk0 behind HELLO. The first message and its answer are 48 bytes each.
//!
//! The prologue is the HELLO of the side that dials, and what the answer binds is the HELLO of the
//! side that listens. So every field of both is authenticated before a frame leaves or is handled.

use super::Sealed;
use crate::frame::{HELLO, Hello, Refusal, Violation};
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::setup::own_hello;
use crate::sys;
use cci_seal::Refused;
use cci_seal::noise::{Initiator, OVERHEAD, Responder};

/// Bytes of each message of the handshake.
pub(crate) const SHARE: usize = OVERHEAD;
/// Begins the prologue.
const PROLOGUE: &[u8] = b"cci tcp sealed 1";

impl Lane {
    /// Whether this side asks for a sealed stream.
    pub(crate) fn asks_sealed(&self, s: &Shared) -> bool {
        self.dialed && s.sealing.is_some() && !self.asks_plain
    }

    /// Settles whether the stream is sealed, by the HELLO of the peer and what follows it. False: the
    /// lane has ended.
    pub(crate) fn settle_sealing(
        &mut self,
        s: &mut Shared,
        hello: &[u8; HELLO],
        share: Option<&[u8; SHARE]>,
    ) -> Result<bool, Violation> {
        let takes_plain = s.sealing.as_ref().is_none_or(|sealing| sealing.takes_plain());
        match (self.dialed, share) {
            (true, Some(answer)) => self.finish_handshake(s, hello, answer)?,
            (true, None) if self.seal.is_some() => {
                let peer = self.peer_uri();
                let reason =
                    "answers a sealed stream in clear, which no peer of this version does; is somebody between?";
                self.end(s, Cause::Refused(format!("{peer} {reason}")));
            }
            (false, Some(share)) => self.answer_handshake(s, hello, share),
            (false, None) if !takes_plain => self.refuse(s, Refusal::Sealed),
            (_, None) => {}
        }
        Ok(self.phase != Phase::Over)
    }

    /// Begins a handshake behind this HELLO of the side that dials, and returns its first message.
    /// `None`: the lane has ended.
    pub(crate) fn begin_handshake(&mut self, s: &mut Shared, hello: &[u8; HELLO]) -> Option<[u8; SHARE]> {
        let sealing = s.sealing.as_ref()?;
        let begun = Initiator::begin(&sealing.secret.psk, &[PROLOGUE, hello], &[]);
        match begun {
            Ok(initiator) => {
                let message = initiator.message().first_chunk().copied();
                self.seal = Some(Box::new(Sealed::asking(initiator)));
                message
            }
            Err(refused) => {
                self.on_no_keys(s, refused);
                None
            }
        }
    }

    #[cold]
    fn on_no_keys(&mut self, s: &mut Shared, refused: Refused) {
        let peer = self.peer_uri();
        self.end(s, Cause::System(format!("the stream to {peer} cannot be sealed: {refused}")));
    }

    /// The listener has answered the handshake.
    fn finish_handshake(&mut self, s: &mut Shared, hello: &[u8; HELLO], answer: &[u8; SHARE]) -> Result<(), Violation> {
        let initiator = self.seal.as_ref().and_then(|seal| seal.initiator()).ok_or(Violation)?;
        let finished = initiator.finish(&[hello], answer, &mut []);
        let entered = finished.and_then(|session| s.sealing.as_mut().ok_or(Refused::NoKey)?.enter(&session));
        match entered {
            Ok(seal) => self.seal = Some(Box::new(seal)),
            Err(Refused::Forged) => self.on_forged(s),
            Err(refused) => self.on_no_keys(s, refused),
        }
        Ok(())
    }

    /// Answers the handshake of a client, which has said this HELLO, or refuses it.
    fn answer_handshake(&mut self, s: &mut Shared, hello: &[u8; HELLO], share: &[u8; SHARE]) {
        let (now, ip) = (s.now, self.peer.ip());
        let own = Hello { sealed: true, ..own_hello(s, false, None) }.emit();
        let Some(sealing) = &mut s.sealing else { return self.refuse(s, Refusal::NoSecret) };
        if !sealing.limit.take(now, ip) {
            return self.refuse(s, Refusal::Full);
        }
        // The tag comes before any Diffie-Hellman.
        let read = Responder::read(&sealing.secret.psk, &[PROLOGUE, hello], share, &mut []);
        let answered = read.and_then(|responder| {
            let (answer, session) = responder.answer(&[&own], &[])?;
            Ok((answer, sealing.enter(&session)?))
        });
        let (answer, seal) = match answered {
            Ok(answered) => answered,
            Err(Refused::Forged) => {
                sealing.forged += 1;
                sealing.limit.on_wrong(now, ip);
                return self.refuse(s, Refusal::OtherSecret);
            }
            Err(refused) => return self.on_no_keys(s, refused),
        };
        self.seal = Some(Box::new(seal));
        // These are the first bytes on the stream, which has room for them, and the last in clear.
        let bytes = [&own[..], &answer].concat();
        let sent = self.socket.as_ref().map(|socket| sys::send(socket, &bytes));
        if sent != Some(Ok(bytes.len())) {
            self.end(s, Cause::Gone);
        }
    }

    /// A record cannot be sealed: the lane ends.
    #[cold]
    pub(crate) fn on_unsealed(&mut self, s: &mut Shared) {
        let peer = self.peer_uri();
        let reason = "a forked process has no key of its parent, or no memory is left for keys";
        self.end(s, Cause::System(format!("nothing can be sealed for {peer} any more: {reason}")));
    }
}
