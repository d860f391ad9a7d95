//! Several transports on one core.

#![forbid(unsafe_code)]

use cci_mem::slot::Access;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, Failure, RmaHandle};
use cci_transport::{Asked, Connection, Core, CoreOptions, Endpoint, Landing, Outcome, Placed, Slot};

const SLOTS: usize = 8;

fn core(ways: u8) -> Core {
    let endpoint: &'static Endpoint = Box::leak(Box::default());
    let options = CoreOptions { recv_count: SLOTS, send_count: 8, rma_count: 8, ways, ..CoreOptions::default() };
    Core::new(endpoint, &options).expect("memory")
}

/// Enters a way, and takes a slot for a message that the program gets at once.
fn deliver(core: &mut Core, way: u8) -> Option<&'static Slot> {
    core.enter_way(way);
    let slot = core.take_recv(|_| ());
    core.leave_way();
    let slot = slot?;
    slot.payload.store(u64::from(way) + 1, Ordering::Relaxed);
    core.push(slot);
    core.pop()
}

/// What a way finds that the program has returned.
fn returned(core: &mut Core, way: u8) -> Vec<u64> {
    let mut found = Vec::new();
    core.enter_way(way);
    core.sweep_all_recv(|slot| found.push(slot.payload.load(Ordering::Relaxed)));
    core.leave_way();
    found
}

#[test]
fn a_way_sees_no_slot_of_another_whoever_was_current_when_it_was_handed_out() {
    let mut core = core(3);
    let slots: Vec<_> = [1, 2, 1].map(|way| deliver(&mut core, way).expect("a slot")).to_vec();
    assert_eq!(slots.iter().map(|slot| core.way_of_slot(slot)).collect::<Vec<_>>(), [1, 2, 1]);
    // The only one of its way, handed out while another way is current.
    core.enter_way(0);
    let slot = core.take_recv(|_| ()).expect("a slot");
    slot.payload.store(1, Ordering::Relaxed);
    core.push(slot);
    core.leave_way();
    core.enter_way(2);
    core.leave_way();
    assert!(std::ptr::eq(core.pop().expect("an event"), slot));
    slots.iter().chain([&slot]).for_each(|slot| assert!(slot.give_back()));
    for (way, tokens) in [(2, vec![3]), (0, vec![1]), (1, vec![2, 2])] {
        assert_eq!(returned(&mut core, way), tokens, "way {way}");
        assert!(returned(&mut core, way).is_empty());
    }
}

#[test]
fn the_limit_of_receive_slots_is_for_all_ways_together() {
    let mut core = core(2);
    assert_eq!(core.recv_limit(), SLOTS);
    let mut slots: Vec<_> = (0..SLOTS - 2).map(|_| deliver(&mut core, 0).expect("a slot")).collect();
    slots.extend((0..2).map(|_| deliver(&mut core, 1).expect("a slot")));
    assert!(deliver(&mut core, 1).is_none() && deliver(&mut core, 0).is_none());
    assert!(core.holds_all_recv());
    assert!(slots[0].give_back());
    assert!(!core.holds_all_recv(), "one of way 0 is returned");
    core.enter_way(1);
    core.leave_way();
    assert!(!core.holds_all_recv(), "whichever way is current");
    returned(&mut core, 0);
    assert!(deliver(&mut core, 1).is_some(), "the other way gets it");
    core.set_recv_count(2).expect("in range");
    assert_eq!(core.recv_limit(), 2);
    assert!(slots[1].give_back());
    returned(&mut core, 0);
    assert!(deliver(&mut core, 0).is_none(), "more than two are taken");
}

/// A peer asks for memory by the way of its connection.
fn ask(core: &mut Core, connection: &'static Connection, operation: u32, len: u64) -> Result<(), Failure> {
    core.enter_way(connection.way());
    let asked = core.landings().ask(Asked { connection, operation, len });
    core.leave_way();
    asked
}

/// The operations that get memory when their way is served.
fn placed(core: &mut Core, way: u8) -> Vec<u32> {
    let mut found = Vec::new();
    core.enter_way(way);
    core.place_landings(|_, asked, memory| match memory {
        Some(_) => {
            found.push(asked.operation);
            Placed::Open(None, RmaHandle::from_words([1; 4]))
        }
        None => Placed::Refused,
    });
    core.leave_way();
    found
}

/// The memory of an operation, taken from its way.
fn taken(core: &mut Core, connection: &'static Connection, operation: u32) -> Landing {
    core.enter_way(connection.way());
    let landing = core.landings().take(connection, operation).expect("it is open");
    core.leave_way();
    landing
}

#[test]
fn the_limit_of_large_messages_is_for_all_ways_together() {
    let mut core = core(3);
    let [first, second] = [0, 2].map(|way| {
        core.enter_way(way);
        let connection = core.open_connection(Attribute::ReliableOrdered, 5, 100).expect("memory");
        core.leave_way();
        connection
    });
    core.set_large_limit(1000);
    assert_eq!(ask(&mut core, second, 1, 1001), Err(Failure::TooLong));
    ask(&mut core, first, 1, 800).expect("allowed");
    assert_eq!(placed(&mut core, 0), [1]);
    ask(&mut core, second, 2, 800).expect("it waits");
    assert!(placed(&mut core, 2).is_empty(), "the other way has the room");
    let landing = taken(&mut core, first, 1);
    core.enter_way(0);
    core.landings().give_up(landing);
    core.leave_way();
    assert_eq!(placed(&mut core, 2), [2]);
    // With the program it counts until it is returned, whichever way is asked then.
    let landing = taken(&mut core, second, 2);
    core.enter_way(2);
    let slot = core.take_recv(|_| ()).expect("a slot");
    core.deliver_landing(landing, slot, Access::Private);
    core.leave_way();
    ask(&mut core, first, 3, 300).expect("it waits");
    assert!(placed(&mut core, 0).is_empty(), "the program has 800 bytes");
    assert!(core.pop().expect("an event").give_back());
    assert_eq!(placed(&mut core, 0), [3]);
    [first, second].into_iter().for_each(|connection| core.end_connection(connection));
}

