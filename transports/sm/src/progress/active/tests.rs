//! The work of a call is that of the lanes that carry messages, and hints only speed a frame up.

use super::{FEW, HINTS_PER_CALL};
use crate::fixture::{End, LIMIT, OPTIONS};
use crate::progress::poll::{LOOK_EVERY, SWEEP_EVERY};
use cci_mem::arena::SharedMemory;
use cci_mem::hints::{BITS, WORDS};
use cci_mem::sync::Ordering;
use cci_proto::{Access, Attribute, EventKind, Rights};
use cci_transport::{Connect, Connection, Posted, Rma, Slot, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Instant;

impl End {
    /// Calls until the lanes that carry nothing are cold.
    fn cool_down(&mut self) {
        let begin = Instant::now();
        let few = if self.sm.seen().lanes.len() > FEW { 1 } else { FEW };
        while self.sm.seen().hot.len() > few || !self.sm.seen().timed.is_empty() {
            // The last ACCEPT.
            if let Some(slot) = self.call() {
                assert!(slot.give_back());
            }
            assert!(begin.elapsed() < LIMIT, "{} lanes stay hot", self.sm.seen().hot.len());
        }
    }

    /// Lanes that so many calls look at which find nothing.
    fn looks(&mut self, calls: u32) -> u64 {
        let before = self.sm.seen().looks.get();
        for _ in 0..calls {
            assert!(self.call().is_none());
        }
        self.sm.seen().looks.get() - before
    }
}

/// An endpoint and peers of it.
struct Clients {
    server: End,
    clients: Vec<(End, &'static Connection)>,
}

impl Clients {
    fn new(count: usize) -> Self {
        let mut server = End::new();
        let clients = (0..count).map(|_| {
            let mut client = End::new();
            let cell = client.connect(&mut server);
            (client, cell)
        });
        let clients = clients.collect();
        Self { server, clients }
    }

    /// A client whose lane is cold sends.
    fn send_from_the_cold(&mut self) -> u32 {
        let hot: Vec<bool> = (0..self.clients.len() as u32)
            .map(|number| self.server.sm.seen().lane(number).is_some_and(|lane| lane.schedule.is_hot()))
            .collect();
        let at = hot.iter().position(|hot| !hot).expect("a cold lane");
        // The lanes of this server have the numbers of their clients.
        let (client, cell) = &mut self.clients[at];
        client.send(cell);
        u32::try_from(at).expect("few")
    }
}

#[test]
fn an_empty_call_looks_at_as_many_lanes_with_sixty_peers_as_with_ten() {
    let looks = [10, 60].map(|count| {
        let mut clients = Clients::new(count);
        clients.server.cool_down();
        clients.server.looks(1000)
    });
    // Of the one hot lane: a call that finds nothing and looks at the descriptors looks at the
    // lanes again.
    let most = 1000 * 2 + u64::from(1000 / SWEEP_EVERY) + 1;
    assert!(looks[1] <= most, "{looks:?}");
    assert!(looks[1] <= looks[0] + looks[0] / 4, "{looks:?}");
}

#[test]
fn a_cold_lane_is_found_by_its_hint_in_the_next_call() {
    let mut clients = Clients::new(20);
    clients.server.cool_down();
    for _ in 0..5 {
        let number = clients.send_from_the_cold();
        assert_eq!(clients.server.calls_until_message(100), 1);
        assert!(clients.server.sm.seen().lane(number).is_some_and(|lane| lane.schedule.is_hot()));
    }
}

#[test]
fn a_hint_that_is_lost_only_delays() {
    let mut clients = Clients::new(20);
    clients.server.cool_down();
    for _ in 0..5 {
        clients.send_from_the_cold();
        for word in clients.server.sm.seen().state.ready_page.words64(0, WORDS) {
            word.store(0, Ordering::Relaxed);
        }
        // The wake-up is read at the next look at the descriptors, or the lane has its turn before.
        assert!(clients.server.calls_until_message(LOOK_EVERY + 1) > 0);
    }
}

#[test]
fn false_hints_waste_a_bounded_number_of_looks_and_delay_nobody() {
    let mut clients = Clients::new(20);
    clients.server.cool_down();
    let lie = |server: &End| {
        for word in server.sm.seen().state.ready_page.words64(0, WORDS) {
            word.store(u64::MAX, Ordering::Relaxed);
        }
    };
    for _ in 0..200 {
        lie(&clients.server);
        let most = (2 * (FEW + HINTS_PER_CALL) + 2) as u64;
        assert!(clients.server.looks(1) <= most);
    }
    // A hot lane is found at once, a cold one when its turn among all bits comes, or its wake-up is
    // read.
    for most in [BITS / HINTS_PER_CALL as u32 + 1, 2] {
        lie(&clients.server);
        let number = clients.send_from_the_cold();
        assert!(clients.server.calls_until_message(most.max(LOOK_EVERY + 1)) > 0);
        lie(&clients.server);
        let (client, cell) = &mut clients.clients[number as usize];
        client.send(cell);
        assert!(clients.server.calls_until_message(2) <= 2, "a hot lane waits for false hints");
    }
}

#[test]
fn a_sleeper_with_many_peers_is_woken_by_each() {
    let mut clients = Clients::new(60);
    clients.server.cool_down();
    let Clients { server, clients } = &mut clients;
    for (client, cell) in clients {
        while !server.sm.arm(&mut server.core) {
            assert!(server.call().is_none());
        }
        client.send(cell);
        let handle = server.sm.handle();
        let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)), Ok(1), "nobody woke it");
        server.calls_until_message(3);
    }
}

