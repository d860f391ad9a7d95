//! Partners that come late, end, are killed; and floods.

use crate::world::{
    GET, PUT, Side, anything, bits, device, events, id, other, put, side, side_of_mode, two, two_modes, until, zeroes,
};
use cci::Endpoint;
use cci_conformance::{LIMIT, sm_device};
use cci_peers::{Name, Table};
use cci_portals::EventKind::{Ack, PutEnd, PutStart, ReplyEnd, ReplyStart, SendEnd, SendStart};
use cci_portals::{Descriptor, Limits, Target, Unlink, endpoint_options, options};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

#[test]
fn a_put_to_a_partner_that_is_not_there_yet_waits_for_it() {
    for transport in ["sm", "sim", "tcp"] {
        let device = device(transport);
        let open = || Endpoint::open(&device, &endpoint_options()).expect("an endpoint");
        let (first, second) = (open(), open());
        let mut table = Table::new();
        table.insert(Name::Number(9 << 32), first.uri());
        let mut sides = vec![side(first, 0, &Table::new(), Limits::default())];
        let source = sides[0].bind(&zeroes(8));
        sides[0].ni.put(source, None, true, &other(1)).expect("room");
        events(&sides, 0, &[SendStart]);
        for _ in 0..100 {
            assert_eq!(sides[0].event(), None);
        }
        // It comes, and finds this side, which has no URI of it.
        sides.push(side(second, 1, &table, Limits::default()));
        sides[1].post(anything(), &zeroes(8), PUT);
        let unmatched = sides[1].bind(&zeroes(1));
        sides[1].ni.put(unmatched, None, false, &other(0)).expect("room");
        let mut seen = Vec::new();
        until(&sides, "the put", || {
            seen.extend(sides[1].event().map(|event| event.kind));
            seen.contains(&PutEnd).then_some(())
        });
        assert_eq!(events(&sides, 0, &[SendEnd, Ack])[1].failure, 0, "{transport}");
        crate::world::close(sides);
    }
}

#[test]
fn a_process_that_the_directory_does_not_know_fails_at_once() {
    let mut sides = two("sm");
    // Nobody will ever have that name.
    struct Nobody;
    impl cci_peers::Directory for Nobody {
        fn find(&mut self, _: &Name) -> cci_peers::Found {
            cci_peers::Found::Unknown
        }
    }
    let endpoint = Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let place = cci_portals::Place::of(endpoint, id(5), Box::new(Nobody));
    let ni = cci_portals::Interface::new(place, 0, Limits::default()).expect("an interface");
    let queue = ni.queue(16, false).expect("room");
    sides.push(Side { ni, queue });
    let (source, sink) = (sides[2].bind(&zeroes(8)), sides[2].bind(&zeroes(8)));
    sides[2].ni.put(source, None, true, &other(1)).expect("room");
    sides[2].ni.get(sink, None, &other(1)).expect("room");
    let ends = events(&sides, 2, &[SendStart, SendEnd, ReplyStart, ReplyEnd]);
    assert_eq!((ends[1].failure, ends[3].failure, sides[2].event()), (1, 1, None));
    sides[2].ni.unlink_memory(source).expect("nothing is pending");
}

/// The variables that make a run of this program the partner that is killed.
const CHILD: &str = "CCI_PORTALS_CHILD";

/// Runs only as the child of the next test: a target with an entry, which never calls again.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (state, uri) = task.split_once(' ').expect("a state and a URI");
    let mut table = Table::new();
    table.insert(Name::Number(9 << 32), uri);
    let endpoint = Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let sides = [side(endpoint, 1, &table, Limits::default())];
    let memory = zeroes(1 << 20);
    sides[0].post(bits(1), &memory, PUT | options::MANAGE_REMOTE);
    sides[0].post(bits(2), &memory, GET | options::MANAGE_REMOTE);
    put(&sides, 0, b"here", &other(0));
    // The state in which it stops: with nothing of the operation taken, or with its beginning.
    let wanted = if state == "taken" { 1 } else { 0 };
    until(&sides, "the state", || (sides[0].ni.status(2).expect("usable") >= wanted).then_some(()));
    let _ = std::io::stderr().write_all(b"stopped\n");
    std::thread::sleep(2 * LIMIT);
}

fn start(state: &str, to: &Side) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "faults::child", "--nocapture"]).env(CHILD, format!("{state} {}", to.ni.uri()));
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child")
}

