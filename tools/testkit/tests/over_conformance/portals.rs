//! The transport `portals` keeps every rule of the API, over our own library.

use crate::EXCEPTIONS;
use cci::Device;
use cci_conformance::{build, device_of};
use std::path::Path;
use std::sync::LazyLock;

/// Our own library, of the profile of this test.
static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let dir = build("cci-portals3", Path::new(env!("CARGO_TARGET_TMPDIR")));
    dir.join("libcci_portals3.so").display().to_string()
});

fn device(send: &str) -> Device {
    device_of("portals", &[("library", &LIBRARY), ("send", send)])
}

cci_conformance::conformance!(copy, || device("copy"), except: EXCEPTIONS);

/// The strategy `bind`: what differs is how messages are sent.
mod bind {
    use super::device;
    use cci_conformance::suite::{flow, message, order, rma};

    #[test]
    fn messages_of_every_length_arrive() {
        message::every_length(&device("bind"));
    }

    #[test]
    fn messages_come_in_order() {
        order::reliable_ordered(&device("bind"));
    }

    #[test]
    fn unreliable_messages_come_once() {
        order::unreliable(&device("bind"));
    }

    #[test]
    fn a_message_follows_its_data() {
        rma::message_after_data(&device("bind"));
    }

    #[test]
    fn a_receiver_that_never_returns_stops_its_sender() {
        flow::receiver_that_never_returns(&device("bind"));
    }
}
