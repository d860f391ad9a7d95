//! The secret of an endpoint, the keys of its streams, and memory for their records.

use super::limit::HandshakeLimit;
use cci_mem::pages::Pages;
use cci_seal::records::{OVERHEAD, RECORD};
use cci_seal::{Psk, Refused, Session, Vault};
use cci_transport::{Protect, Security};
use rustix::io::Result;
use std::sync::Arc;

/// Expanded keys of an endpoint, at most: those of 64 streams that are busy in both directions.
const KEYS: u16 = 128;
/// Buffers of a record that an endpoint keeps, of either kind.
const BUFFERS: usize = 16;
/// Bytes of the buffer that records are read into.
const CIPHER: usize = 2 * (RECORD + OVERHEAD);

/// The secret of an endpoint, and what it does with peers in clear.
#[derive(Debug)]
pub(crate) struct Secret {
    pub(crate) psk: Arc<Psk>,
    /// Peers without the secret are served, and asked, in clear.
    pub(crate) takes_plain: bool,
}

impl Secret {
    /// That of a device; `None`: its streams are in clear.
    pub(crate) fn of(security: &Security) -> Option<Self> {
        let takes_plain = security.protect() != Protect::Sealed;
        security.psk().map(|psk| Self { psk: Arc::clone(psk), takes_plain })
    }
}

/// What the sealed streams of an endpoint share.
pub(crate) struct Sealing {
    pub(super) secret: Secret,
    pub(super) vault: Vault,
    /// Indices of the vault that no stream has, below the lowest that none has had.
    free: Vec<u32>,
    next: u32,
    /// What records are read into; taken out while it is in use.
    cipher: Option<Pages>,
    /// Memory for records that leave, and for parts of those that come, which no stream has.
    leaving: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    pub(super) limit: HandshakeLimit,
    /// Records and handshakes whose tag was wrong.
    pub(crate) forged: u64,
}

impl Sealing {
    /// `key`: random.
    pub(crate) fn new(secret: Secret, key: u64) -> Result<Self> {
        Ok(Self {
            secret,
            vault: Vault::new(KEYS),
            free: Vec::new(),
            next: 0,
            cipher: Some(Pages::new(CIPHER)?),
            leaving: vec![vec![0; RECORD + OVERHEAD]],
            kept: vec![Vec::with_capacity(RECORD + OVERHEAD)],
            limit: HandshakeLimit::new(key),
            forged: 0,
        })
    }

    /// Whether peers are served in clear, too.
    pub(crate) fn takes_plain(&self) -> bool {
        self.secret.takes_plain
    }

    /// How many keys were expanded.
    #[cfg(test)]
    pub(crate) fn expanded(&self) -> u64 {
        self.vault.counts().expanded
    }

    /// Memory for a record that leaves.
    pub(super) fn take_leaving(&mut self) -> Vec<u8> {
        self.leaving.pop().unwrap_or_else(|| vec![0; RECORD + OVERHEAD])
    }

    pub(super) fn put_leaving(&mut self, memory: Vec<u8>) {
        if self.leaving.len() < BUFFERS {
            self.leaving.push(memory);
        }
    }

    /// Memory for part of a record that has come.
    pub(super) fn take_kept(&mut self) -> Vec<u8> {
        self.kept.pop().unwrap_or_else(|| Vec::with_capacity(RECORD + OVERHEAD))
    }

    pub(super) fn put_kept(&mut self, memory: Vec<u8>) {
        if self.kept.len() < BUFFERS {
            self.kept.push(memory);
        }
    }

    /// Takes the buffer that records are read into. It is put back by [`Sealing::put_cipher`].
    pub(crate) fn take_cipher(&mut self) -> Option<Pages> {
        self.cipher.take()
    }

    pub(crate) fn put_cipher(&mut self, cipher: Pages) {
        self.cipher = Some(cipher);
    }

    /// Forgets the keys of a stream, which has ended.
    #[cold]
    pub(crate) fn end(&mut self, index: u32) {
        self.vault.remove(index);
        self.free.push(index);
    }

    /// Enters the keys of a stream, and returns their index.
    pub(super) fn enter(&mut self, session: &Session) -> std::result::Result<u32, Refused> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        match self.vault.insert(index, session) {
            Ok(()) => Ok(index),
            Err(refused) => {
                self.free.push(index);
                Err(refused)
            }
        }
    }
}
