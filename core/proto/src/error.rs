//! Errors: refused now (one enumeration per operation), or failed later ([`Failure`], inside
//! events).

use crate::Status;
use core::fmt;

/// Declares a one-byte error enumeration with a status and a sentence for each variant. The mapping
/// is exhaustive: a new variant does not compile until it has both.
macro_rules! refusals {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident => $status:ident, $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = $sentence] $(#[$vmeta])* $variant,)+
            /// The endpoint cannot be used here.
            Unusable(Unusable),
        }

        impl $name {
            /// The status that a C program sees.
            #[must_use]
            pub const fn status(self) -> Status {
                match self {
                    $(Self::$variant => Status::$status,)+
                    Self::Unusable(why) => why.status(),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($sentence),)+
                    Self::Unusable(why) => why.fmt(f),
                }
            }
        }

        impl core::error::Error for $name {}

        impl From<Unusable> for $name {
            fn from(why: Unusable) -> Self {
                Self::Unusable(why)
            }
        }
    };
}

/// Why an endpoint cannot be used here, whatever the operation.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::{SendError, Unusable};
///
/// fn must_open_again(refused: SendError) -> bool {
///     matches!(refused, SendError::Unusable(Unusable::Forked | Unusable::Closed | Unusable::Failed))
/// }
/// assert!(must_open_again(Unusable::Forked.into()));
/// assert!(!must_open_again(Unusable::WrongThread.into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unusable {
    /// This process is a forked child of the one that opened the endpoint.
    Forked,
    /// The endpoint was opened for one thread, and this is another.
    WrongThread,
    /// The endpoint has been closed.
    Closed,
    /// The library has failed inside and closed this endpoint to protect the program.
    Failed,
}

impl Unusable {
    /// The status that a C program sees.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Forked | Self::Failed => Status::DeviceDead,
            Self::WrongThread | Self::Closed => Status::Inval,
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forked => {
                "this endpoint belongs to the parent process; a forked child initializes the library afresh"
            }
            Self::WrongThread => "this endpoint was opened for one thread; call from that thread, or open it for many",
            Self::Closed => "this endpoint has been closed",
            Self::Failed => "the library failed inside; this endpoint is closed, open another one",
        })
    }
}

impl core::error::Error for Unusable {}

refusals! {
    /// Why a connect was refused at once.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::{ConnectError, Status};
    ///
    /// fn may_try_again(refused: ConnectError) -> bool {
    ///     matches!(refused, ConnectError::NoBuffers | ConnectError::NoMemory)
    /// }
    /// assert!(!may_try_again(ConnectError::BadUri));
    /// assert_eq!(ConnectError::BadUri.status(), Status::Inval);
    /// ```
    ConnectError {
        PayloadTooLong => Inval, "the payload of a connection request is at most 1,024 bytes";
        BadUri => Inval, "the URI does not name an endpoint of this transport";
        NotImplemented => NotImplemented, "this transport does not offer that attribute";
        NoBuffers => NoBufs, "no free send buffer; reap and return events";
        NoMemory => NoMem, "no memory for another connection";
        NoThread => NoMem, "no thread to look up the host's name; allow more processes, or connect to an IP address";
        NoJob => NotFound, "the URI names a rank, and this process has opened no endpoint of a job; call Job::open or ccix_job_open first";
        NoRank => NotFound, "the job has no such rank; write job: and a number below the size of the job";
    }
}

refusals! {
    /// Why accept, reject or return of an event was refused.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::{RequestError, Status};
    ///
    /// assert_eq!(RequestError::NotAnswered.to_string(), "accept or reject the request before returning it");
    /// assert_eq!(RequestError::Disconnected.status(), Status::Disconnected);
    /// ```
    RequestError {
        NotARequest => Inval, "the event is not a connection request";
        AlreadyAnswered => Inval, "the request has been accepted or rejected already";
        NotAnswered => Inval, "accept or reject the request before returning it";
        NotBorrowed => Inval, "the event has been returned already";
        OtherDevice => Inval, "the accepting endpoint is not on the device of the request";
        Disconnected => Disconnected, "the requesting peer is gone";
        NoBuffers => NoBufs, "no free send buffer; reap and return events";
        NoMemory => NoMem, "no memory for another connection";
    }
}

