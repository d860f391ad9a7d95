//! Why a call was refused.

use std::fmt;

cci_ground::codes! {
    /// Why a call was refused, with the numbers of SISCI. Nothing has happened then.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_sci::Error;
    ///
    /// assert_eq!(Error::NoSuchSegment.code(), 0x4000_090c);
    /// assert_eq!(Error::from_code(0x4000_090c), Some(Error::NoSuchSegment));
    /// ```
    Error: u32:
    Busy = 0x4000_0900 => "the object is in use; end its windows, sequences and connections first",
    NoSpace = 0x4000_0904 => "no memory or no descriptor is left; free some, or ask for less",
    NotImplemented = 0x4000_0907 => "this is not implemented, or this host is not open to other hosts; set CCI_LISTEN to network, or name a device with an address",
    Timeout = 0x4000_090a => "the time is over; wait longer, or see that the other program runs",
    OutOfRange = 0x4000_090b => "the range lies outside of the object; pass a smaller offset or length",
    NoSuchSegment = 0x4000_090c => "the node has no such segment or interrupt, or it is not available; connect again once its owner has made it available",
    IllegalNode = 0x4000_090d => "no node can have this number; name one from 1 to 65535",
    ConnectionRefused = 0x4000_090e => "the owner has answered something else than a connection; see that both sides have this release",
    SegmentNotConnected = 0x4000_090f => "the connection to the segment is no more; connect again",
    OffsetAlignment = 0x4000_0911 => "the offset is not a multiple of the size of the value; align it, or copy bytes",
    IllegalParameter = 0x4000_0912 => "an argument is out of range; a segment has 1 byte at least, a queue 1 entry",
    MaxEntries = 0x4000_0913 => "the queue has as many transfers as it was made for; post it, or make a longer one",
    SegmentNotPrepared = 0x4000_0914 => "the segment is not prepared; prepare it first",
    IllegalOperation = 0x4000_0916 => "the object is in another state, or a callback waits; reset the queue, or wait on a thread of the program",
    SegmentIdUsed = 0x4000_0918 => "the node has another segment or interrupt of this number; name another one",
    System = 0x4000_0919 => "the system refuses the call; look at the output of cci doctor",
    Cancelled = 0x4000_091a => "the object was removed while a call waited for it",
    NotConnected = 0x4000_091b => "the owner of the interrupt is gone; connect again",
    Overflow = 0x4000_091f => "the queue of the interrupt is full; trigger again once its owner has taken some",
    NotInitialized = 0x4000_0920 => "the host is closed, or this is a forked child; open one here",
    Access = 0x4000_0921 => "the object may not be used so: it is mapped for reading, or of another user",
    NoSuchNode = 0x4000_0a00 => "no node has this number; enter it into the file that SCI_NODES names",
    NodeNotResponding = 0x4000_0a02 => "the process that owns the object cannot be reached; see that it runs",
}

/// Why a host could not be opened.
///
/// # Example
///
/// ```
/// use cci_sci::Nodes;
///
/// let why = Nodes::parse("4 localhost\nfour localhost\n").unwrap_err();
/// assert_eq!(why.to_string(), "line 2 of the node table, 'four localhost', is no node; write NODE HOST or NODE HOST:PORT, with NODE from 1 to 65535");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum NotOpened {
    /// The node table does not fit.
    Nodes(String),
    /// The memory that `SCI_MEMORY` names cannot be shared.
    Memory(String),
    /// There is no endpoint of CCI.
    Endpoint(cci::OpenError),
    /// The system gives no descriptor, thread or random numbers.
    System(std::io::Error),
}

impl NotOpened {
    /// Returns the code of SISCI.
    #[must_use]
    pub fn code(&self) -> Error {
        match self {
            Self::Nodes(_) => Error::NoSuchNode,
            Self::Memory(_) | Self::Endpoint(_) | Self::System(_) => Error::System,
        }
    }
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(why) | Self::Memory(why) => f.write_str(why),
            Self::Endpoint(why) => why.fmt(f),
            Self::System(why) => write!(f, "the system has nothing left for a host: {why}"),
        }
    }
}

impl std::error::Error for NotOpened {}

impl From<cci::OpenError> for NotOpened {
    fn from(why: cci::OpenError) -> Self {
        Self::Endpoint(why)
    }
}

impl From<rustix::io::Errno> for NotOpened {
    fn from(why: rustix::io::Errno) -> Self {
        Self::System(why.into())
    }
}
