//! Kinds of events.

/// What an event reports, with the values of `cci_event_type_t`.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::EventKind;
///
/// // `Event::kind` returns it; a program mostly matches the event itself.
/// fn is_message(kind: EventKind) -> bool {
///     kind == EventKind::Recv
/// }
/// assert!(!is_message(EventKind::Send));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum EventKind {
    /// A send or an RMA has ended.
    Send = 1,
    /// A message has arrived.
    Recv = 2,
    /// A connect has ended.
    Connect = 3,
    /// A peer asks for a connection.
    ConnectRequest = 4,
    /// An accept has ended.
    Accept = 5,
    /// Nothing was heard from the peer for the keepalive time.
    KeepaliveTimedOut = 6,
    /// The endpoint's device has failed.
    DeviceFailed = 7,
    /// The peer has disconnected or died (extension `CCIX_EVENT_DISCONNECT`; only where asked for).
    Disconnect = 0x100,
    /// Memory of the peer that was imported is its registration's no more (extension
    /// `CCIX_EVENT_IMPORT_ENDED`).
    ImportEnded = 0x101,
}

impl EventKind {
    /// The kind with this number, if there is one.
    #[must_use]
    pub const fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            1 => Self::Send,
            2 => Self::Recv,
            3 => Self::Connect,
            4 => Self::ConnectRequest,
            5 => Self::Accept,
            6 => Self::KeepaliveTimedOut,
            7 => Self::DeviceFailed,
            0x100 => Self::Disconnect,
            0x101 => Self::ImportEnded,
            _ => return None,
        })
    }
}
