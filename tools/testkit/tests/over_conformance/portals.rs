//! The transport `portals` keeps every rule of the API, over our own library.

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

/// It does not send large messages (`docs/design/extensions.md`).
const NO_LARGE: &str = "send_large is not offered";
/// A request that finds no buffer waits at the server, which sends nothing.
const NO_WORD: &str = "a client is not told that its request waits for room";

cci_conformance::conformance!(copy, || device("copy"), except: [
    ("connect::server_without_buffers", NO_WORD),
    ("large::every_length", NO_LARGE),
    ("large::among_others", NO_LARGE),
    ("large::many_at_once", NO_LARGE),
    ("large::both_ways", NO_LARGE),
    ("large::waits_for_room", NO_LARGE),
    ("large::refused", NO_LARGE),
    ("large::peer_goes_away", NO_LARGE),
    ("large::silent_and_blocking", NO_LARGE),
    ("?large::sleepers_wake", "send_large is not offered, and the receiver waits long for it"),
    ("large::memory_is_used_again", NO_LARGE),
    ("large::many_times", NO_LARGE),
    ("large::few_buffers", NO_LARGE),
    ("pause::large_messages_wait", NO_LARGE),
]);

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
