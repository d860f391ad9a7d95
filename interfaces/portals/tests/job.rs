//! A job whose ranks have an interface of each mode: both find both of each rank, whichever each
//! has opened first.

use cci::Context;
use cci_conformance::LIMIT;
use cci_job::Job;
use cci_portals::{
    Descriptor, Error, EventKind, Handle, Interface, Limits, Match, NotOpened, Place, Position, ProcessId, Target,
    Unlink, buffer, options,
};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZE: usize = 2;
/// A put to what is not posted yet is dropped, so that ranks put again.
const AGAIN: Duration = Duration::from_millis(20);
/// The variable that makes a run of this program a rank.
const RANK: &str = "CCI_PORTALS_RANK";

struct Side {
    ni: Interface,
    queue: Handle,
    source: Handle,
}

impl Side {
    fn of(place: Place, is_accelerated: bool) -> Self {
        let open = if is_accelerated { Interface::accelerated } else { Interface::new };
        let ni = open(place, u32::from(is_accelerated), Limits::default()).expect("an interface");
        let queue = ni.queue(1024, false).expect("room");
        let anybody = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
        let entry = ni.attach(4, anybody, Unlink::Retain, Position::After).expect("room");
        let quiet = options::EVENT_START_DISABLE;
        let target = Descriptor::new(&buffer(vec![0; 8])).options(options::OP_PUT | options::MANAGE_REMOTE | quiet);
        ni.attach_memory(entry, target.events(queue), Unlink::Retain).expect("room");
        let source = Descriptor::new(&buffer(vec![1; 8])).options(quiet).events(queue);
        let source = ni.bind(source, Unlink::Retain).expect("room");
        Self { ni, queue, source }
    }
}

/// Puts from both interfaces to both of the next rank and both of this one, until each put is
/// acknowledged and each has come here. A put fails if it was on its way to an interface that has
/// ended, and one of an earlier round may still come.
fn meet(sides: &[Side; 2], next: usize, round: u64) {
    let own = [0, 1].map(|at| sides[at].ni.id());
    let theirs = [0, 1].map(|at| sides[at].ni.ranks().expect("a job").1[next]);
    let targets = [own[0], own[1], theirs[0], theirs[1]];
    let (mut acked, mut come) = ([[false; 4]; 2], [[0; 2]; 2]);
    let (begun, mut last) = (Instant::now(), None::<Instant>);
    // Of each of the other rank's interfaces, and of each of this one's.
    while acked.iter().flatten().any(|acked| !acked) || come.iter().flatten().any(|from| *from != 3) {
        assert!(begun.elapsed() < LIMIT, "{acked:?} {come:?}");
        if last.is_none_or(|last| last.elapsed() > AGAIN) {
            last = Some(Instant::now());
            for (side, acked) in sides.iter().zip(&acked) {
                for (at, to) in targets.iter().enumerate().filter(|(at, _)| !acked[*at]) {
                    let to = Target { bits: round << 8 | at as u64, ..Target::at(*to, 4) };
                    side.ni.put(side.source, None, true, &to).expect("room");
                }
            }
        }
        for (at, side) in sides.iter().enumerate() {
            while let Ok((event, _)) = side.ni.event(side.queue) {
                if event.failure != 0 || event.bits >> 8 != round {
                    continue;
                }
                match event.kind {
                    EventKind::Ack => acked[at][event.bits as usize & 0xff] = true,
                    EventKind::PutEnd => {
                        let is_own = own.contains(&event.initiator);
                        let ids = if is_own { own } else { theirs };
                        let from = ids.iter().position(|id| *id == event.initiator).expect("one of the ranks'");
                        come[at][from] |= if is_own { 1 } else { 2 };
                    }
                    kind => assert_eq!(kind, EventKind::SendEnd),
                }
            }
        }
    }
}

/// Runs only as the child of the next test.
#[test]
fn rank() {
    if std::env::var_os(RANK).is_none() {
        return;
    }
    let job = Arc::new(Job::join().expect("a job"));
    let (rank, size) = (job.rank(), job.size());
    let context = Context::new().expect("devices");
    // One rank opens its accelerated interface first.
    let place = Place::of_job(Arc::clone(&job), &context, None).expect("all ranks come");
    let first = Side::of(place, rank == 1);
    assert_eq!(first.ni.id().pid, rank);
    let place = Place::beside(&first.ni, &context, None).expect("all ranks come");
    let second = Side::of(place, rank == 0);
    assert_eq!(second.ni.id().pid, rank + size);
    let next = (rank as usize + 1) % SIZE;
    let mut sides = [first, second];
    meet(&sides, next, 1);
    // The end of one leaves the other, beside which a new one may come.
    let ended = sides[0].ni.id();
    sides[0].ni.close().expect("it is open");
    let place = Place::beside(&sides[1].ni, &context, None).expect("all ranks come");
    assert_eq!(place.own(), ended);
    sides[0] = Side::of(place, rank == 1);
    meet(&sides, next, 2);
    // Numbers of processes differ.
    let taken = Place::beside(&sides[1].ni, &context, Some(sides[1].ni.id().pid)).err().map(|why| why.code());
    assert_eq!(taken, Some(Error::ProcessNumber));
}

#[test]
fn two_interfaces_of_a_rank_are_found_by_both_of_another() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    // Rank 0 serves at the port behind this one.
    let port = listener.local_addr().expect("bound").port() - 1;
    drop(listener);
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "rank", "--nocapture"]).env_remove("CCI_CONFIG").env(RANK, "");
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", SIZE.to_string());
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.stdout(Stdio::null()).spawn().expect("a rank")
    };
    let ranks: Vec<_> = (0..SIZE).map(start).collect();
    for mut rank in ranks {
        assert!(rank.wait().expect("its end").success());
    }
}

#[test]
fn an_interface_without_a_job_has_none_beside_it() {
    let context = Context::new().expect("devices");
    let place = Place::by_rule(context.default_device().expect("one"), None).expect("a place");
    let ni = Interface::new(place, 0, Limits::default()).expect("an interface");
    let refused = Place::beside(&ni, &context, None);
    assert!(matches!(refused, Err(NotOpened::Refused(Error::Interface))));
}
