//! Connections by their index and by their identifier, which nobody guesses.

use super::conn::{Conn, State};
use super::ids::Ids;
use super::random::Random;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Connections that get memory together: a growing table never holds more than this many too many,
/// where doubling a vector would hold twice what it needs.
const CHUNK: usize = 512;
/// Connections at most.
const MOST: u32 = 1 << 24;

/// The connections of an endpoint.
pub(super) struct Table {
    chunks: Vec<Box<[Option<Conn>]>>,
    free: Vec<u32>,
    used: u32,
    ids: Ids,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), used: 0, ids: Ids::new() }
    }

    /// Returns an index and an identifier for a new connection; `None`: no memory, or 16 million
    /// connections.
    pub(super) fn take(&mut self, random: &mut Random) -> Option<(u32, u64)> {
        if self.free.is_empty() {
            self.grow()?;
        }
        // Nobody draws 0 or the same number twice in the life of an endpoint; it would be found
        // wrong.
        let id = loop {
            let id = random.next();
            if id != 0 && self.ids.find(id).is_none() {
                break id;
            }
        };
        let index = *self.free.last()?;
        self.ids.insert(id, index)?;
        self.free.pop();
        Some((index, id))
    }

    /// Returns an index that was never used.
    fn grow(&mut self) -> Option<()> {
        let index = self.used;
        if index >= MOST {
            return None;
        }
        self.free.try_reserve(1).ok()?;
        if index as usize == self.chunks.len() * CHUNK {
            let mut chunk = Vec::new();
            chunk.try_reserve_exact(CHUNK).ok()?;
            chunk.resize_with(CHUNK, || None);
            self.chunks.push(chunk.into_boxed_slice());
        }
        self.used += 1;
        self.free.push(index);
        Some(())
    }

    /// Places that were ever taken.
    pub(super) fn used(&self) -> usize {
        self.used as usize
    }

    /// Connections that there are.
    pub(super) fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    pub(super) fn put(&mut self, index: u32, conn: Conn) {
        if let Some(entry) = self.entry(index) {
            *entry = Some(conn);
        }
    }

    pub(super) fn remove(&mut self, index: u32) {
        if let Some(entry) = self.entry(index)
            && let Some(conn) = entry.take()
        {
            self.ids.remove(conn.id);
            self.free.push(index);
        }
    }

    fn entry(&mut self, index: u32) -> Option<&mut Option<Conn>> {
        self.chunks.get_mut(index as usize / CHUNK)?.get_mut(index as usize % CHUNK)
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&Conn> {
        self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Conn> {
        self.entry(index)?.as_mut()
    }

    /// The connection with this identifier.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        let index = self.ids.find(id)?;
        self.get(index).filter(|conn| conn.id == id && conn.state != State::Free).map(|_| index)
    }
}
