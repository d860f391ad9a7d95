//! Another endpoint that this one knows: its link, its credit, and what waits for it.

mod links;

use crate::requests::Request;
use cci::Connection;
use cci_peers::Peer;
use cci_rendezvous::{Credit, Outbox, Window};

/// What is sent without credit, before all sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    /// DONE or CONNECTED: kind, flags, the partner's number.
    Answer(u8, u8, u64),
    Connect(Request),
    /// Reads of what the partner has offered: their number.
    Reads(u32),
}

/// Another endpoint that this one knows.
pub(crate) struct Partner {
    pub(crate) peer: Peer,
    pub(crate) name: u64,
    pub(crate) connection: Option<Connection>,
    /// Its session, once it has introduced itself; kept when the link ends.
    pub(crate) session: u32,
    pub(crate) is_known: bool,
    has_introduced: bool,
    /// Counts links.
    pub(crate) link: u32,
    /// What this side may still send, and the longest eager message.
    pub(crate) credit: Credit,
    pub(crate) most_eager: usize,
    /// What the partner may still send, and is owed.
    pub(crate) window: Window,
    pub(crate) outbox: Outbox<Control, Request>,
}

impl Partner {
    fn new(peer: Peer, name: u64) -> Self {
        Self {
            peer,
            name,
            connection: None,
            session: 0,
            is_known: false,
            has_introduced: false,
            link: 0,
            credit: Credit::default(),
            most_eager: 0,
            window: Window::CLOSED,
            outbox: Outbox::default(),
        }
    }

    /// The connection, once both sides have introduced themselves.
    #[inline]
    pub(crate) fn ready(&self) -> Option<Connection> {
        if self.is_known && self.has_introduced { self.connection } else { None }
    }

    /// Takes an eager message of this cost that gives credit back. False: it breaks the rules, or
    /// something waits for the credit; nothing has changed then.
    #[inline(always)]
    pub(crate) fn takes_at_once(&mut self, back: u16, cost: u32) -> bool {
        let may_take = self.is_known && self.window.covers(cost) && self.credit.may_take(back);
        if !may_take || (back > 0 && self.outbox.has_sends()) {
            return false;
        }
        self.credit.give(back) && self.window.charge(cost)
    }
}
