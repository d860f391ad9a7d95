//! The conformance suite: one function per rule of the API, each for any device.

pub mod atomics;
pub mod batch;
pub mod broker;
pub mod connect;
pub mod disconnect;
pub mod events;
pub mod flow;
pub mod handle;
pub mod keepalive;
pub mod large;
pub mod message;
pub mod options;
pub mod order;
pub mod pause;
pub mod rma;
pub mod rma_private;
pub mod rma_rights;
pub mod rooms;
pub mod threads;

use cci::Device;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The transport that carries what endpoints of a device exchange: its own, or that of the first
/// way.
pub(crate) fn carrier(device: &Device) -> &str {
    let ways = device.arguments.iter().find(|(key, _)| device.transport == "auto" && key == "ways");
    ways.map_or(&device.transport, |(_, names)| names.split(',').next().unwrap_or(""))
}

/// Lengths up to a maximum, bytes: those at boundaries, each beside a power of two or beside the
/// maximum. And all small ones, with some in between, where each length is tried: over `sm`, which
/// is the quickest. Elsewhere they would say the same again.
pub(crate) fn lengths(device: &Device, small: usize, most: usize) -> Vec<usize> {
    let edges = (0..32).map(|bit| 1usize << bit).flat_map(|power| [power - 1, power, power + 1]);
    let ends = [most.saturating_sub(1), most];
    let mut all: Vec<_> = edges.filter(|len| *len <= most).chain(ends).collect();
    if carrier(device) == "sm" {
        all.extend((0..=most.min(small)).chain((small..most).step_by(97)));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Runs a check. One that stands among the exceptions (its name, and the reason) must fail: an
/// exception that is not needed any more fails too. One whose name has a question mark before it
/// fails by chance, and is left out.
///
/// # Panics
///
/// The check fails, or an excepted one does not.
pub fn run(name: &str, exceptions: &[(&str, &str)], device: &Device, check: fn(&Device)) {
    if exceptions.iter().any(|(excepted, _)| excepted.strip_prefix('?') == Some(name)) {
        return;
    }
    match exceptions.iter().find(|(excepted, _)| *excepted == name) {
        None => check(device),
        Some((_, reason)) => {
            let outcome = catch_unwind(AssertUnwindSafe(|| check(device)));
            assert!(outcome.is_err(), "{name} passes: remove the exception ({reason})");
        }
    }
}

/// Makes one `#[test]` of every check, in a module `$transport`: `conformance!(sm, || device)`.
/// What the transport cannot do stands in a list of names and reasons: `conformance!(sm, || device,
/// except: [("multicast", "no multicast on shared memory")])`.
#[macro_export]
macro_rules! conformance {
    ($transport:ident, $device:expr) => { $crate::conformance!($transport, $device, except: []); };
    ($transport:ident, $device:expr, except: $exceptions:expr) => {
        mod $transport {
            use super::*;
            $crate::conformance_tests! { $device, $exceptions;
                connect: connect_and_accept, payload_of_every_length, payload_too_long, bad_uri,
                    multicast_without_multicast, reject, dropped_request_is_rejected,
                    nobody_listens, failed_many_times, connect_times_out, server_without_buffers, late_accept,
                    timeout_of_zero,
                    patient_connect, two_connects_in_flight, many_connects_in_flight,
                    connect_to_itself, request_kept_open, double_answer, accept_of_another_event,
                    return_of_unanswered_request, many_connections, reconnect_many_times;
                message: every_length, too_long, vectored, vectored_too_long, empty_messages,
                    every_context, silent, blocking, blocking_many_ways, no_copy, foreign_flags,
                    zero_byte_after_payload, payload_is_aligned, payload_is_writable,
                    many_outstanding;
                order: reliable_ordered, completions_in_order, reliable_unordered, unreliable,
                    both_directions;
                events: nothing_to_report, returned_in_any_order, returned_from_another_thread,
                    kept_after_later_events, kept_after_disconnect, returned_twice,
                    request_payload_is_kept, every_field;
                disconnect: published_is_delivered, published_is_delivered_after_close,
                    open_operations_end_once, open_operations_end_when_peer_closes,
                    later_sends_are_refused, twice, disconnect_event, no_disconnect_event,
                    other_connections_live, keepalive_comes_at_once, answered_client_leaves;
                flow: sender_without_buffers, receiver_without_buffers, receiver_that_never_returns,
                    peer_that_never_polls, sends_while_holding_everything,
                    send_timeout_spares_others, flood_leaves_room, newcomers_connect_where_all_buffers_are_held;
                pause: nothing_is_lost, others_go_on, at_any_moment, this_side_goes_on, death_is_told,
                    ends_with_the_connection, refused, sleepers, large_messages_wait;
                keepalive: silent_peer, silent_for_its_time, polling_peer, set_later;
                rma: lengths_and_offsets, large_write, large_read, both_origins,
                    freed_memory_is_kept, changing_memory, changing_word_is_whole,
                    message_after_data, message_after_read, fence_orders, send_after_rma,
                    silent_and_blocking, many_outstanding, many_outstanding_with_message, to_itself,
                    after_disconnect, counted;
                rma_rights: rights_are_enforced, rights_are_waived, stale_handle, invented_handle,
                    remote_range, local_range, refused_at_once, unreliable_connection,
                    registration_refused, deregistered_twice, half_a_handle, distinct_registrations,
                    local_handle_of_another_endpoint, handles_are_not_guessable, import_or_rma;
                atomics: each_operation, refused_words, refused_at_once, all_agree, fenced,
                    blocking, sleepers_wake;
                rooms: every_way_of_writing, in_the_order_of_sending, behind_a_full_peer,
                    kept_and_dropped, refused_rooms, peer_goes_away, sleeper_wakes;
                large: every_length, among_others, many_at_once, both_ways, waits_for_room, refused,
                    peer_goes_away, silent_and_blocking, sleepers_wake, memory_is_used_again,
                    many_times, few_buffers;
                rma_private: serves_one_connection, serves_one_locally, ends_with_its_connection,
                    needs_a_connection_with_rma;
                options: defaults, set_and_get, out_of_range, of_a_connection,
                    of_a_closed_connection, alignment, counters, report_of_a_broken_connection,
                    down_device;
                handle: one_event_per_wake, sleeper_for_each_sleep, answers_at_once, stays_readable,
                    held_without_polling, becomes_quiet, connect_wakes, timeouts_wake, room_wakes,
                    refused_send_wakes, room_is_told, returned_event_wakes_the_refused,
                    room_wakes_though_events_are_held, epoll, rma_wakes;
                threads: many_pollers, many_senders, many_rma, one_thread_only,
                    returned_by_another_thread_when_single, open_and_close;
                batch: in_order, handler_answers, answers_find_room, panic_loses_nothing,
                    wait_for_each, wake_ends_a_wait, wake_of_one_thread, request_tells_its_peer;
                broker: accepted_elsewhere, many_workers, refused_elsewhere;
            }
        }
    };
}

/// The tests of [`conformance!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($device:expr, $exceptions:expr; $family:ident: $($check:ident),+; $($rest:tt)*) => {
        mod $family {
            use super::*;
            $(
                #[test]
                fn $check() {
                    let name = concat!(stringify!($family), "::", stringify!($check));
                    $crate::suite::run(name, &$exceptions, &($device)(), $crate::suite::$family::$check);
                }
            )+
        }
        $crate::conformance_tests! { $device, $exceptions; $($rest)* }
    };
    ($device:expr, $exceptions:expr;) => {};
}
