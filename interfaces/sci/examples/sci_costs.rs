//! What shared windows cost beside bare memory: `cargo run --release -p cci-sci --example
//! sci_costs`. Medians of 31 blocks, the bare way and that of windows in turn. The ping-pong is
//! between two threads, each with a host of its own, that poll.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use cci_sci::{Access, Host, LocalSegment, Options, RemoteSegment, SequenceStatus, Window};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const BLOCKS: usize = 31;
const SIZE: usize = 64 << 10;

/// A line of its own.
#[repr(align(128))]
struct Line(AtomicU64);

/// Two hosts, a segment of each, and a window of each to the other one's.
struct Pair {
    _hosts: [Host; 2],
    _segments: [LocalSegment; 2],
    _connections: [RemoteSegment; 2],
    own: [Window; 2],
    far: [Window; 2],
}

impl Pair {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let hosts = [Host::open(&Options::new())?, Host::open(&Options::new())?];
        let id = std::process::id();
        let segments = [hosts[0].create(id, SIZE)?, hosts[1].create(id ^ 1 << 30, SIZE)?];
        for segment in &segments {
            segment.prepare()?;
            segment.publish()?;
        }
        let connect = |from: usize, to: usize| hosts[from].connect(hosts[to].node(), segments[to].id(), None);
        let connections = [connect(0, 1)?, connect(1, 0)?];
        let map = |at: usize| segments[at].map(0..SIZE, Access::ReadWrite);
        let map_far = |at: usize| connections[at].map(0..SIZE, Access::ReadWrite);
        let (own, far) = ([map(0)?, map(1)?], [map_far(0)?, map_far(1)?]);
        Ok(Self { _hosts: hosts, _segments: segments, _connections: connections, own, far })
    }
}

/// The median time of a turn, ns, of blocks of `turns`.
fn median(turns: u32, ways: &mut [&mut dyn FnMut(u32)]) -> Vec<f64> {
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..BLOCKS {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            way(turns);
            times.push(begun.elapsed().as_secs_f64() * 1e9 / f64::from(turns));
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.into_iter().map(|times| times[BLOCKS / 2]).collect()
}

/// Half round trips of a counter between two threads, each of which polls `load` and answers by
/// `store`.
fn ping_pong(turns: u32, load: impl Fn(usize) -> u64 + Sync, store: impl Fn(usize, u64) + Sync) {
    let (first, turns) = (load(0), u64::from(turns));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in first + 1..=first + turns {
                while load(1) != turn {
                    std::hint::spin_loop();
                }
                store(1, turn);
            }
        });
        for turn in first + 1..=first + turns {
            store(0, turn);
            while load(0) != turn {
                std::hint::spin_loop();
            }
        }
    });
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pair = Pair::new()?;
    let (own, far) = (&pair.own, &pair.far);
    let lines = [Line(AtomicU64::new(0)), Line(AtomicU64::new(0))];
    let sequence = far[0].sequence();
    let check = median(
        1_000_000,
        &mut [&mut |turns| {
            assert!((0..turns).all(|_| black_box(&sequence).check() == SequenceStatus::Ok));
        }],
    );
    println!("sequence check {:9.1} ns", check[0]);

    let round_trips = median(
        20_000,
        &mut [
            &mut |turns| {
                ping_pong(
                    turns,
                    |side| lines[side].0.load(Ordering::Acquire),
                    |side, turn| lines[1 - side].0.store(turn, Ordering::Release),
                );
            },
            &mut |turns| {
                ping_pong(
                    turns,
                    |side| own[side].load(0).unwrap_or(0),
                    |side, turn| far[side].store(0, turn).unwrap_or(()),
                );
            },
        ],
    );
    println!("8 B one way: a bare line {:9.1} ns, a window {:9.1} ns", round_trips[0] / 2.0, round_trips[1] / 2.0);

    let (source, mut target) = (vec![7_u8; SIZE], vec![0_u8; SIZE]);
    let copies = median(
        2_000,
        &mut [
            &mut |turns| (0..turns).for_each(|_| black_box(&mut target).copy_from_slice(black_box(&source))),
            &mut |turns| (0..turns).for_each(|_| far[0].write(0, black_box(&source)).unwrap_or(())),
        ],
    );
    println!("64 KiB into own cache: a bare copy {:9.1} ns, a window {:9.1} ns", copies[0], copies[1]);
    Ok(())
}
