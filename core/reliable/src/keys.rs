//! The keys of an endpoint's sealed connections: the engine's `Sealer`, over the vault of `cci-seal`
//! (`docs/design/sealed.md`).

use cci_proto::engine::{Index, Phase, Seal, Sealer, Security as Asked};
use cci_proto::wire::{HEADER, SHARE, TAG, begin_seal};
use cci_seal::noise::{Initiator, Responder};
use cci_seal::{Psk, Vault, vault};
use cci_transport::{Protect, Security};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Expanded keys that are kept ready, 640 bytes each. A further one is expanded in 0.5 us.
const EXPANDED: u16 = 1024;
/// What a handshake begins with, so that its messages serve no other purpose.
const PROLOGUE: &[u8] = b"cci-frames/2";

/// The secret, the handshakes that are going on, and the keys of connections.
pub(super) struct Keys {
    psk: Arc<Psk>,
    asked: Asked,
    /// What this endpoint, and the same one after a restart, is called, and no other one.
    name: Box<[u8]>,
    initiators: BTreeMap<u32, Initiator>,
    responders: BTreeMap<u32, Responder>,
    vault: Vault,
}

impl Keys {
    /// The keys of an endpoint of this URI on this machine. `None`: its connections are plain.
    pub(super) fn new(security: &Security, uri: &str, machine: u64) -> Option<Box<Self>> {
        let asked = match security.protect() {
            Protect::Plain => return None,
            Protect::Prefer => Asked::Prefer,
            Protect::Sealed => Asked::Sealed,
        };
        Some(Box::new(Self {
            psk: security.psk()?.clone(),
            asked,
            name: [uri.as_bytes(), &machine.to_be_bytes()].concat().into(),
            initiators: BTreeMap::new(),
            responders: BTreeMap::new(),
            vault: Vault::new(EXPANDED),
        }))
    }

    /// Seals a frame of which the first `len` bytes are written, in place: it is longer by the tag
    /// then. Returns its whole length. `None`: refused, and the frame must not be sent.
    #[inline]
    pub(super) fn seal_frame(&mut self, seal: &Seal, frame: &mut [u8], len: usize) -> Option<usize> {
        let whole = len + TAG;
        let frame = frame.get_mut(..whole)?;
        begin_seal(&mut frame[..len], 0, seal.number, seal.phase);
        let (header, body) = frame.split_first_chunk_mut::<HEADER>()?;
        Sealer::seal(self, seal, header, body).then_some(whole)
    }
}

impl Sealer for Keys {
    fn security(&self) -> Asked {
        self.asked
    }

    fn begin(&mut self, index: Index, _: u32, fields: &[u8], payload: &[u8], share: &mut [u8]) -> Option<usize> {
        let initiator = Initiator::begin(&self.psk, &[PROLOGUE, fields], payload).ok()?;
        let message = initiator.message();
        share.get_mut(..message.len())?.copy_from_slice(message);
        let len = message.len();
        self.initiators.insert(index.0, initiator);
        Some(len)
    }

    fn read(&mut self, index: Index, fields: &[u8], share: &[u8], payload: &mut [u8]) -> Option<usize> {
        let len = share.len().checked_sub(SHARE)?;
        let payload = payload.get_mut(..len)?;
        let responder = Responder::read(&self.psk, &[PROLOGUE, fields], share, payload).ok()?;
        self.responders.insert(index.0, responder);
        Some(len)
    }

    fn answer(&mut self, index: Index, fields: &[u8], payload: &[u8; TAG], share: &mut [u8]) -> Option<usize> {
        let responder = self.responders.remove(&index.0)?;
        let (message, session) = responder.answer(&[fields], payload).ok()?;
        share.get_mut(..message.len())?.copy_from_slice(&message);
        self.vault.insert(index.0, &session).ok()?;
        Some(message.len())
    }

    fn finish(&mut self, index: Index, fields: &[u8], share: &[u8]) -> Option<[u8; TAG]> {
        let initiator = self.initiators.get(&index.0).filter(|_| share.len() == SHARE + TAG)?;
        let mut payload = [0; TAG];
        let session = initiator.finish(&[fields], share, &mut payload).ok()?;
        self.vault.insert(index.0, &session).ok()?;
        self.initiators.remove(&index.0);
        Some(payload)
    }

    fn deny(&mut self, index: Index, fields: &[u8]) -> Option<[u8; TAG]> {
        self.responders.get(&index.0)?.deny(&[fields]).ok()
    }

    fn is_denied(&mut self, index: Index, fields: &[u8], tag: &[u8; TAG]) -> bool {
        self.initiators.get(&index.0).is_some_and(|initiator| initiator.check_denial(&[fields], tag).is_ok())
    }

    fn reset_token(&self, identifier: u64) -> [u8; TAG] {
        // A forked child has none, and nobody believes this one.
        self.psk.reset_token(&self.name, [identifier, 0]).unwrap_or_default()
    }

    #[inline]
    fn open(
        &mut self,
        index: Index,
        number: u64,
        phase: Phase,
        header: &[u8; HEADER],
        sealed: &[u8],
        body: &mut [u8],
    ) -> bool {
        let phase = match phase {
            Phase::Present => vault::Phase::Present,
            Phase::Previous => vault::Phase::Previous,
            Phase::Next => vault::Phase::Next,
        };
        self.vault.open_to(index.0, phase, number, header, sealed, body).is_ok()
    }

    #[inline]
    fn seal(&mut self, seal: &Seal, header: &[u8; HEADER], buffer: &mut [u8]) -> bool {
        self.vault.seal_in_place(seal.index.0, seal.number, header, buffer).is_ok()
    }

    fn advance_send(&mut self, index: Index) {
        // Without keys nothing is sealed either.
        let _ = self.vault.advance_sending(index.0);
    }

    fn advance_receive(&mut self, index: Index) {
        // A frame of the next phase was opened with it.
        let _ = self.vault.advance_receiving(index.0);
    }

    fn forget_previous(&mut self, index: Index) {
        self.vault.forget_previous(index.0);
    }

    fn forget(&mut self, index: Index) {
        self.initiators.remove(&index.0);
        self.responders.remove(&index.0);
        self.vault.remove(index.0);
    }
}
