//! What the program has posted: how its end is reported, and the bytes of a message that cannot
//! leave yet.

use cci_proto::Time;
use cci_transport::{Connection, Message, Posted, Slot};

/// Bytes of a message that need no memory of their own while it waits.
const SHORT: usize = 64;

/// How an operation is reported, and when at the latest.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) slot: &'static Slot,
    pub(crate) cell: &'static Connection,
    pub(crate) posted: Posted,
    pub(crate) deadline: Option<Time>,
}

/// The bytes of a message that cannot leave yet.
pub(crate) struct Data {
    len: usize,
    short: [u8; SHORT],
    long: Vec<u8>,
}

impl Data {
    /// Copies a message. `buffer`: memory for a long message, whatever is in it.
    pub(crate) fn copy(message: &Message<'_>, buffer: impl FnOnce() -> Vec<u8>) -> Self {
        let len = message.len();
        let mut data = Self { len, short: [0; SHORT], long: Vec::new() };
        if len <= SHORT {
            message.copy_to(&mut data.short[..len]);
        } else {
            data.long = buffer();
            if data.long.len() < len {
                data.long.resize(len, 0);
            }
            message.copy_to(&mut data.long[..len]);
        }
        data
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len <= SHORT { &self.short[..self.len] } else { &self.long[..self.len] }
    }

    /// The memory of a long one, for the next.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.long
    }
}
