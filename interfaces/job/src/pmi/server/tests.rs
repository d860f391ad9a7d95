//! The process manager step by step: bytes in, bytes out.

mod interleavings;

use super::table::{ENTRY, MOST_PUT};
use super::*;
use crate::joining;
use crate::source::Environment;
use cci_mem::descriptors;
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const BEGIN: &str = "cmd=init pmi_version=1 pmi_subversion=1\n";
const BEGIN_2: &str = "cmd=init pmi_version=2 pmi_subversion=0\n";

/// Ranks of these hosts, the last of which runs another program.
fn manager(hosts: &[u32]) -> ProcessManager {
    let last = hosts.len() - 1;
    let seat = |(at, host): (usize, &u32)| Seat { host: *host, program: u32::from(at == last) };
    ProcessManager::new("kvs_7", hosts.iter().enumerate().map(seat).collect())
}

fn events(manager: &mut ProcessManager) -> Vec<ManagerEvent> {
    manager.advance(|_| true);
    std::iter::from_fn(|| manager.poll_event()).collect()
}

/// What a rank gets when it has sent this, and what others get.
fn sent(manager: &mut ProcessManager, rank: u32, text: &str) -> Vec<(u32, String)> {
    manager.handle_bytes(rank, text.as_bytes());
    events(manager)
        .into_iter()
        .map(|event| match event {
            ManagerEvent::Answer { rank, bytes } => (rank, String::from_utf8(bytes).expect("text")),
            other => panic!("{text}: {other:?}"),
        })
        .collect()
}

/// The answer to a line.
fn line(manager: &mut ProcessManager, rank: u32, text: &str) -> String {
    let answers = sent(manager, rank, &format!("{text}\n"));
    let [(of, answer)] = &answers[..] else { panic!("{text}: {answers:?}") };
    assert_eq!((*of, answer.ends_with('\n'), answer.matches('\n').count()), (rank, true, 1), "{text}");
    answer.trim_end().to_owned()
}

fn counted(text: &str) -> String {
    format!("{:>6}{text}", text.len())
}

/// The answer to a command of PMI-2.
fn command(manager: &mut ProcessManager, rank: u32, text: &str) -> String {
    let answers = sent(manager, rank, &counted(text));
    let [(of, answer)] = &answers[..] else { panic!("{text}: {answers:?}") };
    assert_eq!((*of, answer), (rank, &counted(&answer[6..])), "{text}");
    answer[6..].to_owned()
}

fn begun(hosts: &[u32], begin: &str) -> ProcessManager {
    let mut manager = manager(hosts);
    for rank in 0..manager.size() {
        let answers = sent(&mut manager, rank, begin);
        let version = if begin == BEGIN { "pmi_version=1 pmi_subversion=1" } else { "pmi_version=2 pmi_subversion=0" };
        assert_eq!(answers, [(rank, format!("cmd=response_to_init rc=0 {version}\n"))]);
    }
    manager
}

#[test]
fn pmi_1_is_answered_command_by_command() {
    let mut manager = begun(&[0, 0, 1], BEGIN);
    let mut is = |rank, text: &str, answer: &str| assert_eq!(line(&mut manager, rank, text), answer, "{text}");
    is(0, "cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024");
    is(1, "cmd=get_appnum", "cmd=appnum rc=0 appnum=0");
    is(2, "cmd=get_appnum", "cmd=appnum rc=0 appnum=1");
    is(0, "cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=kvs_7");
    is(0, "cmd=get_universe_size", "cmd=universe_size rc=0 size=3");
    is(0, "cmd=get kvsname=kvs_7 key=PMI_process_mapping", "cmd=get_result rc=0 value=(vector,(0,1,2),(1,1,1))");
    is(0, "cmd=get kvsname=kvs_7 key=PMI_hwloc_xmlfile", "cmd=get_result rc=1 msg=no_such_key");
    is(0, "cmd=get kvsname=other key=PMI_process_mapping", "cmd=get_result rc=1 msg=no_such_kvsname");
    is(0, "cmd=put kvsname=other key=a value=b", "cmd=put_result rc=1 msg=no_such_kvsname");
    is(0, "cmd=put kvsname=kvs_7 value=b", "cmd=put_result rc=1 msg=no_key");
    is(0, "cmd=get", "cmd=get_result rc=1 msg=no_key");
    is(0, "cmd=publish_name service=my service port=tag#0$entry=$", "cmd=publish_result rc=0");
    is(
        1,
        "cmd=publish_name service=my service port=other",
        "cmd=publish_result rc=1 msg=this_name_is_published_already",
    );
    is(2, "cmd=lookup_name service=my service", "cmd=lookup_result rc=0 port=tag#0$entry=$");
    is(2, "cmd=lookup_name service=my", "cmd=lookup_result rc=1 msg=no_such_name");
    is(1, "cmd=unpublish_name service=my service", "cmd=unpublish_result rc=0");
    is(1, "cmd=unpublish_name service=my service", "cmd=unpublish_result rc=1 msg=no_such_name");
    is(2, "cmd=lookup_name service=my service", "cmd=lookup_result rc=1 msg=no_such_name");
    is(2, "cmd=lookup_name", "cmd=lookup_result rc=1 msg=no_name");
    let spawn = "mcmd=spawn\nnprocs=1\nexecname=/bin/true\ntotspawns=1\nendcmd";
    is(0, spawn, "cmd=spawn_result rc=1 msg=cci_run_starts_no_processes_for_a_program_that_runs");
    is(0, "cmd=barrier_in group=0,1", "cmd=barrier_out rc=1 msg=barriers_are_those_of_all_ranks");
    is(0, "cmd=finalize", "cmd=finalize_ack rc=0");
    // MPI may begin anew in a process.
    is(0, "cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1");
    is(0, "cmd=init pmi_version=3", "cmd=response_to_init rc=1 msg=PMI-1_and_PMI-2_are_spoken_here");
}

