//! The transport `sim` keeps every rule of the API, over a network without faults and over a bad
//! one.

use cci::Device;
use cci_conformance::device_of;
use std::sync::atomic::{AtomicU32, Ordering};

const MULTICAST: (&str, &str) =
    ("connect::multicast_without_multicast", "sim has multicast: a URI of an endpoint is refused as no group's");

/// A device of a network of its own: virtual time moves only when all endpoints of a network let
/// it.
fn device(keys: &[(&str, &str)]) -> Device {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let network = format!("net{}", LAST.fetch_add(1, Ordering::Relaxed));
    device_of("sim", &[&[("network", network.as_str())], keys].concat())
}

/// 10 Gb/s, 2 us.
fn good() -> Device {
    device(&[("delay", "2000"), ("bandwidth", "1250000000")])
}

/// The same, and frames are lost, doubled, spoilt, and overtake each other.
fn bad() -> Device {
    let faults = [("loss", "3"), ("duplicate", "3"), ("corrupt", "1"), ("jitter", "20000")];
    device(&[&[("delay", "2000"), ("bandwidth", "1250000000")], &faults[..]].concat())
}

/// They look at the clock on the wall, which runs slower or faster than that of the network.
const TIMES_OUT: (&str, &str) = ("?connect::connect_times_out", "the time is virtual");
const KEPT_ALIVE: (&str, &str) = ("?keepalive::silent_for_its_time", "the time is virtual");
const NO_ROOM: (&str, &str) = ("?connect::server_without_buffers", "the time is virtual");
const NEVER_POLLS: (&str, &str) = ("?flow::peer_that_never_polls", "the time is virtual");

/// The handle is readable whenever virtual time may move; how often that is for nothing depends on
/// the other thread's speed.
const ROOM_WAKES: (&str, &str) = ("?handle::room_wakes", "counts how often the handle is readable for nothing");

/// They wait until one handle is quiet, for which the other endpoint would have to let virtual time
/// go on.
const ROOM_IS_TOLD: (&str, &str) = ("?handle::room_is_told", "a quiet handle takes seconds");
const RETURN_WAKES: (&str, &str) = ("?handle::returned_event_wakes_the_refused", "a quiet handle takes seconds");
const PAUSED_SLEEPERS: (&str, &str) =
    ("?pause::sleepers", "virtual time goes on to the next retry of a peer that waits");

cci_conformance::conformance!(sim, good, except: [
    MULTICAST,
    TIMES_OUT,
    NO_ROOM,
    KEPT_ALIVE,
    NEVER_POLLS,
    ROOM_WAKES,
    ROOM_IS_TOLD,
    RETURN_WAKES,
    PAUSED_SLEEPERS,
]);
cci_conformance::conformance!(sim_under_faults, bad, except: [
    MULTICAST,
    TIMES_OUT,
    NO_ROOM,
    KEPT_ALIVE,
    NEVER_POLLS,
    ROOM_WAKES,
    ROOM_IS_TOLD,
    RETURN_WAKES,
    PAUSED_SLEEPERS,
    ("message::every_length", "expects every message of an unreliable connection, and some are lost"),
    ("?connect::many_connections", "expects messages of different connections in the order in which they were sent"),
    ("?disconnect::published_is_delivered", "expects messages of an unordered connection in order"),
    ("?flow::flood_leaves_room", "counts what comes before a message that may have to be sent again"),
]);
