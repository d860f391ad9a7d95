//! What crosses a network between the ranks of a job, as somebody on the path sees it: a name space
//! between two hosts, through which everything goes.

use crate::jobs::job;
use crate::namespace::Net;
use cci::{Connect, Connection, Context, Endpoint, EndpointOptions, Event, Notify, Rights, Rma, RmaHandle};
use cci_conformance::LIMIT;
use cci_conformance::process::Running;
use cci_job::Job;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{ExitCode, Stdio};

/// The first argument of this program as a rank of a job whose ranks send markers.
pub(crate) const RANK: &str = "--rank-that-sends-markers";

/// What everything that ranks send to each other consists of.
const MARKER: &[u8] = b"a-marker-of-ours";
/// Bytes of the messages of rank 0.
const LENGTHS: [usize; 3] = [100, 1000, 8000];
/// Bytes that rank 0 writes into the memory of rank 1.
const LEN: usize = 32_768;

fn marked(len: usize) -> Vec<u8> {
    MARKER.iter().copied().cycle().take(len).collect()
}

/// Two hosts, and a router between them.
pub(crate) struct Path {
    pub(crate) hosts: [Net; 2],
    pub(crate) between: Net,
}

impl Path {
    /// The hosts have 10.0.1.1 and 10.0.2.1 on `v0`, the router 10.0.1.254 and 10.0.2.254.
    pub(crate) fn new() -> Self {
        let (hosts, between) = ([Net::new(), Net::new()], Net::new());
        between.set("ip_forward", "1");
        for (host, at) in hosts.iter().zip([1, 2]) {
            let (own, router) = (format!("10.0.{at}.1/24"), format!("10.0.{at}.254/24"));
            host.join(("v0", &own), &between, (&format!("r{at}"), &router), 1500);
            host.run(&[&format!("ip route add default via 10.0.{at}.254")]);
        }
        Self { hosts, between }
    }
}

/// Copies of all packets of a name space, taken by a socket of ours.
struct Capture {
    socket: OwnedFd,
    packets: Vec<Vec<u8>>,
}

impl Capture {
    /// Begins: a packet that passes from now on is captured, once as it comes and once as it goes.
    fn begin(net: &Net) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = || socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(eth::ALL));
        Self { socket: net.enter(open).expect("the superuser of a name space may capture there"), packets: Vec::new() }
    }

    /// Takes what has been captured so far.
    fn take(&mut self) {
        let mut packet = vec![0; 65_536];
        loop {
            match recv(&self.socket, &mut packet[..], RecvFlags::empty()) {
                Ok((len, _)) => self.packets.push(packet[..len].to_vec()),
                Err(Errno::AGAIN) => return,
                Err(error) => panic!("the capture has ended: {error}"),
            }
        }
    }

    /// Waits until there is more, or for a moment.
    fn wait(&self) {
        let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&moment)).expect("a socket");
    }

    fn bytes(&self) -> usize {
        self.packets.iter().map(Vec::len).sum()
    }

    fn shows(&self, word: &[u8]) -> bool {
        self.packets.iter().any(|packet| packet.windows(word.len()).any(|bytes| bytes == word))
    }
}

/// Runs a job of two ranks on two hosts, by this way, with these options, while somebody between
/// captures: what ranks and `cci run` have written, and what was captured.
fn captured(ways: &str, options: &[&str]) -> ([String; 2], Capture) {
    let path = Path::new();
    let mut capture = Capture::begin(&path.between);
    let this = std::env::current_exe().expect("this program");
    let mut job = job([&path.hosts[0], &path.hosts[1]], 1, options);
    job.arg(this).arg(RANK).env("CCI_CTP", ways);
    job.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = Running(job.spawn().expect("a job"));
    while job.0.try_wait().expect("a process").is_none() {
        capture.wait();
        capture.take();
    }
    capture.take();
    let mut written = [String::new(), String::new()];
    job.0.stdout.take().expect("piped").read_to_string(&mut written[0]).expect("text");
    job.0.stderr.take().expect("piped").read_to_string(&mut written[1]).expect("text");
    assert!(job.0.wait().expect("its end").success(), "{ways}, {options:?}: {written:?}");
    // A capture that misses what was sent shows nothing.
    let sent = LENGTHS.iter().sum::<usize>() + LEN;
    assert!(capture.bytes() > 2 * sent, "{ways}: {} bytes of {sent} were captured twice", capture.bytes());
    (written, capture)
}

