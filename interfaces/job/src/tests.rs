//! Jobs whose ranks are threads of this process, and clients that break the protocol.

pub(crate) mod limits;
mod memory;
mod sealed;

use crate::error::JobError;
use crate::joining::{self, Joined};
use crate::place::Local;
use crate::secret::Secret;
use crate::server::Server;
use crate::source::{Environment, Source};
use crate::store_client::Client;
use crate::wire::{Hello, Key, Reply, Request, Welcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, scope};
use std::time::{Duration, Instant};

pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Shorter than any test waits, longer than a busy machine needs to begin.
pub(crate) const SHORT: Duration = Duration::from_millis(700);

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A job whose ranks are threads; what each has returned, in the order of ranks.
#[cfg(feature = "cci")]
pub(crate) fn ranks<T: Send>(size: u32, rank: impl Fn(crate::Job) -> T + Sync) -> Vec<T> {
    let mut server = Server::new(size, Some(Secret::from_bytes(&[7; 32]).expect("memory"))).expect("a server");
    let ends: Vec<UnixStream> = (0..size)
        .map(|rank| {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            server.adopt(ours, rank, Local { rank, size, processors: 1 }).expect("room");
            theirs
        })
        .collect();
    let ((end, ended), (report, reports)) = (channel(), channel());
    let store = std::thread::spawn(move || serve(server, &ended, &report));
    let run = |end: UnixStream| {
        let (client, welcome) = Client::trusted(end.into(), LIMIT).expect("a rank");
        rank(crate::Job::over(client, welcome, LIMIT))
    };
    let returned = scope(|scope| {
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(|| run(end))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    end.send(()).expect("a store");
    store.join().expect("no panic");
    assert!(reports.try_recv().is_err(), "a rank broke the protocol");
    returned
}

/// The variables of a rank whose store is at an address.
pub(crate) fn variables(rank: u32, size: u32, store: &str) -> BTreeMap<&'static str, String> {
    [
        ("OMPI_COMM_WORLD_RANK", rank.to_string()),
        ("OMPI_COMM_WORLD_SIZE", size.to_string()),
        ("CCI_STORE", store.into()),
    ]
    .into()
}

pub(crate) fn join(variables: &BTreeMap<&'static str, String>, limit: Duration) -> Result<Joined, JobError> {
    joining::join(&Environment(&|name| variables.get(name).map(Into::into)), limit)
}

/// The error of what must not join.
fn error(variables: &BTreeMap<&'static str, String>) -> String {
    join(variables, SHORT).err().expect("it must not join").to_string()
}

pub(crate) fn secret_file(folder: &Path, byte: u8) -> String {
    let path = folder.join(format!("secret-{byte}"));
    std::fs::write(&path, format!("{byte:02x}").repeat(32)).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    path.to_str().expect("text").into()
}

/// The first status counts. Who waits for others then is told, and who asks later.
#[cfg(feature = "cci")]
#[test]
fn a_rank_ends_the_job_with_a_status() {
    let ended = ranks(3, |job| {
        job.exchange(&[]).expect("all come");
        if job.rank() == 1 {
            assert!(job.end(3) && job.end(4), "a launcher's store");
        } else {
            let lost = job.exchange(&[]).expect_err("rank 1 does not come");
            assert!(lost.to_string().contains("a rank has ended the job"), "{lost}");
        }
        let begin = Instant::now();
        loop {
            if let Some(status) = job.ended() {
                return status;
            }
            assert!(begin.elapsed() < LIMIT, "nobody tells");
            std::thread::yield_now();
        }
    });
    assert_eq!(ended, [3; 3]);
}

/// So do a forked child, and a second library of the process that joins by itself.
#[test]
fn a_process_that_joins_twice_is_refused_and_its_job_goes_on() {
    let mut server = Server::new(1, None).expect("a server");
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    server.adopt(ours, 0, Local { rank: 0, size: 1, processors: 1 }).expect("room");
    let ((end, ended), (report, reports)) = (channel(), channel());
    let store = std::thread::spawn(move || serve(server, &ended, &report));
    let variables = BTreeMap::from([(crate::DESCRIPTOR, theirs.into_raw_fd().to_string())]);
    let mut first = join(&variables, LIMIT).expect("a rank");
    let why = error(&variables);
    assert!(why.contains("which is no socket here"), "{why}");
    assert_eq!(first.source.exchange(b"here", LIMIT), Ok(vec![b"here".to_vec()]));
    end.send(()).expect("a store");
    store.join().expect("no panic");
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [""; 0]);
}

