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
    /// The library has failed inside.
    Failure = 2 => "the library has failed inside; report it as a bug",
    /// There is no device.
    NoDevice = 5 => "there is no device for an endpoint; look at the output of cci info",
    /// The device cannot be used.
    NoPermission = 7 => "the device cannot be opened by this user; look at the output of cci doctor",
    /// No such board.
    BoardUnknown = 8 => "no such board; name board 0",
    /// No such endpoint, or it is closed.
    BadEndpoint = 9 => "no such endpoint; was it closed?",
    /// The list of segments leads nowhere.
    BadSegmentList = 10 => "the list of segments is null; pass its address, or count 0",
    /// A segment leads nowhere.
    BadSegment = 11 => "a segment has a length and no memory; pass its address, or length 0",
    /// Too many segments.
    SegmentCount = 12 => "more than 256 segments; join some",
    /// No such request.
    BadRequest = 13 => "no such request; was it tested with success, cancelled or forgotten?",
    /// Match bits outside of the mask.
    BadMask = 14 => "match bits lie outside of the mask; clear them",
    /// A table is full.
    NoResources = 15 => "no room for another request; finish some",
    /// The endpoint id is in use.
    Busy = 20 => "another endpoint of this host has the id; name another one, or MX_ANY_ENDPOINT",
    /// No such key of `get_info`.
    BadInfoKey = 21 => "no such information; name a key that the header defines",
    /// The argument of `get_info` does not fit the key.
    BadInfoValue = 22 => "the argument does not fit the key; pass the number of the board",
    /// The list of parameters leads nowhere.
    BadParameterList = 24 => "the list of parameters is null; pass its address, or count 0",
    /// No such parameter.
    BadParameterName = 25 => "no such parameter; name a key that the header defines",
    /// A parameter is out of range.
    BadParameterValue = 26 => "a parameter is out of range; context ids have 1 to 16 bits inside of 64",
    /// The name of the host is not one.
    HostnameArguments = 27 => "the name of the host is empty, too long, or of an unknown form; write HOST or HOST:BOARD",
    /// No host has the name.
    HostNotFound = 28 => "no host has this name; correct it, or enter it into the hosts file",
    /// The time is over.
    Timeout = 30 => "the time is over; wait longer, or see that the peer runs",
    /// The endpoint id is out of range.
    BadEndpointId = 32 => "no endpoint has this id; name one up to 2047",
    /// The peer could not be reached.
    ConnectionFailed = 33 => "the peer could not be reached; see that its endpoint is open",
    /// The peer has another key.
    BadKey = 34 => "the peer's endpoint has another key; pass the key that it was opened with",
    /// The room for the information is too short.
    BadInfoLength = 35 => "the room for the information has another length; pass the length of the key's type",
    /// No such NIC.
    NicNotFound = 36 => "no NIC of this id can be reached; is it of another host, while the device is of this one?",
    /// The device has failed.
    NicDead = 39 => "the device of the endpoint has failed; close the endpoint",
    /// A send that has left cannot be cancelled.
    CancelNotSupported = 40 => "a send that has left cannot be cancelled; set a time-out instead",
    /// The handler closes its endpoint.
    CloseInHandler = 41 => "the unexpected handler closes its endpoint; close it after the handler has returned",
    /// The mask leaves out bits of the context id.
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
    /// Another endpoint has the address now.
    BadSession = 10 => "bad session: another endpoint has the address now",
    /// The endpoint has another key.
    BadKey = 11 => "bad connection key",
    /// The peer's memory could not be read.
    Aborted = 14 => "aborted: the memory of the sender could not be read",
    /// There was no memory.
    NoResources = 16 => "no resources",
}
