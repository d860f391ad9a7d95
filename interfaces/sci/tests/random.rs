//! Random programs of three hosts at once: each call ends, with an error that the others explain,
//! and nothing is left behind.

#![forbid(unsafe_code)]

use cci_conformance::{LIMIT, sm_device};
use cci_sci::{
    Access, Direction, Error, Host, LocalSegment, Nodes, Options, QueueState, RemoteSegment, SequenceStatus, Withdraw,
};
use fastrand::Rng;
use std::time::{Duration, Instant};

const HOSTS: u32 = 3;
const ROUNDS: usize = 400;
const SIZE: usize = 20_000;

/// The number of the segment, and of the interrupt, of a host.
fn id(of: u32) -> u32 {
    std::process::id() << 4 | of
}

/// A host of the program, and what it has now.
struct Side {
    host: Host,
    segment: LocalSegment,
    bell: cci_sci::DataInterrupt,
    far: Vec<RemoteSegment>,
    rings: Vec<cci_sci::RemoteDataInterrupt>,
}

impl Side {
    fn new(of: u32) -> Self {
        let host = Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
        let segment = host.create(id(of), SIZE).expect("memory");
        segment.prepare().and_then(|()| segment.publish()).expect("room");
        let bell = host.data_interrupt(Some(id(of))).expect("free");
        Self { host, segment, bell, far: Vec::new(), rings: Vec::new() }
    }

    fn step(&mut self, rng: &mut Rng) {
        let other = id(rng.u32(..HOSTS));
        match rng.u32(..9) {
            0 => match self.host.connect(4, other, Some(LIMIT)) {
                Ok(connection) => self.far.push(connection),
                Err(why) => assert_eq!(why, Error::NoSuchSegment),
            },
            1 => match self.host.connect_data_interrupt(4, other, Some(LIMIT)) {
                Ok(ring) => self.rings.push(ring),
                Err(why) => assert_eq!(why, Error::NoSuchSegment),
            },
            2 if !self.far.is_empty() => {
                let connection = self.far.swap_remove(rng.usize(..self.far.len()));
                connection.disconnect().expect("no window");
            }
            3 if !self.rings.is_empty() => drop(self.rings.swap_remove(rng.usize(..self.rings.len()))),
            4 if !self.rings.is_empty() => {
                let sent = self.rings[rng.usize(..self.rings.len())].trigger(&[7; 40]);
                assert!(matches!(sent, Ok(()) | Err(Error::Overflow)), "{sent:?}");
            }
            5 => match self.bell.wait(Some(Duration::ZERO)) {
                Ok(bytes) => assert_eq!(bytes, [7; 40]),
                Err(why) => assert_eq!(why, Error::Timeout),
            },
            6 => {
                let how = [Withdraw::Quiet, Withdraw::Notify, Withdraw::Force][rng.usize(..3)];
                self.segment.withdraw(how).and_then(|()| self.segment.publish()).expect("prepared");
            }
            7 if !self.far.is_empty() => {
                let connection = &self.far[rng.usize(..self.far.len())];
                match connection.map(0..SIZE, Access::ReadWrite) {
                    Ok(window) => {
                        let sequence = window.sequence();
                        window.write(rng.usize(..SIZE - 100), &[1; 100]).expect("inside");
                        let status = sequence.check();
                        assert!(matches!(status, SequenceStatus::Ok | SequenceStatus::NotRetriable), "{status:?}");
                    }
                    Err(why) => assert_eq!(why, Error::SegmentNotConnected),
                }
            }
            8 if !self.far.is_empty() => {
                let connection = &self.far[rng.usize(..self.far.len())];
                let queue = self.host.dma_queue(2).expect("room");
                let way = [Direction::Write, Direction::Read][rng.usize(..2)];
                match queue.enqueue((&self.segment, 1), (connection, 3), rng.usize(1..SIZE - 3), way) {
                    Ok(()) => {
                        queue.post().expect("it has a transfer");
                        let end = queue.wait(Some(LIMIT)).expect("it ends");
                        assert!(matches!(end, QueueState::Done | QueueState::Error), "{end:?}");
                    }
                    Err(why) => assert_eq!(why, Error::SegmentNotConnected),
                }
            }
            _ => {}
        }
    }

    /// Once all have let go of each other nothing is in use.
    fn end(mut self) {
        self.far.clear();
        self.rings.clear();
        let begun = Instant::now();
        while self.segment.remove() == Err(Error::Busy) || self.bell.remove() == Err(Error::Busy) {
            assert!(begun.elapsed() < LIMIT, "a connection is left behind");
            std::thread::yield_now();
        }
        self.host.close().expect("no objects");
    }
}

#[test]
fn random_programs_end_and_leave_nothing_behind() {
    let seed = std::env::var("CCI_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let sides: Vec<Side> = (0..HOSTS).map(Side::new).collect();
    let ended = std::thread::scope(|scope| {
        let threads: Vec<_> = (0_u64..)
            .zip(sides)
            .map(|(of, mut side)| {
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(seed ^ of);
                    (0..ROUNDS).for_each(|_| side.step(&mut rng));
                    side
                })
            })
            .collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let sides: Vec<Side> =
        ended.into_iter().map(|side| side.unwrap_or_else(|_| panic!("CCI_TEST_SEED={seed}"))).collect();
    std::thread::scope(|scope| sides.into_iter().for_each(|side| drop(scope.spawn(|| side.end()))));
}

/// A segment that comes and goes is there or not, whenever others connect.
#[test]
fn a_segment_that_is_made_again_and_again_is_there_or_not() {
    let open = || Host::open(&Options::new().nodes(Nodes::new()).device(sm_device())).expect("a host");
    let (owner, other) = (open(), open());
    let number = id(HOSTS);
    std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            for _ in 0..ROUNDS {
                let segment = owner.create(number, SIZE).expect("the number is free");
                segment.prepare().and_then(|()| segment.publish()).expect("room");
            }
        });
        let mut found = 0;
        while !making.is_finished() {
            match other.connect(4, number, Some(LIMIT)) {
                Ok(connection) => {
                    found += 1;
                    if let Ok(window) = connection.map(0..SIZE, Access::ReadWrite) {
                        window.write(0, &[1; SIZE]).expect("inside");
                    }
                }
                Err(why) => assert_eq!(why, Error::NoSuchSegment, "after {found}"),
            }
        }
    });
    other.close().expect("no objects");
}
