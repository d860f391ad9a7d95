//! How VIs find each other, and what comes of those that do not.

use crate::world::{TRANSPORTS, attributes, device, discriminator};
use cci_conformance::LIMIT;
use cci_via::{Address, Connected, Error, Idle, Nic, Reliability, Vi, ViAttributes};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(100);

fn idle(nic: &Nic, level: Reliability) -> Vi<Idle> {
    let tag = nic.protection().expect("a tag");
    Vi::new(nic, &ViAttributes { tag, ..attributes(level) }, None, None).expect("a VI")
}

/// Connects two VIs of one or two NICs.
pub(crate) fn connect(server: &Nic, at: Vi<Idle>, client: &Nic, from: Vi<Idle>) -> (Vi<Connected>, Vi<Connected>) {
    let name = discriminator("connect");
    let (local, remote) = (Address::new(client.host(), b"c"), Address::new(server.host(), &name));
    std::thread::scope(|scope| {
        let accepted =
            scope.spawn(|| server.listen(&remote, Some(LIMIT)).expect("a client").accept(at).expect("agreed"));
        let client = until_matched(from, &local, &remote).expect("a server");
        (accepted.join().expect("the server"), client)
    })
}

fn until_matched(mut vi: Vi<Idle>, local: &Address, remote: &Address) -> Result<Vi<Connected>, (Vi<Idle>, Error)> {
    let begun = Instant::now();
    loop {
        match vi.request(local, remote, LIMIT) {
            Err((back, Error::NoMatch)) if begun.elapsed() < LIMIT => vi = back,
            ended => return ended,
        }
        std::thread::yield_now();
    }
}

#[test]
fn both_models_connect_over_each_transport() {
    for transport in TRANSPORTS {
        let device = device(transport);
        let [one, other] = [Nic::open(&device).expect("a NIC"), Nic::open(&device).expect("a NIC")];
        for level in crate::world::LEVELS {
            let (a, b) = connect(&one, idle(&one, level), &other, idle(&other, level));
            assert!(a.is_connected() && b.is_connected());
            let [left, right] = [discriminator("left"), discriminator("right")];
            let (left, right) = (Address::new(one.host(), &left), Address::new(other.host(), &right));
            // One thread drives both.
            let a = a.disconnect().peer(&left, &right, LIMIT).expect("addresses");
            let b = b.disconnect().peer(&right, &left, LIMIT).expect("addresses");
            let (mut a, mut b) = (a, b);
            let mut connected = [false; 2];
            while connected != [true; 2] {
                connected = [a.poll().expect("under way"), b.poll().expect("under way")];
            }
            let (mut a, mut b) = (a.wait().expect("connected"), b.wait().expect("connected"));
            assert!(a.is_connected() && b.is_connected());
            assert!(a.sent().expect("a VI").is_none() && b.sent().expect("a VI").is_none());
        }
    }
}

#[test]
fn a_client_sees_why_it_is_not_connected() {
    let device = device("sm");
    let [server, client] = [Nic::open(&device).expect("a NIC"), Nic::open(&device).expect("a NIC")];
    let name = discriminator("server");
    let (local, remote) = (Address::new(client.host(), b"client"), Address::new(server.host(), &name));
    let vi = idle(&client, Reliability::Delivery);

    let (vi, why) = vi.request(&local, &remote, LIMIT).expect_err("nobody waits");
    assert_eq!(why, Error::NoMatch);
    let (vi, why) = vi.request(&local, &remote, Duration::ZERO).expect_err("no time");
    assert!(matches!(why, Error::Parameter(_)));
    let (vi, why) = vi.request(&local, &Address::new(Ipv4Addr::LOCALHOST, &[1; 65]), LIMIT).expect_err("too long");
    assert!(matches!(why, Error::Parameter(_)));
    let (vi, why) = vi.request(&local, &Address::new(Ipv4Addr::LOCALHOST, b""), LIMIT).expect_err("empty");
    assert!(matches!(why, Error::Parameter(_)));
    // No route leads to addresses of class E.
    let (vi, why) = vi.request(&local, &Address::new(Ipv4Addr::new(240, 0, 0, 1), b"x"), SHORT).expect_err("no host");
    assert!(matches!(why, Error::NotReachable | Error::Timeout | Error::NoMatch), "{why}");

    // Rejected.
    let (vi, why) = std::thread::scope(|scope| {
        scope.spawn(|| server.listen(&remote, Some(LIMIT)).expect("a client").reject());
        until_matched(vi, &local, &remote).expect_err("rejected")
    });
    assert_eq!(why, Error::Reject);

    // Not answered in time; the server then finds the client gone.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.listen(&remote, Some(LIMIT)).expect("a client"));
        let begun = Instant::now();
        let mut vi = vi;
        let why = loop {
            match vi.request(&local, &remote, SHORT) {
                Err((back, Error::NoMatch)) if begun.elapsed() < LIMIT => vi = back,
                Err((_, why)) => break why,
                Ok(_) => panic!("nobody accepts"),
            }
        };
        assert_eq!(why, Error::Timeout);
        let mut incoming = waiting.join().expect("the server");
        let (_, why) = incoming.accept(idle(&server, Reliability::Delivery)).expect_err("the client is gone");
        assert_eq!(why, Error::Timeout);
    });

    assert_eq!(server.listen(&remote, Some(SHORT)).err(), Some(Error::Timeout));
    let elsewhere = Address::new(Ipv4Addr::new(192, 0, 2, 1), b"x");
    assert!(matches!(server.listen(&elsewhere, Some(SHORT)), Err(Error::Parameter(_))));
}