/// A program that has closed the descriptor of the launcher may have another socket of its number.
#[test]
fn another_socket_of_the_number_of_the_jobs_is_left_alone() {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let inode = |socket: &UnixStream| {
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(socket));
        let name = std::fs::read_link(link).expect("a name").into_os_string().into_string().expect("text");
        name.trim_start_matches("socket:[").trim_end_matches(']').parse::<u64>().expect("a number")
    };
    let flags = rustix::io::fcntl_getfd(&theirs).expect("flags");
    rustix::io::fcntl_setfd(&theirs, flags - rustix::io::FdFlags::CLOEXEC).expect("flags");
    let number = std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string();
    let named =
        |socket: u64| BTreeMap::from([(crate::DESCRIPTOR, number.clone()), (crate::SOCKET, socket.to_string())]);
    let why = error(&named(inode(&ours)));
    assert!(why.contains("which is another socket than that of the job"), "{why}");
    // Nothing was sent, the flags are as they were, and it is no other file.
    ours.set_nonblocking(true).expect("a flag");
    assert_eq!(
        std::io::Read::read(&mut ours, &mut [0; 1]).map_err(|why| why.kind()),
        Err(std::io::ErrorKind::WouldBlock)
    );
    assert_eq!(rustix::io::fcntl_getfd(&theirs).expect("flags"), flags - rustix::io::FdFlags::CLOEXEC);
    // The right one is taken: its other end is closed, which is found out later.
    let right = named(inode(&theirs));
    drop(ours);
    let why = error(&right);
    assert!(why.contains("closed the connection"), "{why}");
    std::mem::forget(theirs);
}

#[test]
fn ranks_meet_at_the_store_of_rank_0() {
    let store = format!("127.0.0.1:{}", free_port());
    let rank = |rank| {
        let mut joined = join(&variables(rank, 4, &store), LIMIT).expect("a job");
        assert_eq!((joined.rank, joined.size, joined.local.rank, joined.local.size), (rank, 4, rank, 4));
        let next = (rank + 1) % 4;
        joined.source.publish("key", &[u8::try_from(rank).expect("small")]).expect("room");
        let found = joined.source.look_up(next, "key", LIMIT).expect("a value");
        assert_eq!(found, [u8::try_from(next).expect("small")]);
        for round in 0..50_u32 {
            let value = vec![7; (rank * 1000 + round) as usize];
            let values = joined.source.exchange(&value, LIMIT).expect("all come");
            let lengths: Vec<usize> = values.iter().map(Vec::len).collect();
            assert_eq!(lengths, [0, 1000, 2000, 3000].map(|base| base + round as usize));
        }
    };
    scope(|scope| (0..4).for_each(|number| drop(scope.spawn(move || rank(number)))));
}

#[test]
fn the_port_behind_the_coordinators_is_used() {
    let port = free_port();
    let of = |rank: u32| {
        BTreeMap::from([
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "2".into()),
            ("MASTER_ADDR", "127.0.0.1".into()),
            ("MASTER_PORT", (port - 1).to_string()),
        ])
    };
    scope(|scope| {
        let other = scope.spawn(|| join(&of(1), LIMIT).map(|joined| joined.name));
        let first = join(&of(0), LIMIT).expect("a job");
        assert_eq!(other.join().expect("no panic"), Ok(first.name));
    });
}

