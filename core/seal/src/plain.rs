//! What lies in cells of the arena: structures of bytes and numbers.

use crate::sizes::KEY;
use cci_mem::secrets::Plain;

/// The state of a handshake.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Handshake {
    /// The chaining key.
    pub(crate) chaining: [u8; KEY],
    /// The hash of all that both sides have seen.
    pub(crate) hash: [u8; KEY],
    /// The key of the next encryption.
    pub(crate) key: [u8; KEY],
    /// At the initiator its private key; at the responder the public key of the initiator.
    pub(crate) ephemeral: [u8; KEY],
}

// SAFETY: bytes.
unsafe impl Plain for Handshake {}

/// What the vault has of a connection.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Slot {
    /// The secret of the present phase in which this side seals.
    pub(crate) sending: [u8; KEY],
    /// The secret of the present phase in which the peer seals.
    pub(crate) receiving: [u8; KEY],
    /// The lowest number that was not sealed.
    pub(crate) next: u64,
    /// How many frames were sealed in this phase.
    pub(crate) sealed: u32,
    /// Where the expanded keys are, by purpose.
    pub(crate) places: [u16; 4],
    /// 0: nothing is here; 1: this side has connected; 2: it has accepted.
    pub(crate) side: u8,
}

// SAFETY: bytes and numbers.
unsafe impl Plain for Slot {}

/// Slots of a cell.
pub(crate) const SLOTS: usize = 46;

/// The slots of one cell.
#[repr(C)]
pub(crate) struct Slots(pub(crate) [Slot; SLOTS]);

// SAFETY: as above.
unsafe impl Plain for Slots {}

const _: () = assert!(size_of::<Slot>() == 88, "a sealed connection holds no more");
