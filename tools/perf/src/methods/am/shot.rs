//! What is measured, and what the ends say to each other.

use serde::{Deserialize, Serialize};

/// Bytes of a header of Active Messages.
pub(super) const HEADER: usize = 8;
/// Bytes of the message of a bulk request.
pub(super) const BULK_MESSAGE: usize = 28;
/// Bytes of the longest bulk transfer.
pub(super) const AREA: usize = 1 << 20;
/// The most messages that the other end has not answered.
const WINDOW: u64 = 16;

/// How an exchange travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(in crate::methods) enum Way {
    /// Active Messages.
    Active = 1,
    /// CCI's own: messages are copied by `send`.
    Send = 2,
    /// CCI's own: messages are written in place.
    Reserve = 3,
    /// CCI's own: RMA with a message.
    Write = 4,
    /// Another library's active messages, between processes of its own. Both ends sleep meanwhile.
    Peer = 5,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Active => "am",
            Self::Send => "send",
            Self::Reserve => "reserve",
            Self::Write => "write",
            Self::Peer => "peer",
        }
    }

    /// The way with this number; `None`: none, the run is over.
    pub(in crate::methods) fn of(number: u8) -> Option<Self> {
        [Self::Active, Self::Send, Self::Reserve, Self::Write, Self::Peer].into_iter().find(|way| *way as u8 == number)
    }
}

/// What an exchange carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::methods) enum Load {
    /// So many arguments, there and back.
    Short(usize),
    /// So many bytes there, an acknowledgement back.
    Medium(usize),
    /// So many bytes there and back.
    Echo(usize),
    /// So many bytes into the target's memory, an acknowledgement back.
    Bulk(u64),
    /// The same, into as many places as there are exchanges under way, in turn: 1 MiB each, behind
    /// the first MiB of the target's memory. Active Messages have one place.
    Spread(u64),
}

/// What one line of the table is about.
#[derive(Clone, Copy, Debug)]
pub(in crate::methods) struct Shot {
    pub(in crate::methods) name: &'static str,
    pub(in crate::methods) load: Load,
    /// Exchanges under way.
    pub(in crate::methods) window: u64,
}

/// All of them.
pub(super) const SHOTS: [Shot; 9] = [
    Shot { name: "short, 0 arguments", load: Load::Short(0), window: 1 },
    Shot { name: "short, 4 arguments", load: Load::Short(4), window: 1 },
    Shot { name: "short, 16 arguments", load: Load::Short(16), window: 1 },
    Shot { name: "medium, 4 KiB", load: Load::Medium(4096), window: 1 },
    Shot { name: "echo, 8 B", load: Load::Echo(8), window: 1 },
    Shot { name: "echo, 4 KiB", load: Load::Echo(4096), window: 1 },
    Shot { name: "bulk, 64 KiB", load: Load::Bulk(64 << 10), window: 1 },
    Shot { name: "bulk, 1 MiB", load: Load::Bulk(1 << 20), window: 1 },
    Shot { name: "rate of short requests", load: Load::Short(4), window: WINDOW },
];

impl Shot {
    /// The ways of it: Active Messages, and what CCI itself has.
    pub(in crate::methods) fn ways(&self) -> &'static [Way] {
        match self.load {
            Load::Bulk(_) | Load::Spread(_) => &[Way::Active, Way::Write],
            Load::Short(_) | Load::Medium(_) | Load::Echo(_) => &[Way::Active, Way::Send, Way::Reserve],
        }
    }

    /// Bytes that a peer sends there and back for the same.
    pub(super) fn of_peer(&self) -> Option<u64> {
        if let Load::Echo(bytes) = self.load { Some(bytes as u64) } else { None }
    }

    /// Messages of one exchange whose cost is compared: both where they are alike, and otherwise
    /// the first alone, so that it bears the whole difference.
    pub(super) fn messages(&self) -> u32 {
        if self.kind() == ECHO && self.window == 1 { 2 } else { 1 }
    }

    /// Bytes of the request's message, which CCI's own has too.
    pub(in crate::methods) fn message(&self) -> usize {
        match self.load {
            Load::Short(arguments) => HEADER + 4 * arguments,
            Load::Medium(bytes) | Load::Echo(bytes) => HEADER + bytes,
            Load::Bulk(_) | Load::Spread(_) => BULK_MESSAGE,
        }
    }

    /// What CCI's own message begins with.
    pub(super) fn kind(&self) -> u8 {
        if matches!(self.load, Load::Short(_) | Load::Echo(_)) { ECHO } else { ACKNOWLEDGE }
    }
}

/// The first byte of CCI's own messages: one as long comes back.
pub(super) const ECHO: u8 = 1;
/// One of [`HEADER`] bytes comes back.
pub(super) const ACKNOWLEDGE: u8 = 2;
/// The second byte is the number of the next way; one of [`HEADER`] bytes comes back.
pub(super) const SWITCH: u8 = 3;
