//! The handshake: Noise_NNpsk0 behind HELLO. The first message and its answer are 48 bytes each.
//!
//! The prologue is the HELLO of the side that dials, and what the answer binds is the HELLO of the
//! side that listens. So every field of both is authenticated before a frame leaves or is handled.

use super::{Sealed, Sealing};
use crate::frame::{HELLO, Hello, Refusal, Violation};
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::setup::own_hello;
use crate::sys;
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
        self.enter(&finished?)
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
        Ok(Some((answer, self.enter(&session)?)))
    }
}

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
        match s.sealing.as_ref()?.ask(hello) {
            Ok((seal, share)) => {
                self.seal = Some(Box::new(seal));
                Some(share)
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
        let seal = self.seal.as_ref().filter(|seal| !seal.is_open()).ok_or(Violation)?;
        let sealing = s.sealing.as_mut().ok_or(Violation)?;
        match sealing.finish(seal, hello, answer) {
            Ok(seal) => self.seal = Some(Box::new(seal)),
            Err(Refused::Forged) => self.end(s, Cause::Forged),
            Err(refused) => self.on_no_keys(s, refused),
        }
        Ok(())
    }

    /// Answers the handshake of a client, which has said this HELLO, or refuses it.
    fn answer_handshake(&mut self, s: &mut Shared, hello: &[u8; HELLO], share: &[u8; SHARE]) {
        let (now, ip) = (s.now, self.peer.ip());
        let own = Hello { sealed: true, offer: self.make_offer(s), ..own_hello(s, false, None) }.emit();
        let Some(sealing) = &mut s.sealing else { return self.refuse(s, Refusal::NoSecret) };
        let answered = sealing.answer((now, ip), (hello, share), &own);
        let (answer, seal) = match answered {
            Ok(Some(answered)) => answered,
            Ok(None) => return self.refuse(s, Refusal::Full),
            Err(Refused::Forged) => return self.refuse(s, Refusal::OtherSecret),
            Err(refused) => return self.on_no_keys(s, refused),
        };
        self.seal = Some(Box::new(seal));
        // These are the first bytes on the stream, which has room for them, and the last in clear.
        let sent = self.socket.as_ref().map(|socket| sys::send(socket, &answer));
        if sent != Some(Ok(answer.len())) {
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
