//! Echoes between threads and between processes, over shared memory and over TCP.

use cci::{Device, Endpoint, EndpointOptions};
use cci_conformance::process::thread_time;
use cci_conformance::{LIMIT, device_of, sm_device};
use cci_peers::{Name, Table};
use cci_template_interface::{CREDITS, Code, Echo, LONGEST};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that makes a run of this program the other process, and names its transport.
const CHILD: &str = "CCI_TEST_ECHO";
/// What happens at once takes less; a wake-up that is lost takes [`LIMIT`].
const SOON: Duration = Duration::from_secs(20);

fn device(transport: &str) -> Device {
    if transport == "sm" { sm_device() } else { device_of(transport, &[("ip", "127.0.0.1")]) }
}

fn endpoint(transport: &str) -> Endpoint {
    Endpoint::open(&device(transport), &EndpointOptions::new().disconnect_events(true)).expect("an endpoint")
}

fn echo(endpoint: Endpoint, rank: u32, table: &Table) -> Echo {
    Echo::open(endpoint, Name::Rank(rank), Box::new(table.clone())).expect("an echo")
}

/// Ranks 0 and 1, in this process.
fn two(transport: &str) -> [Echo; 2] {
    let ends = [endpoint(transport), endpoint(transport)];
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(rank, end)| table.insert(Name::Rank(rank), end.uri()));
    let [first, second] = ends;
    [echo(first, 0, &table), echo(second, 1, &table)]
}

/// Runs something while another thread serves an echo, which is closed then.
fn while_served<R>(there: &Echo, act: impl FnOnce() -> R) -> R {
    struct Closes<'a>(&'a Echo);
    impl Drop for Closes<'_> {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    std::thread::scope(|scope| {
        let served = scope.spawn(|| there.serve(None));
        let closes = Closes(there);
        let result = act();
        drop(closes);
        assert_eq!(served.join().expect("no panic"), Code::Closed);
        result
    })
}

/// One request there and back.
fn go(here: &Echo, to: u32, bytes: &[u8]) {
    let begun = Instant::now();
    let request = here.request(&Name::Rank(to), bytes, LIMIT).expect("credit");
    assert!(here.wait(request, LIMIT).expect("an answer") == bytes, "other bytes, of {}", bytes.len());
    assert_eq!(here.wait(request, LIMIT), Err(Code::Request), "it was taken");
    assert!(begun.elapsed() < SOON, "a wake-up was lost");
}

/// Four threads, two requests each at a time: as many as there is credit.
fn go_by_threads(here: &Echo, rounds: u32) {
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                for round in 0..rounds {
                    let begun = Instant::now();
                    let all = [0, 1].map(|at| [thread, round, at].map(u32::to_le_bytes).concat());
                    let sent = all.each_ref().map(|bytes| here.request(&Name::Rank(1), bytes, LIMIT).expect("credit"));
                    for (request, bytes) in sent.into_iter().zip(all) {
                        assert_eq!(here.wait(request, LIMIT), Ok(bytes));
                    }
                    assert!(begun.elapsed() < SOON, "a wake-up was lost");
                }
            });
        }
    });
}

/// Waits look for a while before they sleep, and then sleep at once.
#[test]
fn requests_come_back_to_threads_that_spin_and_to_those_that_sleep() {
    for (is_asleep, transport) in [(false, "sm"), (false, "tcp"), (true, "sm"), (true, "tcp")] {
        cci::set_oversubscribed(is_asleep);
        let [here, there] = two(transport);
        while_served(&there, || {
            (0..=LONGEST).step_by(64).for_each(|len| go(&here, 1, &vec![len as u8; len]));
            go_by_threads(&here, 500);
        });
    }
    cci::set_oversubscribed(false);
}

#[test]
fn both_sides_request_at_once() {
    for transport in ["sm", "tcp"] {
        let [first, second] = two(transport);
        while_served(&first, || {
            std::thread::scope(|scope| {
                let others = scope.spawn(|| (0..300_u32).for_each(|round| go(&first, 1, &round.to_le_bytes())));
                // The waits of these answer the others.
                let mut round = 0_u32;
                while round < 300 || !others.is_finished() {
                    go(&second, 0, &round.to_le_bytes());
                    round += 1;
                }
            });
        });
    }
}

/// A wait for what does not come sleeps, and ends by its limit.
#[test]
fn a_wait_in_vain_takes_its_time_and_no_processor() {
    let [here, _there] = two("sm");
    let (begun, before) = (Instant::now(), thread_time());
    assert_eq!(here.serve(Duration::from_secs(1)), Code::Timeout);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(thread_time() - before < Duration::from_millis(50), "it polls");
}

