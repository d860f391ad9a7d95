//! Calls end at their limits, whatever others do not do.

use crate::error::JobError;
use crate::joining::Joined;
use crate::tests::{LIMIT, SHORT, free_port, is_closed, join, variables};
use crate::wire::Reply;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// What each call below would take that does not end at its limit: no less than 5 s.
const TOO_LONG: Duration = Duration::from_secs(5);

/// A port that answers nobody: its queue is full.
pub(crate) struct Silent {
    listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Silent {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listen(&listener, 0).expect("a shorter queue");
        let address = listener.local_addr().expect("an address");
        let mut queue = Vec::new();
        while let Ok(waits) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            queue.push(waits);
        }
        Self { listener, _queue: queue }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("an address")
    }
}

/// A process manager of one rank, by PMI-1. It answers each question for a value with the next of
/// `values`, and holds its answer back at `None`; a word through `late` has it send what it held
/// back.
struct Manager {
    thread: JoinHandle<()>,
    late: Sender<String>,
    joined: Joined,
    rank: UnixStream,
}

fn managed(values: &'static [Option<&'static str>]) -> Manager {
    let (manager, rank) = UnixStream::pair().expect("a pair");
    let ((late, held_back), mut values) = (channel::<String>(), values.iter());
    let thread = spawn(move || {
        let asked = BufReader::new(manager.try_clone().expect("a descriptor")).lines();
        for line in asked.map_while(Result::ok) {
            let word = line.split(' ').next().unwrap_or_default();
            let answer = match word {
                "cmd=init" => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
                "cmd=get_maxes" => "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024 rc=0",
                "cmd=get_my_kvsname" => "cmd=my_kvsname kvsname=space rc=0",
                "cmd=put" => "cmd=put_result rc=0",
                "cmd=barrier_in" => "cmd=barrier_out rc=0",
                "cmd=finalize" => "cmd=finalize_ack",
                _ => match values.next() {
                    Some(Some(value)) => value,
                    _ => match held_back.recv() {
                        Ok(text) => &*text.leak(),
                        Err(_) => return,
                    },
                },
            };
            // The rank may have given up.
            let _ = writeln!(&manager, "{answer}");
        }
    });
    let variables =
        [("PMI_FD", rank.as_raw_fd().to_string()), ("PMI_RANK", "0".into()), ("PMI_SIZE", "1".into())].into();
    let joined = join(&variables, LIMIT).expect("a rank");
    Manager { thread, late, joined, rank }
}

impl Manager {
    fn end(self) {
        // The process manager ends with its last connection.
        drop((self.late, self.joined, self.rank));
        self.thread.join().expect("no panic");
    }
}

const NOT_THERE: Option<&str> = Some("cmd=get_result rc=-1");

#[test]
fn a_look_up_by_pmi_ends_at_its_limit_though_the_process_manager_is_silent() {
    let mut manager = managed(&[None, Some("cmd=get_result rc=0 value=0000000102")]);
    let begin = Instant::now();
    let late = manager.joined.source.look_up(0, "key", SHORT).expect_err("nobody answers");
    assert!(begin.elapsed() < TOO_LONG, "{:?}", begin.elapsed());
    assert!(late.to_string().contains("does not answer within the limit"), "{late}");
    // One slow answer ends no job.
    manager.late.send("cmd=get_result rc=0 value=0000000101".into()).expect("a process manager");
    assert_eq!(manager.joined.source.look_up(0, "key", LIMIT), Ok(vec![2]));
    manager.end();
}

#[test]
fn an_answer_of_pmi_that_comes_after_the_limit_is_not_taken_for_a_later_one() {
    let mut manager = managed(&[NOT_THERE, None, Some("cmd=get_result rc=0 value=0000000102")]);
    let begin = Instant::now();
    let late = manager.joined.source.look_up(0, "first", SHORT);
    assert!(begin.elapsed() < TOO_LONG, "{:?}", begin.elapsed());
    assert_eq!(late, Err(JobError::NeverCame { ranks: vec![0], limit: SHORT }));
    manager.late.send("cmd=get_result rc=0 value=0000000101".into()).expect("a process manager");
    assert_eq!(manager.joined.source.look_up(0, "second", LIMIT), Ok(vec![2]));
    manager.end();
}

#[test]
fn a_value_of_pmi_without_an_end_is_refused() {
    let long = format!("cmd=get_result rc=0 value=00000925{}", "0".repeat(60_000)).leak();
    // Each is the answer to every further question, until the rank asks no more.
    for endless in ["cmd=get_result rc=0 value=ffffffff00", "cmd=get_result rc=0 value=00000926", long] {
        let mut manager = managed(vec![Some(endless); 4000].leak());
        let error = manager.joined.source.look_up(0, "key", LIMIT).expect_err("no value is so long");
        assert!(error.to_string().contains("that no rank of this version has put"), "{error}");
        manager.end();
    }
}