#[test]
fn ranks_that_never_come_are_named() {
    let store = format!("127.0.0.1:{}", free_port());
    scope(|scope| {
        let other = scope.spawn(|| join(&variables(2, 4, &store), LIMIT).err());
        let begin = Instant::now();
        let late = join(&variables(0, 4, &store), SHORT).err();
        assert!(begin.elapsed() >= SHORT && begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
        let named = |ranks: &[u32]| ranks.contains(&1) && ranks.contains(&3) && !ranks.contains(&0);
        assert!(matches!(&late, Some(JobError::NeverCame { ranks, .. }) if named(ranks)), "{late:?}");
        let other = other.join().expect("no panic");
        // It may have come before the limit of rank 0 was over, or after it.
        assert!(matches!(&other, Some(JobError::GivenUp(ranks)) if named(ranks)) || other == late, "{other:?}");
    });
    let alone = error(&variables(1, 2, &store));
    assert!(alone.contains("see that rank 0 runs there"), "{alone}");
}

#[test]
fn a_secret_must_be_the_same_on_both_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |rank, store: &str, secret: Option<u8>| {
        let mut variables = variables(rank, 2, store);
        variables.extend(secret.map(|byte| ("CCI_SECRET_FILE", secret_file(folder.path(), byte))));
        variables
    };
    let pair = |first, second, limit| {
        let store = format!("127.0.0.1:{}", free_port());
        // Files are written before a rank reads one.
        let [zero, one] = [with(0, &store, first), with(1, &store, second)];
        scope(|scope| {
            let other = scope.spawn(|| join(&one, limit).map(|joined| joined.secret.is_some()));
            let first = join(&zero, limit).map(|joined| joined.secret.is_some());
            (first, other.join().expect("no panic"))
        })
    };
    assert_eq!(pair(Some(1), Some(1), LIMIT), (Ok(true), Ok(true)));
    assert_eq!(pair(None, None, LIMIT), (Ok(false), Ok(false)));
    let differ = |first, second| {
        // Rank 0 waits in vain, and rank 1 comes before it gives up.
        let (first, second) = pair(first, second, SHORT * 4);
        assert!(matches!(&first, Err(JobError::NeverCame { ranks, .. }) if *ranks == [1]), "{first:?}");
        let second = second.expect_err("it must not join").to_string();
        // Without a secret a store is at another place.
        assert!(second.contains("with the secret of the job") || second.contains("with a secret as"), "{second}");
    };
    scope(|scope| {
        // Each with files of its own.
        for (first, second) in [(Some(1), Some(2)), (Some(3), None), (None, Some(4))] {
            scope.spawn(move || differ(first, second));
        }
    });
}

#[test]
fn without_a_secret_a_store_elsewhere_is_refused() {
    // 192.0.2.0/24 is for documentation and nobody's.
    let mut variables = variables(1, 2, "192.0.2.1:7000");
    assert!(error(&variables).contains("set CCI_SECRET_FILE, or CCI_LISTEN=network"));
    variables.insert("CCI_SECRET_FILE", "/nowhere".into());
    assert!(error(&variables).contains("the secret file /nowhere"));
}

#[test]
fn wrong_variables_are_explained() {
    let with = |name, value: &str| {
        let mut variables = variables(0, 2, "127.0.0.1:1");
        variables.insert(name, value.into());
        error(&variables)
    };
    assert!(with("OMPI_COMM_WORLD_RANK", "two").contains("OMPI_COMM_WORLD_RANK is 'two'"));
    assert!(with("OMPI_COMM_WORLD_RANK", "2").contains("rank 2 is not below the size 2"));
    assert!(with("OMPI_COMM_WORLD_SIZE", "4294967295").contains("has 4294967295 ranks; start at most 1048576"));
    assert!(with("CCI_STORE", "here").contains("write HOST:PORT"));
    assert!(with("CCI_JOB_FD", "1000000").contains("CCI_JOB_FD names descriptor 1000000"));
    assert!(with("PMI_PORT", "x").contains("no process manager at PMI_PORT x"));
    assert!(with("PMI_FD", "1000000").contains("PMI_FD names descriptor 1000000"));
    assert!(with("OMPI_COMM_WORLD_RANK", "").contains("belongs to no job"));
}

