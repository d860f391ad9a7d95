//! A store among strangers: many, silent, malformed, at its end, and without descriptors.

use crate::server::Server;
use crate::source::Source;
use crate::store_client::Client;
use crate::tests::{Fixture, LIMIT, SHORT, free_port, is_closed, join, secret_file, serve, variables};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const SIZE: u32 = 8;

/// Each stranger that is put out comes again.
fn crowd(store: &str, is_over: &dyn Fn() -> bool) {
    let mut crowd = Vec::new();
    while !is_over() {
        if let Ok(stream) = TcpStream::connect(store) {
            stream.set_nonblocking(true).expect("a socket");
            crowd.push(stream);
        }
        let is_there = |mut stream: &TcpStream| {
            let mut bytes = [0; 64];
            !matches!(stream.read(&mut bytes), Ok(0)) && stream.take_error().is_ok_and(|error| error.is_none())
        };
        if crowd.len() > 300 {
            crowd.retain(is_there);
            sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn silent_strangers_of_one_address_keep_no_rank_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let (secret, store) = (secret_file(folder.path(), 7), format!("127.0.0.1:{}", free_port()));
    let of = |rank| {
        let mut variables = variables(rank, SIZE, &store);
        variables.insert("CCI_SECRET_FILE", secret.clone());
        variables
    };
    let (stop, stopped) = channel::<()>();
    let is_over = move || stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty);
    scope(|scope| {
        let store = &store;
        let first = scope.spawn(move || join(&of(0), 3 * LIMIT).map(drop));
        scope.spawn(move || crowd(store, &is_over));
        sleep(SHORT);
        let of = |rank| {
            let mut variables = variables(rank, SIZE, store);
            variables.insert("CCI_SECRET_FILE", secret_file(folder.path(), 7));
            variables
        };
        let all: Vec<_> = (1..SIZE).map(of).collect();
        let others: Vec<_> = all.into_iter().map(|of| scope.spawn(move || join(&of, 3 * LIMIT).map(drop))).collect();
        for (other, rank) in others.into_iter().zip(1..) {
            assert_eq!(other.join().expect("no panic"), Ok(()), "rank {rank}");
        }
        assert_eq!(first.join().expect("no panic"), Ok(()));
        drop(stop);
    });
}

#[test]
fn a_rank_that_is_refused_tries_again_until_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let mut variables = variables(1, 2, &listener.local_addr().expect("an address").to_string());
    variables.insert("CCI_SECRET_FILE", secret_file(folder.path(), 7));
    scope(|scope| {
        let rank = scope.spawn(|| {
            let begun = Instant::now();
            (join(&variables, SHORT).err().expect("no store").to_string(), begun.elapsed())
        });
        let mut count = 0;
        listener.set_nonblocking(true).expect("a socket");
        while !rank.is_finished() {
            count += u32::from(listener.accept().is_ok());
            sleep(Duration::from_millis(1));
        }
        let (error, taken) = rank.join().expect("no panic");
        assert!(count >= 2 && taken >= SHORT, "{count} times in {taken:?}");
        assert!(error.contains("the store has closed the connection"), "{error}");
    });
}

#[test]
fn silent_strangers_have_a_fixed_number_of_places() {
    let mut fixture = Fixture::new();
    let crowd: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(fixture.address).expect("a connection")).collect();
    fixture.others_are_unharmed("key");
    sleep(SHORT);
    // 64, and one for each of three ranks.
    let is_open = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).expect("a socket");
        let mut bytes = [0; 256];
        while stream.read(&mut bytes).is_ok_and(|length| length > 0) {}
        stream.read(&mut bytes).is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert!(crowd.iter().filter(|stream| is_open(stream)).count() <= 67);
}

#[test]
fn malformed_strangers_leave_no_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut server = Server::new(1, None).expect("a server");
    server.listen(listener).expect("a listener");
    // Nobody takes the reports, as in the store of rank 0.
    for _ in 0..300 {
        let mut stranger = TcpStream::connect(address).expect("a connection");
        stranger.write_all(&[1, 0, 0, 0, 99]).expect("room");
        stranger.set_nonblocking(true).expect("a socket");
        while !is_closed(&stranger) {
            server.progress().expect("progress");
        }
    }
    let reports = server.reports();
    assert!(!reports.is_empty() && reports.len() <= 64, "{}", reports.len());
}

