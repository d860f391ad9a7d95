//! The interface from the engine to the owner of keys. The engine sees none of them.

use super::host::Index;
use crate::wire::{HEADER, TAG};

/// What an endpoint asks of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Plain frames.
    Plain,
    /// Sealed frames where the peer agrees, and plain ones otherwise.
    Prefer,
    /// Sealed frames only.
    Sealed,
}

/// Which key opens a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// That of the present phase.
    Present,
    /// That of the phase before it.
    Previous,
    /// That of the next phase: derived for this frame, and kept only if the frame opens and
    /// [`Sealer::advance_receive`] follows.
    Next,
}

/// How a frame is to be sealed before the engine is called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The connection, for [`Sealer::seal`].
    pub index: Index,
    /// The number of the transmission, for the nonce and for the header.
    pub number: u64,
    /// The lowest bit of the phase of the key.
    pub phase: bool,
}

/// The owner of secrets, handshake states and keys, by the engine's index of a connection. Its
/// methods are called from within the engine's, and call none of them. `fields` is what a handshake
/// authenticates besides what is in its shares. What fails says why by itself where it can: the
/// engine knows only that it failed.
pub trait Sealer {
    /// Returns what the endpoint asks of its connections. It must not change while one opens.
    fn security(&self) -> Security;

    /// Client: begins a handshake, in the place of one that this connection may have begun before.
    /// Writes the first share, which has `payload` in it and [`wire::SHARE`](crate::wire::SHARE)
    /// bytes more, and returns its length. `None`: refused, for example without memory.
    fn begin(
        &mut self,
        index: Index,
        host_cookie: u32,
        fields: &[u8],
        payload: &[u8],
        share: &mut [u8],
    ) -> Option<usize>;

    /// Server: checks the tag of the first share, by the secret alone, and keeps the handshake for
    /// this connection. Writes the payload in it and returns its length. `None`: the share was made
    /// with another secret or for other fields, and nothing is kept.
    fn read(&mut self, index: Index, fields: &[u8], share: &[u8], payload: &mut [u8]) -> Option<usize>;

    /// Server: writes the second share, with `payload` in it, and returns its length, at most
    /// [`wire::MAX_SHARE`](crate::wire::MAX_SHARE). The keys of the connection follow from it.
    /// `None`: refused.
    fn answer(&mut self, index: Index, fields: &[u8], payload: &[u8; TAG], share: &mut [u8]) -> Option<usize>;

    /// Client: checks the second share and returns the payload in it. The keys of the connection
    /// follow from it. `None`: it is forged, and the handshake is as before.
    fn finish(&mut self, index: Index, fields: &[u8], share: &[u8]) -> Option<[u8; TAG]>;

    /// Server: returns the tag of a rejection or a redirection, which only the reader of the first
    /// share can make.
    fn deny(&mut self, index: Index, fields: &[u8]) -> Option<[u8; TAG]>;

    /// Client: checks that tag.
    fn is_denied(&mut self, index: Index, fields: &[u8], tag: &[u8; TAG]) -> bool;

    /// Returns what this endpoint, and the same one after a restart, shows to have forgotten the
    /// connection whose identifier this is. No other endpoint can make it.
    fn reset_token(&self, identifier: u64) -> [u8; TAG];

    /// Opens a frame: decrypts `sealed`, which ends with the tag, into `body`, which is shorter by
    /// the tag. Returns false if the tag is wrong; `body` is then undefined.
    fn open(
        &mut self,
        index: Index,
        number: u64,
        phase: Phase,
        header: &[u8; HEADER],
        sealed: &[u8],
        body: &mut [u8],
    ) -> bool;

    /// Encrypts a body in place under the present key of this direction. The last [`TAG`] bytes of
    /// `buffer` become the tag. Returns false if it refuses, for example in a forked child: `buffer`
    /// is then undefined, and the frame must not be sent.
    fn seal(&mut self, seal: &Seal, header: &[u8; HEADER], buffer: &mut [u8]) -> bool;

    /// Derives the next key of what this connection sends. The present one is forgotten.
    fn advance_send(&mut self, index: Index);

    /// Moves what this connection receives to the next phase. The present key becomes the previous
    /// one.
    fn advance_receive(&mut self, index: Index);

    /// Forgets the previous key of what this connection receives.
    fn forget_previous(&mut self, index: Index);

    /// Forgets everything of a connection, of which there may be nothing.
    fn forget(&mut self, index: Index);

    /// Returns how many frames are sent under one key.
    fn frames_per_key(&self) -> u32 {
        1 << 22
    }
}
