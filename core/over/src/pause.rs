//! Messages that the program does not take: they wait at their connection, at most a window of
//! them, and the peer gets no credit for them.

use crate::Over;
use crate::network::Network;
use crate::wire::Verb;
use cci_proto::PauseError;
use cci_transport::{Connection, Core};

impl<N: Network> Over<N> {
    /// Keeps a message until a slot is free, or the connection is resumed.
    pub(crate) fn hold(&mut self, core: &mut Core, number: u32, bytes: &[u8]) {
        let Some(side) = self.sides.get_mut(number) else { return };
        side.holds_messages = true;
        let is_first = side.backlog.is_empty();
        side.backlog.push_back(bytes.to_vec());
        if !side.is_paused {
            if is_first {
                self.inbox.turns.push_back(number);
            }
        } else if !side.has_refused && side.control(&mut self.net, Verb::NotReady, &[]) {
            side.has_refused = true;
            core.counters().on_refused();
        }
    }

    /// Takes no message of a connection.
    pub(crate) fn pause_side(&mut self, connection: &'static Connection) -> Result<(), PauseError> {
        let side = self.sides.of(connection).ok_or(PauseError::Disconnected)?;
        // A peer that has closed sends no more, and its end is to be told.
        side.is_paused = !side.is_closed;
        side.holds_messages |= side.is_paused;
        Ok(())
    }

    /// Takes messages again.
    pub(crate) fn resume_side(&mut self, core: &mut Core, connection: &'static Connection) -> Result<(), PauseError> {
        let number = self.sides.of(connection).ok_or(PauseError::Disconnected)?.number;
        self.end_pause(number);
        self.deliver(core);
        Ok(())
    }

    /// Ends the pause of a connection, if there is one: what waits has its turn.
    pub(crate) fn end_pause(&mut self, number: u32) {
        let Some(side) = self.sides.get_mut(number) else { return };
        if !std::mem::take(&mut side.is_paused) {
            return;
        }
        side.holds_messages = !side.backlog.is_empty();
        // It may have waited for a slot before the pause.
        self.inbox.turns.retain(|other| *other != number);
        if side.holds_messages {
            self.inbox.turns.push_back(number);
        }
    }
}
