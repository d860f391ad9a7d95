//! A program that sleeps between messages, where its host has a processor for each process and
//! where it has not.

#![forbid(unsafe_code)]

use cci::{Attribute, set_oversubscribed};
use cci_conformance::{World, open, readable, sm_device};
use std::os::fd::AsFd;
use std::time::Duration;

/// Enough short waits for an endpoint to spin, also on a machine that makes some of them long.
const ROUNDS: u32 = 2000;

/// After so many looks in vain a program that does not spin is to sleep.
const LOOKS: u32 = 8;

/// Waits of a sleeping program that end soon: how often its handle stays readable although there
/// is nothing, so that the program polls on.
fn spins() -> u32 {
    let (server, client) = (open(&sm_device()), open(&sm_device()));
    let world = World::new([&server, &client]);
    let (_, to_client) = world.connect(1, 0, Attribute::ReliableOrdered);
    drop(world);
    let handle = client.as_fd();
    let mut spins = 0;
    for round in 0..ROUNDS {
        let looks = || client.get_event().expect("usable").is_some() || readable(handle, Duration::ZERO);
        spins += u32::from((0..LOOKS).all(|_| looks()));
        server.send(to_client, b"soon", u64::from(round)).expect("room");
        while client.get_event().expect("usable").is_none() {}
        while server.get_event().expect("usable").is_some() {}
    }
    spins
}

#[test]
fn waits_spin_only_where_no_other_process_waits_for_the_processor() {
    assert!(spins() > ROUNDS / 20, "short waits do not make it spin");
    set_oversubscribed(true);
    let (many, more) = (spins(), ROUNDS / 100);
    // A handle may be readable for nothing now and then.
    assert!(many <= more, "{many} of {ROUNDS} waits");
    set_oversubscribed(false);
    assert!(spins() > ROUNDS / 20, "and again");
}