refusals! {
    /// Why a send was refused at once; nothing was sent.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::SendError;
    ///
    /// /// What a program does about a message that was not sent.
    /// fn remedy(refused: SendError) -> &'static str {
    ///     match refused {
    ///         SendError::NoBuffers => "take events, return them, and send again",
    ///         SendError::TooLong => "write the bytes by RMA",
    ///         SendError::Disconnected => "connect again",
    ///         _ => "correct the program",
    ///     }
    /// }
    /// assert_eq!(remedy(SendError::TooLong), "write the bytes by RMA");
    /// ```
    SendError {
        NoBuffers => NoBufs, "no free send buffer; reap and return events";
        TooLong => MsgSize, "longer than the connection's maximum send size";
        Disconnected => Disconnected, "the connection is closed, or its peer is gone";
        BadFlags => Inval, "flags that do not fit a send on this connection";
        Direction => Inval, "a multicast receiver cannot send";
        NoRoom => Inval, "no such room for a message; sent or given back already, or of another connection?";
    }
}

refusals! {
    /// Why an RMA was refused at once; nothing was copied.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::{RmaError, Status};
    ///
    /// assert_eq!(RmaError::ZeroLength.status(), Status::Inval);
    /// assert_eq!(RmaError::Unreliable.to_string(), "RMA needs a reliable connection");
    /// ```
    RmaError {
        NoBuffers => NoBufs, "no free descriptor; reap and return events";
        MessageTooLong => MsgSize, "the completion message is longer than the connection's maximum send size";
        Disconnected => Disconnected, "the connection is closed, or its peer is gone";
        BadFlags => Inval, "exactly one of READ and WRITE, and no unknown flag";
        ZeroLength => Inval, "an RMA moves at least one byte";
        WordLength => Inval, "an atomic operation changes a word of 4 or 8 bytes";
        Unreliable => Inval, "RMA needs a reliable connection";
        LocalHandle => Inval, "the local handle is unknown or stale, or the range lies outside it";
    }
}

refusals! {
    /// Why memory could not be registered or deregistered.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::RegisterError;
    ///
    /// fn is_only_early(refused: RegisterError) -> bool {
    ///     refused == RegisterError::Busy
    /// }
    /// assert!(!is_only_early(RegisterError::UnknownHandle));
    /// ```
    RegisterError {
        Null => Inval, "null start, or length 0";
        WrapsAround => Inval, "start plus length wraps around the address space";
        UnknownHandle => Inval, "no such registration; deregistered already?";
        NoMemory => NoMem, "no memory for another registration";
        Disconnected => Disconnected, "the connection that the registration is for is not open";
        Unreliable => Inval, "the connection that the registration is for is unreliable, and has no RMA";
        Busy => Busy, "a stopped peer is copying; the registration takes no new transfer, deregister again later";
    }
}

refusals! {
    /// Why memory of a peer could not be imported.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::ImportError;
    ///
    /// /// Whether RMA can do what the import could not.
    /// fn try_rma(refused: ImportError) -> bool {
    ///     matches!(refused, ImportError::NotImplemented | ImportError::NotMapped)
    /// }
    /// assert!(!try_rma(ImportError::Handle));
    /// ```
    ImportError {
        NotImplemented => NotImplemented, "this transport maps no memory of peers; use RMA";
        NotMapped => NotImplemented, "the peer's memory cannot be mapped: it allocates it by the library, or both use RMA";
        Handle => RmaHandle, "the peer has no such registration that this connection may read";
        Disconnected => Disconnected, "the connection of the memory is not open";
    }
}

