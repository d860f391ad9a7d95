//! Whoever sleeps on its handle over `tcp` is woken for every word of a peer that it waits for.

use cci::Device;
use cci_conformance::{device_of, sleepers};

fn device() -> Device {
    device_of("tcp", &[("ip", "127.0.0.1")])
}

#[test]
fn connects_with_a_payload_wake_clients_that_sleep() {
    sleepers::connects_with_a_payload_wake_clients_that_sleep(&device());
}

#[test]
fn requests_and_answers_wake_sleepers_when_there_is_room() {
    sleepers::requests_and_answers_wake_sleepers_when_there_is_room(&device());
}

#[test]
fn room_for_messages_wakes_senders_that_sleep() {
    sleepers::room_for_messages_wakes_senders_that_sleep(&device());
}

#[test]
fn rma_wakes_initiator_and_target_that_sleep() {
    for check in ["off", "always"] {
        let device = device_of("tcp", &[("ip", "127.0.0.1"), ("check", check)]);
        sleepers::rma_wakes_initiator_and_target_that_sleep(&device);
    }
}

/// As many messages as have grants: the others have not left when their endpoint closes.
#[test]
fn rest_of_two_peers_that_are_gone_reaches_a_sleeper() {
    sleepers::rest_of_two_peers_that_are_gone_reaches_a_sleeper(&device(), 16, 4);
}