#[test]
fn credit_runs_out_and_comes_back_with_an_answer() {
    for transport in ["sm", "tcp"] {
        let [here, there] = two(transport);
        let begin = |limit| here.request(&Name::Rank(1), b"one", limit);
        let mut requests: Vec<u64> = (0..CREDITS).map(|_| begin(Some(Duration::ZERO)).expect("credit")).collect();
        assert_eq!(begin(Some(Duration::ZERO)), Err(Code::Timeout), "no credit is left");
        // Answers alone give none back.
        while_served(&there, || {
            assert_eq!(here.wait(requests.remove(0), LIMIT).as_deref(), Ok(&b"one"[..]));
            requests.push(begin(None).expect("that of the answer"));
            assert_eq!(begin(Some(Duration::from_millis(20))), Err(Code::Timeout));
            std::thread::scope(|scope| {
                let begun = Instant::now();
                let waits = scope.spawn(|| begin(None));
                assert_eq!(here.wait(requests.remove(0), LIMIT).as_deref(), Ok(&b"one"[..]));
                requests.push(waits.join().expect("no panic").expect("that of the answer"));
                assert!(begun.elapsed() < SOON, "a wake-up was lost");
            });
            requests.iter().for_each(|request| assert_eq!(here.wait(*request, LIMIT).as_deref(), Ok(&b"one"[..])));
        });
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let [here, _there] = two("sm");
    let begin = |rank, bytes: &[u8]| here.request(&Name::Rank(rank), bytes, Duration::ZERO);
    assert_eq!(begin(1, &[0; LONGEST + 1]), Err(Code::TooLong));
    assert_eq!(begin(0, b"to itself"), Err(Code::Name));
    assert_eq!(here.wait(99, Duration::ZERO), Err(Code::Request));
    let request = begin(1, b"one").expect("credit");
    assert_eq!(here.wait(request, Duration::ZERO), Err(Code::Timeout), "nobody serves");
    here.close();
    assert_eq!((begin(1, b"one"), here.wait(request, None)), (Err(Code::Closed), Err(Code::Closed)));
}

/// With the sentences of the codes.
#[test]
fn a_peer_that_ends_ends_what_it_has() {
    for transport in ["sm", "tcp"] {
        let [here, there] = two(transport);
        let begin = || here.request(&Name::Rank(1), b"one", LIMIT).expect("credit");
        // Served for so long that the link is there.
        let first = begin();
        std::thread::scope(|scope| {
            let served = scope.spawn(|| there.serve(None));
            assert_eq!(here.wait(first, LIMIT).as_deref(), Ok(&b"one"[..]));
            there.close();
            assert_eq!(served.join().expect("no panic"), Code::Closed);
        });
        let under_way = begin();
        drop(there);
        let gone = here.wait(under_way, LIMIT).expect_err("nobody answers");
        assert_eq!((gone, gone.to_string().as_str()), (Code::Gone, "the peer has ended"));
        // Its place is empty, and it does not come back.
        assert_eq!(here.wait(begin(), LIMIT), Err(Code::Unreached));
    }
}

/// Runs only as the child of the next test: serves until it is killed.
#[test]
fn child() {
    let Ok(transport) = std::env::var(CHILD) else { return };
    let endpoint = endpoint(&transport);
    let _ = writeln!(std::io::stderr(), "there {}", endpoint.uri());
    echo(endpoint, 1, &Table::new()).serve(2 * LIMIT);
}

#[test]
fn another_process_answers_until_it_is_killed() {
    for transport in ["sm", "tcp"] {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "child", "--nocapture"]).env(CHILD, transport);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
        let uri = lines.filter_map(|line| line.strip_prefix("there ").map(str::to_owned)).next();
        let mut table = Table::new();
        table.insert(Name::Rank(1), uri.expect("a URI"));
        let here = echo(endpoint(transport), 0, &table);
        go_by_threads(&here, 500);
        // Stopped, so that it does not answer before it is killed.
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("a child");
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED).expect("it is stopped");
        let under_way = here.request(&Name::Rank(1), b"one", LIMIT).expect("credit");
        assert_eq!(here.wait(under_way, Duration::from_millis(50)), Err(Code::Timeout), "it is stopped");
        child.kill().expect("a child");
        assert_eq!(here.wait(under_way, LIMIT), Err(Code::Gone));
        child.wait().expect("its end");
    }
}
