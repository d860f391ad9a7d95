//! Whoever sleeps on its handle is woken for every word of a peer that it waits for. Both sides of
//! each exchange do nothing but wait for the handle and then take events until there is none.

use cci::__binding::{Contract, Flags};
use cci::{Connection, EventKind, Notify, Rights, Rma, SharedMemory};
use cci_conformance::sleepers::{self, Sleeper, both, handle_in};
use cci_conformance::sm_raw::{GRANTS, RawPeer, learn};
use cci_conformance::{open, pattern, sm_device, while_polled};

/// The same without luck: who has the WELCOME finds the slots granted.
#[test]
fn first_slots_are_granted_before_the_welcome() {
    let (server, honest) = (open(&sm_device()), open(&sm_device()));
    let hello = learn(&honest, 98_601);
    while_polled(&server, || {
        for round in 0..100 {
            let peer = RawPeer::enter(server.uri(), &hello, || ());
            let words: [u8; 16] = peer.read(GRANTS);
            // Of the first lap: 1 in the upper half.
            let granted = words.chunks_exact(4).filter(|word| word[2..] == [1, 0]).count();
            assert_eq!(granted, 4, "round {round}: {words:?}");
        }
    });
}

/// Segments of library memory travel on the socket; each is announced while its peer sleeps.
#[test]
fn new_segments_wake_peers_that_sleep() {
    const LEN: usize = 10_000;
    const ROUNDS: u64 = 100;
    let client = |sleeper: &mut Sleeper<'_>, connection: Connection| {
        let target = SharedMemory::new(LEN).expect("memory of the library");
        let local = sleeper.endpoint.register_memory(target.memory(), Rights::NONE).expect("a registration");
        for round in 0..ROUNDS {
            let remote = handle_in(&sleeper.next_of(EventKind::Recv));
            let rma = Rma::new(&local, &remote, LEN as u64).message(&b"read"[..]);
            sleeper.endpoint.rma(connection, &rma, round, Flags::READ).expect("an RMA");
            assert_eq!(sleeper.next_of(EventKind::Send).outcome(), Ok(()));
            assert!(target.to_vec(0, LEN) == pattern(round, LEN), "other bytes in round {round}");
        }
    };
    let server = |sleeper: &mut Sleeper<'_>, connection: Connection| {
        for round in 0..ROUNDS {
            let memory = SharedMemory::new(LEN).expect("memory of the library");
            memory.write(0, &pattern(round, LEN));
            let handle = sleeper.endpoint.register_memory(memory.memory(), Rights::READ).expect("a registration");
            sleeper.endpoint.send(connection, &handle.to_bytes(), Notify::OnFailure(0)).expect("a send");
            sleeper.next_of(EventKind::Recv);
            sleeper.endpoint.deregister(&handle).expect("deregistered");
        }
    };
    both(&sm_device(), |_| (), client, server);
}

#[test]
fn connects_with_a_payload_wake_clients_that_sleep() {
    sleepers::connects_with_a_payload_wake_clients_that_sleep(&sm_device());
}

#[test]
fn requests_and_answers_wake_sleepers_when_there_is_room() {
    sleepers::requests_and_answers_wake_sleepers_when_there_is_room(&sm_device());
}

#[test]
fn room_for_messages_wakes_senders_that_sleep() {
    sleepers::room_for_messages_wakes_senders_that_sleep(&sm_device());
}

#[test]
fn relayed_rma_wakes_initiator_and_target_that_sleep() {
    let mut device = sm_device();
    device.arguments.push(("rma".into(), "segment".into()));
    sleepers::rma_wakes_initiator_and_target_that_sleep(&device);
}

#[test]
fn rest_of_two_peers_that_are_gone_reaches_a_sleeper() {
    sleepers::rest_of_two_peers_that_are_gone_reaches_a_sleeper(&sm_device(), 4, 30);
}