/// A server of three ranks in a thread, which reports until it is told to end.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    reports: Receiver<String>,
    end: Sender<()>,
    thread: Option<JoinHandle<()>>,
    /// Connections of ranks 0 and 1.
    ranks: Vec<Client>,
    /// The bare connection of rank 2, which the launcher made.
    bare: UnixStream,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    pub(crate) fn with(secret: Option<Secret>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut server = Server::new(3, secret).expect("a server");
        server.listen(listener).expect("a listener");
        let ends: Vec<UnixStream> = (0..3)
            .map(|rank| {
                let (ours, theirs) = UnixStream::pair().expect("a pair");
                server.adopt(ours, rank, Local { rank, size: 3, processors: 1 }).expect("room");
                theirs
            })
            .collect();
        let ((end, ended), (report, reports)) = (channel(), channel());
        let thread = std::thread::spawn(move || serve(server, &ended, &report));
        let mut ends = ends.into_iter();
        let ranks = ends.by_ref().take(2).map(|end| Client::trusted(end.into(), LIMIT).expect("a rank").0).collect();
        let bare = ends.next().expect("three");
        Self { address, reports, end, thread: Some(thread), ranks, bare }
    }

    pub(crate) fn report(&self) -> String {
        self.reports.recv_timeout(LIMIT).expect("a report")
    }

    /// Ranks 0 and 1 still get values of each other.
    pub(crate) fn others_are_unharmed(&mut self, key: &str) {
        self.ranks[0].publish(key, b"value").expect("a store that serves");
        assert_eq!(self.ranks[1].look_up(0, key, LIMIT), Ok(b"value".to_vec()));
    }
}

pub(crate) fn serve(mut server: Server, ended: &Receiver<()>, report: &Sender<String>) {
    while ended.try_recv().is_err() {
        let timeout = server.progress().expect("progress");
        server.reports().into_iter().for_each(|text| report.send(text).expect("a listening test"));
        // Ends soon after its test.
        let timeout = timeout.unwrap_or(LIMIT).min(Duration::from_millis(20));
        let timeout = Timespec::try_from(timeout).expect("short");
        poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&timeout)).expect("poll");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // It has ended if it panicked.
        let _ = self.end.send(());
        self.thread.take().map(JoinHandle::join);
    }
}

/// Whether the other side has closed the connection.
pub(crate) fn is_closed(mut stream: impl Read) -> bool {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).is_ok_and(|_| true)
}

#[test]
fn a_stranger_that_lies_is_closed_and_others_go_on() {
    let mut fixture = Fixture::new();
    let hello = |rank, size, share| Request::Hello(Hello { rank, size, share }).emit();
    let lies: [(&str, Vec<u8>, &str); 7] = [
        ("length", vec![0xff, 0xff, 0xff, 0x7f, 1], "a frame longer"),
        ("kind", vec![1, 0, 0, 0, 99], "a malformed request"),
        ("empty", vec![0, 0, 0, 0], "a malformed request"),
        ("early", Request::Exchange { limit: LIMIT, value: vec![] }.emit(), "a request before HELLO"),
        ("proof", hello(2, 3, Some([5; 48])), "it does not prove the secret"),
        ("size", hello(2, 4, None), "another size of the job"),
        ("twice", hello(0, 3, None), "this rank has come before"),
    ];
    for (key, lie, why) in lies {
        let mut stranger = TcpStream::connect(fixture.address).expect("a connection");
        stranger.write_all(&lie).expect("room");
        stranger.set_read_timeout(Some(LIMIT)).expect("a limit");
        assert!(is_closed(&stranger), "{key}");
        let report = fixture.report();
        assert!(report.contains("a stranger") && report.contains(why), "{key}: {report}");
        fixture.others_are_unharmed(key);
    }
}

/// Nor does one that proves something else.
#[test]
fn a_stranger_without_a_proof_does_not_get_into_a_store_with_a_secret() {
    let mut fixture = Fixture::with(Some(Secret::from_bytes(&[7; 32]).expect("memory")));
    for (key, share) in [("none", None), ("wrong", Some([5; 48]))] {
        let mut stranger = TcpStream::connect(fixture.address).expect("a connection");
        stranger.set_read_timeout(Some(LIMIT)).expect("a limit");
        let hello = Request::Hello(Hello { rank: 2, size: 3, share }).emit();
        stranger.write_all(&hello).expect("room");
        let mut said = Vec::new();
        stranger.read_to_end(&mut said).expect("the end");
        let challenge = said.get(4..).and_then(Reply::parse);
        assert!(matches!(challenge, Some(Reply::Challenge(_))), "{key}: more than a challenge");
        let report = fixture.report();
        assert!(report.contains("a stranger: it does not prove the secret of this job"), "{key}: {report}");
        fixture.others_are_unharmed(key);
    }
}