/// Each operation ends once, with a failure, whatever its partner had done of it.
#[test]
fn a_partner_that_is_killed_ends_each_operation_once() {
    for (state, has_engine) in [("idle", false), ("taken", false), ("idle", true), ("taken", true)] {
        let endpoint = Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
        let sides = [side_of_mode(endpoint, 0, &Table::new(), has_engine)];
        sides[0].post(anything(), &zeroes(8), PUT);
        let mut child = start(state, &sides[0]);
        events(&sides, 0, &[PutStart, PutEnd]);
        // Without events, so that those of the operations below are alone.
        let quiet = sides[0].ni.bind(Descriptor::new(&zeroes(8)), Unlink::Retain).expect("room");
        if state == "taken" {
            sides[0].ni.put(quiet, None, false, &Target { bits: 1, ..other(1) }).expect("room");
        }
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let begun = Instant::now();
        let stopped = std::thread::spawn(move || lines.any(|line| line.is_ok_and(|line| line.contains("stopped"))));
        while !stopped.is_finished() {
            assert!(begun.elapsed() < LIMIT && sides[0].event().is_none());
        }
        assert!(stopped.join().expect("no panic"));
        // A short put and a long one, both with ack; gets; a swap. Nobody takes them any more.
        let memories: Vec<_> = [8, 100_000, 8, 100_000, 8, 8].map(|size| sides[0].bind(&zeroes(size))).into();
        let to = |bits| Target { bits, ..other(1) };
        sides[0].ni.put(memories[0], None, true, &to(1)).expect("room");
        sides[0].ni.put(memories[1], None, true, &to(1)).expect("room");
        sides[0].ni.get(memories[2], None, &to(2)).expect("room");
        sides[0].ni.get(memories[3], None, &to(2)).expect("room");
        sides[0].ni.get_put(memories[4], memories[5], &to(1)).expect("room");
        child.kill().expect("a child");
        child.wait().expect("its end");
        let mut ended = vec![Vec::new(); memories.len()];
        until(&sides, "all ends", || {
            while let Some(event) = sides[0].event() {
                let at = memories.iter().position(|memory| *memory == event.memory).expect("one of these");
                ended[at].push((event.kind, event.failure));
            }
            (sides[0].ni.counts().0 == 0).then_some(())
        });
        while let Some(event) = sides[0].event() {
            let at = memories.iter().position(|memory| *memory == event.memory).expect("one of these");
            ended[at].push((event.kind, event.failure));
        }
        for (at, ends) in ended.iter().enumerate() {
            let kinds: Vec<_> = ends.iter().map(|(kind, _)| *kind).collect();
            // A message that was delivered to nobody's program may have ended as sent: then the
            // ack fails in its place.
            let is_put = matches!(at, 0 | 1 | 5);
            let pair = if is_put { [SendStart, SendEnd] } else { [ReplyStart, ReplyEnd] };
            assert_eq!(kinds[..2], pair, "{at} in state {state}");
            let failures = ends.iter().filter(|(kind, failure)| *failure == 1 && *kind != ReplyStart).count();
            assert!(kinds.len() == 2 || (at == 0 && kinds[2..] == [Ack]), "{at}: {ends:?}");
            assert!(failures == 1 || at == 5, "{at}: {ends:?}");
        }
        for memory in memories {
            sides[0].ni.unlink_memory(memory).expect("nothing is pending");
        }
    }
}

/// A target that is killed while an initiator offers memory lets go of it; and the other way round.
#[test]
fn a_partner_that_closes_ends_operations_once() {
    let modes = [[false, false], [true, false], [false, true], [true, true]];
    for (transport, modes) in ["sm", "tcp", "sock"].into_iter().flat_map(|transport| modes.map(|of| (transport, of))) {
        let mut sides = two_modes(&device(transport), modes);
        sides[1].post(bits(1), &zeroes(1 << 20), PUT | GET | options::MANAGE_REMOTE);
        put(&sides, 0, b"link", &Target { bits: 1, ..other(1) });
        let (source, sink) = (sides[0].bind(&zeroes(1 << 20)), sides[0].bind(&zeroes(1 << 20)));
        sides[0].ni.put(source, None, true, &Target { bits: 1, ..other(1) }).expect("room");
        sides[0].ni.get(sink, None, &Target { bits: 1, ..other(1) }).expect("room");
        let gone = sides.pop().expect("two");
        let closing = std::thread::spawn(move || drop(gone));
        until(&sides, "the ends", || (sides[0].ni.counts().0 == 0).then_some(()));
        let mut ends = Vec::new();
        while let Some(event) = sides[0].event() {
            ends.push((event.memory, event.kind, event.failure));
        }
        let of = |memory| {
            ends.iter().filter(|(of, ..)| *of == memory).map(|(_, kind, failure)| (*kind, *failure)).collect::<Vec<_>>()
        };
        // What it had taken before it closed is done.
        let whole: [&[_]; 3] = [
            &[(SendStart, 0), (SendEnd, 1)],
            &[(SendStart, 0), (SendEnd, 0), (Ack, 1)],
            &[(SendStart, 0), (SendEnd, 0), (Ack, 0)],
        ];
        assert!(whole.contains(&&of(source)[..]), "{transport}: {ends:?}");
        let whole: [&[_]; 3] =
            [&[(ReplyStart, 1), (ReplyEnd, 1)], &[(ReplyStart, 0), (ReplyEnd, 1)], &[(ReplyStart, 0), (ReplyEnd, 0)]];
        assert!(whole.contains(&&of(sink)[..]), "{transport}: {ends:?}");
        closing.join().expect("no panic");
        assert_eq!(sides[0].ni.unlink_memory(source), Ok(()));
    }
}
