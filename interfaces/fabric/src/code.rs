//! Codes of libfabric.

use cci_fabric_sys::*;
use std::fmt;

/// Declares the codes: what each is for, its number in libfabric, and its text.
macro_rules! codes {
    (
        $(#[$of_all:meta])*
        pub enum $all:ident { $( #[doc = $what:literal] $code:ident = $number:ident: $text:literal, )* }
    ) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[expect(clippy::exhaustive_enums, reason = "as libfabric has them")]
        pub enum $all { $( #[doc = $what] $code = $number, )* }

        const ALL: &[$all] = &[$($all::$code,)*];

        impl $all {
            /// The text of the code, as a sentence says it.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$code => $text,)* }
            }
        }
    };
}

codes! {
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
    pub enum Code {
        /// There is no such operation.
        NoEntry = FI_ENOENT: "there is no such operation",
        /// Nothing now; try again.
        Again = FI_EAGAIN: "nothing now; try again",
        /// There is no memory.
        NoMemory = FI_ENOMEM: "there is no memory",
        /// The rights do not cover it.
        Access = FI_EACCES: "the rights of the memory do not cover it",
        /// Something is open still.
        Busy = FI_EBUSY: "something of it is open; close that first",
        /// There is no device.
        NoDevice = FI_ENODEV: "there is no device",
        /// A wrong argument.
        Invalid = FI_EINVAL: "a wrong argument",
        /// There is no descriptor left.
        TooManyFiles = FI_EMFILE: "no descriptor is left; raise the limit (ulimit -n)",
        /// It is not offered.
        NoSystemCall = FI_ENOSYS: "this provider does not offer it",
        /// No message matches.
        NoMessage = FI_ENOMSG: "no message matches",
        /// There is nothing like this.
        NoData = FI_ENODATA: "there is nothing like this",
        /// The message is too long.
        MessageSize = FI_EMSGSIZE: "the message is too long",
        /// There is no such option.
        NoSuchOption = FI_ENOPROTOOPT: "there is no such option",
        /// Not in this process, or not in this state.
        NotSupported = FI_EOPNOTSUPP: "it is not to be had in this process",
        /// Another endpoint has the address.
        AddressInUse = FI_EADDRINUSE: "another endpoint has the address",
        /// There is no such address here.
        AddressNotAvailable = FI_EADDRNOTAVAIL: "there is no such address here",
        /// The peer, or the link to it, is no more.
        ConnectionReset = FI_ECONNRESET: "the peer has ended, or the link to it has",
        /// The time is over.
        TimedOut = FI_ETIMEDOUT: "the time is over",
        /// Nobody is there.
        HostUnreachable = FI_EHOSTUNREACH: "nobody is at the address; has the peer ended, or is a firewall between?",
        /// It was cancelled.
        Canceled = FI_ECANCELED: "it was cancelled",
        /// The peer has no such key.
        KeyRejected = FI_EKEYREJECTED: "the peer has no memory of this key",
        /// Anything else.
        Other = FI_EOTHER: "the endpoint has failed",
        /// The buffer is too short.
        TooSmall = FI_ETOOSMALL: "the buffer is too short",
        /// The object is not in the state for it.
        BadState = FI_EOPBADSTATE: "the object is not in the state for it",
        /// A failure waits to be read.
        Available = FI_EAVAIL: "a failure waits to be read",
        /// Flags that do not go together.
        BadFlags = FI_EBADFLAGS: "flags that do not go together",
        /// No event queue is bound.
        NoEventQueue = FI_ENOEQ: "no event queue is bound",
        /// No completion queue is bound.
        NoQueue = FI_ENOCQ: "no completion queue is bound",
        /// The message was longer than the receive.
        Truncated = FI_ETRUNC: "the message was longer than its receive",
        /// The key is in use, or there is none.
        NoKey = FI_ENOKEY: "the key is in use, or there is none",
        /// No address vector is bound.
        NoVector = FI_ENOAV: "no address vector is bound",
        /// The queue has overrun.
        Overrun = FI_EOVERRUN: "the queue has overrun",
    }
}

impl Code {
    /// The code of this number, if the engine uses it.
    #[must_use]
    pub fn of(number: i32) -> Option<Self> {
        ALL.iter().copied().find(|code| *code as i32 == number)
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
        for code in ALL.iter().copied() {
            assert_eq!(Code::of(code as i32), Some(code));
            assert!(!code.to_string().is_empty());
        }
        assert_eq!(Code::of(0), None);
    }
}
