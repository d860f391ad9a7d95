//! The lane's side of a handshake, and what ends a lane that cannot be sealed.

use super::hello::own_hello;
use crate::frame::{HELLO, Hello, Refusal, Violation};
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::seal::SHARE;
use crate::sys;
use cci_seal::Refused;

impl Lane {
    /// Whether this side asks for a sealed stream.
    pub(crate) fn asks_sealed(&self, s: &Shared) -> bool {
        self.dialed && s.sealing.is_some() && !self.asks_plain
    }

    /// Settles whether the stream is sealed, by the HELLO of the peer and what follows it. False:
    /// the lane has ended.
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
