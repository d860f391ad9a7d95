//! Pausing connections. A grant is of the lane, whatever the connection of the message: while one
//! of its connections is paused, a lane gets no grants, and gives back those that it has not used.

use super::{Lane, Phase};
use crate::frame::Kind;
use crate::lane::shared::Shared;

impl Lane {
    /// Lets the peer send no more messages for the sake of this connection. What it has sent by
    /// grants is taken.
    pub(crate) fn pause_connection(&mut self, s: &mut Shared, number: u32) {
        if self.paused.contains(&number) {
            return;
        }
        self.paused.push(number);
        if self.paused.len() > 1 {
            return;
        }
        let back = self.given.pause();
        s.inbox.ungrant(back);
        s.grants_due |= !s.wanting.is_empty();
        if self.phase == Phase::Open && self.given.outstanding() > 0 && !self.given.recalled {
            self.given.recalled = true;
            self.put(s, Kind::Recall, 0, 0, &[]);
        }
    }

    /// Ends the pause of a connection, if there is one. Without another one the lane gets grants.
    pub(crate) fn end_pause(&mut self, s: &mut Shared, number: u32) {
        let before = self.paused.len();
        self.paused.retain(|other| *other != number);
        if before == 0 || !self.paused.is_empty() {
            return;
        }
        self.given.resume();
        if !self.table.is_empty() {
            // The peer may have asked while it could not get any, and asks once.
            self.want_grants(s);
        }
    }
}
