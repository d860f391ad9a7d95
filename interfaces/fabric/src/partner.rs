//! Another endpoint that this one knows: its link, its credit, and what waits for it.

use crate::record::Record;
use crate::wire::MOST_DONE;
use cci::{Connection, RmaHandle};
use cci_peers::Peer;
use cci_rendezvous::{Credit, Outbox, Window};
use std::collections::{HashMap, VecDeque};

/// Handles of keys that are kept for each partner.
const MOST_KEYS: usize = 65_536;

/// What is sent without credit, before all sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    /// The message of this number could not be read.
    Refuse(u32),
    /// Reads of what the partner has offered.
    Reads(u32),
    Ask(u64),
    /// What it has asked for.
    Give(u64),
    /// An access: its operations, or what follows them. The request, and which of its lives.
    Access(u32, u32),
}

/// A key of a partner's, as it has told it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) len: u64,
    pub(crate) may_read: bool,
    pub(crate) may_write: bool,
    pub(crate) handle: RmaHandle,
}

/// What this side knows of a key.
#[derive(Debug)]
pub(crate) enum Knowledge {
    /// It has asked; these accesses wait: requests, and which of their lives.
    Asked(Vec<(u32, u32)>),
    Known(Key),
}

/// Another endpoint that this one knows.
pub(crate) struct Partner {
    pub(crate) peer: Peer,
    pub(crate) record: Record,
    pub(crate) connection: Option<Connection>,
    /// Its introduction has come; this side's has left.
    pub(crate) is_known: bool,
    pub(crate) has_introduced: bool,
    /// Counts links.
    pub(crate) link: u32,
    /// What this side may send, and the longest eager message.
    pub(crate) credit: Credit,
    pub(crate) most_eager: usize,
    pub(crate) window: Window,
    pub(crate) outbox: Outbox<Control, u32>,
    /// Messages of the partner's that are there, which it has not been told.
    pub(crate) done: Vec<u32>,
    /// Its number in the address vector, as of an epoch.
    pub(crate) address: (u64, u64),
    pub(crate) keys: HashMap<u64, Knowledge>,
    /// Keys in the order in which they were told.
    pub(crate) told: VecDeque<u64>,
}

impl Partner {
    pub(crate) fn new(peer: Peer, record: Record) -> Self {
        Self {
            peer,
            record,
            connection: None,
            is_known: false,
            has_introduced: false,
            link: 0,
            credit: Credit::default(),
            most_eager: 0,
            window: Window::CLOSED,
            outbox: Outbox::default(),
            done: Vec::with_capacity(MOST_DONE),
            address: (0, crate::NOT_AVAILABLE),
            keys: HashMap::new(),
            told: VecDeque::new(),
        }
    }

    /// The connection, once both sides have introduced themselves.
    #[inline]
    pub(crate) const fn ready(&self) -> Option<Connection> {
        if self.is_known && self.has_introduced { self.connection } else { None }
    }

    /// Enters what the partner has told of a key; those that wait for it. `None`: nobody has asked.
    pub(crate) fn learn(&mut self, key: u64, told: Option<Key>) -> Option<Vec<(u32, u32)>> {
        let Some(Knowledge::Asked(_)) = self.keys.get(&key) else { return None };
        let before = match told {
            Some(known) => {
                self.told.push_back(key);
                self.keys.insert(key, Knowledge::Known(known))
            }
            None => self.keys.remove(&key),
        };
        if self.told.len() > MOST_KEYS
            && let Some(oldest) = self.told.pop_front()
            && oldest != key
        {
            self.forget_key(oldest);
        }
        if let Some(Knowledge::Asked(waiting)) = before { Some(waiting) } else { None }
    }

    /// Forgets a key that is known.
    pub(crate) fn forget_key(&mut self, key: u64) {
        if let Some(Knowledge::Known(_)) = self.keys.get(&key) {
            self.keys.remove(&key);
        }
    }
}
