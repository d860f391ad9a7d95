//! Peers in other processes that are stopped or killed, and children of a fork.

use crate::world::Seen;
use cci_am::{Endpoint, Handlers, Options, Status, TAG_ALL};
use cci_conformance::{LIMIT, sm_device};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const TAKE: u8 = 1;
const TIMEOUT: Duration = Duration::from_millis(300);
/// The variable that makes this test's program the other process.
const ROLE: &str = "CCI_AM_PEER";

fn handlers() -> Handlers<Seen> {
    let take = |seen: &mut Seen, request: cci_am::Request<'_>| {
        seen.requests.push((request.arguments().to_vec(), Vec::new()));
    };
    let returned = |seen: &mut Seen, back: cci_am::Returned<'_>| {
        seen.returned.push((back.status(), back.handler(), back.arguments().to_vec()));
    };
    Handlers::new().request(TAKE, take).returned(returned)
}

fn open() -> Endpoint<Seen> {
    let options = Options::new().send_timeout(TIMEOUT);
    Endpoint::open(&sm_device(), &options, handlers(), Seen::default()).expect("an endpoint")
}

/// Another process that polls, until its standard input ends.
struct Peer(Child, Option<ChildStdin>, String);

impl Peer {
    fn start() -> Self {
        let program = std::env::current_exe().expect("this test");
        let mut command = Command::new(program);
        command.args(["--exact", "gone::the_other_process", "--nocapture"]).env(ROLE, "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let uri = lines.find_map(|line| line.ok()?.strip_prefix("uri ").map(str::to_owned)).expect("its URI");
        let input = child.stdin.take();
        Self(child, input, uri)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status().expect("kill");
        assert!(status.success());
        // The system takes a moment for each thread.
        let begin = Instant::now();
        while self.runs() {
            assert!(begin.elapsed() < LIMIT, "it does not stop");
            std::thread::yield_now();
        }
    }

    /// Whether a thread of it is neither stopped nor dead.
    fn runs(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.0.id())) else { return false };
        threads.flatten().any(|thread| {
            let state = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['T', 'Z', 'X']))
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.1.take());
        // Fails only when it has ended. A stopped one dies of it too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nothing where it is run as a test.
#[test]
fn the_other_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let mut endpoint = open();
    let mut output = std::io::stdout();
    writeln!(output, "\nuri {}", endpoint.name()).and_then(|()| output.flush()).expect("a reader");
    let ended = std::thread::spawn(|| std::io::stdin().lines().count());
    while !ended.is_finished() {
        endpoint.wait(Some(Duration::from_millis(1))).expect("usable");
    }
}

fn until(what: &str, endpoint: &mut Endpoint<Seen>, mut done: impl FnMut(&mut Endpoint<Seen>) -> bool) {
    let begin = Instant::now();
    while !done(endpoint) {
        endpoint.wait(Some(Duration::from_millis(1))).expect("usable");
        assert!(begin.elapsed() < LIMIT, "waited in vain for {what}");
    }
}

/// Every request that is open comes back within the timeout and its ticks, and later ones at once.
#[test]
fn requests_to_a_peer_that_is_stopped_or_killed_come_back() {
    for name in ["STOP", "KILL"] {
        let peer = Peer::start();
        let mut client = open();
        let to = client.map(&peer.2, TAG_ALL).expect("a URI");
        assert_eq!(client.request(to, TAKE, &[1]), Ok(()));
        until("the end of a request", &mut client, |client| client.outstanding(to) == 0);
        assert!(client.state().returned.is_empty(), "{name}");

        peer.signal(name);
        let begin = Instant::now();
        // More than it has credits: the last ones wait for some, and come back too.
        for number in 0..100 {
            assert_eq!(client.request(to, TAKE, &[number]), Ok(()), "{name}");
        }
        until("returns", &mut client, |client| client.outstanding(to) == 0);
        assert!(begin.elapsed() < 10 * TIMEOUT, "{name}: {:?}", begin.elapsed());
        let returned: Vec<u32> = client.state().returned.iter().map(|(_, _, arguments)| arguments[0]).collect();
        let mut in_order = returned.clone();
        in_order.sort_unstable();
        assert_eq!(in_order, (0..100).collect::<Vec<_>>(), "{name}: each comes back once");
        let is_right = |status| matches!(status, Status::Unreachable | Status::Congested);
        assert!(client.state().returned.iter().all(|(status, ..)| is_right(*status)), "{name}");

        client.state().returned.clear();
        assert_eq!(client.request(to, TAKE, &[7]), Ok(()));
        assert_eq!(client.state().returned, [(Status::Unreachable, TAKE, vec![7])], "{name}: at once");
    }
}
