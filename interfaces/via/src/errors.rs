//! Why a call was refused, and how a descriptor ended.

use std::fmt;

/// Why a call was refused. Nothing has happened then, unless the call states more.
///
/// # Example
///
/// ```
/// assert_eq!(cci_via::Error::NoMatch.to_string(), "nobody waits for that discriminator now; ask again");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A parameter that names nothing, or is out of range.
    Parameter(&'static str),
    /// No room, or what is to be freed is in use.
    Resource(&'static str),
    /// The time is over.
    Timeout,
    /// The server rejected the request.
    Reject,
    /// The reliability level is none, or differs from the peer's.
    Reliability,
    /// The maximum transfer size is out of range, or differs from the peer's.
    TransferSize,
    /// The quality of service is not offered, or differs from the peer's.
    Qos,
    /// The protection tag names none.
    Tag,
    /// RDMA reads are not offered at this reliability level.
    RdmaRead,
    /// Not in this state of the VI.
    State(&'static str),
    /// The name service knows no such name, or was not started.
    NameService,
    /// Nobody waits for that discriminator.
    NoMatch,
    /// No way to that host.
    NotReachable,
    /// Not offered.
    NotSupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parameter(why) | Self::Resource(why) | Self::State(why) => why,
            Self::Timeout => "the time is over; allow more, or look whether the peer still runs",
            Self::Reject => "the peer rejected the connection",
            Self::Reliability => "both ends need one and the same reliability level",
            Self::TransferSize => "both ends need the same maximum transfer size, from 1 to 1,048,576 bytes",
            Self::Qos => "there is only the quality of service 0",
            Self::Tag => "no such protection tag; create it first",
            Self::RdmaRead => "RDMA reads need a reliable level; choose delivery or reception",
            Self::NameService => "the name service has no such name; start it, or name another host",
            Self::NoMatch => "nobody waits for that discriminator now; ask again",
            Self::NotReachable => "no way leads to that host; look at its address and the routes",
            Self::NotSupported => "this provider does not offer that",
        })
    }
}

impl std::error::Error for Error {}

/// How a descriptor ended: the bits of `Status` in VIPL. Without any error bit it succeeded.
///
/// # Example
///
/// ```
/// use cci_via::Status;
///
/// let flushed = Status::DONE | Status::FLUSHED;
/// assert!(flushed.has(Status::FLUSHED) && flushed.is_error());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(pub(crate) u32);

impl Status {
    /// The descriptor has completed.
    pub const DONE: Self = Self(1);
    /// The descriptor is malformed.
    pub const FORMAT: Self = Self(2);
    /// Local memory: no such handle, another tag, or outside.
    pub const PROTECTION: Self = Self(4);
    /// Longer than the maximum, or than the receive.
    pub const LENGTH: Self = Self(8);
    /// A part of the message has arrived, and the rest never will.
    pub const PARTIAL: Self = Self(0x10);
    /// It was not worked on: the VI was disconnected, or broke before.
    pub const FLUSHED: Self = Self(0x20);
    /// The connection broke while it was worked on.
    pub const TRANSPORT: Self = Self(0x40);
    /// The target refused handle, tag, right or range.
    pub const RDMA_PROTECTION: Self = Self(0x80);
    /// The target's receive was missing, too short, or refused.
    pub const REMOTE_DESCRIPTOR: Self = Self(0x100);
    /// All error bits.
    pub const ERRORS: Self = Self(0x1FE);
    /// What it was: a receive. A send has no bit.
    pub const OP_RECEIVE: Self = Self(0x1_0000);
    /// What it was: an RDMA write.
    pub const OP_WRITE: Self = Self(0x2_0000);
    /// What it was: a receive that the immediate data of a peer's RDMA write took.
    pub const OP_REMOTE_WRITE: Self = Self(0x3_0000);
    /// What it was: an RDMA read.
    pub const OP_READ: Self = Self(0x4_0000);
    /// Immediate data came with it.
    pub const IMMEDIATE: Self = Self(0x8_0000);

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether it has any of these bits.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether it has an error bit.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.has(Self::ERRORS)
    }
}

impl std::ops::BitOr for Status {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What went wrong outside of any call: reported once, by [`crate::Nic::fault`].
///
/// # Example
///
/// ```
/// use cci_via::FaultCode;
///
/// assert_eq!(FaultCode::ConnectionLost as u32, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the codes of VIPL")]
pub enum FaultCode {
    /// A descriptor could not be read: never here, as the call that posts returns why.
    PostDescriptor = 0,
    /// The connection broke.
    ConnectionLost = 1,
    /// A message found no receive.
    ReceiveQueueEmpty = 2,
    /// A completion queue was full: the entry is lost, the descriptor is not.
    Overrun = 3,
    /// A peer's RDMA write was refused.
    WriteProtection = 4,
    /// Data of an RDMA write were damaged: never here.
    WriteData = 5,
    /// A peer's RDMA write ended early: never here.
    WriteAbort = 6,
    /// A peer's RDMA read was refused.
    ReadProtection = 7,
    /// A completed descriptor lies in memory that is registered no more.
    CompletionProtection = 8,
    /// An RDMA operation was lost: never here.
    RdmaTransport = 9,
    /// The NIC has failed: close it.
    Catastrophic = 10,
}

/// A fault, and what it concerns.
///
/// # Example
///
/// ```
/// fn broken(fault: &cci_via::Fault) -> bool {
///     fault.vi.is_some() && fault.code == cci_via::FaultCode::ConnectionLost
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What went wrong.
    pub code: FaultCode,
    /// The number of the VI.
    pub vi: Option<u32>,
    /// The number of the completion queue.
    pub queue: Option<u32>,
}