#[test]
fn attributes_that_differ_are_refused_without_a_word_to_the_client() {
    let device = device("sm");
    let [server, client] = [Nic::open(&device).expect("a NIC"), Nic::open(&device).expect("a NIC")];
    let name = discriminator("strict");
    let (local, remote) = (Address::new(client.host(), b"client"), Address::new(server.host(), &name));
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let mut incoming = server.listen(&remote, Some(LIMIT)).expect("a client");
            let tag = server.protection().expect("a tag");
            let new = |attributes| Vi::new(&server, &ViAttributes { tag, ..attributes }, None, None).expect("a VI");
            let own = *incoming.asking().attributes();
            let other = new(ViAttributes { reliability: Reliability::Reception, ..own });
            assert_eq!(incoming.accept(other).expect_err("another level").1, Error::Reliability);
            let other = new(ViAttributes { max_transfer: 100, ..own });
            assert_eq!(incoming.accept(other).expect_err("another maximum").1, Error::TransferSize);
            incoming.accept(new(own)).expect("the same")
        });
        let vi = until_matched(idle(&client, Reliability::Delivery), &local, &remote).expect("the third is right");
        assert!(vi.is_connected());
        drop(accepted.join().expect("the server"));
    });
}

#[test]
fn peers_that_do_not_agree_end_both() {
    let device = device("sm");
    let [one, other] = [Nic::open(&device).expect("a NIC"), Nic::open(&device).expect("a NIC")];
    let (left, right) =
        (Address::new(one.host(), &discriminator("l")), Address::new(other.host(), &discriminator("r")));
    let a = idle(&one, Reliability::Delivery).peer(&left, &right, LIMIT).expect("addresses");
    let b = idle(&other, Reliability::Reception).peer(&right, &left, LIMIT).expect("addresses");
    let (a, b) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| a.wait().expect_err("they differ"));
        let b = b.wait().expect_err("they differ");
        (waiting.join().expect("a thread"), b)
    });
    assert_eq!((a.1, b.1), (Error::Reliability, Error::Reliability));
    let other_idle = b;

    // The two models do not meet.
    let (a, b) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.listen(&left, Some(SHORT * 4)).err());
        let asking = a.0.peer(&right, &left, SHORT).expect("addresses").wait().expect_err("nobody asks so");
        (asking, waiting.join().expect("a thread"))
    });
    assert_eq!((a.1, b), (Error::Timeout, Some(Error::Timeout)));
    let (a, b) = (a, other_idle);

    // Nobody comes, on either side of the comparison.
    let alone = a.0.peer(&left, &right, SHORT).expect("addresses").wait().expect_err("alone");
    assert_eq!(alone.1, Error::Timeout);
    let alone = b.0.peer(&right, &left, SHORT).expect("addresses").wait().expect_err("alone");
    assert_eq!(alone.1, Error::Timeout);
    let (_, why) = alone.0.peer(&left, &left, SHORT).expect_err("one address");
    assert!(matches!(why, Error::Parameter(_)));
}
