//! Peers that never come, go, are killed, come back, and close.

use crate::world::{Side, auto, close, devices, open, two, until};
use cci_conformance::{LIMIT, sm_device};
use cci_peers::{Deferred, Lost, Name, Options, Table, Unreached, Why};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);

fn is_up(side: &mut Side, to: u64) -> bool {
    let peer = side.peer(to);
    side.peers.connection(peer).is_some()
}

#[test]
fn a_peer_that_never_comes_is_named_and_what_waits_comes_back() {
    for device in devices() {
        let gone = open(&device).uri().to_owned();
        let mut table = Table::new();
        table.insert(Name::Number(1), gone);
        let mut sides = vec![Side::new(open(&device), 0, &table, &Options::new().limit(SHORT))];
        let begun = Instant::now();
        // Number 1 has ended; number 2 has no URI at all.
        for (to, operation) in [(1, 7), (1, 8), (2, 9)] {
            sides[0].post(to, operation);
        }
        until(&mut sides, "the limit", |sides| sides[0].failed.len() == 2);
        assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
        sides[0].failed.sort_by_key(|(name, ..)| name.clone());
        for ((name, why, waiting), expected) in sides[0].failed.iter().zip([&[7, 8][..], &[9]]) {
            assert_eq!(waiting, expected);
            assert!(matches!(why, Unreached::NeverCame { name: of, .. } if of == name), "{why:?}");
            assert!(why.to_string().contains(&format!("the peer {name} did not come within")), "{why}");
        }
        close(sides);
    }
}

#[test]
fn a_peer_that_comes_late_gets_what_waited_for_it() {
    for device in devices() {
        let (first, second) = (open(&device), open(&device));
        let uri = first.uri().to_owned();
        let mut sides = vec![Side::new(first, 0, &Table::new(), &Options::new())];
        (1..=5).for_each(|operation| sides[0].post(1, operation));
        for _ in 0..10 {
            sides[0].step();
        }
        assert!(sides[0].failed.is_empty());
        // It finds this side, which has no URI of it.
        let mut table = Table::new();
        table.insert(Name::Number(0), uri);
        sides.push(Side::new(second, 1, &table, &Options::new()));
        sides[1].post(0, 6);
        until(&mut sides, "all numbers", |sides| sides[1].received.len() == 5 && sides[0].received.len() == 1);
        assert!(sides[1].received.iter().map(|(_, number)| *number).eq(1..=5), "in order");
        close(sides);
    }
}

#[test]
fn as_many_operations_wait_as_may_and_no_more() {
    let mut sides = [Side::new(open(&sm_device()), 0, &Table::new(), &Options::new().most_waiting(2))];
    (0..2).for_each(|operation| sides[0].post(1, operation));
    let peer = sides[0].peer(1);
    let side = &mut sides[0];
    let refused = side.peers.defer(&side.endpoint, peer, 3, Instant::now()).expect_err("it is one too many");
    assert_eq!((refused.operation, refused.why), (3, Why::Full));
    assert_eq!(side.peers.peer(&Name::Number(0)), Err(Why::Own));
}

#[test]
fn a_peer_that_went_is_told_apart_and_is_not_waited_for_as_long() {
    for device in devices() {
        let options = Options::new().return_limit(SHORT);
        let mut sides = two(&device, &options);
        sides[0].post(1, 1);
        until(&mut sides, "a link", |sides| sides[1].received.len() == 1);
        let gone = sides.pop().expect("two");
        // A closing endpoint waits for its peers.
        let closing = std::thread::spawn(move || drop(gone));
        until(&mut sides, "its end", |sides| sides[0].downs.len() == 1);
        assert_eq!(sides[0].downs, [(Name::Number(1), Lost::Closed)]);
        sides[0].post(1, 2);
        until(&mut sides, "the limit", |sides| sides[0].failed.len() == 1);
        let (name, why, waiting) = &sides[0].failed[0];
        assert_eq!((name, &waiting[..]), (&Name::Number(1), &[2][..]));
        assert!(matches!(why, Unreached::Went { name: of, .. } if of == name), "{why:?}");
        closing.join().expect("no panic");
        close(sides);
    }
}

/// The first side has an entry that is the second process's by now.
#[test]
fn a_peer_that_comes_back_as_another_process_is_known_as_another() {
    for device in devices() {
        let mut sides = two(&device, &Options::new());
        let uri = sides[0].endpoint.uri().to_owned();
        sides[0].post(1, 1);
        until(&mut sides, "a link", |sides| sides[1].received.len() == 1);
        // The same name, while the link of the old one is up.
        let mut table = Table::new();
        table.insert(Name::Number(0), uri);
        sides.push(Side::new(open(&device), 1, &table, &Options::new()));
        sides[2].post(0, 5);
        until(&mut sides, "the new one", |sides| sides[0].received.len() == 1);
        let one = Name::Number(1);
        assert_eq!(sides[0].ups, [(one.clone(), true), (one.clone(), true)], "{}", device.transport);
        assert_eq!(sides[0].downs, [(one, Lost::Replaced)]);
        until(&mut sides, "the old one's end", |sides| sides[1].downs.len() == 1);
        sides[0].post(1, 6);
        until(&mut sides, "an answer", |sides| sides[2].received.len() == 1);
        close(sides);
    }
}