#[test]
fn a_rank_that_lies_is_closed_and_named_and_what_waits_for_it_fails() {
    let mut fixture = Fixture::new();
    let hello = Request::Hello(Hello { rank: 0, size: 0, share: None }).emit();
    let exchange = Request::Exchange { limit: LIMIT, value: vec![] }.emit();
    // The second exchange comes while the first one waits.
    fixture.bare.write_all(&[hello, exchange.clone(), exchange].concat()).expect("room");
    assert!(is_closed(&fixture.bare));
    let report = fixture.report();
    assert!(report.contains("rank 2") && report.contains("a second request"), "{report}");
    fixture.others_are_unharmed("key");
    assert_eq!(fixture.ranks[0].look_up(2, "key", LIMIT), Err(JobError::Gone(vec![2])));
}

#[test]
fn a_rank_that_ends_fails_the_exchange_at_once() {
    let mut fixture = Fixture::new();
    let mut ranks = std::mem::take(&mut fixture.ranks);
    let begin = Instant::now();
    scope(|scope| {
        let waits = scope.spawn(move || ranks.iter_mut().map(|rank| rank.exchange(b"", LIMIT)).next());
        fixture.bare.shutdown(std::net::Shutdown::Both).expect("a connection");
        assert_eq!(waits.join().expect("no panic"), Some(Err(JobError::Gone(vec![2]))));
    });
    assert!(begin.elapsed() < LIMIT);
}

#[test]
fn a_store_that_does_not_answer_ends_in_an_error() {
    let (theirs, ours) = UnixStream::pair().expect("a pair");
    drop(theirs);
    assert!(Client::trusted(ours.into(), SHORT).err().expect("no store").to_string().contains("closed the connection"));
}

/// The error of a rank whose process manager sends these lines, one for each line that it gets.
fn error_by_pmi(lines: &'static [&'static str]) -> String {
    error_by_pmi_within(LIMIT, lines)
}

fn error_by_pmi_within(limit: Duration, lines: &'static [&'static str]) -> String {
    use std::os::fd::AsRawFd;
    let (manager, rank) = UnixStream::pair().expect("a pair");
    let descriptor = rank.as_raw_fd().to_string();
    let variables = [("PMI_FD", descriptor), ("PMI_RANK", "0".into()), ("PMI_SIZE", "2".into())].into();
    scope(|scope| {
        scope.spawn(move || {
            let mut asked = std::io::BufReader::new(manager.try_clone().expect("a descriptor")).lines();
            for line in lines {
                asked.next();
                // The rank may have given up.
                let _ = writeln!(&manager, "{line}");
            }
            for line in asked.map_while(Result::ok) {
                if line == "cmd=finalize" {
                    writeln!(&manager, "cmd=finalize_ack").expect("a rank that waits for it");
                }
            }
        });
        let error = join(&variables, limit).err().expect("it must not join").to_string();
        drop(rank);
        error
    })
}

#[test]
fn a_process_manager_that_is_silent_or_lies_is_explained() {
    const INIT: &str = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1";
    const MAXES: &str = "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024 rc=0";
    const SPACE: &str = "cmd=my_kvsname kvsname=space rc=0";
    const PUT: &str = "cmd=put_result rc=0";
    for silent_after in [&[][..], &[INIT, MAXES, SPACE, PUT]] {
        assert!(error_by_pmi_within(SHORT, silent_after).contains("does not answer within the limit"));
    }
    const INIT_2: &str = "cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0";
    assert!(error_by_pmi(&["cmd=response_to_init rc=-1 pmi_version=3"]).contains("neither PMI-1 nor PMI-2"));
    assert!(error_by_pmi(&[INIT_2, INIT_2]).contains("does not speak PMI-2"));
    // Only lines are waited for, and the third command of the rank is none.
    const NO_LENGTH: &str = "cmd=response_to_init rc=0 pmi_version=2\nno length";
    assert!(error_by_pmi(&[INIT_2, NO_LENGTH]).contains("a false length"));
    assert!(error_by_pmi(&["cmd=other"]).contains("sent 'cmd=other' in place of response_to_init"));
    assert!(error_by_pmi(&[INIT, MAXES, "cmd=my_kvsname"]).contains("names no key-value space"));
    assert!(error_by_pmi(&[INIT, MAXES, SPACE, "cmd=put_result rc=-1"]).contains("has no room"));
    let lie = &[INIT, MAXES, SPACE, PUT, "cmd=barrier_out rc=0", "cmd=get_result rc=0 value=1"];
    assert!(error_by_pmi(lie).contains("that no rank of this version has put"));
}

