//! Connections to segments.

use crate::device_memory::Found;
use crate::errors::Error;
use crate::mapped::Mapped;
use crate::nodes::EVERY_NODE;
use crate::notices::{Notices, Source, retire};
use crate::objects::Remote;
use crate::queue::RemoteEnd;
use crate::shared::Shared;
use crate::state::State;
use crate::types::{Access, Callback, Reason, Then};
use crate::window::Window;
use crate::wire::Message;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A connection to a segment. Dropping it disconnects; its windows stay mapped, and their sequences
/// say that the connection is no more.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, Host, RemoteSegment};
/// use std::time::Duration;
///
/// /// Connects as soon as the owner has published its segment.
/// fn connect(host: &Host, node: u32, id: u32) -> Result<RemoteSegment, Error> {
///     loop {
///         match host.connect(node, id, Some(Duration::from_secs(1))) {
///             Err(Error::NoSuchSegment) => std::thread::sleep(Duration::from_millis(10)),
///             other => return other,
///         }
///     }
/// }
/// ```
pub struct RemoteSegment {
    shared: Arc<Shared>,
    token: u64,
    node: u32,
    id: u32,
    mapped: Arc<Mapped>,
}

impl RemoteSegment {
    pub(crate) fn new(shared: &Arc<Shared>, token: u64) -> Result<Self, Error> {
        shared.with(|state| {
            let remote = state.remotes.get(&token).ok_or(Error::NoSuchSegment)?;
            let (node, id, mapped) = (remote.node, remote.segment, Arc::clone(&remote.mapped));
            Ok(Self { shared: Arc::clone(shared), token, node, id, mapped })
        })
    }

    /// A connection to a segment in the memory of a device, of which its owner is not told.
    pub(crate) fn found(shared: &Arc<Shared>, node: u32, id: u32, found: &Found) -> Result<Self, Error> {
        let token = shared.with(|state| {
            let (token, mapped) = (state.next(), Arc::new(Mapped::found(found, state.mark)));
            let (handle, is_lost, notices) = (None, false, Notices::new());
            let remote = Remote { partner: None, node, segment: id, mapped, handle, is_lost, notices };
            state.remotes.insert(token, remote);
            Ok(token)
        })?;
        Self::new(shared, token)
    }

    /// Returns the node of the owner; [`EVERY_NODE`] of a broadcast group.
    #[must_use]
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Returns the segment's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.mapped.len()
    }

    /// Maps a range of the segment. Of another host it is read first.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`]; [`Error::SegmentNotConnected`]: the connection is no more.
    /// [`Error::Timeout`], [`Error::NodeNotResponding`]: it cannot be read.
    /// [`Error::NotInitialized`].
    pub fn map(&self, range: Range<usize>, access: Access) -> Result<Window, Error> {
        if let Some(mirror) = self.mapped.as_mirror().filter(|_| !range.is_empty()) {
            self.mapped.check(range.start, range.len())?;
            self.shared.load_mirror(mirror, range.clone())?;
        }
        self.shared.with(|state| match state.remotes.get(&self.token) {
            Some(remote) if !remote.is_lost => {
                let window = Window::new(&self.shared, &self.mapped, range, access);
                // The thread of the mirrors may have found it without a window, and sleep.
                state.mirrors.wake();
                window
            }
            _ => Err(Error::SegmentNotConnected),
        })
    }

    /// Waits for an event of the connection, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; [`Error::Cancelled`]: it was disconnected; [`Error::IllegalOperation`]:
    /// it has a callback, or this is one.
    pub fn wait(&self, limit: Option<Duration>) -> Result<Reason, Error> {
        self.shared.wait_for(limit, |state| {
            let Some(remote) = state.remotes.get_mut(&self.token) else { return Some(Err(Error::Cancelled)) };
            if remote.notices.callback.is_some() {
                return Some(Err(Error::IllegalOperation));
            }
            remote.notices.events.pop_front().map(Ok)
        })
    }

    /// Sets what is called for each event, as [`crate::LocalSegment::on_event`].
    ///
    /// # Errors
    ///
    /// [`Error::SegmentNotConnected`]: it was disconnected. [`Error::NotInitialized`].
    pub fn on_event(&self, callback: impl FnMut(Reason) -> Then + Send + 'static) -> Result<(), Error> {
        // One that is refused is dropped without the lock.
        let mut callback: Option<Callback<Reason>> = Some(Arc::new(Mutex::new(callback)));
        self.shared.with(|state| {
            let remote = state.remotes.get_mut(&self.token).ok_or(Error::SegmentNotConnected)?;
            retire(&mut state.callbacks.retired, &mut remote.notices);
            remote.notices.callback = callback.take();
            let waiting = remote.notices.events.len();
            state.callbacks.ready.extend(std::iter::repeat_n(Source::Remote(self.token), waiting));
            Ok(())
        })
    }

    /// Ends the connection.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: it has windows. [`Error::SegmentNotConnected`]: it was disconnected before.
    /// [`Error::NotInitialized`].
    pub fn disconnect(&self) -> Result<(), Error> {
        self.shared.with(|state| if self.mapped.is_in_use() { Err(Error::Busy) } else { self.end(state) })?;
        self.shared.settle(Source::Remote(self.token));
        Ok(())
    }

    fn end(&self, state: &mut State) -> Result<(), Error> {
        let mut remote = state.remotes.remove(&self.token).ok_or(Error::SegmentNotConnected)?;
        retire(&mut state.callbacks.retired, &mut remote.notices);
        self.mapped.lose();
        state.mirrors.leave(self.token);
        state.waits.has_changed = true;
        if self.node == EVERY_NODE {
            if let Some(claim) = state.leave_group(self.shared.endpoint(), self.id) {
                self.shared.free_claim(state, claim);
            }
        } else if !remote.is_lost {
            state.send(self.shared.endpoint(), remote.partner, Message::Disconnect { token: self.token });
        }
        Ok(())
    }

    /// What a transfer needs.
    pub(crate) fn registered(&self, state: &State) -> Result<(Arc<Mapped>, RemoteEnd), Error> {
        let remote = state.remotes.get(&self.token).filter(|remote| !remote.is_lost);
        let remote = remote.ok_or(Error::SegmentNotConnected)?;
        let end = match remote.handle {
            Some(handle) => RemoteEnd::Segment(remote.partner, handle),
            None if self.node == EVERY_NODE => RemoteEnd::Group(self.id),
            None => return Err(Error::NotImplemented),
        };
        Ok((Arc::clone(&self.mapped), end))
    }
}

impl Drop for RemoteSegment {
    fn drop(&mut self) {
        // Refused where it was disconnected, or the host has ended.
        if self.shared.with(|state| self.end(state)).is_ok() {
            self.shared.settle(Source::Remote(self.token));
        }
    }
}

impl fmt::Debug for RemoteSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteSegment({} of node {}, {} bytes)", self.id, self.node, self.len())
    }
}
