//! Clients of a server that are silent, send nonsense, or come all at once.

use super::client;
use super::control::{Answer, Client, Command, Hello, Request, VERSION, What, recv};
use super::driver::{Driver, DriverEvent, DriverOptions, await_event};
use super::ends::{self, CONTROL, OPERATIONS};
use super::facade::Facade;
use super::plan::Plan;
use super::plan::tests::plan;
use super::reception::Coming;
use super::server::{Notice, PATIENCE, Patience, serve};
use cci::Attribute;
use cci_mem::sync::{AtomicBool, AtomicU64, Ordering};
use cci_report::UserError;
use cci_report::names::{Measurement, Operation};
use cci_report::session::Session;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(100);

/// A server of this process, which ends with it; its URI, and its lines.
fn server(patience: Patience) -> (String, Receiver<String>) {
    server_at(DriverOptions::on_loopback("sm"), patience)
}

fn server_at(options: DriverOptions, patience: Patience) -> (String, Receiver<String>) {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        serve::<Facade>(&options, patience, None, |notice| {
            let (Notice::Listening(line) | Notice::Ended(line)) = notice;
            // The test may be over.
            let _ = sender.send(line.to_owned());
            Ok(())
        })
        .map(|never| match never {})
    });
    (lines.recv_timeout(LONG).expect("a URI"), lines)
}

fn short() -> Plan {
    let mut plan = plan();
    (plan.transport, plan.keys, plan.sizes) = (Some("sm".into()), Vec::new(), vec![8]);
    (plan.effort.count, plan.effort.blocks) = (Some(5), Some(1));
    plan
}

fn measure(uri: &str) -> Result<(), UserError> {
    client::run::<Facade>(&short(), uri, None, |_| {})
}

fn stranger() -> Facade {
    Facade::open(&DriverOptions::on_loopback("sm")).expect("an endpoint")
}

/// Connects as a client does, but waits longer: the server is a thread of a process that may not
/// run for as long as a client waits. The server soon closes connections on which it has answered.
fn call(stranger: &Facade, uri: &str, payload: &[u8], context: u64) -> Result<cci::Connection, UserError> {
    stranger.heed([None; 2]);
    stranger.connect(uri, payload, Attribute::ReliableOrdered, context, LONG)?;
    let opened = await_event(stranger, &mut Vec::new(), 2 * LONG, |event, _| match event {
        DriverEvent::Open(connection, of) if of == context => Some(Ok(connection)),
        DriverEvent::NotOpen(why, of) if of == context => Some(Err(UserError(why.to_string()))),
        _ => None,
    });
    opened?.expect("a connect ends within its time")
}

fn connect(stranger: &Facade, uri: &str, payload: &[u8], context: u64) -> cci::Connection {
    let connection = call(stranger, uri, payload, context).expect("a connection");
    stranger.heed([Some(connection), None]);
    connection
}

/// The endpoint of a run that a stranger has launched.
fn launched(stranger: &Facade, uri: &str) -> Result<String, UserError> {
    launched_with(stranger, uri, short().session)
}

fn launched_with(stranger: &Facade, uri: &str, session: Session) -> Result<String, UserError> {
    let hello = Hello { cci_perf: VERSION, client: Client::at(stranger), request: Request::Launch(session) };
    let connection = connect(stranger, uri, &serde_json::to_vec(&hello).expect("a request"), 3);
    match recv(stranger, &mut Vec::new(), LONG, |from| from == connection)? {
        Answer::Ready { uri } => Ok(uri),
        other => Err(client::out_of_turn(&other)),
    }
}

/// Both connections of a run.
fn connected(stranger: &Facade, there: &str) -> cci::Connection {
    try_connected(stranger, there).expect("both connections")
}

fn try_connected(stranger: &Facade, there: &str) -> Result<cci::Connection, UserError> {
    let call = |context| call(stranger, there, ends::payload_of(context), context);
    let control = call(CONTROL)?;
    let operations = call(OPERATIONS)?;
    stranger.heed([Some(control), Some(operations)]);
    Ok(control)
}

/// A block of no operations.
const BLOCK: Command = Command::Block { what: What::Measured, size: 8, count: 0, number: 1 };

/// A client whose run goes on: it has had an answer.
fn in_a_run(uri: &str) -> Facade {
    let stranger = stranger();
    let there = launched(&stranger, uri).expect("an endpoint");
    let control = connected(&stranger, &there);
    super::control::send(&stranger, control, &BLOCK).expect("sent");
    let answer: Answer = recv(&stranger, &mut Vec::new(), LONG, |from| from == control).expect("an answer");
    assert!(matches!(answer, Answer::Go), "{answer:?}");
    stranger
}