#[test]
fn a_value_is_seen_after_the_next_barrier_and_a_later_one_replaces_it() {
    let mut manager = begun(&[0, 0], BEGIN);
    let barrier = |manager: &mut ProcessManager| {
        assert_eq!(sent(manager, 1, "cmd=barrier_in\n"), []);
        let out = |rank| (rank, "cmd=barrier_out rc=0\n".to_owned());
        assert_eq!(sent(manager, 0, "cmd=barrier_in group=WORLD\n"), [out(0), out(1)]);
    };
    let get = "cmd=get kvsname=kvs_7 key=a";
    for (rank, value) in [(0, "first"), (0, "second"), (1, "x=1;y")] {
        assert_eq!(line(&mut manager, rank, &format!("cmd=put key=a value={value}")), "cmd=put_result rc=0");
    }
    assert_eq!(line(&mut manager, 1, get), "cmd=get_result rc=1 msg=no_such_key");
    barrier(&mut manager);
    assert_eq!(line(&mut manager, 0, get), "cmd=get_result rc=0 value=x=1;y");
    assert_eq!(line(&mut manager, 0, "cmd=put key=a value=third"), "cmd=put_result rc=0");
    assert_eq!(line(&mut manager, 0, get), "cmd=get_result rc=0 value=x=1;y");
    barrier(&mut manager);
    assert_eq!(line(&mut manager, 1, get), "cmd=get_result rc=0 value=third");
}

