//! Status codes as C programs see them.

use core::fmt;

/// The values of `cci_status_t`; from `Inval` on they are the errno values of Linux.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::Status;
///
/// assert_eq!(Status::from_u32(Status::NoBufs as u32), Some(Status::NoBufs));
/// assert_eq!(Status::NoBufs as u32, 105);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[allow(missing_docs, reason = "each variant's sentence is in `sentence`")]
pub enum Status {
    Success = 0,
    Error = 1,
    Disconnected = 2,
    Rnr = 3,
    DeviceDead = 4,
    RmaHandle = 5,
    RmaOp = 6,
    NotImplemented = 7,
    NotFound = 8,
    Again = 11,
    NoMem = 12,
    Busy = 16,
    NoDev = 19,
    Inval = 22,
    Range = 34,
    NoMsg = 42,
    MsgSize = 90,
    AddrNotAvail = 99,
    NetDown = 100,
    NoBufs = 105,
    TimedOut = 110,
    ConnRefused = 111,
}

impl Status {
    /// Every status, in the order of their values.
    pub const ALL: [Self; 22] = [
        Self::Success,
        Self::Error,
        Self::Disconnected,
        Self::Rnr,
        Self::DeviceDead,
        Self::RmaHandle,
        Self::RmaOp,
        Self::NotImplemented,
        Self::NotFound,
        Self::Again,
        Self::NoMem,
        Self::Busy,
        Self::NoDev,
        Self::Inval,
        Self::Range,
        Self::NoMsg,
        Self::MsgSize,
        Self::AddrNotAvail,
        Self::NetDown,
        Self::NoBufs,
        Self::TimedOut,
        Self::ConnRefused,
    ];

    /// The status with this number, if there is one.
    #[must_use]
    pub fn from_u32(value: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u32 == value)
    }

    /// Name and sentence, NUL-terminated, as `cci_strerror` gives it.
    #[must_use]
    pub const fn c_sentence(self) -> &'static core::ffi::CStr {
        match self {
            Self::Success => c"CCI_SUCCESS: the operation succeeded",
            Self::Error => c"CCI_ERROR: the library is not initialized, or failed inside",
            Self::Disconnected => c"CCI_ERR_DISCONNECTED: the connection is closed, or its peer is gone",
            Self::Rnr => c"CCI_ERR_RNR: the receiver had no room until the send timeout",
            Self::DeviceDead => {
                c"CCI_ERR_DEVICE_DEAD: this handle is not usable here; after fork, call cci_init again in the child"
            }
            Self::RmaHandle => {
                c"CCI_ERR_RMA_HANDLE: the RMA handle is unknown, stale, out of range, or lacks the right"
            }
            Self::RmaOp => c"CCI_ERR_RMA_OP: the RMA operation failed while copying",
            Self::NotImplemented => c"CCI_ERR_NOT_IMPLEMENTED: this transport does not offer that",
            Self::NotFound => c"CCI_ERR_NOT_FOUND: no such object",
            Self::Again => c"CCI_EAGAIN: nothing to report now",
            Self::NoMem => c"CCI_ENOMEM: out of memory",
            Self::Busy => c"CCI_EBUSY: in use now; try again",
            Self::NoDev => c"CCI_ENODEV: no such device, or it is down",
            Self::Inval => c"CCI_EINVAL: an argument is not valid",
            Self::Range => c"CCI_ERANGE: a value is out of range",
            Self::NoMsg => c"CCI_ENOMSG: no message",
            Self::MsgSize => c"CCI_EMSGSIZE: longer than the connection or its receiver allows",
            Self::AddrNotAvail => c"CCI_EADDRNOTAVAIL: the address is in use or not on this host",
            Self::NetDown => c"CCI_ENETDOWN: the network is down",
            Self::NoBufs => c"CCI_ENOBUFS: out of buffers; reap and return events",
            Self::TimedOut => c"CCI_ETIMEDOUT: no answer within the timeout",
            Self::ConnRefused => c"CCI_ECONNREFUSED: rejected, or nobody listens there",
        }
    }

    /// Name and sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        self.c_sentence().to_str().unwrap_or("")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}
