//! What an endpoint remembers so that the usual call needs not look at everything: one lane, no
//! handle, nothing else to be done. The words are private to this folder, and all other access to
//! the endpoint passes through [`Sm::slow`], which forgets them.
//!
//! ```text
//!  Transport ──┬── poll, progress, post, a room ──> [ sole | clear ] ── as remembered ──> that lane
//!              │                                        │        ^
//!              │                         not remembered │        │ find_sole, clear_lane
//!              │                                        v        │
//!              └── all others ── slow(): forgets ──> SlowPath ───┘
//! ```

mod poll;
mod post;

use crate::slow_path::SlowPath;
use cci_transport::{Core, OpenError};

/// No lane has this number.
const NO_LANE: u32 = u32::MAX;

/// An endpoint's shared-memory side.
pub struct Sm {
    /// The lane that every call polls, if it is the only one, usable, and a call has nothing else
    /// to do than to take its messages.
    sole: u32,
    /// The lane into which the last message was published at once, if nothing but messages has
    /// passed since.
    clear: u32,
    slow: SlowPath,
}

impl Sm {
    /// Opens an endpoint's shared-memory side. `arguments`: the keys of its device; `service`:
    /// "PID/ID"; `is_present`: it is alive while its program makes no calls.
    ///
    /// # Errors
    ///
    /// A key's value is wrong, the service is taken or malformed, or memory or descriptors are
    /// short.
    pub fn open(arguments: &[(String, String)], service: Option<&str>, is_present: bool) -> Result<Self, OpenError> {
        Ok(Self { sole: NO_LANE, clear: NO_LANE, slow: SlowPath::open(arguments, service, is_present)? })
    }

    /// Anything may change: the next call and the next message look at everything.
    #[inline(always)]
    pub(crate) fn slow(&mut self) -> &mut SlowPath {
        (self.sole, self.clear) = (NO_LANE, NO_LANE);
        &mut self.slow
    }

    /// To look, and change nothing.
    #[inline(always)]
    pub(crate) fn seen(&self) -> &SlowPath {
        &self.slow
    }

    /// As [`cci_transport::Transport::progress`], whatever is to be done.
    pub(crate) fn progress_at_length(&mut self, core: &mut Core) {
        self.slow().progress(core);
        self.find_sole();
    }

    /// Sees whether the next call may go the short way, after one that went the long way.
    fn find_sole(&mut self) {
        self.sole = self.slow.sole_lane().unwrap_or(NO_LANE);
    }

    /// Whether the next call goes the short way.
    #[cfg(test)]
    pub(crate) fn sole(&self) -> Option<u32> {
        (self.sole != NO_LANE).then_some(self.sole)
    }
}

#[cfg(test)]
mod tests {
    use super::NO_LANE;
    use crate::fixture::End;
    use cci_mem::source::Source;
    use cci_proto::Flags;
    use cci_transport::Transport;

    /// What is remembered after a message is forgotten as soon as somebody gets at the lanes.
    #[test]
    fn who_may_change_anything_makes_the_endpoint_forget() {
        let (mut client, mut server) = (End::new(), End::new());
        let cell = client.connect(&mut server);
        while client.sm.sole().is_none() {
            client.call();
            server.call();
        }
        let message = Source::from(&b"8 bytes."[..]);
        client.sm.post(message, 0, cell, &mut client.core, Flags::SILENT).expect("room");
        assert!(client.sm.sole != NO_LANE && client.sm.clear == client.sm.sole);
        let _ = client.sm.slow();
        assert_eq!((client.sm.sole, client.sm.clear), (NO_LANE, NO_LANE));
    }
}
