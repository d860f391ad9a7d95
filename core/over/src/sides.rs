//! The connections of an endpoint by number, and how much they may be sent.

use crate::side::Side;
use cci_mem::sync::Ordering;
use cci_proto::Time;
use cci_transport::Connection;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Bits of a number that say the place; those above count its lives.
const PLACE_BITS: u32 = 12;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
/// Connections of an endpoint at most.
pub(crate) const MOST_CONNECTIONS: usize = 1 << PLACE_BITS;
const LIVES: u32 = 1 << (24 - PLACE_BITS);

/// Puts without a message that a peer may send on a connection beside its window.
const CONTROLS: u32 = 6;
/// What a window is at first, and where there are many connections.
const WIDE: u32 = 64;
const NARROW: u32 = 4;
/// Puts that may be on the way to an endpoint: up to so many the windows are wide.
const MANY: u32 = 8_192;
const MOST: u32 = 12_288;
/// How long a connection that has ended here counts, unless its peer has ended it too.
const GHOST: Duration = Duration::from_secs(10);

/// This side's number of a connection.
pub(crate) fn number_in(cell: &Connection) -> u32 {
    cell.local.load(Ordering::Relaxed)
}

pub(crate) struct Sides<P> {
    places: Vec<Option<Side<P>>>,
    lives: Vec<u32>,
    free: VecDeque<u32>,
    /// Puts that may be on the way.
    granted: u32,
    /// Windows of connections that have ended here while messages may be on the way.
    ghosts: BTreeMap<u32, (u32, Time)>,
}

impl<P: Copy> Sides<P> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), lives: Vec::new(), free: VecDeque::new(), granted: 0, ghosts: BTreeMap::new() }
    }

    /// Puts that may be on the way to this endpoint.
    pub(crate) fn granted(&self) -> usize {
        self.granted as usize
    }

    /// The window of the next connection; `None`: the queue has no room for another one.
    pub(crate) fn window(&mut self, now: Time) -> Option<u32> {
        if self.granted + WIDE + CONTROLS <= MANY {
            return Some(WIDE);
        }
        let Self { ghosts, granted, .. } = self;
        ghosts.retain(|_, (window, until)| {
            let stays = now < *until;
            *granted -= if stays { 0 } else { *window + CONTROLS };
            stays
        });
        (self.granted + NARROW + CONTROLS <= MOST).then_some(NARROW)
    }

    /// Enters a connection under a number of its own. `None`: there are too many.
    pub(crate) fn enter(
        &mut self,
        cell: &'static Connection,
        window: u32,
        (peer, tag): (P, u64),
    ) -> Option<&mut Side<P>> {
        let place = match self.free.pop_front() {
            Some(place) => place,
            None if self.places.len() >= MOST_CONNECTIONS => return None,
            None => {
                self.places.push(None);
                self.lives.push(0);
                (self.places.len() - 1) as u32
            }
        };
        let number = (self.lives[place as usize] % LIVES) << PLACE_BITS | place;
        self.granted += window + CONTROLS;
        Some(self.places[place as usize].insert(Side::new(cell, (number, window), peer, tag)))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Side<P>> {
        self.places.get_mut((number & PLACE) as usize)?.as_mut().filter(|side| side.number == number)
    }

    /// The side of a connection, unless that is broken.
    #[inline]
    pub(crate) fn of(&mut self, cell: &'static Connection) -> Option<&mut Side<P>> {
        self.get_mut(number_in(cell)).filter(|side| std::ptr::eq(side.cell, cell))
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Side<P>> {
        self.places.get((number & PLACE) as usize)?.as_ref().filter(|side| side.number == number)
    }

    /// Takes a connection out. Its peer may go on to send until it has ended the connection too,
    /// unless that has happened.
    pub(crate) fn remove(&mut self, number: u32, now: Time) -> Option<Side<P>> {
        self.get(number)?;
        let place = (number & PLACE) as usize;
        let side = self.places[place].take()?;
        self.lives[place] = self.lives[place].wrapping_add(1);
        self.free.push_back(place as u32);
        if side.is_closed {
            self.granted -= side.window + CONTROLS;
        } else {
            self.ghosts.insert(number, (side.window, now + GHOST));
        }
        Some(side)
    }

    /// The peer of a connection that has ended here has ended it too.
    pub(crate) fn bury(&mut self, number: u32) {
        if let Some((window, _)) = self.ghosts.remove(&number) {
            self.granted -= window + CONTROLS;
        }
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.iter().map(|side| side.number).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Side<P>> {
        self.places.iter().flatten()
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.ghosts.clear();
    }
}
