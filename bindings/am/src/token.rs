//! What handlers get: a token, which is valid until they return.

use crate::endpoint::{Endpoint, Of, Token};
use cci_am::{Peer, Request, Sort};

/// A message whose handler is to run.
pub(crate) struct Message<'m> {
    pub(crate) of: Of,
    pub(crate) handler: u8,
    pub(crate) sort: Sort,
    pub(crate) arguments: &'m [u32],
    pub(crate) peer: Option<Peer>,
}

impl Token {
    /// Makes the token valid until the guard is dropped.
    pub(crate) fn begin(&'static self, endpoint: &'static Endpoint, message: &Message<'_>) -> Valid {
        for (place, argument) in self.arguments.iter().zip(message.arguments) {
            place.set(*argument);
        }
        self.endpoint.set(Some(endpoint));
        self.handler.set(message.handler);
        self.sort.set(message.sort);
        self.peer.set(message.peer);
        self.validate(message.of);
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
        self.0.invalidate();
        self.0.from.set(None);
        self.0.request.replace(None);
    }
}
