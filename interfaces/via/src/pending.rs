//! A connect step by step, from its begin to its end.

use crate::errors::Error;
use crate::question::Question;
use crate::rendezvous::{Address, Listener};
use std::time::Instant;

pub(crate) struct PeerConnect {
    pub(crate) local: Address,
    pub(crate) remote: Address,
    pub(crate) deadline: Option<Instant>,
    pub(crate) role: Role,
    /// In the peer-to-peer model; otherwise a host where nobody listens ends it.
    pub(crate) is_peer: bool,
    /// Why it ends once the time is over.
    pub(crate) late: Error,
}

pub(crate) enum Role {
    Listens(Listener),
    Asks { question: Option<Question>, not_before: Instant },
    Connects,
}
