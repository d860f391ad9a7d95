//! What both sides of a handshake say of themselves: in CONNECT and in ACCEPT the same 32 bytes.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                           features                            | 32
//! +---------------------------------------------------------------+
//! |                           first seq                           | 36
//! +---------------+---------------+-------------------------------+
//! |   attribute   |       0       |              mtu              | 40
//! +---------------+---------------+-------------------------------+
//! |                         max send size                         | 44
//! +---------------------------------------------------------------+
//! |                         receive buffer                        | 48
//! +---------------------------------------------------------------+
//! |                            credit                             | 52
//! +---------------------------------------------------------------+
//! |                             host                              | 56
//! |                                                               | 60
//! +---------------------------------------------------------------+
//! ```

use super::bytes::{put, u8_at, u16_at, u32_at, u64_at, zero};
use crate::Attribute;

/// Feature bits. The server answers with those that both sides have; it leaves out what it does not
/// know.
pub mod features {
    /// RMA bytes between two endpoints of one host may go without check.
    pub const UNCHECKED: u32 = 1;
    /// The connection is sealed. In CONNECT: a share of a handshake follows the payload.
    pub const SEALED: u32 = 1 << 16;
    /// Bits that are reserved for encryption. A CONNECT with one of them may carry more than
    /// padding after its payload.
    pub const ENCRYPTION: u32 = 0xFFFF_0000;
}

/// Bytes up to which an offer reaches, from the start of the frame.
pub(super) const END: usize = 64;

/// What one side of a connection can do and has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Feature bits, see [`features`]; in ACCEPT those that both have.
    pub features: u32,
    /// Sequence number of this side's first sequenced frame.
    pub first_seq: u32,
    /// What the connection promises: RO, RU or UU.
    pub attribute: Attribute,
    /// Largest frame that this side can take, bytes.
    pub mtu: u16,
    /// Largest message that this side takes, bytes.
    pub max_send_size: u32,
    /// Bytes of frames that this side's receive buffer holds.
    pub recv_buffer: u32,
    /// Messages that this side has room for.
    pub credit: u32,
    /// Names this side's host; 0 = unknown.
    pub host: u64,
}

impl Offer {
    #[expect(clippy::cast_possible_truncation, reason = "attributes have numbers below 5")]
    pub(super) fn emit(&self, frame: &mut [u8]) {
        put(frame, 32, self.features.to_be_bytes());
        put(frame, 36, self.first_seq.to_be_bytes());
        put(frame, 40, [self.attribute as u32 as u8, 0]);
        put(frame, 42, self.mtu.to_be_bytes());
        put(frame, 44, self.max_send_size.to_be_bytes());
        put(frame, 48, self.recv_buffer.to_be_bytes());
        put(frame, 52, self.credit.to_be_bytes());
        put(frame, 56, self.host.to_be_bytes());
    }

    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        zero::<1>(frame, 41)?;
        Some(Self {
            features: u32_at(frame, 32)?,
            first_seq: u32_at(frame, 36)?,
            // A group has no handshake.
            attribute: Attribute::from_u32(u8_at(frame, 40)?.into()).filter(|attribute| !attribute.is_multicast())?,
            mtu: u16_at(frame, 42)?,
            max_send_size: u32_at(frame, 44)?,
            recv_buffer: u32_at(frame, 48)?,
            credit: u32_at(frame, 52)?,
            host: u64_at(frame, 56)?,
        })
    }
}
