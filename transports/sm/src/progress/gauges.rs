//! What others can see of an endpoint, beside what is counted as it happens
//! (`docs/design/counters.md`).

use crate::lane::stall::MILLI;
use crate::slow_path::SlowPath;
use cci_proto::Time;
use cci_transport::{Core, Gauge};

impl SlowPath {
    /// Publishes the gauges of the endpoint. Called when the clock has moved.
    pub(crate) fn publish_gauges(&mut self, core: &mut Core) {
        let now = self.tick;
        let mut in_flight = 0;
        core.begin_waits();
        for at in 0..self.timed.len() {
            let number = self.timed[at] as usize;
            let Some(lane) = self.lanes.get_mut(number).and_then(Option::as_deref_mut) else { continue };
            in_flight += lane.queue.len() as u64;
            lane.show_queue(core, now);
            lane.show_connects(core, now);
            lane.show_parked(core, now);
        }
        core.end_waits();
        core.publish_gauges();
        core.set_gauges(&[(Gauge::InFlight, in_flight), (Gauge::Strays, self.state.strays)]);
        core.set_progress(Time(now.saturating_mul(MILLI)));
    }
}
