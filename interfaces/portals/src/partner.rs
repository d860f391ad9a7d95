//! Another process that this one knows: its link, and what waits for it.

mod links;

use crate::types::ProcessId;
use crate::wire::Answer;
use cci::Connection;
use cci_peers::Peer;
use std::collections::VecDeque;

/// What waits to be sent to a partner.
#[derive(Debug)]
pub(crate) enum Out {
    /// User and job, first of all on a link.
    Ident,
    /// The message of an operation.
    Operation(u64),
    /// Reads of an operation.
    Reads(u64),
    Answer(Answer),
}

#[derive(Debug)]
pub(crate) struct Partner {
    pub(crate) id: ProcessId,
    connection: Option<Connection>,
    /// Counts links.
    link: u32,
    /// User and job, once it has said so on this link.
    pub(crate) identity: Option<(u32, u32)>,
    outbox: VecDeque<Out>,
    /// Its requests that are open here.
    pub(crate) served: u32,
}

impl Partner {
    fn new(id: ProcessId) -> Self {
        let (identity, outbox) = (None, VecDeque::new());
        Self { id, connection: None, link: 0, identity, outbox, served: 0 }
    }

    /// The connection, if a message may go at once: nothing is before it.
    #[inline]
    pub(crate) fn is_free(&self) -> Option<Connection> {
        self.connection.filter(|_| self.outbox.is_empty())
    }
}

/// Partners by the number of the peer.
#[derive(Debug, Default)]
pub(crate) struct Partners(Vec<Option<Partner>>);

impl Partners {
    #[inline]
    pub(crate) fn get(&self, peer: Peer) -> Option<&Partner> {
        self.0.get(peer.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, peer: Peer) -> Option<&mut Partner> {
        self.0.get_mut(peer.index())?.as_mut()
    }

    fn get_or_insert(&mut self, peer: Peer, id: ProcessId) -> &mut Partner {
        if self.0.len() <= peer.index() {
            self.0.resize_with(peer.index() + 1, || None);
        }
        self.0[peer.index()].get_or_insert_with(|| Partner::new(id))
    }
}