#[test]
fn a_join_by_pmi_has_one_limit_for_all_that_it_asks() {
    use std::os::fd::AsRawFd;
    const JOIN: Duration = Duration::from_secs(4);
    const ANSWERS: [&str; 4] = [
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
        "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024 rc=0",
        "cmd=my_kvsname kvsname=space rc=0",
        "cmd=put_result rc=0",
    ];
    let (manager, rank) = UnixStream::pair().expect("a pair");
    let variables =
        [("PMI_FD", rank.as_raw_fd().to_string()), ("PMI_RANK", "0".into()), ("PMI_SIZE", "2".into())].into();
    scope(|scope| {
        scope.spawn(move || {
            let mut asked = std::io::BufReader::new(manager.try_clone().expect("a descriptor")).lines();
            std::thread::sleep(JOIN * 9 / 10);
            for answer in ANSWERS {
                asked.next();
                // The rank may have given up.
                let _ = writeln!(&manager, "{answer}");
            }
            // Nothing answers the barrier.
            asked.map_while(Result::ok).for_each(drop);
        });
        let begin = Instant::now();
        assert!(join(&variables, JOIN).is_err());
        let took = begin.elapsed();
        drop(rank);
        assert!(took < JOIN * 3 / 2, "it took {took:?}");
    });
}

#[test]
fn a_process_manager_that_has_gone_is_an_error_and_no_signal() {
    use std::os::fd::AsRawFd;
    let (manager, rank) = UnixStream::pair().expect("a pair");
    drop(manager);
    let descriptor = rank.as_raw_fd().to_string();
    let variables = [("PMI_FD", descriptor), ("PMI_RANK", "0".into()), ("PMI_SIZE", "2".into())].into();
    let (joined, was_sent) = crate::sys::sigpipe_of(|| join(&variables, LIMIT));
    assert!(joined.err().expect("nobody answers").to_string().contains("the process manager has gone"));
    assert!(!was_sent, "it would end the program");
}

/// A process manager of one rank that speaks PMI-2 only, until the rank leaves. What it has been
/// asked.
pub(crate) fn serve_pmi_2(manager: UnixStream) -> Vec<String> {
    let mut from = std::io::BufReader::new(manager.try_clone().expect("a descriptor"));
    let (mut asked, mut values) = (Vec::new(), BTreeMap::new());
    for answer in ["rc=-1 pmi_version=2 pmi_subversion=0", "rc=0 pmi_version=2 pmi_subversion=0"] {
        let mut line = String::new();
        from.read_line(&mut line).expect("a line");
        asked.push(line);
        writeln!(&manager, "cmd=response_to_init {answer}").expect("a rank");
    }
    loop {
        let mut length = [0; 6];
        from.read_exact(&mut length).expect("a length");
        let length = str::from_utf8(&length).expect("text").trim().parse().expect("a number");
        let mut command = vec![0; length];
        from.read_exact(&mut command).expect("a command");
        let command = String::from_utf8(command).expect("text");
        let words: BTreeMap<&str, &str> = command.split(';').filter_map(|word| word.split_once('=')).collect();
        let answer = match words["cmd"] {
            "fullinit" => "rank=0;size=1;appnum=0;".into(),
            "kvs-put" => {
                values.insert(words["key"].to_owned(), words["value"].to_owned());
                String::new()
            }
            "kvs-get" => {
                let value = values.get(words["key"]);
                value.map_or_else(|| "flag=FALSE;".into(), |value| format!("flag=TRUE;value={value};"))
            }
            _ => String::new(),
        };
        let answer = format!("cmd={}-response;{answer}rc=0;", words["cmd"]);
        write!(&manager, "{:>6}{answer}", answer.len()).expect("a rank");
        let is_last = words["cmd"] == "finalize";
        asked.push(command.clone());
        if is_last {
            return asked;
        }
    }
}

