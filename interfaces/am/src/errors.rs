//! What can be refused, and how messages come back.

use std::error::Error;
use std::fmt;

/// Why a request was refused: nothing was sent, and nothing follows.
///
/// # Example
///
/// ```
/// let text = cci_am::RequestError::WouldBlock.to_string();
/// assert_eq!(text, "no credit or no room now; poll and try again");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// More than 16 arguments.
    TooManyArguments,
    /// The payload is longer than the limit.
    TooLong,
    /// The peer is not mapped any more.
    NotMapped,
    /// An immediate request would have to poll.
    WouldBlock,
    /// The range does not lie in this endpoint's own segment.
    BadRange,
    /// The endpoint cannot be used here: it was inherited by a fork.
    Unusable,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyArguments => "more than 16 arguments; send the others as payload",
            Self::TooLong => "the payload is longer than the limit; cut it, or send it into the segment",
            Self::NotMapped => "the peer is not mapped any more; map it again",
            Self::WouldBlock => "no credit or no room now; poll and try again",
            Self::BadRange => "the range is empty or not within this endpoint's segment; set a longer segment",
            Self::Unusable => "the endpoint belongs to the process that opened it; open another one",
        })
    }
}

impl Error for RequestError {}

/// Why a reply was refused: nothing was sent, and the request ends without a reply.
///
/// # Example
///
/// ```
/// assert_ne!(cci_am::ReplyError::TooLong, cci_am::ReplyError::NoSegment);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyError {
    /// More than 16 arguments.
    TooManyArguments,
    /// The payload is longer than the limit.
    TooLong,
    /// The requester has no segment, or none as long as this.
    NoSegment,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyArguments => "more than 16 arguments; send the others as payload",
            Self::TooLong => "the reply is longer than the limit; raise `longest_reply`",
            Self::NoSegment => "the bytes do not lie within a segment of the requester; it has to set a longer one",
        })
    }
}

impl Error for ReplyError {}

/// Why a peer was not mapped.
///
/// # Example
///
/// ```
/// let error = cci_am::MapError::Refused("the URI is malformed".to_owned());
/// assert_eq!(error.to_string(), "cannot map the peer: the URI is malformed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// The layer below refused, with this sentence.
    Refused(String),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Refused(why) = self;
        write!(f, "cannot map the peer: {why}")
    }
}

impl Error for MapError {}

/// Why a request came back: the status that handler 0 gets in C, with the numbers of AM-II.
///
/// A request that comes back [`Status::Unreachable`] may have run its handler. No other one has.
///
/// # Example
///
/// ```
/// assert_eq!(cci_am::Status::Unreachable as u8, 9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Status {
    /// The target does not accept the tag.
    BadTag = 3,
    /// The target has no request handler of this number.
    BadHandler = 4,
    /// The target has no segment, or has another one by now.
    BadOffset = 5,
    /// The bytes do not lie within the target's segment.
    BadLength = 6,
    /// No credit, or no room, came within the send timeout: the target lends its credits to others.
    Congested = 8,
    /// The target is gone, stopped, or was never there.
    Unreachable = 9,
    /// The request has run, but its reply found no handler here, or no segment as it was.
    ReplyRejected = 10,
}

impl Status {
    /// The status with this number, of those that a target sends.
    pub(crate) fn of(number: u8) -> Option<Self> {
        [Self::BadTag, Self::BadHandler, Self::BadOffset, Self::BadLength, Self::ReplyRejected]
            .into_iter()
            .find(|status| *status as u8 == number)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadTag => "the target does not accept the tag; map it with its tag",
            Self::BadHandler => "the target has no request handler of this number; register it there",
            Self::BadOffset => "the target has no such segment; it has to set one first",
            Self::BadLength => "the bytes do not lie within the target's segment; send fewer",
            Self::Congested => "the target had no credit until the send timeout; raise its `credits`",
            Self::Unreachable => "the target is gone, stopped, or was never there; see that it runs and polls",
            Self::ReplyRejected => "the reply found no handler or no segment; register the reply's handler",
        })
    }
}
