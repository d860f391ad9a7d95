//! The transport `template` keeps every rule of the API.

#![forbid(unsafe_code)]

use cci_conformance::device_of;

/// It does not send large messages (`docs/design/extensions.md`).
const NO_LARGE: &str = "send_large is not offered";
/// It stays short: a program is told that the transport pauses nothing.
const NO_PAUSE: &str = "pause is not offered";
/// A request that finds no buffer waits at the server, which sends nothing.
const NO_WORD: &str = "a client is not told that its request waits for room";

cci_conformance::conformance!(template, || device_of("template", &[]), except: [
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
    ("pause::nothing_is_lost", NO_PAUSE),
    ("pause::others_go_on", NO_PAUSE),
    ("pause::at_any_moment", NO_PAUSE),
    ("pause::this_side_goes_on", NO_PAUSE),
    ("pause::death_is_told", NO_PAUSE),
    ("pause::ends_with_the_connection", NO_PAUSE),
    ("pause::refused", NO_PAUSE),
    ("pause::sleepers", NO_PAUSE),
    ("pause::large_messages_wait", NO_PAUSE),
]);