/// Without an option a job over two hosts is sealed; with one it is not, and says so.
pub(crate) fn jobs() {
    for ways in ["auto,sock", "auto,tcp"] {
        let ([said, complaint], capture) = captured(ways, &[]);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("sealed by AES-256-GCM")), "{said}");
        assert_eq!(complaint, "", "{ways}");
        assert!(!capture.shows(MARKER), "{ways}: who is between reads what ranks send");
        // The same without seal is seen.
        let ([said, complaint], capture) = captured(ways, &["--security", "off"]);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("plain, since")), "{said}");
        assert_eq!(complaint.lines().count(), 1, "{ways}: {complaint}");
        assert!(complaint.starts_with("cci run: --security off: "), "{ways}: {complaint}");
        assert!(capture.shows(MARKER), "{ways}: nothing is captured of what ranks send in clear");
    }
}

/// A rank of a job of two: sends markers, or takes them, and states what protects its connection.
pub(crate) fn rank() -> ExitCode {
    let job = Job::join().expect("a job");
    let context = Context::new().expect("devices");
    let endpoint = job.open(&context, &EndpointOptions::new()).expect("an endpoint");
    let connection = if job.rank() == 0 { send_markers(&endpoint) } else { take_markers(&endpoint) };
    say!("{}", endpoint.report(connection).expect("open").protection);
    // Nobody closes before the other has what it waits for.
    job.exchange(&[]).expect("all come");
    ExitCode::SUCCESS
}

/// Sends markers in the request, in messages, and by a write; returns when rank 1 has answered.
fn send_markers(endpoint: &Endpoint) -> Connection {
    endpoint.connect(&Connect::to("job:1").payload(MARKER).timeout(LIMIT)).expect("a name");
    let memory = endpoint.register(marked(LEN), Rights::NONE).expect("room");
    loop {
        let event = endpoint.wait(Some(LIMIT)).expect("usable").expect("an event");
        let Event::Received(message) = &event else {
            event.outcome().expect("nothing fails");
            continue;
        };
        let (message, connection) = (message.to_vec(), event.connection().expect("open"));
        let Some(remote) = RmaHandle::from_bytes(&message) else {
            assert!(message == marked(LENGTHS[2]), "the answer");
            return connection;
        };
        for len in LENGTHS {
            endpoint.send(connection, &marked(len), Notify::OnFailure(0)).expect("room");
        }
        let rma = Rma::new(memory.handle(), &remote, LEN as u64).message(MARKER);
        endpoint.write(connection, &rma, Notify::OnFailure(0)).expect("room");
    }
}

/// Takes what rank 0 sends and writes, and answers by markers.
fn take_markers(endpoint: &Endpoint) -> Connection {
    let memory = endpoint.register(vec![0; LEN], Rights::READ_WRITE).expect("room");
    let (mut lengths, mut is_written) = (Vec::new(), false);
    loop {
        let event = endpoint.wait(Some(LIMIT)).expect("usable").expect("an event");
        let connection = event.connection();
        match event {
            Event::Request(request) => {
                assert_eq!(request.payload(), MARKER);
                request.accept(0).expect("room");
            }
            Event::Accepted(_) => {
                let handle = memory.handle().to_bytes();
                endpoint.send(connection.expect("open"), &handle, Notify::OnFailure(0)).expect("room");
            }
            Event::Received(message) => {
                let message = message.to_vec();
                assert!(message == marked(message.len()), "a message of {} bytes", message.len());
                if message == MARKER {
                    assert!(memory.to_vec(0, LEN).expect("its memory") == marked(LEN), "what was written");
                    is_written = true;
                } else {
                    lengths.push(message.len());
                }
            }
            event => event.outcome().expect("nothing fails"),
        }
        if let Some(connection) = connection.filter(|_| lengths == LENGTHS && is_written) {
            endpoint.send(connection, &marked(LENGTHS[2]), Notify::OnFailure(0)).expect("room");
            return connection;
        }
    }
}
