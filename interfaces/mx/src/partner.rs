//! Another endpoint that this one knows: its link, its credit, and what waits for it.

mod links;

use crate::requests::Request;
use cci::Connection;
use cci_peers::Peer;
use std::collections::VecDeque;
/// Granules that are given back by a message of their own.
const MUCH: u32 = 1_024;

/// What is sent without credit, before all sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    /// DONE or CONNECTED: kind, flags, the partner's number.
    Answer(u8, u8, u64),
    Connect(Request),
    /// Reads of what the partner has offered: the number of the bulk.
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
    /// Granules that this side may use, and the longest eager message.
    pub(crate) credit: u32,
    most_credit: u32,
    pub(crate) most_eager: usize,
    /// Granules: of the partner's window, what it may use, what it has used and is due back, and
    /// what unexpected messages of this link hold.
    window: u32,
    given: u32,
    pub(crate) owed: u32,
    held: u32,
    controls: VecDeque<Control>,
    pub(crate) sends: VecDeque<Request>,
    is_blocked: bool,
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
            credit: 0,
            most_credit: 0,
            most_eager: 0,
            window: 0,
            given: 0,
            owed: 0,
            held: 0,
            controls: VecDeque::new(),
            sends: VecDeque::new(),
            is_blocked: false,
        }
    }

    /// The connection, once both sides have introduced themselves.
    #[inline]
    pub(crate) fn ready(&self) -> Option<Connection> {
        if self.is_known && self.has_introduced { self.connection } else { None }
    }

    /// The credit that the next message gives back.
    #[inline]
    pub(crate) fn credit_back(&self) -> u16 {
        self.owed.min(u32::from(u16::MAX)) as u16
    }

    /// A message has left that gives credit back.
    #[inline]
    pub(crate) fn has_given(&mut self, credit: u16) {
        self.owed -= u32::from(credit);
        self.given += u32::from(credit);
    }

    /// A message is charged again.
    pub(crate) fn uncharge(&mut self, cost: u32) {
        self.given += cost;
    }

    /// Takes an eager message of this cost that gives credit back. False: it breaks the rules, or
    /// something waits for the credit; nothing has changed then.
    #[inline(always)]
    pub(crate) fn takes_at_once(&mut self, back: u16, cost: u32) -> bool {
        let credit = self.credit + u32::from(back);
        let may_take = self.is_known && self.given >= cost && credit <= self.most_credit;
        if !may_take || (back > 0 && !self.sends.is_empty()) {
            return false;
        }
        (self.credit, self.given) = (credit, self.given - cost);
        true
    }

    /// A message that was charged holds nothing any more. Returns whether so much is due that a
    /// message of its own gives it back.
    #[inline]
    pub(crate) fn owe(&mut self, cost: u32) -> bool {
        self.owed += cost;
        self.owes_much()
    }

    /// Whether so much is due that a message of its own gives it back.
    #[inline]
    fn owes_much(&self) -> bool {
        self.owed > 0 && self.owed >= (self.window / 2).min(MUCH)
    }
}