#[test]
fn pmi_2_is_answered_command_by_command() {
    let mut manager = begun(&[0, 1, 1], BEGIN_2);
    let mut is = |rank, text: &str, answer: &str| assert_eq!(command(&mut manager, rank, text), answer, "{text}");
    is(
        2,
        "cmd=fullinit;pmijobid=7;pmirank=2;threaded=FALSE;",
        "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=2;size=3;appnum=1;debugged=FALSE;\
         pmiverbose=FALSE;",
    );
    is(0, "cmd=job-getid;thrid=0x1f;", "cmd=job-getid-response;thrid=0x1f;rc=0;jobid=kvs_7;");
    let attribute = "cmd=info-getjobattr-response;rc=0;";
    is(0, "cmd=info-getjobattr;key=universeSize;", &format!("{attribute}found=TRUE;value=3;"));
    let vector = "(vector,(0,1,1),(1,1,2))";
    is(0, "cmd=info-getjobattr;key=PMI_process_mapping;", &format!("{attribute}found=TRUE;value={vector};"));
    is(0, "cmd=info-getjobattr;key=PMI_hwloc_xmlfile;", &format!("{attribute}found=FALSE;"));
    is(0, "cmd=info-getnodeattr;key=a;wait=FALSE;", "cmd=info-getnodeattr-response;rc=0;found=FALSE;");
    is(1, "cmd=info-putnodeattr;key=a;value=b c;", "cmd=info-putnodeattr-response;rc=0;");
    is(2, "cmd=info-getnodeattr;key=a;wait=TRUE;", "cmd=info-getnodeattr-response;rc=0;found=TRUE;value=b c;");
    is(0, "cmd=info-getnodeattr;key=a;", "cmd=info-getnodeattr-response;rc=0;found=FALSE;");
    is(0, "cmd=info-getnodeattr;", "cmd=info-getnodeattr-response;rc=1;errmsg=no key;");
    is(0, "cmd=kvs-put;key=k;value=v=1 w;", "cmd=kvs-put-response;rc=0;");
    is(0, "cmd=kvs-get;jobid=kvs_7;srcid=0;key=k;", "cmd=kvs-get-response;rc=0;found=FALSE;");
    is(0, "cmd=name-publish;name=n;port=p;", "cmd=name-publish-response;rc=0;");
    is(1, "cmd=name-lookup;name=n;", "cmd=name-lookup-response;rc=0;port=p;");
    is(1, "cmd=name-unpublish;name=n;", "cmd=name-unpublish-response;rc=0;");
    is(1, "cmd=name-lookup;name=n;", "cmd=name-lookup-response;rc=1;errmsg=no such name;");
    let refused = "rc=1;errmsg=cci run starts no processes for a program that runs;";
    is(1, "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;", &format!("cmd=spawn-response;{refused}"));
    for rank in [0, 1] {
        assert_eq!(sent(&mut manager, rank, &counted(&format!("cmd=kvs-fence;thrid={rank};"))), []);
    }
    let out = |rank, thread: &str| (rank, counted(&format!("cmd=kvs-fence-response;{thread}rc=0;")));
    let answers = sent(&mut manager, 2, &counted("cmd=kvs-fence;"));
    assert_eq!(answers, [out(0, "thrid=0;"), out(1, "thrid=1;"), out(2, "")]);
    assert_eq!(command(&mut manager, 2, "cmd=kvs-get;key=k;"), "cmd=kvs-get-response;rc=0;found=TRUE;value=v=1 w;");
    assert_eq!(command(&mut manager, 2, "cmd=finalize;"), "cmd=finalize-response;rc=0;");
    assert_eq!(line(&mut manager, 2, BEGIN.trim()), "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1");
}

#[test]
fn lengths_are_kept_as_they_are_told() {
    let mut manager = begun(&[0], BEGIN);
    let mut put = |key: usize, value: usize| {
        line(&mut manager, 0, &format!("cmd=put key={} value={}", "k".repeat(key), "v".repeat(value)))
    };
    assert_eq!(put(63, 1023), "cmd=put_result rc=0");
    assert_eq!(put(64, 1), "cmd=put_result rc=1 msg=a_key_of_more_than_63_bytes");
    assert_eq!(put(1, 1024), "cmd=put_result rc=1 msg=a_value_of_more_than_1023_bytes");
    assert_eq!(put(1, 0), "cmd=put_result rc=0");
    // What would be two lines to another rank.
    assert_eq!(
        line(&mut manager, 0, "cmd=put key=a value=b\rc"),
        "cmd=put_result rc=1 msg=a_value_with_control_characters"
    );
    let mut two = begun(&[0], BEGIN_2);
    let refused = "cmd=kvs-put-response;rc=1;errmsg=a value with control characters;";
    assert_eq!(command(&mut two, 0, "cmd=kvs-put;key=a;value=b\ncmd=x;"), refused);
    // A rank of PMI-1 puts what one of PMI-2 cannot be sent.
    let mut both = manager_of_both();
    assert_eq!(line(&mut both, 0, "cmd=put key=a value=b;rc=1"), "cmd=put_result rc=0");
    assert_eq!(sent(&mut both, 0, "cmd=barrier_in\n"), []);
    assert_eq!(sent(&mut both, 1, &counted("cmd=kvs-fence;")).len(), 2);
    assert_eq!(command(&mut both, 1, "cmd=kvs-get;key=a;"), "cmd=kvs-get-response;rc=0;found=FALSE;");
    assert_eq!(line(&mut both, 0, "cmd=get key=a"), "cmd=get_result rc=0 value=b;rc=1");
}

fn manager_of_both() -> ProcessManager {
    let mut both = manager(&[0, 0]);
    sent(&mut both, 0, BEGIN);
    sent(&mut both, 1, BEGIN_2);
    both
}

