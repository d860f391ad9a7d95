//! What happens when the system refuses, with a system that does so on demand.

use super::super::reports::Reports;
use super::{Blocked, BurstOutcome, Kernel, MAX_RUN, REMEMBERED, Run, SEGMENTS, Transmitter, len};
use crate::address;
use crate::socket::How;
use crate::sockets::refusals::Explained;
use crate::sys::{Naming, RUNS, VECTORS};
use cci_proto::Address;
use cci_reliable::{Incoming, Outgoing};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::net::{SocketAddr, UdpSocket};

const HOW: How = How { is_v4: true, wants_marks: false, is_outward: false, coalesces: true, buffer: 1 << 16 };

/// Says what the script says, then takes everything.
#[derive(Default)]
struct Script {
    answers: Vec<Result<usize, Errno>>,
    /// Runs of each call: destination, frames, segment.
    calls: Vec<Vec<(Address, usize, u16)>>,
    /// Refuses to cut for these.
    no_cutting: Vec<Address>,
    refusal: Option<Errno>,
}

impl Kernel for Script {
    fn send(&mut self, _: BorrowedFd<'_>, frames: &[Outgoing<'_>], runs: &[Run], _: Naming) -> Result<usize, Errno> {
        self.calls.push(runs.iter().map(|run| (frames[run.first].to, run.count, run.segment)).collect());
        if !self.answers.is_empty() {
            return self.answers.remove(0);
        }
        let refused = |run: &Run| run.segment > 0 && self.no_cutting.contains(&frames[run.first].to);
        match runs.iter().position(refused) {
            Some(0) => Err(self.refusal.unwrap_or(Errno::IO)),
            Some(count) => Ok(count),
            None => Ok(runs.len()),
        }
    }
}

struct World {
    socket: OwnedFd,
    reports: Reports,
    transmitter: Transmitter<Script>,
}

impl World {
    fn new(answers: &[Result<usize, Errno>]) -> Self {
        let script = Script { answers: answers.to_vec(), ..Script::default() };
        Self {
            socket: UdpSocket::bind("127.0.0.1:0").expect("a socket").into(),
            reports: Reports::new(1472, HOW),
            transmitter: Transmitter::new(script, None),
        }
    }

    fn send(&mut self, frames: &[Outgoing<'_>]) -> usize {
        self.transmitter.send(self.socket.as_fd(), frames, &mut self.reports)
    }

    fn calls(&mut self) -> Vec<Vec<(Address, usize, u16)>> {
        std::mem::take(&mut self.transmitter.kernel.calls)
    }
}

fn host(number: u8) -> Address {
    address::of_socket(&SocketAddr::from(([192, 0, 2, number], 5000)))
}

fn frame(to: Address, head: &[u8]) -> Outgoing<'_> {
    Outgoing { to, head, piece: None, probe: false }
}

const BYTES: &[u8] = &[7; 65_000];

#[test]
fn a_connected_socket_takes_what_it_can_and_says_where_a_call_was_cut_short() {
    let to = host(1);
    let frames: Vec<_> = (1..=3).map(|len| frame(to, &BYTES[..len])).collect();
    for (answers, taken, is_cut_short, met) in [
        (vec![], 3, false, Ok(())),
        // The call that took one ended at an error of an earlier datagram, or for want of room that
        // there is by now.
        (vec![Ok(1)], 3, true, Ok(())),
        (vec![Ok(1), Err(Errno::AGAIN)], 1, true, Err(Errno::AGAIN)),
        (vec![Ok(2), Err(Errno::CONNREFUSED)], 2, true, Err(Errno::CONNREFUSED)),
        (vec![Ok(0)], 0, false, Err(Errno::AGAIN)),
    ] {
        let mut world = World::new(&answers);
        let World { socket, transmitter, .. } = &mut world;
        let passed = transmitter.send_connected(socket.as_fd(), &frames);
        assert_eq!(passed, BurstOutcome { taken, is_cut_short, met }, "{answers:?}");
        assert_eq!((transmitter.sent.frames, transmitter.sent.datagrams), (taken as u64, taken as u64));
    }
}

#[test]
fn equal_frames_to_one_address_leave_together() {
    let mut world = World::new(&[]);
    let (a, b) = (host(1), host(2));
    let lengths = [(a, 100), (a, 100), (a, 60), (a, 60), (b, 60), (b, 61), (a, 61)];
    let frames: Vec<_> = lengths.iter().map(|(to, len)| frame(*to, &BYTES[..*len])).collect();
    assert_eq!(world.send(&frames), 7);
    let expected = vec![(a, 3, 100), (a, 1, 0), (b, 1, 0), (b, 1, 0), (a, 1, 0)];
    assert_eq!(world.calls(), [expected]);
    assert_eq!((world.transmitter.sent.frames, world.transmitter.sent.segmented), (7, 3));
}