refusals! {
    /// Why a connection could not be paused or resumed.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::{PauseError, Status};
    ///
    /// assert_eq!(PauseError::Unreliable.status(), Status::Inval);
    /// assert_eq!(PauseError::NotImplemented.status(), Status::NotImplemented);
    /// ```
    PauseError {
        NotImplemented => NotImplemented, "this transport pauses no connection; receive its messages";
        Unreliable => Inval, "an unreliable connection is not paused; return its events, or disconnect it";
        Disconnected => Disconnected, "the connection to be paused or resumed is not open";
    }
}

refusals! {
    /// Why an option could not be set or read.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::{OptionError, Status};
    ///
    /// assert_eq!(OptionError::Range.status(), Status::Inval);
    /// assert_eq!(OptionError::Range.to_string(), "the value is out of range");
    /// ```
    OptionError {
        ReadOnly => Inval, "this option cannot be set";
        Range => Inval, "the value is out of range";
        Disconnected => Inval, "the connection is closed";
    }
}

refusals! {
    /// Why `get_event` has nothing to give beside "nothing now".
    ///
    /// # Example
    ///
    /// ```
    /// # use cci_proto as cci;
    /// use cci::{PollError, Status, Unusable};
    ///
    /// assert_eq!(PollError::NoBuffers.status(), Status::NoBufs);
    /// assert_eq!(PollError::from(Unusable::Closed), PollError::Unusable(Unusable::Closed));
    /// ```
    PollError {
        NoBuffers => NoBufs, "the program holds every receive buffer; return events";
    }
}

/// Why an operation that had started ended without success: in events, and as the outcome of calls
/// that wait.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::{Failure, Status};
///
/// assert!(Failure::TimedOut.breaks_connection() && !Failure::RemoteHandle.breaks_connection());
/// assert_eq!(Failure::from_status(Status::Rnr), Some(Failure::NotReady));
/// assert_eq!(Failure::from_status(Status::Success), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The connection was closed, or its peer is gone. Breaks the connection.
    Disconnected,
    /// The receiver had no room until the send timeout. Breaks the connection.
    NotReady,
    /// No answer within the timeout. Breaks the connection.
    TimedOut,
    /// The peer rejected the request, or nobody listens there.
    Refused,
    /// The target refused handle, range or right. The connection lives on.
    RemoteHandle,
    /// The copy failed part-way (unmapped or protected memory). The connection lives on.
    Copy,
    /// No memory for the connection.
    NoMemory,
    /// The peer speaks another version, belongs to another user, or broke the protocol.
    Protocol,
    /// The receiver allows no message as long as this. The connection lives on.
    TooLong,
}

impl Failure {
    /// The status that a C program sees.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Disconnected => Status::Disconnected,
            Self::NotReady => Status::Rnr,
            Self::TimedOut => Status::TimedOut,
            Self::Refused | Self::Protocol => Status::ConnRefused,
            Self::RemoteHandle => Status::RmaHandle,
            Self::Copy => Status::RmaOp,
            Self::NoMemory => Status::NoMem,
            Self::TooLong => Status::MsgSize,
        }
    }

    /// The failure behind a status of an event; `None` for success and for a status no event
    /// carries.
    #[must_use]
    pub const fn from_status(status: Status) -> Option<Self> {
        Some(match status {
            Status::Disconnected => Self::Disconnected,
            Status::Rnr => Self::NotReady,
            Status::TimedOut => Self::TimedOut,
            Status::ConnRefused => Self::Refused,
            Status::RmaHandle => Self::RemoteHandle,
            Status::RmaOp => Self::Copy,
            Status::NoMem => Self::NoMemory,
            Status::MsgSize => Self::TooLong,
            _ => return None,
        })
    }

    /// Whether it breaks a reliable connection.
    #[must_use]
    pub const fn breaks_connection(self) -> bool {
        !matches!(self, Self::RemoteHandle | Self::Copy | Self::TooLong)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str(
                "CCI_EMSGSIZE: longer than the receiver allows; raise its limit of large messages, or send less",
            ),
            _ => self.status().fmt(f),
        }
    }
}

impl core::error::Error for Failure {}