#[test]
fn a_process_manager_that_speaks_only_pmi_2_is_understood() {
    use std::os::fd::AsRawFd;
    let (manager, rank) = UnixStream::pair().expect("a pair");
    let served = std::thread::spawn(move || serve_pmi_2(manager));
    let descriptor = rank.as_raw_fd().to_string();
    let variables = [("PMI_FD", descriptor), ("PMI_RANK", "0".into()), ("PMI_SIZE", "1".into())].into();
    let mut joined = join(&variables, LIMIT).expect("a job");
    assert_eq!((joined.name, joined.rank, joined.size), ("PMI-2", 0, 1));
    // More than one entry takes.
    let value = vec![7; 1000];
    joined.source.publish("key", &value).expect("room");
    assert_eq!(joined.source.look_up(0, "key", LIMIT), Ok(value.clone()));
    let missing = joined.source.look_up(0, "other", SHORT);
    assert!(matches!(missing, Err(JobError::NeverCame { .. })), "{missing:?}");
    assert_eq!(joined.source.exchange(&value, LIMIT), Ok(vec![value]));
    drop(joined);
    let asked = served.join().expect("no panic");
    assert_eq!(asked[0], "cmd=init pmi_version=1 pmi_subversion=1\n");
    assert_eq!(asked[1], "cmd=init pmi_version=2 pmi_subversion=0\n");
    assert_eq!(asked[2], "cmd=fullinit;pmirank=0;threaded=FALSE;");
    assert_eq!(asked.last().map(String::as_str), Some("cmd=finalize;"));
}

#[test]
fn a_false_store_gets_no_rank() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    scope(|scope| {
        scope.spawn(|| {
            let (mut rank, _) = listener.accept().expect("a rank");
            let local = Local { rank: 1, size: 2, processors: 1 };
            let welcome = Welcome { rank: 1, size: 2, local, key: Key::None };
            let replies = [Reply::Challenge([1; 32]).emit(), Reply::Welcome(welcome).emit()].concat();
            rank.write_all(&replies).expect("a rank");
            // Until the rank leaves.
            assert!(is_closed(rank));
        });
        let socket = TcpStream::connect(address).expect("a store");
        let secret = Secret::from_bytes(&[7; 32]).expect("memory");
        let error =
            Client::connected(socket.into(), 1, 2, Some(&secret), LIMIT).err().expect("no proof").error.to_string();
        assert!(error.contains("the store does not prove the secret"), "{error}");
    });
}

#[test]
fn a_store_of_another_size_ends_in_an_error() {
    for (rank, size) in [(0, 0), (0, 1), (1, 1), (1, 3), (u32::MAX, u32::MAX)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let store = listener.local_addr().expect("an address").to_string();
        scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a rank");
                let local = Local { rank: 0, size: 1, processors: 1 };
                let welcome = Reply::Welcome(Welcome { rank, size, local, key: Key::None });
                let values = Reply::Values(vec![Vec::new(); size.min(3) as usize]);
                let replies = [Reply::Challenge([1; 32]), welcome, values].map(|reply| reply.emit()).concat();
                stream.write_all(&replies).expect("a rank");
                assert!(is_closed(stream));
            });
            let mut variables = variables(1, 2, &store);
            // By TCP though there is no secret.
            variables.insert("CCI_LISTEN", "network".into());
            let error = error(&variables);
            assert!(error.contains("takes rank 1 of 2 for"), "{error}");
        });
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let local = Local { rank: 0, size: 1, processors: 1 };
        let welcome = Reply::Welcome(Welcome { rank, size, local, key: Key::None });
        ours.write_all(&welcome.emit()).expect("room");
        assert_eq!(Client::trusted(theirs.into(), LIMIT).is_err(), rank >= size, "rank {rank} of {size}");
    }
}
