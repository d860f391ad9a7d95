//! Lists of nodes that are linked by their indices, one for each key.

use crate::nodes::NONE;
use std::collections::{HashMap, TryReserveError};

/// The neighbours of a node in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

impl Links {
    pub(crate) const NONE: Self = Self { prev: NONE, next: NONE };
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Links node `at` behind `prev`, or first for [`NONE`]. `links` gives the links of a node.
    pub(crate) fn link<C>(
        &mut self,
        nodes: &mut C,
        links: impl Fn(&mut C, u32) -> Option<&mut Links>,
        (at, prev): (u32, u32),
    ) {
        let next = match links(nodes, prev) {
            Some(before) => std::mem::replace(&mut before.next, at),
            None => std::mem::replace(&mut self.first, at),
        };
        match links(nodes, next) {
            Some(after) => after.prev = at,
            None => self.last = at,
        }
        if let Some(own) = links(nodes, at) {
            *own = Links { prev, next };
        }
    }

    /// Takes a node with these links out.
    pub(crate) fn unlink<C>(&mut self, nodes: &mut C, links: impl Fn(&mut C, u32) -> Option<&mut Links>, own: Links) {
        match links(nodes, own.prev) {
            Some(before) => before.next = own.next,
            None => self.first = own.next,
        }
        match links(nodes, own.next) {
            Some(after) => after.prev = own.prev,
            None => self.last = own.prev,
        }
    }
}

/// Lists by key. The hash has a random seed: senders choose the keys of messages.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    lists: HashMap<(u64, u64), List, foldhash::fast::RandomState>,
}

impl Buckets {
    /// Makes room for one more key.
    pub(crate) fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.lists.try_reserve(1)
    }

    /// The list of a key.
    #[inline]
    pub(crate) fn get(&self, key: (u64, u64)) -> List {
        self.lists.get(&key).copied().unwrap_or(List::EMPTY)
    }

    /// Changes the list of a key, for which there is room. An empty list takes none.
    #[inline]
    pub(crate) fn change(&mut self, key: (u64, u64), change: impl FnOnce(&mut List)) {
        use std::collections::hash_map::Entry;
        match self.lists.entry(key) {
            Entry::Occupied(mut found) => {
                change(found.get_mut());
                if found.get().is_empty() {
                    found.remove();
                }
            }
            Entry::Vacant(room) => {
                let mut list = List::EMPTY;
                change(&mut list);
                if !list.is_empty() {
                    room.insert(list);
                }
            }
        }
    }
}