#[test]
fn a_rank_leaves_within_its_limit_though_the_process_manager_takes_no_notice() {
    let (manager, rank) = UnixStream::pair().expect("a pair");
    let thread = spawn(move || {
        let asked = BufReader::new(manager.try_clone().expect("a descriptor")).lines();
        let mut answers = [
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
            "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024 rc=0",
            "cmd=my_kvsname kvsname=space rc=0",
            "cmd=put_result rc=0",
            "cmd=barrier_out rc=0",
        ]
        .iter();
        let mut last = String::new();
        for line in asked.map_while(Result::ok) {
            if let Some(answer) = answers.next() {
                writeln!(&manager, "{answer}").expect("a rank");
            }
            last = line;
        }
        last
    });
    let variables =
        [("PMI_FD", rank.as_raw_fd().to_string()), ("PMI_RANK", "0".into()), ("PMI_SIZE", "1".into())].into();
    let joined = join(&variables, SHORT).expect("a rank");
    let begin = Instant::now();
    drop(joined);
    assert!(begin.elapsed() < TOO_LONG, "{:?}", begin.elapsed());
    drop(rank);
    assert_eq!(thread.join().expect("no panic"), "cmd=finalize");
}

/// The error of a rank that joins with a short limit, and how long it took.
fn late(variables: BTreeMap<&'static str, String>) -> (String, Duration) {
    let (end, ended) = channel();
    // It is not waited for where it hangs.
    spawn(move || {
        let begin = Instant::now();
        let error = join(&variables, SHORT).err().map_or_else(String::new, |error| error.to_string());
        let _ = end.send((error, begin.elapsed()));
    });
    ended.recv_timeout(LIMIT).expect("an end")
}

#[test]
fn a_join_ends_at_its_limit_though_the_store_has_no_room_for_another() {
    let store = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let name = format!("cci-job/{}/{store}", rustix::process::geteuid().as_raw());
    let name = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    let new = || -> OwnedFd { socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket") };
    let (listener, first) = (new(), new());
    bind(&listener, &name).expect("a name");
    listen(&listener, 0).expect("a queue");
    connect(&first, &name).expect("room for one");
    let (error, took) = late(variables(1, 2, &store.to_string()));
    assert!(took < TOO_LONG, "{took:?}");
    assert!(error.contains("see that rank 0 runs there"), "{error}");
}

/// Serves one rank at a port: what it sends first, and after that nothing, or a byte again and
/// again.
fn false_store(first: Vec<u8>, byte: Option<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let thread = spawn(move || {
        let (mut rank, _) = listener.accept().expect("a rank");
        rank.write_all(&first).expect("room");
        let pause = Duration::from_millis(50);
        while byte.is_some_and(|byte| rank.write_all(&[byte]).is_ok()) {
            std::thread::sleep(pause);
        }
        // Until the rank leaves; it may have left bytes unread.
        let _ = is_closed(&rank);
    });
    (address, thread)
}

/// It answers the first command and no other one, neither the farewell.
#[test]
fn a_join_by_pmi_ends_at_its_limit_though_the_process_manager_stops_on_the_way() {
    let (port, thread) = false_store(b"cmd=initack rc=0\ncmd=set size=1\n".to_vec(), None);
    let variables = [("PMI_PORT", port), ("PMI_ID", "0".into())].into();
    let (error, took) = late(variables);
    assert!(took < TOO_LONG, "{took:?}");
    assert!(error.contains("the process manager does not answer within the limit"), "{error}");
    thread.join().expect("no panic");
}

#[test]
fn a_join_ends_at_its_limit_though_the_store_is_silent_or_sends_a_byte_at_a_time() {
    // The length of a frame that never comes whole.
    let long = 1000_u32.to_le_bytes().to_vec();
    let challenge = Reply::Challenge([1; 32]).emit();
    for (step, first) in
        [("challenge", Vec::new()), ("welcome", challenge.clone()), ("frame", [challenge, long].concat())]
    {
        for byte in [None, Some(0)].into_iter().filter(|byte| byte.is_none() || step == "frame") {
            let (store, thread) = false_store(first.clone(), byte);
            let mut variables = variables(1, 2, &store);
            variables.insert("CCI_LISTEN", "network".into());
            let (error, took) = late(variables);
            assert!(took < TOO_LONG, "{step} {byte:?}: {took:?}");
            assert!(error.contains("the store does not answer"), "{step} {byte:?}: {error}");
            thread.join().expect("no panic");
        }
    }
}