#[test]
fn strangers_do_not_delay_the_end_of_rank_0() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("127.0.0.1:{}", free_port());
    let mut variables = variables(0, 1, &store);
    variables.insert("CCI_SECRET_FILE", secret_file(folder.path(), 7));
    let job = join(&variables, LIMIT).expect("a job of one rank");
    let mut stranger = TcpStream::connect(&store).expect("a store");
    stranger.read_exact(&mut [0; 4]).expect("a challenge");
    let begun = Instant::now();
    drop(job);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Runs the rest of a test in a process of its own. False: this is that process.
fn in_a_child(test: &str) -> bool {
    const CHILD: &str = "CCI_JOB_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return false;
    }
    let program = std::env::current_exe().expect("this program");
    let output =
        Command::new(program).args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("a time")
}

#[test]
fn without_descriptors_the_store_sleeps_and_serves_afterwards() {
    if in_a_child("strangers::without_descriptors_the_store_sleeps_and_serves_afterwards") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut server = Server::new(1, None).expect("a server");
    server.listen(listener).expect("a listener");
    let (end, ended) = channel();
    let (report, _reports) = channel();
    // What comes is made before the limit.
    let comes: Vec<_> = (0..3).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    let rank = TcpStream::connect(address).expect("a connection");
    let limit = getrlimit(Resource::Nofile);
    let next_free = std::fs::File::open("/dev/null").expect("a descriptor").as_raw_fd() as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(next_free), ..limit }).expect("a lower limit");
    let thread = std::thread::spawn(move || serve(server, &ended, &report));
    let before = processor_time();
    sleep(Duration::from_secs(1));
    let taken = processor_time().saturating_sub(before);
    assert!(taken < Duration::from_millis(100), "{taken:?} of a second");
    setrlimit(Resource::Nofile, limit).expect("the old limit");
    let mut joined = Client::connected(rank.into(), 0, 1, None, LIMIT).ok().expect("a store that serves again");
    assert_eq!(joined.exchange(b"", LIMIT), Ok(vec![vec![]]));
    end.send(()).expect("a store");
    thread.join().expect("no panic");
    drop(comes);
}

/// Without a secret ranks meet where no other user comes: neither is a rank of theirs taken in, nor
/// is a name of theirs taken for the store.
#[test]
fn without_a_secret_no_other_user_of_the_host_takes_part() {
    let store: SocketAddr = ([127, 0, 0, 1], free_port()).into();
    let (text, own) = (store.to_string(), rustix::process::geteuid());
    let first = scope(|scope| {
        let first = scope.spawn(|| join(&variables(0, 1, &text), LIMIT).expect("a job of one rank"));
        let first = first.join().expect("no panic");
        let name = format!("cci-job/{}/{store}", own.as_raw());
        let address = UnixAddress::from_abstract_name(&name).expect("a name");
        assert!(TcpStream::connect(store).is_err(), "it listens at no port");
        let asks = scope.spawn(move || crate::sys::as_another_user(|| closes(&address)));
        // Only root can be another user.
        assert_ne!(asks.join().expect("no panic"), Some(false), "a stranger has been greeted");
        first
    });
    drop(first);
    let squats = format!("cci-job/{}/{store}", own.as_raw());
    let address = UnixAddress::from_abstract_name(&squats).expect("a name");
    let squatter = std::thread::spawn(move || crate::sys::as_another_user(|| UnixListener::bind_addr(&address).ok()));
    let Some(Some(_squatter)) = squatter.join().expect("no panic") else { return };
    let error = join(&variables(1, 2, &text), SHORT).err().expect("no store").to_string();
    assert!(error.contains("its name is taken by another user"), "{error}");
}

/// Whether the store closes the connection without a word.
fn closes(address: &UnixAddress) -> bool {
    let mut stream = UnixStream::connect_addr(address).expect("a store");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    matches!(stream.read(&mut [0; 4]), Ok(0) | Err(_))
}