#[test]
fn a_link_that_is_hung_up_comes_back_to_the_same_process() {
    for device in devices() {
        let mut sides = two(&device, &Options::new());
        sides[0].post(1, 1);
        until(&mut sides, "a link", |sides| sides[1].received.len() == 1 && is_up(&mut sides[0], 1));
        let peer = sides[0].peer(1);
        let side = &mut sides[0];
        side.peers.hang_up(&side.endpoint, peer);
        // At once, before the other side has noticed, and from both sides.
        sides[0].post(1, 2);
        until(&mut sides, "the second number", |sides| sides[1].received.len() == 2);
        assert_eq!(sides[0].ups, [(Name::Number(1), true), (Name::Number(1), false)], "{}", device.transport);
        assert_eq!(sides[1].ups, [(Name::Number(0), true), (Name::Number(0), false)], "{}", device.transport);
        assert_eq!(sides[1].downs, [(Name::Number(0), Lost::Closed)]);
        close(sides);
    }
}

#[test]
fn a_side_that_closes_gives_back_what_waits_and_takes_nobody() {
    for device in devices() {
        let mut sides = two(&device, &Options::new().limit(SHORT).return_limit(SHORT));
        sides[0].post(1, 1);
        until(&mut sides, "a link", |sides| sides[1].received.len() == 1);
        sides[0].post(7, 9);
        let side = &mut sides[0];
        side.peers.close(&side.endpoint);
        until(&mut sides, "both ends", |sides| sides[0].failed.len() == 1 && sides[1].downs.len() == 1);
        assert_eq!(sides[0].failed, [(Name::Number(7), Unreached::Closed, vec![9])]);
        let peer = sides[0].peer(1);
        let side = &mut sides[0];
        let refused = side.peers.defer(&side.endpoint, peer, 2, Instant::now());
        assert!(matches!(refused, Err(refused) if refused.why == Why::Closed));
        sides[1].post(0, 3);
        until(&mut sides, "the limit", |sides| sides[1].failed.len() == 1);
        assert!(matches!(sides[1].failed[0].1, Unreached::Went { .. }), "{:?}", sides[1].failed);
        assert!(sides[0].ups.len() == 1 && sides[0].peers.counts().strangers >= 1);
        close(sides);
    }
}

/// The variable that makes a run of this program the peer that is killed.
const CHILD: &str = "CCI_PEERS_CHILD";

/// Runs only as the child of the next test.
#[test]
fn child() {
    let Ok(uri) = std::env::var(CHILD) else { return };
    let device = if uri.starts_with("sm") { sm_device() } else { auto() };
    let mut table = Table::new();
    table.insert(Name::Number(0), uri);
    let mut side = [Side::new(open(&device), 1, &table, &Options::new())];
    side[0].post(0, 1);
    until(&mut side, "a number", |side| side[0].received.len() == 1);
    let _ = std::io::stderr().write_all(b"linked\n");
    std::thread::sleep(2 * LIMIT);
}

#[test]
fn a_peer_that_is_killed_went() {
    for device in [sm_device(), auto()] {
        let mut sides = [Side::new(open(&device), 0, &Table::new(), &Options::new().return_limit(SHORT))];
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "ends::child", "--nocapture"]).env(CHILD, sides[0].endpoint.uri());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
        sides[0].post(1, 2);
        until(&mut sides, "a link", |sides| sides[0].received.len() == 1);
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("linked"))));
        child.kill().expect("a child");
        until(&mut sides, "its end", |sides| sides[0].downs.len() == 1);
        assert_eq!(sides[0].downs, [(Name::Number(1), Lost::Closed)]);
        sides[0].post(1, 3);
        until(&mut sides, "the limit", |sides| sides[0].failed.len() == 1);
        assert!(matches!(sides[0].failed[0].1, Unreached::Went { .. }), "{:?}", sides[0].failed);
        child.wait().expect("its end");
    }
}

/// An operation for a link that is up is the interface's at once.
#[test]
fn nothing_waits_for_a_link_that_is_up() {
    let mut sides = two(&sm_device(), &Options::new());
    sides[0].post(1, 1);
    until(&mut sides, "a link", |sides| is_up(&mut sides[0], 1));
    let peer = sides[0].peer(1);
    let side = &mut sides[0];
    let now = side.peers.defer(&side.endpoint, peer, 2, Instant::now());
    let connection = side.peers.connection(peer).expect("up");
    assert_eq!(now, Ok(Deferred::Now(connection, 2)));
    assert_eq!((side.peers.peer_of(connection), side.peers.poll_timeout()), (Some(peer), None));
}
