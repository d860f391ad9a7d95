//! The handle of a program that waits for edges.

use crate::memory_link::Hub;
use crate::world::{End, How, LIMIT, join, message};
use cci_proto::Attribute::ReliableOrdered as RO;
use cci_transport::{Core, Posted, Transport, monotonic};
use std::time::Instant;

/// A call took the time of an older call for now, and relied on a timer that had fired: it received
/// an acknowledgement only, answered EAGAIN, and left no edge.
#[test]
fn a_call_without_event_gives_an_edge_though_it_received_something() {
    let hub = Hub::new();
    hub.take_rings();
    let (a, b) = (End::open(&hub, How::default()), End::open(&hub, How::default()));
    let (to_b, to_a) = join(&[&a, &b], RO);
    let arm = |core: &mut Core, transport: &mut dyn Transport| {
        core.set_handle_in_use();
        transport.arm(core)
    };
    let waker = b.cell.with(|_, transport| transport.waker()).expect("usable");
    while !b.cell.with(arm).expect("usable") {
        assert!(b.poll().is_none());
    }
    let get_event = || b.cell.next_event().expect("usable");
    // Short waits: the handle is in adaptive spin, and its endpoint tries the timer after some
    // empty calls.
    let begun = Instant::now();
    while hub.rings().is_empty() {
        assert!(begun.elapsed() < LIMIT, "no adaptive spin");
        get_event();
        a.post(to_b, b"soon", Posted::Silent(0)).expect("a send");
        // It may wait for its turn by the rate of the path.
        let sent = loop {
            match get_event() {
                Some(sent) => break sent,
                None => assert!(a.poll().is_none() && begun.elapsed() < LIMIT, "what has just been sent"),
            }
        };
        b.give_back(sent);
        a.poll();
    }
    let edge = *hub.rings().last().expect("just seen");
    b.post(to_a, b"to be acknowledged", Posted::Silent(0)).expect("a send");
    assert_eq!(message(&[&a], 0), b"to be acknowledged");
    while hub.frames_under_way() == 0 || monotonic() <= edge {
        assert!(a.poll().is_none());
    }
    // What was written until now has woken the program.
    let mut count = [0; 8];
    let mut is_written = || rustix::io::read(&*waker, &mut count[..]).is_ok();
    while is_written() {}
    let rings = hub.rings().len();
    assert!(get_event().is_none(), "an acknowledgement is no event");
    assert_eq!(hub.frames_under_way(), 0);
    assert!(is_written() || hub.rings().len() > rings, "no edge is to come");
}
