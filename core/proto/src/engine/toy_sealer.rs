//! A sealer for tests: its cipher is no cipher, but whoever does not know the keys finds no tag, and
//! it checks what the engine promises of numbers.

use super::api::Transmit;
use super::host::{Host, Index};
use super::random::keyed;
use super::sealer::{Phase, Seal, Sealer, Security};
use crate::wire::{self, Crc, HEADER, SHARE, TAG};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

type Key = [u64; 2];

/// Bytes of an ephemeral key.
const EPHEMERAL: usize = SHARE - TAG;

/// The keys of a connection.
#[derive(Clone, Debug)]
struct Keys {
    send: Key,
    send_phase: bool,
    receive: Key,
    previous: Option<Key>,
    /// The newest number that was sealed.
    newest: Option<u64>,
}

/// A sealer whose cipher is SipHash, with a group secret.
#[derive(Clone, Debug)]
pub struct ToySealer {
    /// What the endpoint asks for.
    pub security: Security,
    /// The secret of the group.
    pub secret: u64,
    /// What the endpoint is called, which outlives its restart.
    pub name: u64,
    /// Frames under one key.
    pub frames_per_key: u32,
    /// New keys that were derived for sending.
    pub advanced: u32,
    /// Whether it refuses, as in a forked child.
    pub is_forked: bool,
    /// The last ephemeral key. A restarted endpoint draws others.
    pub drawn: u64,
    /// The keys of handshakes, by connection, after the first share.
    handshakes: BTreeMap<u32, Key>,
    keys: BTreeMap<u32, Keys>,
}

impl ToySealer {
    /// The sealer of an endpoint of a group.
    #[must_use]
    pub fn new(security: Security, secret: u64, name: u64) -> Self {
        Self {
            security,
            secret,
            name,
            frames_per_key: 1 << 22,
            advanced: 0,
            is_forked: false,
            drawn: name << 32,
            handshakes: BTreeMap::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Handshakes and connections of which it has keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handshakes.len() + self.keys.len()
    }

    /// Whether it has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn ephemeral(&mut self) -> [u8; EPHEMERAL] {
        self.drawn += 1;
        let mut key = [0; EPHEMERAL];
        key[..8].copy_from_slice(&self.drawn.to_be_bytes());
        key
    }

    /// The key after the first share, whose ephemeral key this is.
    fn first(&self, ephemeral: &[u8]) -> Key {
        derived([self.secret, 0x70_73_6b], ephemeral)
    }

    fn begin_keys(&mut self, index: Index, handshake: Key, is_client: bool) {
        self.handshakes.remove(&index.0);
        let ways = [derived(handshake, b"client"), derived(handshake, b"server")];
        let (send, receive) = if is_client { (ways[0], ways[1]) } else { (ways[1], ways[0]) };
        let keys = Keys { send, send_phase: false, receive, previous: None, newest: None };
        self.keys.insert(index.0, keys);
    }
}

fn derived(key: Key, bytes: &[u8]) -> Key {
    [keyed(key, &[1], bytes), keyed(key, &[2], bytes)]
}

fn next(key: Key) -> Key {
    derived(key, b"next")
}

/// Encrypts, or decrypts.
fn mask(key: Key, number: u64, bytes: &mut [u8]) {
    for (at, chunk) in bytes.chunks_mut(8).enumerate() {
        let stream = keyed(key, &[number, at as u64], b"stream").to_be_bytes();
        chunk.iter_mut().zip(stream).for_each(|(byte, mask)| *byte ^= mask);
    }
}

fn tag(key: Key, number: u64, open: &[u8], sealed: &[u8]) -> [u8; TAG] {
    let mut tag = [0; TAG];
    for (half, bytes) in tag.chunks_mut(8).zip([3, 4]) {
        let opened = keyed(key, &[bytes, number, open.len() as u64], open);
        half.copy_from_slice(&keyed(key, &[bytes, opened], sealed).to_be_bytes());
    }
    tag
}

/// Appends a sealed payload, and its tag, to an ephemeral key.
fn put(key: Key, ephemeral: &[u8], fields: &[u8], payload: &[u8], share: &mut [u8]) -> usize {
    let end = EPHEMERAL + payload.len();
    share[..EPHEMERAL].copy_from_slice(ephemeral);
    share[EPHEMERAL..end].copy_from_slice(payload);
    mask(key, 0, &mut share[EPHEMERAL..end]);
    let tag = tag(key, 0, fields, &share[EPHEMERAL..end]);
    share[end..end + TAG].copy_from_slice(&tag);
    end + TAG
}

/// The reverse: writes the payload.
fn take(key: Key, fields: &[u8], share: &[u8], payload: &mut [u8]) -> Option<usize> {
    let len = share.len().checked_sub(SHARE)?;
    let (sealed, found) = share[EPHEMERAL..].split_at(len);
    if found != tag(key, 0, fields, sealed) {
        return None;
    }
    payload.get_mut(..len)?.copy_from_slice(sealed);
    mask(key, 0, &mut payload[..len]);
    Some(len)
}

impl Sealer for ToySealer {
    fn security(&self) -> Security {
        self.security
    }