/// A port that nobody has, for TCP and for UDP.
fn free_port() -> u16 {
    loop {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[test]
fn a_server_with_one_port_serves_each_client_at_that_port() {
    for transport in ["sock", "tcp", "auto"] {
        let mut options = DriverOptions::on_loopback(transport);
        let keys = options.keys.clone();
        options.keys.push(("port".into(), free_port().to_string()));
        let (uri, _lines) = server_at(options, PATIENCE);
        for _ in 0..3 {
            let mut plan = short();
            (plan.transport, plan.keys) = (Some(transport.into()), keys.clone());
            client::run::<Facade>(&plan, &uri, None, |_| {}).expect(transport);
        }
    }
}

/// Launches runs to which it does not connect, each time as another program, until the test is
/// over.
fn launch_and_leave(transport: &str, uri: &str, launched: &Sender<()>, is_over: &AtomicBool) {
    /// How long such a program stays.
    const STAY: Duration = Duration::from_millis(150);
    let request = || Request::Launch(short().session);
    while !is_over.load(Ordering::Relaxed) {
        let stranger = Facade::open(&DriverOptions::on_loopback(transport)).expect("an endpoint");
        let client = Client { run: fastrand::u64(..), uri: String::new(), pid: 1, uid: 1 };
        let hello = Hello { cci_perf: VERSION, client, request: request() };
        let payload = serde_json::to_vec(&hello).expect("a request");
        // The port is closed for a moment at the begin and at the end of each run.
        let Ok(connection) = client::call(&stranger, uri, &payload, Attribute::ReliableOrdered, 3) else { continue };
        let answer = recv(&stranger, &mut Vec::new(), STAY, |from| from == connection);
        if matches!(answer, Ok(Answer::Ready { .. })) {
            launched.send(()).expect("the test goes on");
        }
    }
}

#[test]
fn who_never_connects_does_not_keep_the_only_port_of_a_server() {
    let served = |transport: &str| {
        let mut options = DriverOptions::on_loopback(transport);
        let keys = options.keys.clone();
        options.keys.push(("port".into(), free_port().to_string()));
        // A client asks for 1 s at least while nobody listens: for several strangers, also where
        // the server is late.
        let patience = Patience { arrival_in_place: Duration::from_millis(250), ..PATIENCE };
        let (uri, _lines) = server_at(options, patience);
        let ((launched, has_launched), is_over) = (channel(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let launching = scope.spawn(|| launch_and_leave(transport, &uri, &launched, &is_over));
            let mut failed = Vec::new();
            for round in 0..2 {
                // The server has let a stranger in, and waits for it.
                while has_launched.try_recv().is_ok() {}
                if has_launched.recv_timeout(LONG).is_err() {
                    failed.push(format!("{transport}, {round}: the server lets nobody in"));
                    break;
                }
                let mut plan = short();
                (plan.transport, plan.keys) = (Some(transport.into()), keys.clone());
                let begin = std::time::Instant::now();
                let run = client::run::<Facade>(&plan, &uri, None, |_| {});
                if let Err(why) = run {
                    failed.push(format!("{transport}, {round}, {:?}: {why}", begin.elapsed()));
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            launching.join().expect("no panic");
            failed
        })
    };
    let failed: Vec<_> = std::thread::scope(|scope| {
        let each = ["sock", "tcp", "auto"].map(|transport| scope.spawn(move || served(transport)));
        each.into_iter().flat_map(|served| served.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
}

/// Asks a server from one endpoint as fast as it can until the client is served, and stays.
fn flood(transport: &str, uri: &str, payload: &[u8], ended: &AtomicU64, is_over: &AtomicBool) {
    const MOST: u64 = 64;
    let stranger = Facade::open(&DriverOptions::on_loopback(transport)).expect("an endpoint");
    stranger.heed([None; 2]);
    let (mut asked, mut bytes) = (0, Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        if asked < ended.load(Ordering::Relaxed) + MOST
            && stranger.connect(uri, payload, Attribute::ReliableOrdered, 3, Duration::from_secs(1)).is_ok()
        {
            asked += 1;
        }
        match stranger.poll_event(&mut bytes, |_| 0) {
            Ok(DriverEvent::Open(..) | DriverEvent::NotOpen(..)) => drop(ended.fetch_add(1, Ordering::Relaxed)),
            Ok(_) => {}
            Err(why) => panic!("{why:?}"),
        }
    }
}

#[test]
fn a_flood_of_requests_keeps_no_client_out() {
    let mut failed = Vec::new();
    for transport in ["sm", "sock", "tcp"] {
        for is_launch in [false, true] {
            let (uri, _lines) = server_at(DriverOptions::on_loopback(transport), PATIENCE);
            let (asked, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
            let request = Request::Launch(short().session);
            let hello =
                Hello { cci_perf: VERSION, client: Client { run: 1, uri: String::new(), pid: 1, uid: 1 }, request };
            let payload = if is_launch { serde_json::to_vec(&hello).expect("a request") } else { b"nonsense".to_vec() };
            std::thread::scope(|scope| {
                let flooding = scope.spawn(|| flood(transport, &uri, &payload, &asked, &is_over));
                let mut plan = short();
                (plan.transport, plan.keys) = (Some(transport.into()), DriverOptions::on_loopback(transport).keys);
                while asked.load(Ordering::Relaxed) < 500 {
                    std::thread::yield_now();
                }
                for _ in 0..3 {
                    let begin = std::time::Instant::now();
                    let served = client::run::<Facade>(&plan, &uri, None, |_| {});
                    failed.extend(served.err().map(|why| (transport, is_launch, begin.elapsed(), why)));
                }
                is_over.store(true, Ordering::Relaxed);
                flooding.join().expect("no panic");
            });
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn a_run_that_needs_more_memory_than_the_host_has_to_spare_is_refused() {
    let (uri, _lines) = server(PATIENCE);
    let session = |largest| Session {
        measurement: Measurement::Bandwidth,
        operation: Operation::Write,
        largest,
        ..short().session
    };
    let why = launched_with(&stranger(), &uri, session(1 << 46)).expect_err("too much").0;
    assert!(why.contains("65536 GiB need more than a quarter of the memory"), "{why}");
    assert!(launched_with(&stranger(), &uri, session(1 << 16)).is_ok());
}

#[test]
fn strangers_that_stand_still_hold_up_no_client() {
    let (uri, lines) = server(Patience { arrival: LONG, arrival_in_place: LONG, silence: LONG });
    let mut strangers = Vec::new();
    for number in 0..20 {
        let stranger = stranger();
        // Nonsense is refused, and the server tells of some of it.
        let asked = connect(&stranger, &uri, b"GET / HTTP/1.1", 4);
        let answer: Answer = recv(&stranger, &mut Vec::new(), LONG, |from| from == asked).expect("an answer");
        assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
        // One launches and does not connect, one connects and sends nothing, one sends nonsense.
        if let Ok(there) = launched(&stranger, &uri)
            && number % 3 > 0
            && let Ok(control) = try_connected(&stranger, &there)
            && number % 3 > 1
        {
            // It may have made room for another one.
            let _ = stranger.send(control, b"no command", true);
        }
        strangers.push(stranger);
        if number % 5 == 4 {
            // One that has begun to connect makes room after a second.
            let begin = std::time::Instant::now();
            while let Err(why) = measure(&uri) {
                assert!(begin.elapsed() < LONG, "{why}");
            }
        }
    }
    let told: Vec<_> = std::iter::from_fn(|| lines.try_recv().ok()).collect();
    assert!(told.iter().filter(|line| line.starts_with("A client was refused")).count() <= 16, "{told:?}");
}

#[test]
fn who_waits_too_long_is_told_with_whom_the_server_is_busy() {
    // A client of a busy host connects within it.
    let arrival = Duration::from_secs(2);
    let (uri, _lines) = server(Patience { arrival, arrival_in_place: LONG, silence: LONG });
    let running = in_a_run(&uri);
    for _ in 0..2 {
        let why = measure(&uri).expect_err("the server is busy").0;
        let who = format!("the server is busy with {} (pid {}, ", running.uri(), std::process::id());
        assert!(why.contains(&who) && why.contains(" s: try again when that run has ended"), "{why}");
    }
    // It goes on with the next one when that is over.
    drop(running);
    while let Err(why) = measure(&uri) {
        assert!(why.0.contains("busy"), "{why}");
    }
}

#[test]
fn a_run_that_stands_still_is_given_up_and_the_next_one_served() {
    let silence = Duration::from_millis(200);
    let (uri, _lines) = server(Patience { arrival: LONG, arrival_in_place: LONG, silence });
    let running = in_a_run(&uri);
    // It waits for that.
    measure(&uri).expect("a run");
    let why = loop {
        if let Err(why) = recv::<_, Answer>(&running, &mut Vec::new(), LONG, |_| true) {
            break why;
        }
    };
    assert!(why.0.contains("the other end disconnected"), "{why}");
}

#[test]
fn a_client_that_writes_or_reads_says_nothing_for_as_long_as_it_likes() {
    let silence = Duration::from_millis(200);
    let (uri, _lines) = server(Patience { arrival: LONG, arrival_in_place: LONG, silence });
    for operation in [Operation::Write, Operation::Read] {
        let session = Session { measurement: Measurement::Bandwidth, operation, ..short().session };
        // The server soon closes the connection on which it was asked.
        let there = launched_with(&stranger(), &uri, session).expect("an endpoint");
        let running = stranger();
        let control = connected(&running, &there);
        super::control::send(&running, control, &Command::Memory { handle: [0; 4] }).expect("sent");
        let answer: Answer = recv(&running, &mut Vec::new(), LONG, |from| from == control).expect("an answer");
        assert!(matches!(answer, Answer::Memory { .. }), "{answer:?}");
        let why = recv::<_, Answer>(&running, &mut Vec::new(), 5 * silence, |_| true).expect_err("nothing");
        assert!(why.0.contains("no message from the other end"), "{why}");
        // Its end is that of the run, and so is that of one that would take memory without end.
        if operation == Operation::Write {
            drop(running);
            measure(&uri).expect("a run");
            continue;
        }
        super::control::send(&running, control, &Command::Memory { handle: [0; 4] }).expect("sent");
        let why = recv::<_, Answer>(&running, &mut Vec::new(), LONG, |_| true).expect_err("the end");
        assert!(why.0.contains("the other end disconnected"), "{why}");
    }
}

/// A third party finds the endpoint of a run, says whatever it likes, and leaves.
#[test]
fn who_is_none_of_a_runs_ends_no_run_when_it_leaves() {
    let (uri, _lines) = server(Patience { arrival: LONG, arrival_in_place: LONG, silence: LONG });
    // The server soon closes the connection on which it was asked.
    let there = launched(&stranger(), &uri).expect("an endpoint");
    let running = stranger();
    let visit = |payload: &[u8]| {
        let other = stranger();
        let connection = connect(&other, &there, payload, 3);
        let _ = other.send(connection, b"no command", true);
        drop(other);
        // It has left when the server serves somebody else.
        assert!(launched(&stranger(), &uri).is_ok());
    };
    visit(b"nonsense");
    let control = connected(&running, &there);
    visit(b"control");
    for _ in 0..2 {
        super::control::send(&running, control, &BLOCK).expect("sent");
        let answer: Answer = recv(&running, &mut Vec::new(), LONG, |from| from == control).expect("an answer");
        assert!(matches!(answer, Answer::Go), "{answer:?}");
        visit(b"operations");
    }
}

/// Both have come when the server looks, that of the stranger first.
#[test]
fn a_strangers_message_takes_no_place_of_a_clients_first_command() {
    let there = stranger();
    let uri = there.uri();
    let mut coming = Coming::new(1, Client::at(&there), short().session, there);
    let ((connected_all, is_connected), (go, may_send), (sent_all, is_sent)) = (channel(), channel(), channel());
    let client = std::thread::spawn(move || {
        let (other, running) = (stranger(), stranger());
        let of_stranger = connect(&other, &uri, b"nonsense", 3);
        let control = connected(&running, &uri);
        connected_all.send(()).expect("the server waits");
        may_send.recv_timeout(LONG).expect("the server looks no more");
        super::control::send(&other, of_stranger, &BLOCK).expect("sent");
        super::control::send(&running, control, &BLOCK).expect("sent");
        sent_all.send((other, running)).expect("the server waits");
    });
    while is_connected.try_recv().is_err() {
        coming.look().expect("nothing is wrong");
    }
    go.send(()).expect("the client waits");
    let _clients = is_sent.recv_timeout(LONG).expect("both have sent");
    coming.look().expect("nothing is wrong");
    assert!(coming.connections().is_some(), "the command is there");
    client.join().expect("no panic");
}

#[test]
fn a_client_without_a_place_is_not_told_to_connect() {
    let (uri, _lines) = server(Patience { arrival: LONG, arrival_in_place: LONG, silence: LONG });
    let _running = in_a_run(&uri);
    // All of these have connected, and wait.
    let waiting: Vec<_> = (0..16)
        .map(|_| {
            let waiting = stranger();
            let there = launched(&waiting, &uri).expect("a place");
            let control = connected(&waiting, &there);
            super::control::send(&waiting, control, &BLOCK).expect("sent");
            waiting
        })
        .collect();
    let why = (0..3).find_map(|_| launched(&stranger(), &uri).err()).expect("no place is left");
    assert!(why.0.contains("too many clients wait for the server"), "{why}");
    drop(waiting);
}
