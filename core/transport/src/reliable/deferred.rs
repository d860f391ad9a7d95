//! What an engine's event makes necessary: calls of the engine, which it cannot be called for while it tells the event.

use super::Reliable;
use super::connection_table::Opening;
use super::shares::NOBODY;
use crate::{Connection, Core, Link, Slot};
use cci_mem::sync::Ordering;
use cci_proto::engine::Index;
use cci_proto::{Attribute, EventKind, Failure, Time};

/// Something to be done.
pub(super) enum Chore {
    /// An expected client has come.
    Welcome {
        /// Its place.
        index: Index,
        /// What it asks for.
        attribute: Attribute,
        /// What it showed.
        token: u64,
    },
    /// A connect is sent elsewhere.
    Follow {
        /// Its place.
        index: Index,
        /// Its number.
        user: u64,
        /// Where to.
        uri: String,
        /// What to show there.
        token: u64,
    },
    /// A place of the engine that nobody needs any more.
    Close(Index),
    /// The connection's timeouts have changed.
    Timeouts(u64),
}

/// A client that this endpoint was told to accept.
pub(super) struct Expected {
    pub(super) token: u64,
    pub(super) context: u64,
    /// Reserved for the ACCEPT event.
    pub(super) slot: &'static Slot,
    pub(super) deadline: Time,
}

impl<L: Link> Reliable<L> {
    /// Does what events have made necessary.
    #[inline]
    pub(super) fn do_chores(&mut self, core: &mut Core, now: Time) {
        if !self.estate.chores.is_empty() {
            self.do_all_chores(core, now);
        }
    }

    #[cold]
    fn do_all_chores(&mut self, core: &mut Core, now: Time) {
        // A chore may cause another one.
        while let Some(chore) = self.estate.chores.pop() {
            match chore {
                Chore::Welcome { index, attribute, token } => self.welcome(core, now, index, attribute, token),
                Chore::Follow { index, user, uri, token } => self.follow(core, now, (index, user), &uri, token),
                Chore::Close(index) => self.close_index(core, now, index),
                Chore::Timeouts(user) => {
                    if let Some(cell) = self.estate.table.cell(user) {
                        self.set_timeouts(now, cell);
                    }
                }
            }
        }
    }

    /// Accepts a client that was sent here.
    fn welcome(&mut self, core: &mut Core, now: Time, index: Index, attribute: Attribute, token: u64) {
        let Some(at) = self.expected.iter().position(|expected| expected.token == token) else {
            let _ = self.engine.reject(now, index);
            return;
        };
        let Expected { context, slot, .. } = self.expected.swap_remove(at);
        self.accept_index(core, now, index, attribute, (Some(slot), context));
    }

    /// Asks the endpoint that the first one named.
    fn follow(&mut self, core: &mut Core, now: Time, (index, user): (Index, u64), uri: &str, token: u64) {
        let Some(opening) = self.estate.table.opening(user) else { return self.close_index(core, now, index) };
        let again = std::mem::replace(&mut opening.redirected, true);
        let address = if again { None } else { self.link.resolve(uri).ok() };
        let Some(address) = address else {
            self.close_index(core, now, index);
            return self.estate.give_up(core, user, Failure::Refused);
        };
        self.engine.follow(now, index, address, token);
    }

    /// Makes the connection of a request, with the slot of its ACCEPT event if one is reserved.
    pub(super) fn accept_index(
        &mut self,
        core: &mut Core,
        now: Time,
        index: Index,
        attribute: Attribute,
        (slot, context): (Option<&'static Slot>, u64),
    ) {
        let Ok(cell) = core.open_connection(attribute, context, self.estate.max_send_size) else {
            let _ = self.engine.reject(now, index);
            return self.estate.fail_opening(core, (slot, EventKind::Accept, context), Failure::NoMemory);
        };
        let opening = Opening { slot, kind: EventKind::Accept, context, redirected: false };
        let user = self.enter(cell, index, opening);
        match self.engine.accept(now, index, user) {
            Ok(()) => self.set_timeouts(now, cell),
            Err(_) => self.estate.give_up(core, user, Failure::Disconnected),
        }
    }

    /// Enters a connection in the table.
    pub(super) fn enter(&mut self, cell: &'static Connection, index: Index, opening: Opening) -> u64 {
        cell.lane.store(NOBODY, Ordering::Relaxed);
        cell.local.store(index.0, Ordering::Relaxed);
        self.background.require();
        self.estate.table.enter(cell, opening)
    }

    /// Tells the engine a connection's timeouts, as they stand now.
    pub(super) fn set_timeouts(&mut self, now: Time, cell: &'static Connection) {
        let (send, keepalive) = timeouts(cell);
        cell.heard.store(digest(send, keepalive), Ordering::Relaxed);
        self.engine.set_timeouts(now, index_of(cell), send, keepalive);
    }

    /// Tells the engine the timeouts that the program has changed.
    pub(super) fn update_timeouts(&mut self, core: &Core, now: Time) {
        for cell in core.connections() {
            let (send, keepalive) = timeouts(cell);
            let changed = cell.heard.load(Ordering::Relaxed) != digest(send, keepalive);
            if changed && self.estate.table.user(cell).is_some() {
                self.set_timeouts(now, cell);
            }
        }
    }

    /// What time has brought to those who are expected.
    pub(super) fn expire(&mut self, core: &mut Core, now: Time) {
        while let Some(at) = self.expected.iter().position(|expected| expected.deadline <= now) {
            let late = self.expected.swap_remove(at);
            self.engine.forget(late.token);
            core.finish_opening(late.slot, EventKind::Accept, late.context, Err(Failure::TimedOut));
        }
    }
}

fn timeouts(cell: &Connection) -> (u32, u32) {
    (cell.send_timeout.load(Ordering::Relaxed), cell.keepalive.load(Ordering::Relaxed))
}

/// Tells most pairs of timeouts apart, so that the engine hears of changes only; never the same for two that differ in one.
fn digest(send: u32, keepalive: u32) -> u32 {
    send.wrapping_mul(0x9e37_79b1) ^ keepalive.rotate_left(16)
}

/// A connection's place in the engine.
#[inline]
pub(super) fn index_of(cell: &Connection) -> Index {
    Index(cell.local.load(Ordering::Relaxed))
}
