//! Why a message comes back.

/// The numbers of AM-II, which the dialects map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    BadArgs = 1,
    BadEntry = 2,
    BadTag = 3,
    BadHandler = 4,
    BadOffset = 5,
    BadLength = 6,
    BadEndpoint = 7,
    Congestion = 8,
    Unreachable = 9,
    ReplyRejected = 10,
}

impl Status {
    pub(crate) fn of(status: cci_am::Status) -> Self {
        use cci_am::Status as Of;
        match status {
            Of::BadTag => Self::BadTag,
            Of::BadHandler => Self::BadHandler,
            Of::BadOffset => Self::BadOffset,
            Of::BadLength => Self::BadLength,
            Of::Congested => Self::Congestion,
            Of::ReplyRejected => Self::ReplyRejected,
            // Also what a later version may add.
            _ => Self::Unreachable,
        }
    }
}
