//! The connection of a rank to a store that listens: both sides prove the secret by a handshake,
//! and what follows is sealed (`docs/design/jobs.md`, The protocol).

use crate::secret::Secret;
use cci_seal::noise::{Initiator, OVERHEAD as SHARE_LEN, Responder};
use cci_seal::records::{OVERHEAD, RECORD, Records, whole};
use cci_seal::{Refused, Session, Vault};

/// A message of the handshake. It has no payload.
pub(crate) type Share = [u8; SHARE_LEN];

/// What the store adds to a connection so that no recorded message is of use twice.
pub(crate) type Nonce = [u8; 32];

/// Begins the prologue.
const PROLOGUE: &[u8] = b"cci-job/2";

/// Keys of one connection that are kept ready: it has one a direction.
const KEYS: u16 = 2;

/// Random bytes of the system.
pub(crate) fn random() -> std::io::Result<Nonce> {
    let mut bytes = [0; 32];
    let taken = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // Up to 256 bytes come whole.
    if taken == bytes.len() { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// What both sides know before the handshake, or say in clear beside it.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) challenge: Nonce,
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

impl Claim {
    /// The rank's message, and what reads the answer to it.
    pub(crate) fn ask(&self, secret: &Secret) -> Result<(Initiator, Share), Refused> {
        let numbers = [self.rank, self.size].map(u32::to_le_bytes);
        let initiator = Initiator::begin(secret.psk(), &[PROLOGUE, &self.challenge, numbers.as_flattened()], &[])?;
        let share = *initiator.message().first_chunk().ok_or(Refused::Length)?;
        Ok((initiator, share))
    }

    /// Checks the rank's message; `bound`: what the answer says in clear.
    pub(crate) fn answer(&self, secret: &Secret, share: &Share, bound: &[u8]) -> Result<(Share, Seal), Refused> {
        let numbers = [self.rank, self.size].map(u32::to_le_bytes);
        let prologue = [PROLOGUE, &self.challenge, numbers.as_flattened()];
        let responder = Responder::read(secret.psk(), &prologue, share, &mut [])?;
        let (message, session) = responder.answer(&[bound], &[])?;
        Ok((*message.first_chunk().ok_or(Refused::Length)?, Seal::new(&session)?))
    }
}

/// The keys of a connection, and what is on its way under them.
pub(crate) struct Seal {
    vault: Vault,
    records: Records,
    /// Sealed bytes that have come and were not opened.
    sealed: Vec<u8>,
    /// The record that is about to leave, and how much of it has left.
    leaving: Vec<u8>,
    left: usize,
}

impl Seal {
    fn new(session: &Session) -> Result<Self, Refused> {
        let mut vault = Vault::new(KEYS);
        vault.insert(0, session)?;
        Ok(Self { vault, records: Records::new(0), sealed: Vec::new(), leaving: Vec::new(), left: 0 })
    }

    /// The keys of the rank, once the store has answered by this share and what is bound to it.
    pub(crate) fn finish(initiator: &Initiator, share: &Share, bound: &[u8]) -> Result<Self, Refused> {
        Self::new(&initiator.finish(&[bound], share, &mut [])?)
    }

    /// One that can seal and open nothing.
    #[cfg(test)]
    pub(crate) fn without_keys() -> Self {
        Self { vault: Vault::new(KEYS), records: Records::new(0), sealed: vec![], leaving: vec![], left: 0 }
    }

    /// What has come sealed and was not opened. What comes next belongs behind it.
    pub(crate) fn sealed(&mut self) -> &mut Vec<u8> {
        &mut self.sealed
    }

    /// Opens what has come as whole records, and puts it behind `text`.
    pub(crate) fn open(&mut self, text: &mut Vec<u8>) -> Result<(), Refused> {
        let mut at = 0;
        while let Some(len) = whole(&self.sealed[at..])? {
            let before = text.len();
            text.resize(before + len, 0);
            let opened = self.records.open_next(&mut self.vault, &self.sealed[at..], &mut text[before..]);
            if opened.is_err() {
                text.truncate(before);
            }
            at += opened?.map_or(0, |(bytes, _)| bytes);
        }
        self.sealed.drain(..at);
        Ok(())
    }

    /// What of a record has not left yet.
    pub(crate) fn leaving(&self) -> &[u8] {
        &self.leaving[self.left..]
    }

    /// So many more bytes of it have left.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.left += bytes;
        if self.left == self.leaving.len() {
            (self.leaving, self.left) = (Vec::new(), 0);
        }
    }

    /// Seals the beginning of these bytes into a record that is to leave; how many. The one before
    /// has left.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> Result<usize, Refused> {
        let part = &bytes[..bytes.len().min(RECORD)];
        self.leaving.resize(part.len() + OVERHEAD, 0);
        self.records.seal(&mut self.vault, &[part.into()], &mut self.leaving)?;
        Ok(part.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: Claim = Claim { challenge: [1; 32], rank: 3, size: 4 };

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes(&[byte; 32]).expect("memory")
    }

    #[test]
    fn a_proof_holds_for_its_secret_challenge_and_rank_alone() {
        let (ours, other) = (secret(7), secret(8));
        let (initiator, share) = CLAIM.ask(&ours).expect("memory");
        let (answer, _) = CLAIM.answer(&ours, &share, b"says").expect("the same secret");
        assert!(Seal::finish(&initiator, &answer, b"says").is_ok());
        assert!(Seal::finish(&initiator, &answer, b"said").is_err(), "another word in clear");
        assert!(Seal::finish(&initiator, &share, b"says").is_err(), "sent back");
        assert!(CLAIM.answer(&other, &share, b"says").is_err(), "another secret");
        for changed in [Claim { challenge: [9; 32], ..CLAIM }, Claim { rank: 2, ..CLAIM }, Claim { size: 5, ..CLAIM }] {
            assert!(changed.answer(&ours, &share, b"says").is_err());
        }
    }

    #[test]
    fn what_is_sealed_in_pieces_arrives_and_what_is_changed_does_not() {
        let ours = secret(7);
        let (initiator, share) = CLAIM.ask(&ours).expect("memory");
        let (answer, mut store) = CLAIM.answer(&ours, &share, b"").expect("the same secret");
        let mut rank = Seal::finish(&initiator, &answer, b"").expect("the same secret");
        let bytes: Vec<u8> = (0..RECORD + 100).map(|at| at as u8).collect();
        let (mut at, mut text) = (0, Vec::new());
        while at < bytes.len() {
            at += store.seal(&bytes[at..]).expect("keys");
            while !store.leaving().is_empty() {
                let piece = store.leaving().len().min(7000);
                rank.sealed().extend_from_slice(&store.leaving()[..piece]);
                store.advance(piece);
                rank.open(&mut text).expect("as it was sealed");
            }
        }
        assert_eq!(text, bytes);
        store.seal(b"more").expect("keys");
        let mut changed = store.leaving().to_vec();
        changed[5] ^= 1;
        rank.sealed().extend_from_slice(&changed);
        assert!(rank.open(&mut text).is_err());
        assert_eq!(text, bytes, "nothing of it is released");
    }
}
