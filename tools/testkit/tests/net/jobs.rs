//! `cci run` over two hosts whose ranks reach each other, and a stranger on a third one that knows
//! their URIs.

use crate::auto::{is_loopback, open_to_strangers};
use crate::pingpong::{built, command};
use cci::{Connect, Connection, Context, Device, Endpoint, EndpointOptions, Event, EventKind, Failure};
use cci_conformance::namespace::{Net, named, pair};
use cci_conformance::process::Running;
use cci_conformance::{LIMIT, World, device_of, open};
use cci_job::Job;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The first argument of this program as a rank of a job.
pub(crate) const RANK: &str = "--rank-of-a-job";

/// What a rank writes first, before its URI.
const URI: &str = "uri ";

/// `cci run` of ranks in two name spaces, so many in each, with these options besides.
pub(crate) fn job(nets: [&Net; 2], slots: u32, options: &[&str]) -> Command {
    let mut job = named(nets);
    let (ranks, hosts) = ((2 * slots).to_string(), format!("a:{slots},b:{slots}"));
    job.arg(command()).args(["run", "-n", &ranks, "-H", &hosts, "--rsh", "ip netns exec"]).args(options);
    for variable in ["CCI_JOB_FD", "CCI_LISTEN", "CCI_CONFIG", "CCI_CTP"] {
        job.env_remove(variable);
    }
    job
}

/// Each rank sends its number to `job:` and the next one: the example, over shared memory and over
/// the cable.
pub(crate) fn ring() {
    let nets = pair(1500);
    let output = job(nets.each_ref(), 2, &[])
        .arg(built("job_ring", "cci-examples"))
        .stdin(Stdio::null())
        .output()
        .expect("a job");
    let [said, complaint] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{complaint}");
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [0, 1, 2, 3].map(|rank| format!("rank {rank} of 4 got the message of rank {}", (rank + 3) % 4)));
}

