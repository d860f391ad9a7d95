//! Pausing connections.

use crate::slow_path::SlowPath;
use cci_mem::sync::Ordering;
use cci_proto::PauseError;
use cci_transport::{Connection, Core};

impl SlowPath {
    /// Pauses a connection, or ends its pause.
    pub(super) fn set_paused(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        is_paused: bool,
    ) -> Result<(), PauseError> {
        let (lane, state) = self.lane_for(connection).ok_or(PauseError::Disconnected)?;
        let number = connection.local.load(Ordering::Relaxed);
        if is_paused {
            lane.pause(state, number);
            core.landings().pause(connection);
        } else {
            lane.resume(state, number);
            core.landings().resume(connection);
            self.state.landings_wait |= core.landings().is_waiting();
        }
        Ok(())
    }
}