#[test]
fn a_rank_that_ends_ends_the_barriers_that_wait_for_it() {
    let mut manager = begun(&[0, 0, 0], BEGIN);
    assert_eq!(sent(&mut manager, 0, "cmd=barrier_in\n"), []);
    // What it has sent before its end counts, and what is no whole command does not.
    manager.handle_bytes(2, b"cmd=publish_name service=s port=p\ncmd=barri");
    manager.handle_gone(2);
    let why = "rank 2 will not come to a barrier of MPI, which fails: it has ended, or has closed its connection";
    let failed = |rank| ManagerEvent::Answer {
        rank,
        bytes: b"cmd=barrier_out rc=1 msg=rank_2_has_ended_before_the_barrier\n".into(),
    };
    let published = ManagerEvent::Answer { rank: 2, bytes: b"cmd=publish_result rc=0\n".into() };
    assert_eq!(events(&mut manager), [published, ManagerEvent::Report(why.into()), failed(0)]);
    assert_eq!(line(&mut manager, 0, "cmd=lookup_name service=s"), "cmd=lookup_result rc=1 msg=no_such_name");
    manager.handle_bytes(1, b"cmd=barrier_in\n");
    assert_eq!(events(&mut manager), [failed(1)], "it is reported once");
    manager.handle_bytes(2, b"cmd=get_maxes\n");
    manager.handle_gone(2);
    manager.handle_gone(9);
    manager.handle_bytes(9, b"cmd=get_maxes\n");
    assert_eq!(events(&mut manager), []);
}

#[test]
fn a_rank_that_ends_in_a_barrier_is_not_counted_there() {
    let mut manager = begun(&[0, 0, 0], BEGIN);
    assert_eq!(sent(&mut manager, 0, "cmd=barrier_in\n"), []);
    manager.handle_gone(0);
    assert_eq!(events(&mut manager), [], "nobody waits");
    manager.handle_bytes(1, b"cmd=barrier_in\n");
    assert!(matches!(&events(&mut manager)[..], [ManagerEvent::Report(_), ManagerEvent::Answer { rank: 1, .. }]));
}

#[test]
fn a_question_for_a_value_of_the_host_waits_for_it() {
    let mut manager = begun(&[0, 1, 1, 1], BEGIN_2);
    let ask = |key: &str| counted(&format!("cmd=info-getnodeattr;key={key};wait=TRUE;"));
    assert_eq!(sent(&mut manager, 1, &ask("a")), []);
    assert_eq!(sent(&mut manager, 2, &ask("b")), []);
    let put = counted("cmd=info-putnodeattr;key=a;value=v;");
    assert_eq!(sent(&mut manager, 0, &put).len(), 1, "another host");
    let found = counted("cmd=info-getnodeattr-response;rc=0;found=TRUE;value=v;");
    assert_eq!(sent(&mut manager, 3, &put)[0], (1, found));
    manager.handle_gone(1);
    assert_eq!(events(&mut manager), []);
    manager.handle_gone(3);
    let bytes = counted("cmd=info-getnodeattr-response;rc=0;found=FALSE;").into_bytes();
    assert_eq!(events(&mut manager), [ManagerEvent::Answer { rank: 2, bytes }]);
    // Threads of a rank ask many questions, and not without end.
    let mut manager = begun(&[0, 0], BEGIN_2);
    manager.handle_bytes(0, ask("a").repeat(MOST_WAITING).as_bytes());
    assert_eq!(events(&mut manager), []);
    manager.handle_bytes(0, ask("a").as_bytes());
    let why = "more than 64 questions that wait".into();
    assert_eq!(events(&mut manager), [ManagerEvent::Closed { rank: 0, why }]);
}

#[test]
fn what_breaks_the_protocol_closes_its_connection_alone() {
    let closed = |begin: &str, bytes: &[u8]| {
        let mut manager = manager(&[0, 0]);
        if !begin.is_empty() {
            sent(&mut manager, 0, begin);
        }
        manager.handle_bytes(0, bytes);
        let last = events(&mut manager).pop();
        assert_eq!(sent(&mut manager, 1, BEGIN).len(), 1, "the other one goes on");
        match last {
            Some(ManagerEvent::Closed { rank: 0, why }) => why,
            other => panic!("{bytes:?}: {other:?}"),
        }
    };
    for before in ["cmd=get_maxes\n", "cmd=barrier_in\n", "cmd=finalize\n"] {
        assert_eq!(closed("", before.as_bytes()), "a command before init");
    }
    assert_eq!(closed(BEGIN, b"cmd=finalize\ncmd=barrier_in\n"), "a command before init");
    assert_eq!(closed(BEGIN, b"GET / HTTP/1.1\r\n"), "what is no command of PMI");
    assert_eq!(closed(BEGIN, b"\n"), "what is no command of PMI");
    assert_eq!(closed(BEGIN, b"cmd=put key=\xff\n"), "a command that is no text");
    assert_eq!(closed(BEGIN, &[b'a'; LONGEST + 1]), "a command longer than 65536 bytes");
    assert_eq!(closed(BEGIN, b"cmd=barrier_in\ncmd=barrier_in\n"), "a second barrier while the first one waits");
    assert_eq!(closed(BEGIN_2, b"cmd=init pmi_version=1\n"), "a false length");
    assert_eq!(closed(BEGIN_2, b"999999"), "a command longer than 65536 bytes");
    assert_eq!(closed(BEGIN_2, b"     7cmd=;a;"), "what is no command of PMI");
}