/// An RMA that reads the socket for the segment of its target may read a wake-up there. Nothing
/// else tells of the frame.
#[test]
fn a_wake_up_that_an_rma_reads_keeps_its_frame() {
    let mut clients = Clients::new(20);
    clients.server.cool_down();
    let Clients { server, clients } = &mut clients;
    let target = SharedMemory::new(4096).expect("memory");
    for at in [3, 7, 11] {
        let (client, cell) = &mut clients[at];
        assert!(server.sm.seen().lane(at as u32).is_some_and(|lane| !lane.schedule.is_hot()), "a cold lane");
        let local = server.sm.register(&mut server.core, target.memory(), Rights::NONE, None).expect("a registration");
        while !server.sm.arm(&mut server.core) {
            assert!(server.call().is_none());
        }
        // Unread, until the read below.
        let memory = SharedMemory::new(4096).expect("memory");
        let remote = client.sm.register(&mut client.core, memory.memory(), Rights::READ, None).expect("a registration");
        client.send(cell);
        let to_client =
            server.sm.seen().lane(at as u32).and_then(|lane| lane.table.cells().next()).expect("a connection");
        let rma = Rma {
            local: &local,
            local_offset: 0,
            remote: &remote,
            remote_offset: 0,
            len: 64,
            access: Access::Read,
            fence: false,
            message: None,
        };
        server.sm.rma(&mut server.core, to_client, &rma, Posted::Silent(0)).expect("a read");
        server.sm.settle(&mut server.core);
        let handle = server.sm.handle();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&now)), Ok(1), "the frame would wait");
        server.calls_until_message(3);
        server.sm.deregister(&mut server.core, &local).expect("it ends");
    }
}

/// A program that returns each event before it asks for the next one never holds more than one.
#[test]
fn what_the_program_has_not_come_to_stays_in_the_rings() {
    const SENDERS: u64 = 32;
    const EACH: u64 = 200;
    let mut clients = Clients::new(SENDERS as usize);
    clients.server.cool_down();
    for (client, cell) in &mut clients.clients {
        (0..EACH).for_each(|_| client.send(cell));
    }
    assert!(SENDERS * EACH > 4 * OPTIONS.recv_count as u64, "what waits needs more slots than there are");
    let mut most = 0;
    for _ in 0..SENDERS * EACH {
        clients.server.calls_until_message(LOOK_EVERY + 1);
        most = most.max(clients.server.core.recv_count().0 - clients.server.core.recv_free());
    }
    assert_eq!(clients.server.core.counters().refused.load(Ordering::Relaxed), 0);
    assert!(most <= 64, "{most} slots in use");
}

