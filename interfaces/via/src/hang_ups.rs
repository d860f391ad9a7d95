//! Askers that follow no invitation: servers and peers serve the next one.

use crate::attributes::Reliability;
use crate::errors::Error;
use crate::liars::{attributes, name};
use crate::nic::Nic;
use crate::pending::INVITED_LIMIT;
use crate::question::Question;
use crate::rendezvous::Address;
use crate::vi::{Idle, Vi};
use cci_conformance::{LIMIT, device_of};
use std::time::{Duration, Instant};

/// A wait that ends by its own time takes 10 s.
const SOON: Duration = Duration::from_secs(5);

fn nic() -> Nic {
    Nic::open(&device_of("sm", &[])).expect("a NIC")
}

fn idle(nic: &Nic) -> Vi<Idle> {
    let tag = nic.protection().expect("a tag");
    Vi::new(nic, &crate::ViAttributes { tag, ..attributes(Reliability::Delivery) }, None, None).expect("a VI")
}

/// Asks until an invitation is there. The asker hangs up when the result is dropped.
fn invited(at: &Address, own: &Address, is_peer: bool) -> Question {
    let begun = Instant::now();
    loop {
        let mut question = Question::new(at, own, &attributes(Reliability::Delivery), is_peer);
        loop {
            assert!(begun.elapsed() < LIMIT, "nobody invites");
            match question.poll() {
                Ok(Some(_)) => return question,
                Ok(None) => std::thread::yield_now(),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn a_server_serves_the_next_client_once_one_has_hung_up() {
    let (server, client) = (nic(), nic());
    let (at, own) = (Address::new(server.host(), &name()), Address::new(client.host(), b"client"));
    std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            let mut vi = idle(&server);
            let mut refused = Vec::new();
            loop {
                match server.listen(&at, Some(LIMIT)).expect("a client").accept(vi) {
                    Ok(vi) => return (vi, refused),
                    Err((back, why)) => {
                        refused.push(why);
                        vi = back;
                    }
                }
            }
        });
        drop(invited(&at, &own, false));
        let (begun, mut vi) = (Instant::now(), idle(&client));
        let connected = loop {
            match vi.request(&own, &at, LIMIT) {
                Err((back, Error::NoMatch)) if begun.elapsed() < SOON => vi = back,
                ended => break ended.map_err(|(_, why)| why).expect("a server"),
            }
            std::thread::yield_now();
        };
        let (accepted, refused) = served.join().expect("the server");
        assert!(connected.is_connected() && accepted.is_connected());
        assert_eq!(refused, [Error::Timeout]);
    });
}

/// A stranger asks in a peer's name. Both peers connect, though it has been invited first.
fn peers_connect_after(stranger: impl FnOnce(&Address, &Address), limit: Duration) {
    let (one, other) = (nic(), nic());
    // The smaller discriminator listens.
    let (left, right) = (Address::new(one.host(), &name()), Address::new(other.host(), b"right"));
    let pending = idle(&one).peer(&left, &right, limit).map_err(|(_, why)| why).expect("a port");
    std::thread::scope(|scope| {
        let listening = scope.spawn(|| pending.wait().map_err(|(_, why)| why));
        stranger(&left, &right);
        let asking = idle(&other).peer(&right, &left, limit).map_err(|(_, why)| why).expect("addresses");
        let asking = asking.wait().map_err(|(_, why)| why).expect("the peer that listens");
        let listening = listening.join().expect("a thread").expect("the peer that asks");
        assert!(listening.is_connected() && asking.is_connected());
    });
}

#[test]
fn a_peer_listens_again_once_a_stranger_has_hung_up() {
    peers_connect_after(|left, right| drop(invited(left, right, true)), SOON);
}

#[test]
fn a_peer_listens_again_once_the_time_of_a_silent_stranger_is_over() {
    let mut kept = None;
    peers_connect_after(|left, right| kept = Some(invited(left, right, true)), INVITED_LIMIT + LIMIT);
    drop(kept);
}