    fn begin(&mut self, index: Index, _: u32, fields: &[u8], payload: &[u8], share: &mut [u8]) -> Option<usize> {
        if self.is_forked {
            return None;
        }
        let ephemeral = self.ephemeral();
        let key = self.first(&ephemeral);
        let len = put(key, &ephemeral, fields, payload, share);
        self.handshakes.insert(index.0, derived(key, fields));
        Some(len)
    }

    fn read(&mut self, index: Index, fields: &[u8], share: &[u8], payload: &mut [u8]) -> Option<usize> {
        let key = self.first(share.get(..EPHEMERAL)?);
        let len = take(key, fields, share, payload)?;
        self.handshakes.insert(index.0, derived(key, fields));
        Some(len)
    }

    fn answer(&mut self, index: Index, fields: &[u8], payload: &[u8; TAG], share: &mut [u8]) -> Option<usize> {
        let ephemeral = self.ephemeral();
        let key = derived(*self.handshakes.get(&index.0).filter(|_| !self.is_forked)?, &ephemeral);
        let len = put(key, &ephemeral, fields, payload, share);
        self.begin_keys(index, key, false);
        Some(len)
    }

    fn finish(&mut self, index: Index, fields: &[u8], share: &[u8]) -> Option<[u8; TAG]> {
        let key = derived(*self.handshakes.get(&index.0)?, share.get(..EPHEMERAL)?);
        let mut token = [0; TAG];
        take(key, fields, share, &mut token).filter(|len| *len == TAG)?;
        self.begin_keys(index, key, true);
        Some(token)
    }

    fn deny(&mut self, index: Index, fields: &[u8]) -> Option<[u8; TAG]> {
        self.handshakes.get(&index.0).map(|key| tag(*key, 9, fields, b"denied"))
    }

    fn is_denied(&mut self, index: Index, fields: &[u8], found: &[u8; TAG]) -> bool {
        self.handshakes.get(&index.0).is_some_and(|key| tag(*key, 9, fields, b"denied") == *found)
    }

    fn reset_token(&self, identifier: u64) -> [u8; TAG] {
        tag([self.secret, self.name], identifier, b"reset", b"")
    }

    fn open(
        &mut self,
        index: Index,
        number: u64,
        phase: Phase,
        header: &[u8; HEADER],
        sealed: &[u8],
        body: &mut [u8],
    ) -> bool {
        let Some(keys) = self.keys.get(&index.0) else { return false };
        let key = match phase {
            Phase::Present => keys.receive,
            Phase::Next => next(keys.receive),
            Phase::Previous => match keys.previous {
                Some(key) => key,
                None => return false,
            },
        };
        let (sealed, found) = sealed.split_at(body.len());
        if found != tag(key, number, header, sealed) {
            body.fill(0xEE);
            return false;
        }
        body.copy_from_slice(sealed);
        mask(key, number, body);
        true
    }

    fn seal(&mut self, seal: &Seal, header: &[u8; HEADER], buffer: &mut [u8]) -> bool {
        let Some(keys) = self.keys.get_mut(&seal.index.0).filter(|_| !self.is_forked) else { return false };
        assert!(keys.newest.is_none_or(|newest| seal.number > newest), "the number {} comes again", seal.number);
        assert_eq!(keys.send_phase, seal.phase, "a frame of another phase");
        keys.newest = Some(seal.number);
        let (body, room) = buffer.split_at_mut(buffer.len() - TAG);
        mask(keys.send, seal.number, body);
        room.copy_from_slice(&tag(keys.send, seal.number, header, body));
        true
    }

    fn advance_send(&mut self, index: Index) {
        self.advanced += 1;
        if let Some(keys) = self.keys.get_mut(&index.0) {
            (keys.send, keys.send_phase) = (next(keys.send), !keys.send_phase);
        }
    }

    fn advance_receive(&mut self, index: Index) {
        if let Some(keys) = self.keys.get_mut(&index.0) {
            (keys.previous, keys.receive) = (Some(keys.receive), next(keys.receive));
        }
    }

    fn forget_previous(&mut self, index: Index) {
        if let Some(keys) = self.keys.get_mut(&index.0) {
            keys.previous = None;
        }
    }

    fn forget(&mut self, index: Index) {
        self.handshakes.remove(&index.0);
        self.keys.remove(&index.0);
    }

    fn frames_per_key(&self) -> u32 {
        self.frames_per_key
    }
}

/// Makes a whole frame of what `poll_transmit` has written to `head`, and of the memory that
/// follows: sealed, or with its check. `None`: the sealer refuses.
pub fn whole_frame<P, H: Host + ?Sized>(
    transmit: &Transmit<P>,
    head: &[u8],
    memory: &[u8],
    host: &mut H,
) -> Option<Vec<u8>> {
    let mut frame = head[..transmit.len].to_vec();
    let Some(seal) = &transmit.seal else {
        wire::seal(&mut frame, memory.len(), |crc: Crc| if transmit.checked { crc.update(memory) } else { crc });
        frame.extend_from_slice(memory);
        return Some(frame);
    };
    wire::begin_seal(&mut frame, memory.len(), seal.number, seal.phase);
    frame.extend_from_slice(memory);
    frame.extend_from_slice(&[0; TAG]);
    let (header, buffer) = frame.split_first_chunk_mut::<HEADER>()?;
    host.sealer()?.seal(seal, header, buffer).then_some(frame)
}
