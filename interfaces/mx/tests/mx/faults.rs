//! Partners that are killed or stopped in each phase of a large message.

use crate::world::{KEY, NIC, bytes, close, connect, device, end, pattern, post, side, until, zeroes};
use cci_conformance::{LIMIT, sm_device};
use cci_mx::{Code, Endpoint, Match, Options, buffer, endpoint_options};
use cci_peers::{Name, Table};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variables that make a run of this program the partner that is killed.
const CHILD: &str = "CCI_MX_CHILD";
const SIZE: usize = 8 << 20;

fn said(words: &[u8]) {
    let _ = std::io::stderr().write_all(words);
}

/// Runs only as the child of the next tests: goes to a state, and makes no more calls.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (state, uri) = task.split_once(' ').expect("a state and a URI");
    let mut table = Table::new();
    table.insert(Name::Number(NIC << 32), uri);
    let endpoint = cci::Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let sides = [side(endpoint, 1, &table, &Options::new())];
    let to = sides[0].connect((NIC, 0), KEY, None).expect("it answers");
    let hello = sides[0].send(zeroes(1), to, 1, 0).expect("room");
    end(&sides, 0, hello);
    match state {
        // Has offered, and nobody has matched; or it is read meanwhile.
        "offering" | "read" => {
            sides[0].send(buffer(pattern(SIZE, 1)), to, 2, 0).expect("room");
        }
        // Has been offered something that it does not match.
        "offered" => {
            until(&sides, "an offer", || sides[0].probe(Match::exact(3), Some(Default::default())).expect("usable"));
        }
        // Reads.
        "reading" => {
            until(&sides, "an offer", || sides[0].probe(Match::exact(3), Some(Default::default())).expect("usable"));
            post(&sides[0], SIZE, 3);
        }
        _ => {}
    }
    said(b"there\n");
    std::thread::sleep(2 * LIMIT);
}

fn start(state: &str, to: &Endpoint) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "faults::child", "--nocapture"]).env(CHILD, format!("{state} {}", to.uri()));
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child")
}

/// Makes progress until the child is there.
fn reach(child: &mut Child, sides: &[Endpoint]) {
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let found = std::thread::spawn(move || lines.any(|line| line.is_ok_and(|line| line.contains("there"))));
    let begun = Instant::now();
    while !found.is_finished() {
        assert!(begun.elapsed() < LIMIT, "the child does not come");
        sides[0].progress().expect("usable");
    }
    assert!(found.join().expect("no panic"));
}

fn kill(mut child: Child) {
    child.kill().expect("a child");
    child.wait().expect("its end");
}

fn meet(state: &str, endpoint: Endpoint, offers: bool) -> (Child, [Endpoint; 1], Vec<cci_mx::Request>) {
    let sides = [endpoint];
    let (hello, _) = post(&sides[0], 1, 1);
    let mut child = start(state, &sides[0]);
    let from = end(&sides, 0, hello).source;
    let mut sends = Vec::new();
    if offers {
        for (size, is_sync) in [(SIZE, false), (8, true)] {
            let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
            sends
                .push(start(&sides[0], buffer(pattern(size, 2)), from, if size > 8 { 3 } else { 4 }, 0).expect("room"));
        }
    }
    reach(&mut child, &sides);
    (child, sides, sends)
}

fn alone() -> Endpoint {
    let endpoint = cci::Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    side(endpoint, 0, &Table::new(), &Options::new())
}

/// Each request ends once, whatever its partner had done of it.
#[test]
fn a_partner_that_is_killed_ends_each_request_once() {
    for state in ["idle", "offered", "reading"] {
        let (child, sides, sends) = meet(state, alone(), true);
        kill(child);
        for send in sends {
            let status = end(&sides, 0, send);
            // A reader may have said so before.
            let is_whole = state == "reading" && status.code == Code::Success;
            assert!(is_whole || status.code == Code::EndpointClosed, "{state}: {status:?}");
        }
        assert_eq!(sides[0].pending(), (0, 0));
    }
    let (child, sides, _) = meet("offering", alone(), false);
    until(&sides, "an offer", || (sides[0].pending().1 == 1).then_some(()));
    kill(child);
    // Nobody can receive it any more; a receive stays for others.
    until(&sides, "its end", || (sides[0].pending().1 == 0).then_some(()));
    let (receive, _) = post(&sides[0], SIZE, 2);
    assert_eq!((sides[0].test(receive), sides[0].cancel(receive)), (Ok(None), Ok(true)));
}

/// A sender is killed while its memory is read: the receive ends once, whole or not at all.
#[test]
fn a_sender_that_is_killed_while_it_is_read_ends_the_receive() {
    let (mut child, sides, _) = meet("read", alone(), false);
    until(&sides, "an offer", || (sides[0].pending().1 == 1).then_some(()));
    let (receive, memory) = post(&sides[0], SIZE, 2);
    child.kill().expect("a child");
    let status = end(&sides, 0, receive);
    match status.code {
        Code::Success => assert!(bytes(&memory) == pattern(SIZE, 1)),
        Code::EndpointClosed | Code::Aborted | Code::EndpointUnreachable => assert_eq!(status.copied, 0),
        other => panic!("{other}"),
    }
    child.wait().expect("its end");
    until(&sides, "its end", || (sides[0].pending() == (0, 0)).then_some(()));
}

