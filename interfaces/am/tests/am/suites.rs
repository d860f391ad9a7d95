//! Over which transports each check is run.

use crate::conformance;
use crate::world::{FAULTS, sim};
use cci_conformance::{device_of, sm_device};

/// Makes a test of each check for a device.
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
            every_number_of_arguments, mediums_of_every_size, drafts, bulk_requests_and_replies, every_status,
            a_segment_that_changes, refused_replies, requests_to_oneself, floods_in_both_directions,
            many_peers_on_few_credits, one_credit_goes_round, a_peer_that_goes, a_peer_that_stops, a_peer_that_was_never_there,
            blocking_in_two_threads,
        );
    };
}

suite!(sm, sm_device());
// How many frames are there when a target polls follows the network elsewhere.
suite!(shared_memory, sm_device(); rare_polls);
suite!(sock, device_of("sock", &[("ip", "127.0.0.1")]));
suite!(tcp, device_of("tcp", &[]));
suite!(auto, device_of("auto", &[]));
// The time of a virtual network is not that of the wall, by which a peer counts as stopped.
suite!(simulated, sim(&FAULTS);
    every_number_of_arguments, mediums_of_every_size, drafts, bulk_requests_and_replies, every_status,
    a_segment_that_changes, refused_replies, requests_to_oneself, floods_in_both_directions,
    many_peers_on_few_credits, one_credit_goes_round,
);
