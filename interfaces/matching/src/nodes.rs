//! Entries by index, with the number of lives that a place has had.

use crate::Ticket;
use std::collections::TryReserveError;

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Place<N> {
    life: u32,
    node: Option<N>,
}

/// Nodes at indices that stay theirs.
#[derive(Debug)]
pub(crate) struct Nodes<N> {
    places: Vec<Place<N>>,
    free: Vec<u32>,
}

impl<N> Nodes<N> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there is a place that was used before.
    #[inline]
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Makes room for one more, so that [`Nodes::insert`] cannot fail, nor [`Nodes::remove`].
    pub(crate) fn reserve(&mut self) -> Result<(), TryReserveError> {
        if self.free.is_empty() {
            self.places.try_reserve(1)?;
            // Each place may become free.
            self.free.try_reserve(self.places.capacity())?;
        }
        Ok(())
    }

    /// Inserts a node, for which there is room.
    #[inline]
    pub(crate) fn insert(&mut self, node: N) -> Ticket {
        let index = self.free.pop().unwrap_or_else(|| self.add_place());
        let place = &mut self.places[index as usize];
        place.node = Some(node);
        Ticket { index, life: place.life }
    }

    #[cold]
    #[inline(never)]
    fn add_place(&mut self) -> u32 {
        self.places.push(Place { life: 0, node: None });
        // `reserve` has failed long before: a place takes more than a byte.
        u32::try_from(self.places.len() - 1).unwrap_or(NONE)
    }

    /// The node of a ticket.
    #[inline]
    pub(crate) fn find(&self, ticket: Ticket) -> Option<&N> {
        let place = self.places.get(ticket.index as usize)?;
        if place.life == ticket.life { place.node.as_ref() } else { None }
    }

    /// The ticket of the node at an index.
    #[inline]
    pub(crate) fn ticket(&self, index: u32) -> Ticket {
        Ticket { index, life: self.places[index as usize].life }
    }

    /// The node at an index, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&N> {
        self.places.get(index as usize)?.node.as_ref()
    }

    /// As [`Nodes::get`].
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut N> {
        self.places.get_mut(index as usize)?.node.as_mut()
    }

    /// Takes out the node at an index.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Option<N> {
        let place = self.places.get_mut(index as usize)?;
        let node = place.node.take()?;
        place.life = place.life.wrapping_add(1);
        self.free.push(index);
        Some(node)
    }
}