/// A look at a line takes it away from the peer that is about to write it.
#[test]
fn a_call_that_has_found_a_frame_ends_at_the_first_empty_lane() {
    let mut clients = Clients::new(10);
    clients.server.cool_down();
    for number in 0..10 {
        clients.server.sm.slow().make_hot(number, false);
    }
    for at in 0..clients.clients.len() {
        let number = u32::try_from(at).expect("few");
        let (client, cell) = &mut clients.clients[at];
        client.send(cell);
        let server = &mut clients.server;
        let turn = server.sm.seen().hot.iter().position(|hot| *hot == number).expect("a hot lane");
        server.sm.slow().turn = turn;
        let before = server.sm.seen().looks.get();
        assert_eq!(server.calls_until_message(1), 1);
        assert_eq!(server.sm.seen().looks.get() - before, 2);
    }
}

/// All rings hold more than anyone's share: what is taken first is shared out.
#[test]
fn a_hundred_senders_get_at_least_half_of_their_share() {
    const SENDERS: usize = 100;
    let mut clients = Clients::new(SENDERS);
    clients.server.cool_down();
    for (client, cell) in &mut clients.clients {
        (0..40).for_each(|_| client.send(cell));
    }
    let mut taken: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
    let (begin, mut count) = (Instant::now(), 0);
    while count < 20 * SENDERS {
        assert!(begin.elapsed() < LIMIT, "only {count} messages came");
        let Some(slot) = clients.server.call() else { continue };
        let connection = slot.connection.get().map_or(0, |cell| std::ptr::from_ref(cell).addr());
        *taken.entry(connection).or_default() += 1;
        count += 1;
        assert!(slot.give_back());
    }
    assert_eq!(taken.len(), SENDERS, "some got nothing");
    assert!(taken.values().all(|own| *own >= 10), "{taken:?}");
}

/// Peers that ask for connections without end have the slots for requests, and of the others only
/// what no lane wants: a message waits for those that were queued before it, and no others.
#[test]
fn requests_without_end_leave_slots_for_the_messages_of_others() {
    const PEERS: usize = 4;
    const EACH: usize = 50;
    let mut clients = Clients::new(1 + PEERS);
    let Clients { server, clients } = &mut clients;
    server.core.set_recv_count(8).expect("fewer");
    let uri = server.sm.uri().to_owned();
    let (modest, greedy) = clients.split_first_mut().expect("several");
    for (client, _) in &mut *greedy {
        let attribute = Attribute::ReliableOrdered;
        let connect = Connect { uri: &uri, payload: b"", attribute, context: 0, timeout: Some(LIMIT) };
        (0..EACH).for_each(|_| client.sm.connect(&mut client.core, &connect).expect("a connect"));
    }
    // The program takes nothing until all slots are taken.
    (0..1000).for_each(|_| server.sm.progress(&mut server.core));
    modest.0.send(modest.1);
    (0..1000).for_each(|_| server.sm.progress(&mut server.core));
    let (begin, mut requests) = (Instant::now(), 0);
    loop {
        assert!(begin.elapsed() < LIMIT, "no message behind {requests} requests");
        let Some(slot) = server.call() else { continue };
        if slot.kind() == EventKind::Recv as u32 {
            break;
        }
        server.sm.reject(&mut server.core, slot).expect("a rejection");
        assert!(slot.give_back());
        requests += 1;
    }
    // The queue has 72 at a time: those before the message had a slot, and those until it is out.
    assert!(requests <= 2 * (8 + 64), "{requests} of {} requests came first", PEERS * EACH);
}

