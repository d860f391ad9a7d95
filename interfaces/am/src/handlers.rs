//! The table of handlers.

use crate::message::{Reply, Request, Returned};
use std::fmt;

/// The handlers of an endpoint: plain functions over the state that the endpoint owns, up to 256
/// for requests, as many for replies, and one for requests that come back.
///
/// A handler gets the state and its message, and nothing else. So it cannot send a request, poll,
/// or reply to a reply.
///
/// # Example
///
/// ```
/// use cci_am::{Handlers, Reply, Request};
///
/// const PING: u8 = 1;
/// const PONG: u8 = 2;
///
/// fn ping(pings: &mut u32, request: Request<'_>) {
///     *pings += 1;
///     let arguments = request.arguments();
///     request.reply(PONG, arguments).expect("as many arguments as came");
/// }
///
/// fn pong(pongs: &mut u32, _: Reply<'_>) {
///     *pongs += 1;
/// }
///
/// const HANDLERS: Handlers<u32> = Handlers::new().request(PING, ping).reply(PONG, pong);
/// # let _ = HANDLERS;
/// ```
pub struct Handlers<S> {
    requests: [Option<OfRequests<S>>; 256],
    replies: [Option<OfReplies<S>>; 256],
    returned: Option<fn(&mut S, Returned<'_>)>,
}

type OfRequests<S> = fn(&mut S, Request<'_>);
type OfReplies<S> = fn(&mut S, Reply<'_>);

impl<S> Handlers<S> {
    /// No handler at all.
    #[must_use]
    pub const fn new() -> Self {
        Self { requests: [None; 256], replies: [None; 256], returned: None }
    }

    /// Sets the handler of requests with this number.
    #[must_use]
    pub const fn request(mut self, at: u8, handler: fn(&mut S, Request<'_>)) -> Self {
        self.requests[at as usize] = Some(handler);
        self
    }

    /// Sets the handler of replies with this number, which gets of this endpoint have too.
    #[must_use]
    pub const fn reply(mut self, at: u8, handler: fn(&mut S, Reply<'_>)) -> Self {
        self.replies[at as usize] = Some(handler);
        self
    }

    /// Sets the handler of requests of this endpoint that come back.
    #[must_use]
    pub const fn returned(mut self, handler: fn(&mut S, Returned<'_>)) -> Self {
        self.returned = Some(handler);
        self
    }

    /// Sets the handler of requests with this number, or that there is none.
    pub fn set_request(&mut self, at: u8, handler: Option<fn(&mut S, Request<'_>)>) {
        self.requests[usize::from(at)] = handler;
    }

    /// Sets the handler of replies with this number, or that there is none.
    pub fn set_reply(&mut self, at: u8, handler: Option<fn(&mut S, Reply<'_>)>) {
        self.replies[usize::from(at)] = handler;
    }

    #[inline]
    pub(crate) fn of_request(&self, at: u8) -> Option<fn(&mut S, Request<'_>)> {
        self.requests[usize::from(at)]
    }

    #[inline]
    pub(crate) fn of_reply(&self, at: u8) -> Option<fn(&mut S, Reply<'_>)> {
        self.replies[usize::from(at)]
    }

    pub(crate) fn of_returned(&self) -> Option<fn(&mut S, Returned<'_>)> {
        self.returned
    }
}

impl<S> Default for Handlers<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Handlers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requests, replies) = (self.requests.iter().flatten().count(), self.replies.iter().flatten().count());
        write!(f, "Handlers({requests} of requests, {replies} of replies)")
    }
}
