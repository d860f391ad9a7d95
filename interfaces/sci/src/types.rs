//! What the calls of several objects share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a window reaches its segment.
///
/// # Example
///
/// ```
/// use cci_sci::Kind;
///
/// fn needs_a_flush(kind: Kind) -> bool {
///     kind != Kind::Shared
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The same pages as those of the owner.
    Shared,
    /// Memory of this process, which the library keeps equal to that of the owner.
    Mirror,
}

/// What a window is mapped for.
///
/// # Example
///
/// ```
/// use cci_sci::Access;
///
/// assert_ne!(Access::Read, Access::ReadWrite);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no other")]
pub enum Access {
    /// Loads.
    Read,
    /// Loads and stores.
    ReadWrite,
}

/// What has happened to a connection, with the numbers of SISCI.
///
/// # Example
///
/// ```
/// assert_eq!(cci_sci::Reason::Lost as u32, 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(clippy::exhaustive_enums, reason = "those of SISCI")]
pub enum Reason {
    /// Somebody has connected.
    Connect = 1,
    /// Somebody has disconnected; or the owner asks for that.
    Disconnect = 2,
    /// The connection does not work for now. Never given over shared windows.
    NotOperational = 3,
    /// The connection works again. Never given over shared windows.
    Operational = 4,
    /// The connection is no more.
    Lost = 5,
}

impl Reason {
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        [Self::Connect, Self::Disconnect, Self::NotOperational, Self::Operational, Self::Lost]
            .into_iter()
            .find(|reason| *reason as u32 == code)
    }
}

/// An event of a local segment.
///
/// # Example
///
/// ```
/// use cci_sci::{Reason, SegmentEvent};
///
/// fn is_new(event: SegmentEvent) -> bool {
///     event.reason == Reason::Connect
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentEvent {
    /// What has happened.
    pub reason: Reason,
    /// The node of who has connected.
    pub node: u32,
}

/// Whether a callback is called again.
///
/// # Example
///
/// ```
/// use cci_sci::{Interrupt, Then};
///
/// /// Reports one interrupt.
/// fn once(interrupt: &Interrupt) -> Result<(), cci_sci::Error> {
///     let (sender, _receiver) = std::sync::mpsc::channel();
///     interrupt.on_trigger(move |()| {
///         let _ = sender.send(());
///         Then::Cancel
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(clippy::exhaustive_enums, reason = "those of SISCI")]
pub enum Then {
    /// It is removed; later events wait for calls.
    Cancel = 1,
    /// It stays.
    Continue = 2,
}

/// A callback for events of one object.
pub(crate) type Callback<E> = Arc<Mutex<dyn FnMut(E) -> Then + Send>>;

/// How a segment is made unavailable.
///
/// # Example
///
/// ```
/// fn end(segment: &cci_sci::LocalSegment) -> Result<(), cci_sci::Error> {
///     segment.withdraw(cci_sci::Withdraw::Force)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "those of SISCI")]
pub enum Withdraw {
    /// Connections stay, and are not told.
    Quiet,
    /// Connections stay, and are asked to disconnect.
    Notify,
    /// Connections end.
    Force,
}

/// The end of a wait that begins now.
pub(crate) fn deadline(limit: Option<Duration>) -> Option<std::time::Instant> {
    limit.and_then(|limit| std::time::Instant::now().checked_add(limit))
}