/// An endpoint with one lane, which spins.
fn pair() -> (End, End, &'static Connection) {
    let (mut client, mut server) = (End::new(), End::new());
    let to_server = client.connect(&mut server);
    server.cool_down();
    (client, server, to_server)
}

/// What a returned slot holds goes back to the peer at the next empty call, unless it is nothing
/// that a peer could wait for: then the next message gets the slot as it is.
#[test]
fn a_returned_slot_waits_for_the_next_message_only_if_nobody_waits_for_what_it_holds() {
    let (mut client, mut server, to_server) = pair();
    let held_slots =
        |server: &End| server.sm.seen().lanes.iter().flatten().map(|lane| lane.held.inbound()).sum::<u32>();
    let mut stayed = 0;
    for _ in 0..200 {
        while !server.sm.seen().spins {
            assert!(server.call().is_none());
        }
        client.send(to_server);
        assert!(server.message().give_back());
        assert!(server.call().is_none());
        // Not where the clock has ticked meanwhile.
        stayed += held_slots(&server);
    }
    assert!(stayed > 0);
    for _ in 0..20 {
        client.send_bytes(to_server, &[7; 1000]);
        let message = server.message();
        assert_eq!(message.detail(), 1000);
        assert!(message.give_back());
        assert!(server.call().is_none());
        assert_eq!(held_slots(&server), 0, "the payload's slot is not the peer's again");
    }
}

/// Whether a message goes to the program at once, takes a slot of its own, or waits in the queue
/// behind others of a stream.
#[test]
fn messages_keep_their_order_whatever_way_they_go() {
    let (mut client, mut server, to_server) = pair();
    let (mut sent, mut received, mut kept) = (0u64, 0u64, Vec::new());
    for round in 0u64..3000 {
        // A short burst, or a stream that builds up, by turns; every tenth message is long.
        for _ in 0..(round * 7 % 5).min(100u64.saturating_sub(sent - received)) {
            let len = if sent % 10 == 9 { 200 } else { 8 + sent as usize % 49 };
            let mut bytes = vec![0; len];
            bytes[..8].copy_from_slice(&sent.to_le_bytes());
            client.send_bytes(to_server, &bytes);
            sent += 1;
        }
        for _ in 0..round * 3 % 7 {
            let Some(message) = server.call() else { continue };
            let mut bytes = [0; 8];
            #[expect(unsafe_code, reason = "the bytes are read where the library has put them")]
            // SAFETY: the event is borrowed, and is returned below; there is no other thread.
            let len = unsafe { message.copy_payload(&mut bytes) };
            assert_eq!((message.kind(), len), (EventKind::Recv as u32, 8));
            assert_eq!(u64::from_le_bytes(bytes), received);
            received += 1;
            kept.push(message);
        }
        // The program keeps none, one, or several.
        while kept.len() as u64 > round / 100 % 4 {
            let slot: &Slot = kept.remove(0);
            assert!(slot.give_back());
        }
    }
    assert!(received > 3000, "{received}");
}

/// A lane's number is given to another one: nothing that names the first may concern the second.
#[test]
fn nothing_names_a_lane_that_is_gone() {
    let mut server = Clients::new(1).server;
    let number =
        server.sm.seen().hot.first().copied().or_else(|| server.sm.seen().timed.first().copied()).expect("a lane");
    let state = &mut server.sm.slow().state;
    state.protocol_errors.push(number);
    state.contention.push(number);
    state.newly_hot.push(number);
    server.sm.slow().remove_lane(number);
    let (sm, state) = (server.sm.seen(), &server.sm.seen().state);
    for list in [&sm.hot, &sm.timed, &state.newly_hot, &state.newly_timed, &state.protocol_errors] {
        assert!(!list.contains(&number), "{list:?}");
    }
    assert!(state.contention.wanting() == 0 && sm.vacant == [number]);
}
