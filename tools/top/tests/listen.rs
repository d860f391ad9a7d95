//! `cci top --listen` among clients that are silent, take no answer, or come when no descriptor is
//! left. The server is a process of its own: this program again.
#![allow(missing_docs, reason = "tests")]

use cci_top::{Order, Output, TopOptions};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = "CCI_TOP_TEST_SERVER";
const REQUEST: &str = "GET /metrics HTTP/1.1\r\n\r\n";
/// Far longer than anything here takes, so that a machine under load does not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing by itself; with the variable, the server.
#[test]
fn the_server_of_the_other_tests() {
    if std::env::var_os(SERVER).is_some() {
        let output = Output::Metrics(([127, 0, 0, 1], 0).into());
        let (pids, interval, order) = (Vec::new(), Duration::from_secs(1), Order::Pid);
        cci_top::top(&TopOptions { output, pids, interval, order }).expect("a port");
    }
}

struct Metrics {
    child: Child,
    address: String,
}

impl Metrics {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["the_server_of_the_other_tests", "--exact", "--nocapture"]).env(SERVER, "1");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let at = line.find("http://")?;
            line[at + 7..].strip_suffix("/metrics").map(str::to_owned)
        });
        Self { address: address.expect("an address"), child }
    }

    fn send(&self) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        // Who is turned away may not take it.
        let _ = stream.write_all(REQUEST.as_bytes());
        stream
    }

    /// Asks again where the server had no place, as scrapers do.
    fn ask(&self) -> String {
        let begun = Instant::now();
        loop {
            let answer = read(&self.send());
            if !answer.is_empty() {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "no place");
        }
    }

    fn processor_ticks(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a process");
        let words: Vec<&str> = text.rsplit(')').next().expect("text").split_whitespace().collect();
        [words[11], words[12]].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut stream: &TcpStream) -> String {
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn is_right(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n")
}

#[test]
fn silent_clients_delay_no_request() {
    let metrics = Metrics::start();
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&metrics.address).expect("a server")).collect();
    let begun = Instant::now();
    assert!(is_right(&metrics.ask()));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?} where each silent client has 1 s", begun.elapsed());
    let more: Vec<_> = (0..100).map(|_| TcpStream::connect(&metrics.address).expect("a server")).collect();
    assert!(is_right(&metrics.ask()), "with more of them than places");
    drop((silent, more));
}

#[test]
fn a_client_that_takes_no_answer_delays_no_other() {
    let metrics = Metrics::start();
    let deaf: Vec<_> = (0..8).map(|_| metrics.send()).collect();
    assert!(is_right(&metrics.ask()));
    assert!(deaf.iter().all(|stream| is_right(&read(stream))));
}

#[test]
fn a_request_that_comes_byte_by_byte_or_too_long_is_judged() {
    let metrics = Metrics::start();
    let mut slow = TcpStream::connect(&metrics.address).expect("a server");
    slow.set_nodelay(true).expect("a socket");
    REQUEST.bytes().for_each(|byte| slow.write_all(&[byte]).expect("a server that reads"));
    assert!(is_right(&read(&slow)));
    let mut long = TcpStream::connect(&metrics.address).expect("a server");
    long.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let _ = long.write_all(&[b'x'; 20_000]);
    assert!(!read(&long).contains(" 200 "));
    assert!(is_right(&metrics.ask()));
}

#[test]
fn without_descriptors_it_sleeps_and_serves_afterwards() {
    let metrics = Metrics::start();
    let (pid, limit) = (Pid::from_child(&metrics.child), getrlimit(Resource::Nofile));
    prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(3), ..limit }).expect("a lower limit");
    let comes = metrics.send();
    let before = metrics.processor_ticks();
    std::thread::sleep(Duration::from_secs(1));
    assert!(metrics.processor_ticks() - before < 40, "hundredths of a second");
    prlimit(Some(pid), Resource::Nofile, limit).expect("the old limit");
    assert!(is_right(&read(&comes)));
}