#[test]
fn unknown_commands_are_refused_and_reported_once() {
    let mut manager = begun(&[0], BEGIN);
    let text = "cmd=get_ranks2hosts\ncmd=kvs-put key=a value=b\n";
    manager.handle_bytes(0, text.as_bytes());
    let answer = |name: &str| ManagerEvent::Answer {
        rank: 0,
        bytes: format!("cmd={name}_result rc=1 msg=unknown_command\n").into_bytes(),
    };
    let why = "rank 0 asks PMI for 'get_ranks2hosts', which is not served; see that its MPI is MPICH".into();
    assert_eq!(events(&mut manager), [ManagerEvent::Report(why), answer("get_ranks2hosts"), answer("kvs-put")]);
    let mut two = begun(&[0], BEGIN_2);
    two.handle_bytes(0, counted("cmd=job-connect;jobid=9;thrid=4;").as_bytes());
    let bytes = counted("cmd=job-connect-response;thrid=4;rc=1;errmsg=unknown command;").into_bytes();
    assert_eq!(events(&mut two)[1..], [ManagerEvent::Answer { rank: 0, bytes }]);
}

#[test]
fn an_abort_is_the_launchers() {
    let aborted = |begin: &str, text: &str| {
        let mut manager = begun(&[0, 0], begin);
        manager.handle_bytes(1, text.as_bytes());
        let events = events(&mut manager);
        let [ManagerEvent::Aborted { rank: 1, status, why }] = &events[..] else { panic!("{events:?}") };
        (*status, why.clone())
    };
    assert_eq!(
        aborted(BEGIN, "cmd=abort exitcode=7 message=called MPI_Abort(x, 7)\n"),
        (7, "called MPI_Abort(x, 7)".into())
    );
    assert_eq!(aborted(BEGIN, "cmd=abort\n"), (1, String::new()));
    assert_eq!(aborted(BEGIN, "cmd=abort exitcode=0 message=a\tb\n"), (0, "a b".into()));
    let long = format!("cmd=abort exitcode=-1 message={}\n", "\u{e4}".repeat(101));
    assert_eq!(aborted(BEGIN, &long), (255, "\u{e4}".repeat(100)));
    assert_eq!(aborted(BEGIN_2, &counted("cmd=abort;isworld=TRUE;msg=x;")), (1, String::new()));
}

#[test]
fn a_flood_is_bounded_whether_or_not_its_answers_have_room() {
    let mut manager = begun(&[0, 0], BEGIN);
    let flood = "cmd=get key=a\n".repeat(LONGEST / 14);
    manager.handle_bytes(0, flood.as_bytes());
    manager.advance(|rank| rank != 0);
    assert_eq!((manager.poll_event(), manager.is_behind(0)), (None, true), "nothing is handled without room");
    assert_eq!(sent(&mut manager, 1, BEGIN).len(), 1 + flood.lines().count(), "and all with it");
    assert!(!manager.is_behind(0));
    for _ in 0..3 {
        manager.handle_bytes(0, flood.as_bytes());
    }
    let why = "more than 131072 bytes of commands at once".into();
    assert_eq!(events(&mut manager), [ManagerEvent::Closed { rank: 0, why }]);
    let mut manager = begun(&[0], BEGIN);
    let value = "v".repeat(1000);
    let mut puts = (0..).map(|at| line(&mut manager, 0, &format!("cmd=put key={at} value={value}")));
    let full = puts.position(|answer| answer.contains("no_room_for_more_than_16_MiB")).expect("a bound");
    assert!((MOST_PUT / (ENTRY + 1010)..MOST_PUT / (ENTRY + 1000)).contains(&full), "{full}");
}

