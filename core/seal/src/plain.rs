//! What lies in cells of the arena: structures of bytes and numbers.

use crate::aead::Direction;
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

/// What the vault has of a connection. It is packed: with what the engine has, a sealed connection
/// takes 128 bytes more than a plain one.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct Slot {
    /// The secret of the present phase in which this side seals.
    pub(crate) sending: [u8; KEY],
    /// The secret of the present phase in which the peer seals.
    pub(crate) receiving: [u8; KEY],
    /// The lowest number that was not sealed.
    pub(crate) next: u64,
    /// Where the expanded keys are, by purpose.
    pub(crate) places: [u16; 4],
    /// How many frames were sealed in this phase, and above [`COUNT`] the side.
    state: u32,
}

// SAFETY: bytes and numbers.
unsafe impl Plain for Slot {}

/// The bits of a count of frames.
const COUNT: u32 = (1 << 24) - 1;

const _: () = assert!(MOST_FRAMES <= COUNT);

/// Frames that one key seals at most (RFC 9001, 6.6). Change it well before: at 2^22.
pub const MOST_FRAMES: u32 = 1 << 23;

impl Slot {
    /// Zeroes: nothing is here.
    pub(crate) const EMPTY: Self = Self { sending: [0; KEY], receiving: [0; KEY], next: 0, places: [0; 4], state: 0 };

    /// A connection in which this side seals in this direction.
    pub(crate) fn set_direction(&mut self, sending: Direction) {
        let side = match sending {
            Direction::FromInitiator => 1,
            Direction::FromResponder => 2,
        };
        self.state = side << COUNT.count_ones();
    }

    /// Returns the direction in which this side seals, if a connection is here.
    #[inline(always)]
    pub(crate) fn direction(&self) -> Option<Direction> {
        match self.state >> COUNT.count_ones() {
            1 => Some(Direction::FromInitiator),
            2 => Some(Direction::FromResponder),
            _ => None,
        }
    }

    /// Returns how many frames were sealed in this phase.
    #[inline(always)]
    pub(crate) fn sealed(&self) -> u32 {
        self.state & COUNT
    }

    /// Sets how many frames were sealed in this phase, at most [`MOST_FRAMES`].
    #[inline(always)]
    pub(crate) fn set_sealed(&mut self, count: u32) {
        self.state = self.state & !COUNT | count & COUNT;
    }
}

/// Slots of a cell.
pub(crate) const SLOTS: usize = 48;

/// The slots of one cell.
#[repr(C)]
pub(crate) struct Slots(pub(crate) [Slot; SLOTS]);

// SAFETY: as above.
unsafe impl Plain for Slots {}

const _: () = assert!(size_of::<Slot>() == 84);
