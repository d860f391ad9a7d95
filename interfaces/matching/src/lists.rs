//! Lists of nodes that are linked by their indices, one for each key.

use crate::nodes::NONE;
use hashbrown::HashTable;
use std::hash::BuildHasher;

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

/// What a list is found by: the compared part of an envelope.
pub(crate) type Key = (u64, u64);

/// Lists by key. A list does not have its key, because its first node has it: `key_of` gives the
/// key of a node. The hash has a random seed: senders choose the keys of messages.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    lists: HashTable<List>,
    seed: foldhash::fast::RandomState,
}

impl Buckets {
    /// Makes room for one more key; `None`: there is no memory.
    pub(crate) fn reserve(&mut self, key_of: impl Fn(u32) -> Option<Key>) -> Option<()> {
        let Self { lists, seed } = self;
        lists.try_reserve(1, |list| seed.hash_one(key_of(list.first).unwrap_or_default())).ok()
    }

    /// The list of a key.
    #[inline]
    pub(crate) fn get(&self, key: Key, key_of: impl Fn(u32) -> Option<Key>) -> List {
        let found = self.lists.find(self.seed.hash_one(key), |list| key_of(list.first) == Some(key));
        found.copied().unwrap_or(List::EMPTY)
    }

    /// Takes the first node out of the list of a key.
    #[inline]
    pub(crate) fn take_first<C>(
        &mut self,
        key: Key,
        nodes: &mut C,
        key_of: impl Fn(&C, u32) -> Option<Key>,
        links: impl Fn(&mut C, u32) -> Option<&mut Links>,
    ) -> Option<u32> {
        let hash = self.seed.hash_one(key);
        let mut found = self.lists.find_entry(hash, |list| key_of(nodes, list.first) == Some(key)).ok()?;
        let list = found.get_mut();
        let first = list.first;
        let own = *links(nodes, first)?;
        list.unlink(nodes, links, own);
        if list.is_empty() {
            found.remove();
        }
        Some(first)
    }

    /// Changes the list of a key, for which there is room. An empty list takes none.
    #[inline]
    pub(crate) fn change<C>(
        &mut self,
        key: Key,
        nodes: &mut C,
        key_of: impl Fn(&C, u32) -> Option<Key>,
        change: impl FnOnce(&mut C, &mut List),
    ) {
        let hash = self.seed.hash_one(key);
        match self.lists.find_entry(hash, |list| key_of(nodes, list.first) == Some(key)) {
            Ok(mut found) => {
                change(nodes, found.get_mut());
                if found.get().is_empty() {
                    found.remove();
                }
            }
            Err(room) => {
                let mut list = List::EMPTY;
                change(nodes, &mut list);
                if !list.is_empty() {
                    // There is room: nothing is hashed anew.
                    room.into_table().insert_unique(hash, list, |_| hash);
                }
            }
        }
    }
}
