//! The transports over the API of a library keep every rule of the API, over our own libraries.

#![forbid(unsafe_code)]

mod mx;
mod portals;

/// They do not send large messages (`docs/design/extensions.md`).
const NO_LARGE: &str = "send_large is not offered";
/// A request that finds no buffer waits at the server, which sends nothing.
const NO_WORD: &str = "a client is not told that its request waits for room";

/// The rules that neither keeps.
const EXCEPTIONS: [(&str, &str); 14] = [
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
];
