//! What the library takes beside time of operations. `cci bench` holds the same figures
//! against their bars.

use crate::device::real_transport;
use crate::interrupt;
use crate::machine;
use crate::methods::Found;
use crate::methods::connections as many;
use crate::methods::footprint;
use crate::methods::footprint::Footprint;
use cci_report::UserError;
use cci_report::finding::{Finding, Idle, Memory};

/// Measures memory, with up to so many connections; over the default device's transport when it is
/// absent.
///
/// # Errors
///
/// There is no such device, or a process failed.
pub fn memory(transport: Option<&str>, connections: u32) -> Result<Found, UserError> {
    measured(transport, |transport| {
        let endpoint = footprint::in_a_child(Footprint::Endpoint, transport, 0)?;
        let figures = many::in_a_child(transport, &stops(connections))?;
        Ok(Finding::Memory(Memory {
            transport: transport.into(),
            endpoint_private_bytes: endpoint.private,
            endpoint_resident_bytes: endpoint.value,
            points: figures.points,
        }))
    })
}

/// Measures idleness for so many seconds.
///
/// # Errors
///
/// As of [`memory`].
pub fn idle(transport: Option<&str>, seconds: u64) -> Result<Found, UserError> {
    measured(transport, |transport| {
        let [idle, bare] = footprint::idle_beside_a_sleeper(transport, seconds);
        let (idle, bare) = (idle?, bare?);
        #[expect(clippy::cast_precision_loss, reason = "at most an hour")]
        let seconds = if interrupt::is_asked() { idle.seconds } else { seconds as f64 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
        let (wakes, switches) = (idle.wakes as u64, idle.switches as u64);
        let (processor_ms, bare_processor_ms) = (idle.value, bare.value);
        let transport = transport.into();
        Ok(Finding::Idle(Idle { transport, seconds, processor_ms, bare_processor_ms, wakes, switches }))
    })
}

fn measured(
    transport: Option<&str>,
    find: impl FnOnce(&str) -> Result<Finding, UserError>,
) -> Result<Found, UserError> {
    let environment = machine::here(None);
    let finding = find(&real_transport(transport)?)?;
    Ok(Found { environment, finding, interrupted: interrupt::why() })
}

/// Each power of ten from 10, and the last.
fn stops(last: u32) -> Vec<u32> {
    let mut stops: Vec<_> =
        std::iter::successors(Some(10), |stop: &u32| stop.checked_mul(10)).take_while(|stop| *stop < last).collect();
    stops.push(last);
    stops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_given_at_powers_of_ten_and_at_the_end() {
        assert_eq!(stops(2), [2]);
        assert_eq!(stops(10), [10]);
        assert_eq!(stops(2500), [10, 100, 1000, 2500]);
    }
}