#[test]
fn a_connection_has_its_way_and_is_seen_by_it_alone() {
    let mut core = core(2);
    let open = |core: &mut Core, way| {
        core.enter_way(way);
        let connection = core.open_connection(Attribute::ReliableOrdered, 5, 100).expect("memory");
        core.leave_way();
        connection
    };
    let (first, second) = (open(&mut core, 0), open(&mut core, 1));
    assert_eq!([first, second].map(|connection| (connection.way(), connection.place())), [(0, 0), (1, 1)]);
    assert!(core.has_connection(first) && core.has_connection(second));
    for (way, own) in [(1, second), (0, first)] {
        core.enter_way(way);
        assert!(core.connections().all(|connection| std::ptr::eq(connection, own)));
        assert_eq!(core.connections().count(), 1);
        core.leave_way();
    }
    assert_eq!(core.connection_count(), 2);
    core.end_connection(second);
    core.end_connection(first);
}

#[test]
fn the_handle_is_armed_for_each_way_and_for_the_endpoint() {
    let mut core = core(2);
    core.set_handle_in_use();
    core.enter_way(1);
    assert!(!core.is_handle_in_use() && !core.is_armed());
    core.on_armed();
    core.leave_way();
    assert!(core.is_handle_in_use() && !core.is_armed());
    assert_eq!([0, 1].map(|way| core.is_way_armed(way)), [false, true]);
    core.on_armed();
    core.enter_way(0);
    assert!(!core.is_armed());
    core.leave_way();
    assert!(core.is_armed());
}

#[test]
fn starving_is_of_a_way_and_the_endpoint_calls_for_any() {
    let mut core = core(2);
    let starving = |core: &Core| core.endpoint().starving.load(Ordering::Relaxed);
    for way in [0, 1] {
        core.enter_way(way);
        assert!(!core.is_starving());
        core.set_starving(true);
        core.leave_way();
    }
    core.enter_way(0);
    core.set_starving(false);
    core.leave_way();
    assert!(starving(&core), "way 1 is");
    core.enter_way(1);
    core.set_starving(false);
    core.leave_way();
    assert!(!starving(&core));
}

#[test]
fn requests_and_ends_of_connects_go_to_the_transport_over_the_ways() {
    for ways in [0, 1, 2] {
        let mut core = core(ways);
        core.enter_way(0);
        let request = core.take_recv(|_| ()).expect("a slot");
        request.fill(EventKind::ConnectRequest as u32, 0, [0, 0]);
        core.push_request(request, b"head");
        let slot = core.take_send().expect("a slot");
        core.finish_opening(slot, EventKind::Connect, 7, Err(Failure::Refused));
        core.explain(slot, "nobody is there".into());
        let accepted = core.take_send().expect("a slot");
        core.finish_opening(accepted, EventKind::Accept, 8, Err(Failure::TimedOut));
        core.leave_way();
        if ways == 0 {
            assert!(!core.has_outcomes() && core.take_outcomes().is_empty());
            assert!(std::ptr::eq(core.pop().expect("an event"), request));
            assert!(std::ptr::eq(core.pop().expect("an event"), slot));
            continue;
        }
        assert!(core.has_outcomes());
        let outcomes = core.take_outcomes();
        assert!(matches!(&outcomes[0], Outcome::Request { slot, head }
            if std::ptr::eq(*slot, request) && head.starts_with(b"head\0")));
        assert!(matches!(&outcomes[1], Outcome::Connect { context: 7, outcome: Err(Failure::Refused), .. }));
        assert_eq!(core.reason(slot), Some("nobody is there"));
        assert!(matches!(&outcomes[2], Outcome::Accept { context: 8, outcome: Err(Failure::TimedOut), .. }));
        assert!(core.pop().is_none(), "nothing is queued before the transport over the ways says so");
        core.finish_of_way(accepted, (EventKind::Accept, 80), Err(Failure::TimedOut), None);
        let event = core.pop().expect("an event");
        assert_eq!((event.kind(), event.words()[0]), (EventKind::Accept as u32, 80));
        core.finish_of_way(slot, (EventKind::Connect, 70), Err(Failure::Refused), None);
        let event = core.pop().expect("an event");
        assert_eq!((event.kind(), event.words()[0]), (EventKind::Connect as u32, 70));
    }
}

#[test]
fn what_a_way_reports_of_a_connect_is_not_explained_by_the_slots_last_event() {
    for ways in [0, 1, 2] {
        let mut core = core(ways);
        core.enter_way(0);
        let slot = core.take_send().expect("a slot");
        core.finish_opening(slot, EventKind::Connect, 7, Err(Failure::Refused));
        core.explain(slot, "nobody is there".into());
        // The next connect has the same slot, and its way gives no reason.
        core.finish_opening(slot, EventKind::Connect, 8, Err(Failure::Refused));
        assert_eq!(core.reason(slot), None);
        core.leave_way();
        core.take_outcomes();
    }
}