#[test]
fn a_probe_leaves_alone() {
    let mut world = World::new(&[]);
    let probe = Outgoing { probe: true, ..frame(host(1), &BYTES[..100]) };
    let plain = frame(host(1), &BYTES[..100]);
    assert_eq!(world.send(&[plain, probe, plain, plain]), 4);
    assert_eq!(world.calls(), [vec![(host(1), 1, 0), (host(1), 1, 0), (host(1), 2, 100)]]);
}

#[test]
fn without_proof_nothing_is_cut() {
    let mut world = World::new(&[]);
    world.transmitter.no_offload = Some("not proved".into());
    assert_eq!(world.send(&[frame(host(1), &BYTES[..100]); 3]), 3);
    assert_eq!(world.calls(), [vec![(host(1), 1, 0); 3]]);
    assert_eq!(world.transmitter.why_not(&host(1)).as_deref(), Some("not proved"));
}

/// Whatever the frames are, runs hold every frame once and in order, and keep the kernel's limits.
#[test]
fn runs_cover_any_frames() {
    let mut world = World::new(&[]);
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        // Knuth's MMIX generator; the high bits are the good ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..2000 {
        let lengths = [32, 64, 1200, 9000, 32_000, 65_000];
        let many = 1 + draw(200);
        let frames: Vec<_> = (0..many)
            .map(|_| {
                let to = host(u8::try_from(draw(2)).expect("small"));
                let len = lengths[usize::try_from(draw(6) * draw(2)).expect("small")];
                Outgoing { probe: draw(20) == 0, ..frame(to, &BYTES[..len]) }
            })
            .collect();
        world.transmitter.plan(&frames, false);
        let mut next = 0;
        for run in &world.transmitter.runs {
            assert_eq!(run.first, next);
            let of_run = &frames[run.first..run.first + run.count];
            next += run.count;
            let total: usize = of_run.iter().map(len).sum();
            let (last, before) = of_run.split_last().expect("no run is empty");
            assert!(run.count <= SEGMENTS && total <= MAX_RUN.max(len(last)), "{run:?}");
            assert!(before.iter().all(|frame| len(frame) == usize::from(run.segment)));
            assert!(run.count == 1 || len(last) <= usize::from(run.segment));
            assert!(of_run.iter().all(|frame| frame.to == of_run[0].to && (run.count == 1 || !frame.probe)));
        }
        let runs = world.transmitter.runs.len();
        assert!(runs <= RUNS && next * 2 <= VECTORS);
        assert!(next == frames.len() || runs == RUNS || next * 2 > VECTORS - 2, "{next} of {}", frames.len());
    }
}

#[test]
fn cutting_goes_off_for_one_host_and_not_for_another() {
    for refusal in [Errno::IO, Errno::INVAL, Errno::MSGSIZE] {
        let mut world = World::new(&[]);
        let (bad, good) = (host(1), host(2));
        world.transmitter.kernel.no_cutting = vec![bad];
        world.transmitter.kernel.refusal = Some(refusal);
        let frames = [
            frame(bad, &BYTES[..100]),
            frame(bad, &BYTES[..100]),
            frame(good, &BYTES[..50]),
            frame(good, &BYTES[..50]),
        ];
        assert_eq!(world.send(&frames), 4);
        assert_eq!(world.transmitter.sent.lost, 0, "{refusal:?}");
        assert_eq!(world.transmitter.sent.frames, 4);
        world.calls();
        assert_eq!(world.send(&frames), 4);
        assert_eq!(world.calls(), [vec![(bad, 1, 0), (bad, 1, 0), (good, 2, 50)]]);
        assert!(world.transmitter.why_not(&bad).is_some_and(|why| why.contains("refused")));
        assert_eq!(world.transmitter.why_not(&good), None);
        // Another port of the same host is reached the same way.
        let other_port = address::of_socket(&SocketAddr::from(([192, 0, 2, 1], 6000)));
        assert!(world.transmitter.why_not(&other_port).is_some());
    }
}

#[test]
fn a_host_is_forgotten_when_too_many_follow() {
    let mut world = World::new(&[]);
    let last = u8::try_from(REMEMBERED).expect("few");
    for number in 0..=last {
        world.transmitter.kernel.no_cutting = vec![host(number)];
        assert_eq!(world.send(&[frame(host(number), &BYTES[..100]); 2]), 2);
    }
    assert_eq!(world.transmitter.why_not(&host(0)), None);
    assert!((1..=last).all(|number| world.transmitter.why_not(&host(number)).is_some()));
}

#[test]
fn a_frame_too_long_is_lost_and_told_of_and_cutting_stays() {
    let too_long = Err(Errno::MSGSIZE);
    // The run twice, then its first frame alone twice.
    let mut world = World::new(&[too_long; 4]);
    assert_eq!(world.send(&[frame(host(1), &BYTES[..9000]); 3]), 3);
    assert_eq!((world.transmitter.sent.lost, world.transmitter.sent.frames), (1, 2));
    assert_eq!(world.transmitter.why_not(&host(1)), None);
    let mut reported = Vec::new();
    let shown = world.reports.show(world.socket.as_fd(), &mut |incoming| {
        let Incoming::TooBig { to, quoted, mtu } = incoming else { panic!("{incoming:?}") };
        reported.push((to, quoted.to_vec(), mtu));
    });
    assert_eq!((shown, reported), (1, vec![(host(1), vec![7; 64], 1472)]));
}

