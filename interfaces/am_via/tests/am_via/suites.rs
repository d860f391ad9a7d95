//! The conformance checks of `cci-am`, by each mapping over several transports.

use crate::conformance;
use crate::world::{Device, FAULTS, sim};
use cci_am_via::{Buffers, Variant};
use cci_conformance::{device_of, sm_device};

/// Makes a test of each check for a device. Two are missing, `every_status` and
/// `a_segment_that_changes`: bulk data for memory that has been deregistered breaks a reliable VI,
/// so that its request comes back as `Unreachable` here. `refused.rs` has what holds instead.
macro_rules! suite {
    ($module:ident, $device:expr; $($check:ident),+ $(,)?) => {
        mod $module {
            use super::*;
            $(
                #[test]
                fn $check() {
                    conformance::$check(&$device);
                }
            )+
        }
    };
    ($module:ident, $device:expr) => {
        suite!($module, $device;
            every_number_of_arguments, mediums_of_every_size, drafts, bulk_requests_and_replies, refused_replies,
            requests_to_oneself, floods_in_both_directions, many_peers_on_few_credits,
            one_credit_goes_round, a_peer_that_goes, a_peer_that_stops, a_peer_that_was_never_there,
            blocking_in_two_threads,
        );
    };
    ($module:ident, $device:expr, quick) => {
        suite!($module, $device;
            every_number_of_arguments, mediums_of_every_size, drafts, bulk_requests_and_replies,
            floods_in_both_directions,
        );
    };
}

suite!(v1, Device::new(sm_device(), Variant::V1));
suite!(v2, Device::new(sm_device(), Variant::V2));
suite!(v3, Device::new(sm_device(), Variant::V3));
suite!(v4, Device::new(sm_device(), Variant::V4));
suite!(v3_tcp, Device::new(device_of("tcp", &[]), Variant::V3), quick);
suite!(v1_sim, Device::new(sim(&FAULTS), Variant::V1), quick);
suite!(v2_sim, Device::new(sim(&FAULTS), Variant::V2), quick);
suite!(v3_sim, Device::new(sim(&FAULTS), Variant::V3), quick);
suite!(v4_sim, Device::new(sim(&FAULTS), Variant::V4), quick);
// One credit and one reply; many buffers; credits that go back one by one.
suite!(v3_one, Device::new(sm_device(), Variant::V3).with(1, Buffers::Double), quick);
suite!(v3_power, Device::new(sm_device(), Variant::V3).with(8, Buffers::Power), quick);
suite!(v1_one, Device::new(sm_device(), Variant::V1).with(1, Buffers::Double), quick);
// A ring of two messages: each second one begins anew.
suite!(v2_tight, Device::new(sm_device(), Variant::V2).with_ring(1, 1), quick);
suite!(v4_tight, Device::new(sm_device(), Variant::V4).with_ring(1, 3), quick);
