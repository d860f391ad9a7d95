//! Why a call was refused, and how a request has ended.

cci_ground::codes! {
    /// Why a call was refused, with the numbers of MX. Nothing has happened then.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_mx::Error;
    ///
    /// assert_eq!(Error::BadRequest.code(), 13);
    /// assert_eq!(Error::BadRequest.to_string(), "no such request; was it tested with success, cancelled or forgotten?");
    /// ```
    Error: u32:
    Failure = 2 => "the library has failed inside; report it as a bug",
    NoDevice = 5 => "there is no device for an endpoint; look at the output of cci info",
    NoPermission = 7 => "the device cannot be opened by this user; look at the output of cci doctor",
    BoardUnknown = 8 => "no such board; name board 0",
    BadEndpoint = 9 => "no such endpoint; was it closed?",
    BadSegmentList = 10 => "the list of segments is null; pass its address, or count 0",
    BadSegment = 11 => "a segment has a length and no memory; pass its address, or length 0",
    SegmentCount = 12 => "more than 256 segments; join some",
    BadRequest = 13 => "no such request; was it tested with success, cancelled or forgotten?",
    BadMask = 14 => "match bits lie outside of the mask; clear them",
    NoResources = 15 => "no room for another request; finish some",
    Busy = 20 => "another endpoint of this host has the id; name another one, or MX_ANY_ENDPOINT",
    BadInfoKey = 21 => "no such information; name a key that the header defines",
    BadInfoValue = 22 => "the argument does not fit the key; pass the number of the board",
    BadParameterList = 24 => "the list of parameters is null; pass its address, or count 0",
    BadParameterName = 25 => "no such parameter; name a key that the header defines",
    BadParameterValue = 26 => "a parameter is out of range; context ids have 1 to 16 bits inside of 64",
    HostnameArguments = 27 => "the name of the host is empty, too long, or of an unknown form; write HOST or HOST:BOARD",
    HostNotFound = 28 => "no host has this name; correct it, or enter it into the hosts file",
    Timeout = 30 => "the time is over; wait longer, or see that the peer runs",
    BadEndpointId = 32 => "no endpoint has this id; name one up to 2047",
    ConnectionFailed = 33 => "the peer could not be reached; see that its endpoint is open",
    BadKey = 34 => "the peer's endpoint has another key; pass the key that it was opened with",
    BadInfoLength = 35 => "the room for the information has another length; pass the length of the key's type",
    NicNotFound = 36 => "no NIC of this id can be reached; is it of another host, while the device is of this one?",
    NicDead = 39 => "the device of the endpoint has failed; close the endpoint",
    CancelNotSupported = 40 => "a send that has left cannot be cancelled; set a time-out instead",
    CloseInHandler = 41 => "the unexpected handler closes its endpoint; close it after the handler has returned",
    BadContextMask = 42 => "the mask leaves out bits of the context id; compare all of them",
}

cci_ground::codes! {
    /// How a request has ended, with the numbers of MX.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_mx::Code;
    ///
    /// assert_eq!((Code::Truncated.code(), Code::Truncated.to_string()), (5, "message truncated".into()));
    /// ```
    Code: u32:
    /// Done.
    Success = 0 => "success",
    /// The time is over.
    Timeout = 4 => "timed out",
    /// The receive was shorter than the message.
    Truncated = 5 => "message truncated",
    /// No endpoint can have the address.
    EndpointUnknown = 7 => "endpoint unknown",
    /// The endpoint has closed, or its process has ended.
    EndpointClosed = 8 => "endpoint closed",
    /// The endpoint does not answer.
    EndpointUnreachable = 9 => "endpoint unreachable",
    BadSession = 10 => "bad session: another endpoint has the address now",
    /// The endpoint has another key.
    BadKey = 11 => "bad connection key",
    Aborted = 14 => "aborted: the memory of the sender could not be read",
    /// There was no memory.
    NoResources = 16 => "no resources",
}

impl Code {
    /// How a request ends whose link, or whose read, has failed.
    pub(crate) fn of(why: cci::Failure) -> Self {
        match why {
            cci::Failure::Disconnected => Self::EndpointClosed,
            cci::Failure::TimedOut => Self::EndpointUnreachable,
            _ => Self::Aborted,
        }
    }
}