/// The ranks of a job connect all to all. A stranger elsewhere knows the URI of each, and what
/// ranks say to each other when they connect; none of its requests reaches a program.
pub(crate) fn strangers() {
    let (nets, elsewhere) = (pair(1500), Net::new());
    nets[0].join(("w0", "10.0.1.1/24"), &elsewhere, ("w1", "10.0.1.2/24"), 1500);
    nets[0].set("ip_forward", "1");
    nets[1].run(&["ip route add 10.0.1.0/24 via 10.0.0.1"]);
    elsewhere.run(&["ip route add 10.0.0.0/24 via 10.0.1.1"]);
    let this = std::env::current_exe().expect("this program");
    let running = job(nets.each_ref(), 2, &[]).arg(this).arg(RANK).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut job = Running(running.expect("a job"));
    let mut lines = BufReader::new(job.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let uris: Vec<String> =
        lines.by_ref().filter_map(|line| line.strip_prefix(URI).map(str::to_owned)).take(4).collect();
    assert_eq!(uris.len(), 4, "a rank has failed");
    let on = |host: &str| uris.iter().filter(|uri| uri.contains(&format!("sock={host}:"))).count();
    assert_eq!(["10.0.0.1", "10.0.0.2"].map(on), [2, 2], "they listen on the network: {uris:?}");
    elsewhere.enter(|| uris.iter().for_each(|uri| knock(uri)));
    job.0.stdin.take().expect("piped").write_all(b"they have gone\n").expect("rank 0");
    let ended = job.0.wait().expect("its end");
    assert!(ended.success(), "{ended}: {:?}", lines.collect::<Vec<_>>());
}

/// Asks a rank for a connection in each way that a stranger may. Each is refused in one sentence,
/// which says what is missing.
fn knock(uri: &str) {
    let address = uri.split("sock=").nth(1).and_then(|rest| rest.split(',').next()).expect("an address");
    let secret = "a".repeat(64);
    let refused = (LIMIT, Failure::Refused);
    // Who has a secret of its own does not believe a rejection in clear, and asks until its time is
    // over.
    let in_vain = (Duration::from_secs(1), Failure::TimedOut);
    let tries = [
        (device_of("auto", &[("listen", "network")]), uri.to_owned(), refused),
        (device_of("auto", &[("listen", "network"), ("secret", &secret)]), uri.to_owned(), in_vain),
        (device_of("sock", &[("interface", "w1")]), format!("sock://{address}"), refused),
        (device_of("tcp", &[("interface", "w1")]), format!("tcp://{address}"), refused),
    ];
    for (device, uri, (limit, failure)) in tries {
        let (outcome, reason) = outcome(&device, &uri, limit);
        assert_eq!(outcome, Err(failure), "{} to {uri}: {reason}", device.transport);
        let names_it = reason.contains("secret") && !reason.contains('\n');
        assert!(names_it, "{} to {uri}: {reason:?}", device.transport);
    }
}

fn outcome(device: &Device, uri: &str, limit: Duration) -> (Result<(), Failure>, String) {
    let endpoint = open(device);
    let world = World::new([&endpoint]);
    endpoint.connect(&Connect::to(uri).payload(b"rank 3").timeout(limit)).expect("a URI");
    let event = world.next(0, EventKind::Connect);
    (event.outcome(), event.reason().unwrap_or_default())
}

/// Two ranks without a secret, whose store is at an address of the network: everything stays on the
/// loop-back interface unless the user says so.
pub(crate) fn without_a_secret() {
    let nets = pair(1500);
    for (listen, is_open) in [("", false), ("local", false), ("network", true)] {
        let mut ranks = nets[0].enter(|| {
            [0, 1].map(|rank: u32| {
                let mut program = Command::new(std::env::current_exe().expect("this program"));
                program.arg(RANK).env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
                program.envs([("MASTER_ADDR", "10.0.0.1"), ("MASTER_PORT", "7000"), ("CCI_LISTEN", listen)]);
                program.env_remove("CCI_JOB_FD").env_remove("CCI_CONFIG").env_remove("CCI_CTP");
                Running(program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a rank"))
            })
        });
        for rank in &mut ranks {
            let mut line = String::new();
            BufReader::new(rank.0.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
            assert_eq!(line.contains("sock=10.0.0.1:"), is_open, "CCI_LISTEN={listen}: {line}");
            assert_eq!(line.contains("sock=127.0.0.1:"), !is_open, "CCI_LISTEN={listen}: {line}");
        }
        let sockets = open_to_strangers(&nets[0]);
        let store = |address: &str| sockets.contains(&format!("{address}:{:04X}", 7001));
        // Where it is not open, its socket has a name of this user instead of a port.
        assert_eq!([store("0100007F"), store("0100000A")], [false, is_open], "CCI_LISTEN={listen}: {sockets:?}");
        assert_eq!(sockets.iter().all(|local| is_loopback(local)), !is_open, "CCI_LISTEN={listen}: {sockets:?}");
        ranks[0].0.stdin.take().expect("piped").write_all(b"go on\n").expect("rank 0");
        for rank in &mut ranks {
            assert!(rank.0.wait().expect("its end").success());
        }
    }
}

/// A rank: connects to all behind it, says its URI, and waits until rank 0 has been told that the
/// strangers have gone.
pub(crate) fn rank() -> ExitCode {
    let job = Job::join().expect("a job");
    let context = Context::new().expect("devices");
    let endpoint = job.open(&context, &EndpointOptions::new()).expect("an endpoint");
    connect_all(&job, &endpoint);
    say!("{URI}{}", endpoint.uri());
    let until = || {
        if job.rank() == 0 {
            std::io::stdin().lines().next().expect("a line").expect("text");
        }
        job.exchange(&[]).expect("all come");
    };
    let seen = requests_until(&endpoint, until);
    // Nobody closes before all have looked.
    job.exchange(&[]).expect("all come");
    if seen.is_empty() {
        return ExitCode::SUCCESS;
    }
    say!("rank {} got requests: {seen:?}", job.rank());
    ExitCode::FAILURE
}

/// The payloads of the requests that come while something is done: the program looks at its
/// endpoint meanwhile, as it does when it waits for its peers.
fn requests_until(endpoint: &Endpoint, done: impl FnOnce() + Send) -> Vec<Vec<u8>> {
    std::thread::scope(|scope| {
        let (mut seen, doing) = (Vec::new(), scope.spawn(done));
        loop {
            let is_last = doing.is_finished();
            while let Some(event) = endpoint.get_event().expect("usable") {
                seen.extend(event.into_request().map(|request| request.payload()));
            }
            if is_last {
                return seen;
            }
            std::thread::yield_now();
        }
    })
}

/// Connects to the ranks behind this one by their names, and takes the requests of those before.
fn connect_all(job: &Job, endpoint: &Endpoint) {
    let text = format!("rank {}", job.rank());
    for other in job.rank() + 1..job.size() {
        let name = format!("job:{other}");
        let connect = Connect::to(&name).payload(text.as_bytes()).context(other.into()).timeout(LIMIT);
        endpoint.connect(&connect).expect("a name");
    }
    let mut open: BTreeMap<u32, Connection> = BTreeMap::new();
    while open.len() + 1 < job.size() as usize {
        match endpoint.wait(Some(LIMIT)).expect("usable").expect("an event") {
            Event::Request(request) => {
                let text = String::from_utf8_lossy(&request.payload()).into_owned();
                let from: u64 = text.strip_prefix("rank ").and_then(|rank| rank.parse().ok()).expect("a rank");
                request.accept(from).expect("an accept");
            }
            event => {
                event.outcome().expect("they connect");
                let rank = u32::try_from(event.context()).expect("a rank");
                open.insert(rank, event.connection().expect("one"));
            }
        }
    }
    for (rank, connection) in open {
        let path = endpoint.report(connection).expect("open").path;
        let is_here = rank / job.local().size == job.rank() / job.local().size;
        assert!(path.starts_with(if is_here { "sm:" } else { "sock:" }), "to rank {rank}: {path}");
    }
}