#[test]
fn the_errors_of_others_are_charged_to_nobody() {
    for error in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::MSGSIZE, Errno::PROTO] {
        let mut world = World::new(&[Err(error)]);
        assert_eq!(world.send(&[frame(host(1), BYTES)]), 1);
        assert_eq!((world.transmitter.sent.lost, world.transmitter.sent.frames), (0, 1), "{error:?}");
        assert!(world.reports.pending, "the queue is to be looked at");
    }
    // Different ones in a row are not this datagram's either, and "refused" never is.
    let mixed = [Errno::HOSTUNREACH, Errno::CONNREFUSED, Errno::PROTO, Errno::HOSTUNREACH].map(Err);
    let mut world = World::new(&mixed);
    assert_eq!(world.send(&[frame(host(1), BYTES)]), 1);
    assert_eq!(world.transmitter.sent.lost, 0);
    let mut world = World::new(&[Err(Errno::CONNREFUSED); 100]);
    assert_eq!(world.send(&[frame(host(1), BYTES)]), 0, "not for ever");
    assert_eq!((world.transmitter.sent.lost, world.transmitter.blocked), (0, None));
}

#[test]
fn an_error_that_stays_costs_one_run() {
    for error in [Errno::PERM, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::FAULT, Errno::ACCESS] {
        let mut world = World::new(&[Err(error), Err(error)]);
        assert_eq!(world.send(&[frame(host(1), BYTES), frame(host(2), BYTES)]), 2);
        assert_eq!((world.transmitter.sent.lost, world.transmitter.sent.frames), (1, 1), "{error:?}");
        assert_eq!(world.transmitter.blocked, None);
    }
}

#[test]
fn what_is_not_taken_is_offered_again() {
    let frames: Vec<_> = (0..5).map(|number| frame(host(number), BYTES)).collect();
    let mut world = World::new(&[Ok(2), Ok(1), Err(Errno::AGAIN)]);
    assert_eq!(world.send(&frames), 3);
    assert_eq!(world.transmitter.blocked, Some(Blocked::Buffer));
    let calls = world.calls();
    assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [5, 3, 2]);
    assert_eq!(calls[2][0].0, host(3));
    assert!(world.reports.pending, "a pending error may have ended the first call, and is gone with it");
    assert_eq!(world.send(&frames[3..]), 2);
    assert_eq!((world.transmitter.blocked, world.transmitter.sent.frames), (None, 5));
}

#[test]
fn a_full_queue_rests_and_an_interrupted_call_is_repeated() {
    for error in [Errno::NOBUFS, Errno::NOMEM] {
        let mut world = World::new(&[Err(Errno::INTR), Err(error)]);
        assert_eq!(world.send(&[frame(host(1), BYTES)]), 0);
        assert!(matches!(world.transmitter.blocked, Some(Blocked::Queue(until)) if until.0 > 0), "{error:?}");
        assert_eq!((world.transmitter.sent.lost, world.transmitter.sent.calls), (0, 2));
    }
}

/// What is shown of the errors that wait.
fn shown(world: &mut World) -> Vec<(Address, bool)> {
    let mut all = Vec::new();
    world.reports.show(world.socket.as_fd(), &mut |incoming| {
        all.push(match incoming {
            Incoming::Refused { to, is_own, .. } => (to, is_own),
            Incoming::Down { .. } => (Address::default(), true),
            other => panic!("{other:?}"),
        });
    });
    all
}

#[test]
fn a_refused_frame_is_lost_or_its_peer_unreachable_or_the_link_down_by_the_kind_of_error() {
    let twice = |error| [Err(error), Err(error), Err(error)];
    for (error, unreachable) in
        [(Errno::PERM, false), (Errno::NETUNREACH, false), (Errno::ACCESS, true), (Errno::INVAL, true)]
    {
        let mut world = World::new(&twice(error));
        assert_eq!(world.send(&[frame(host(1), b"x")]), 1);
        assert_eq!(shown(&mut world), if unreachable { vec![(host(1), false)] } else { vec![] }, "{error}");
        let sentence = world.transmitter.refusals.sentence(&host(1), 0, Explained::End).expect("a reason");
        assert!(sentence.contains("refuses sendto") && sentence.contains("os error"), "{sentence}");
        assert_eq!(world.send(&[frame(host(2), b"x")]), 1, "it may pass");
        assert!(!world.transmitter.refusals.is_current(world.transmitter.sent.frames));
    }
    let mut world = World::new(&twice(Errno::NOSYS));
    assert_eq!(world.send(&[frame(host(1), b"x")]), 1);
    assert_eq!(shown(&mut world), [], "not before it has come for a second");
    world.reports.is_down = true;
    assert_eq!(shown(&mut world), [(Address::default(), true)]);
    assert_eq!(shown(&mut world), [], "once");
}
