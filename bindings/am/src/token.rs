//! What handlers get: a token, which is valid until they return.

use crate::answer::Refusal;
use crate::dialect::Storage;
use crate::endpoint::Endpoint;
use cci_am::{Peer, Request, Sort};
use std::cell::{Cell, RefCell};

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

/// Which handler has the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Nobody,
    Request,
    Reply,
    /// Handler 0.
    Returned,
}

const MARK: u32 = 0x616d_544f;

/// A token: a part of its endpoint's cell. It begins with the arguments, as handler 0 has it.
#[repr(C)]
pub(crate) struct Token {
    pub(crate) arguments: [Cell<u32>; 16],
    mark: Cell<u32>,
    pub(crate) of: Cell<Of>,
    pub(crate) endpoint: Cell<Option<&'static Endpoint>>,
    /// The request, until it is replied to. It lives as long as its handler.
    pub(crate) request: RefCell<Option<Request<'static>>>,
    pub(crate) handler: Cell<u8>,
    pub(crate) sort: Cell<Sort>,
    pub(crate) tag: Cell<u64>,
    /// What the requester introduced itself with; it lives as long as the handler runs.
    pub(crate) from: Cell<Option<&'static str>>,
    /// The target of what a reply or a return belongs to.
    pub(crate) peer: Cell<Option<Peer>>,
    pub(crate) name: Storage,
}

/// A message whose handler is to run.
pub(crate) struct Message<'m> {
    pub(crate) of: Of,
    pub(crate) handler: u8,
    pub(crate) sort: Sort,
    pub(crate) arguments: &'m [u32],
    pub(crate) peer: Option<Peer>,
}

impl Token {
    pub(crate) fn new() -> Self {
        Self {
            arguments: [const { Cell::new(0) }; 16],
            mark: Cell::new(0),
            of: Cell::new(Of::Nobody),
            endpoint: Cell::new(None),
            request: RefCell::new(None),
            handler: Cell::new(0),
            sort: Cell::new(Sort::Short),
            tag: Cell::new(0),
            from: Cell::new(None),
            peer: Cell::new(None),
            name: Storage::new(),
        }
    }

    /// Makes the token valid until the guard is dropped.
    pub(crate) fn begin(&'static self, endpoint: &'static Endpoint, message: &Message<'_>) -> Valid {
        for (place, argument) in self.arguments.iter().zip(message.arguments) {
            place.set(*argument);
        }
        self.endpoint.set(Some(endpoint));
        self.handler.set(message.handler);
        self.sort.set(message.sort);
        self.peer.set(message.peer);
        self.of.set(message.of);
        self.mark.set(MARK);
        Valid(self)
    }

    /// Lends the request to the handler.
    pub(crate) fn lend(&self, request: Request<'_>) {
        self.tag.set(request.tag());
        // SAFETY: `Valid` takes both back before the handler's caller, which has them, goes on.
        let (from, request) = unsafe {
            (
                std::mem::transmute::<&str, &'static str>(request.from()),
                std::mem::transmute::<Request<'_>, Request<'static>>(request),
            )
        };
        self.from.set(Some(from));
        self.request.replace(Some(request));
    }
}

/// A token that is valid.
pub(crate) struct Valid(&'static Token);

impl Drop for Valid {
    fn drop(&mut self) {
        self.0.mark.set(0);
        self.0.of.set(Of::Nobody);
        self.0.from.set(None);
        self.0.request.replace(None);
    }
}

/// The token that a program names, whose handler runs.
///
/// # Safety
///
/// NULL, or a token of this library.
pub(crate) unsafe fn token(pointer: *const Token) -> Result<&'static Token, Refusal> {
    const GONE: Refusal = Refusal::BadArg("that is no token, or its handler has returned");
    // SAFETY: a part of a cell that is never unmapped.
    let token = unsafe { pointer.as_ref() }.ok_or(GONE)?;
    if token.mark.get() == MARK && token.of.get() != Of::Nobody { Ok(token) } else { Err(GONE) }
}
