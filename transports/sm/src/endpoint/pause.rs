//! Pausing connections.

use crate::sm::Sm;
use cci_mem::sync::Ordering;
use cci_proto::PauseError;
use cci_transport::{Connection, Core};

impl Sm {
    /// Pauses a connection, or ends its pause.
    pub(super) fn set_paused(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        is_paused: bool,
    ) -> Result<(), PauseError> {
        self.leave_fast_path();
        let lane = connection.lane.load(Ordering::Relaxed) as usize;
        let lane = self.lanes.get_mut(lane).and_then(Option::as_deref_mut).ok_or(PauseError::Disconnected)?;
        let number = connection.local.load(Ordering::Relaxed);
        if is_paused {
            lane.pause(&mut self.state, number);
            core.landings().pause(connection);
        } else {
            lane.resume(&mut self.state, number);
            core.landings().resume(connection);
            self.state.landings_wait |= core.landings().is_waiting();
        }
        Ok(())
    }
}
