//! Codes of libfabric.

use std::fmt;

/// Why a call, or an operation, has failed. The number is that of libfabric (`fi_errno(3)`),
/// positive: `Code as i32`.
///
/// # Example
///
/// ```
/// use cci_fabric::Code;
///
/// assert_eq!(Code::Available as i32, 259);
/// assert_eq!(Code::of(265), Some(Code::Truncated));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[expect(clippy::exhaustive_enums, reason = "as libfabric has them")]
pub enum Code {
    /// There is no such operation.
    NoEntry = 2,
    /// Nothing now; try again.
    Again = 11,
    /// There is no memory.
    NoMemory = 12,
    /// The rights do not cover it.
    Access = 13,
    /// Something is open still.
    Busy = 16,
    /// There is no device.
    NoDevice = 19,
    /// A wrong argument.
    Invalid = 22,
    /// There is no descriptor left.
    TooManyFiles = 24,
    /// It is not offered.
    NoSystemCall = 38,
    /// No message matches.
    NoMessage = 42,
    /// There is nothing like this.
    NoData = 61,
    /// The message is too long.
    MessageSize = 90,
    /// There is no such option.
    NoSuchOption = 92,
    /// Not in this process, or not in this state.
    NotSupported = 95,
    /// Another endpoint has the address.
    AddressInUse = 98,
    /// There is no such address here.
    AddressNotAvailable = 99,
    /// The peer, or the link to it, is no more.
    ConnectionReset = 104,
    /// The time is over.
    TimedOut = 110,
    /// Nobody is there.
    HostUnreachable = 113,
    /// It was cancelled.
    Canceled = 125,
    /// The peer has no such key.
    KeyRejected = 129,
    /// Anything else.
    Other = 256,
    /// The buffer is too short.
    TooSmall = 257,
    /// The object is not in the state for it.
    BadState = 258,
    /// A failure waits to be read.
    Available = 259,
    /// Flags that do not go together.
    BadFlags = 260,
    /// No event queue is bound.
    NoEventQueue = 261,
    /// No completion queue is bound.
    NoQueue = 263,
    /// The message was longer than the receive.
    Truncated = 265,
    /// The key is in use, or there is none.
    NoKey = 266,
    /// No address vector is bound.
    NoVector = 267,
    /// The queue has overrun.
    Overrun = 268,
}

impl Code {
    /// The text of the code, as a sentence says it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoEntry => "there is no such operation",
            Self::Again => "nothing now; try again",
            Self::NoMemory => "there is no memory",
            Self::Access => "the rights of the memory do not cover it",
            Self::Busy => "something of it is open; close that first",
            Self::NoDevice => "there is no device",
            Self::Invalid => "a wrong argument",
            Self::TooManyFiles => "no descriptor is left; raise the limit (ulimit -n)",
            Self::NoSystemCall => "this provider does not offer it",
            Self::NoMessage => "no message matches",
            Self::NoData => "there is nothing like this",
            Self::MessageSize => "the message is too long",
            Self::NoSuchOption => "there is no such option",
            Self::NotSupported => "it is not to be had in this process",
            Self::AddressInUse => "another endpoint has the address",
            Self::AddressNotAvailable => "there is no such address here",
            Self::ConnectionReset => "the peer has ended, or the link to it has",
            Self::TimedOut => "the time is over",
            Self::HostUnreachable => "nobody is at the address; has the peer ended, or is a firewall between?",
            Self::Canceled => "it was cancelled",
            Self::KeyRejected => "the peer has no memory of this key",
            Self::Other => "the endpoint has failed",
            Self::TooSmall => "the buffer is too short",
            Self::BadState => "the object is not in the state for it",
            Self::Available => "a failure waits to be read",
            Self::BadFlags => "flags that do not go together",
            Self::NoEventQueue => "no event queue is bound",
            Self::NoQueue => "no completion queue is bound",
            Self::Truncated => "the message was longer than its receive",
            Self::NoKey => "the key is in use, or there is none",
            Self::NoVector => "no address vector is bound",
            Self::Overrun => "the queue has overrun",
        }
    }

    /// The code of this number, if the engine uses it.
    #[must_use]
    pub fn of(number: i32) -> Option<Self> {
        ALL.into_iter().find(|code| *code as i32 == number)
    }

    /// Why an endpoint of CCI could not be opened.
    pub(crate) fn of_open(why: &cci::OpenError) -> Self {
        match why.status {
            cci::Status::AddrNotAvail => Self::AddressInUse,
            cci::Status::NoDev => Self::NoDevice,
            cci::Status::NoMem | cci::Status::NoBufs => Self::NoMemory,
            cci::Status::Inval => Self::Invalid,
            _ => Self::Other,
        }
    }
}

const ALL: [Code; 32] = [
    Code::NoEntry,
    Code::Again,
    Code::NoMemory,
    Code::Access,
    Code::Busy,
    Code::NoDevice,
    Code::Invalid,
    Code::TooManyFiles,
    Code::NoSystemCall,
    Code::NoMessage,
    Code::NoData,
    Code::MessageSize,
    Code::NoSuchOption,
    Code::NotSupported,
    Code::AddressInUse,
    Code::AddressNotAvailable,
    Code::ConnectionReset,
    Code::TimedOut,
    Code::HostUnreachable,
    Code::Canceled,
    Code::KeyRejected,
    Code::Other,
    Code::TooSmall,
    Code::BadState,
    Code::Available,
    Code::BadFlags,
    Code::NoEventQueue,
    Code::NoQueue,
    Code::Truncated,
    Code::NoKey,
    Code::NoVector,
    Code::Overrun,
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Code {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_names_its_code() {
        for code in ALL {
            assert_eq!(Code::of(code as i32), Some(code));
            assert!(!code.to_string().is_empty());
        }
        assert_eq!(Code::of(0), None);
    }
}