#[test]
fn each_line_of_both_sides_is_traced() {
    let mut manager = ProcessManager::new("kvs_7", vec![Seat { host: 0, program: 0 }]).traced();
    manager.handle_bytes(0, format!("{BEGIN}mcmd=spawn\nnprocs=1\nendcmd\n").as_bytes());
    let lines: Vec<String> = events(&mut manager)
        .into_iter()
        .filter_map(|event| if let ManagerEvent::Line(line) = event { Some(line) } else { None })
        .collect();
    assert_eq!(
        lines,
        [
            "0 asks cmd=init pmi_version=1 pmi_subversion=1",
            "0 gets cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
            "0 asks mcmd=spawn nprocs=1",
            "0 gets cmd=spawn_result rc=1 msg=cci_run_starts_no_processes_for_a_program_that_runs",
        ]
    );
}

/// Ranks that are this crate's own clients of PMI, over sockets: each joins, exchanges, looks a
/// value of the next one up, and leaves.
fn clients(version: &'static str, size: u32) {
    let mut manager = ProcessManager::new("kvs_7", vec![Seat { host: 0, program: 0 }; size as usize]);
    let (ours, theirs): (Vec<UnixStream>, Vec<UnixStream>) =
        (0..size).map(|_| descriptors::stream_pair().expect("a pair")).unzip();
    std::thread::scope(|scope| {
        for (rank, socket) in (0..size).zip(theirs) {
            scope.spawn(move || client(version, size, rank, &socket));
        }
        serve(&mut manager, ours);
    });
}

fn client(version: &str, size: u32, rank: u32, socket: &UnixStream) {
    const LIMIT: Duration = Duration::from_secs(60);
    let descriptor = socket.as_raw_fd().to_string();
    let variables = |name: &str| -> Option<OsString> {
        Some(match name {
            "PMI_FD" => descriptor.clone().into(),
            "PMI_RANK" => rank.to_string().into(),
            "PMI_SIZE" => size.to_string().into(),
            "CCI_PMI" => version.into(),
            _ => return None,
        })
    };
    let mut joined = joining::join(&Environment(&variables), LIMIT).expect("a process manager");
    let value = |rank: u32| vec![rank as u8; 3000];
    joined.source.publish("key", &value(rank)).expect("published");
    let all = joined.source.exchange(&[rank as u8], LIMIT).expect("all come");
    assert_eq!(all, (0..size).map(|rank| vec![rank as u8]).collect::<Vec<_>>());
    let next = (rank + 1) % size;
    assert_eq!(joined.source.look_up(next, "key", LIMIT).expect("published"), value(next));
    joined.source.leave();
    // The other end sees the end of this one.
    socket.shutdown(std::net::Shutdown::Both).expect("a socket");
}

fn serve(manager: &mut ProcessManager, sockets: Vec<UnixStream>) {
    let mut open: Vec<Option<UnixStream>> = sockets.into_iter().map(Some).collect();
    while open.iter().any(Option::is_some) {
        let ready: Vec<u32> = {
            let of = |(rank, socket): (u32, &Option<UnixStream>)| Some((rank, socket.as_ref()?.as_raw_fd()));
            let ranks: Vec<u32> = (0..).zip(&open).filter_map(of).map(|(rank, _)| rank).collect();
            let mut polled: Vec<PollFd<'_>> =
                open.iter().flatten().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            poll(&mut polled, None).expect("sockets");
            let is_ready = polled.iter().map(|polled| !polled.revents().is_empty());
            ranks.into_iter().zip(is_ready).filter(|(_, ready)| *ready).map(|(rank, _)| rank).collect()
        };
        for rank in ready {
            let mut bytes = [0; 4096];
            let length = open[rank as usize].as_ref().map(|socket| rustix::io::read(socket, &mut bytes));
            match length {
                Some(Ok(length)) if length > 0 => manager.handle_bytes(rank, &bytes[..length]),
                _ => {
                    open[rank as usize] = None;
                    manager.handle_gone(rank);
                }
            }
        }
        for event in events(manager) {
            let ManagerEvent::Answer { rank, bytes } = event else { panic!("{event:?}") };
            let socket = open[rank as usize].as_mut().expect("it waits");
            std::io::Write::write_all(socket, &bytes).expect("room");
        }
    }
}

#[test]
fn this_crates_own_clients_are_served_by_both_versions() {
    clients("1", 5);
    clients("2", 5);
}