/// A partner that is stopped holds up what is for it, until its time is over, and nothing else.
#[test]
fn a_partner_that_is_stopped_holds_up_its_own_requests_alone() {
    let (child, mut sides, sends) = meet("offered", alone(), true);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("a child");
    for send in &sends {
        assert_eq!(sides[0].wait(*send, Some(Duration::from_millis(10))), Ok(None));
        sides[0].set_timeout(*send, Duration::from_millis(1)).expect("a request");
    }
    for send in sends {
        assert_eq!(end(&sides, 0, send).code, Code::Timeout);
    }
    // To another one all goes on.
    let mut table = Table::new();
    table.insert(Name::Number(NIC << 32), sides[0].uri());
    let other = cci::Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let [first] = sides;
    let both = [first, side(other, 5, &table, &Options::new())];
    let request = both[1].start_connect((NIC, 0), KEY, 0, 0).expect("room");
    let to = end(&both, 1, request).source;
    let (receive, _) = post(&both[0], SIZE, 6);
    let send = both[1].send(zeroes(SIZE), to, 6, 0).expect("room");
    assert_eq!((end(&both, 0, receive).code, end(&both, 1, send).code), (Code::Success, Code::Success));
    kill(child);
    sides = both.into_iter().next().map(|first| [first]).expect("two");
    until(&sides, "its end", || (sides[0].pending() == (0, 0)).then_some(()));
}

/// Wherever a partner stops, requests end by their time, or as what has been read already; and what
/// it has offered is read without it.
#[test]
fn a_partner_that_is_stopped_in_any_phase_blocks_nobody() {
    let stop = |child: &Child| {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("a child");
    };
    for state in ["idle", "offered", "reading"] {
        let (child, sides, sends) = meet(state, alone(), true);
        stop(&child);
        for send in sends {
            sides[0].set_timeout(send, Duration::from_millis(1)).expect("a request");
            let status = end(&sides, 0, send);
            let is_whole = state == "reading" && status.code == Code::Success;
            assert!(is_whole || status.code == Code::Timeout, "{state}: {status:?}");
        }
        kill(child);
        until(&sides, "its end", || (sides[0].pending() == (0, 0)).then_some(()));
    }
    let (child, sides, _) = meet("offering", alone(), false);
    until(&sides, "an offer", || (sides[0].pending().1 == 1).then_some(()));
    stop(&child);
    let (receive, memory) = post(&sides[0], SIZE, 2);
    let status = end(&sides, 0, receive);
    assert_eq!((status.code, status.copied as usize), (Code::Success, SIZE));
    assert!(bytes(&memory) == pattern(SIZE, 1));
    kill(child);
}

/// The sender takes its memory back by a time-out; the receive that comes later fails once.
#[test]
fn what_was_offered_and_is_no_more_ends_the_receive_as_aborted() {
    for transport in ["sm", "sim", "tcp"] {
        let sides = crate::world::two_with(&device(transport), &Options::new());
        let to = connect(&sides, 0, 1);
        let send = sides[0].send(zeroes(100_000), to, 1, 0).expect("room");
        until(&sides, "an offer", || (sides[1].pending().1 == 1).then_some(()));
        sides[0].set_timeout(send, Duration::ZERO).expect("a request");
        assert_eq!(end(&sides, 0, send).code, Code::Timeout);
        let (receive, _) = post(&sides[1], 100_000, 1);
        assert_eq!(end(&sides, 1, receive).code, Code::Aborted, "{transport}");
        // The link lives on.
        let (receive, _) = post(&sides[1], 100_000, 2);
        let send = sides[0].send(zeroes(100_000), to, 2, 0).expect("room");
        assert_eq!((end(&sides, 1, receive).code, end(&sides, 0, send).code), (Code::Success, Code::Success));
        close(sides);
    }
}

#[test]
fn a_partner_that_closes_ends_requests_once() {
    for transport in ["sm", "tcp", "sock"] {
        let mut sides = crate::world::two_with(&device(transport), &Options::new());
        let to = connect(&sides, 0, 1);
        let sends: Vec<_> = [(100_000, false), (8, true), (100_000, true)]
            .into_iter()
            .map(|(size, is_sync)| {
                let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
                start(&sides[0], zeroes(size), to, 1, 0).expect("room")
            })
            .collect();
        until(&sides, "messages", || (sides[1].pending().1 == 3).then_some(()));
        let gone = sides.pop().expect("two");
        let closing = std::thread::spawn(move || drop(gone));
        for send in sends {
            assert_eq!(end(&sides, 0, send).code, Code::EndpointClosed, "{transport}");
        }
        closing.join().expect("no panic");
        assert_eq!(sides[0].pending(), (0, 0));
    }
}
