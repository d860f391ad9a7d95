//! What mirror windows cost beside RMA writes: `cargo run --release -p cci-sci --example
//! sci_mirror_costs`. Two hosts of one process over `sock` on the loop-back interface, and two
//! endpoints of CCI that do the same by RMA. Least times and medians of turns, the ways in turn.
//! Who polls lets others run in between, so that it ends on a loaded machine too.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use cci::{Attribute, Connection, Endpoint, Event, Registration, Rights, Rma, SharedMemory};
use cci_sci::{Access, Host, LocalSegment, Nodes, Options, RemoteSegment, SequenceStatus, Window};
use cci_testkit::{World, device_of, open};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const BLOCKS: usize = 15;
const SIZE: usize = 64 << 10;
const TURNS: u64 = 1000;
/// Untimed turns before others.
const WARM: u64 = 100;
/// Whose owner polls.
const BARE: usize = 0;
const SMALL: usize = 1;
const LARGE: usize = 2;

type Failed = Box<dyn std::error::Error>;

/// Two hosts, a segment of each, and a window of each to the other one's.
struct Pair {
    hosts: [Host; 2],
    _segments: Vec<LocalSegment>,
    _connections: Vec<RemoteSegment>,
    own: Vec<Window>,
    far: Vec<Window>,
}

impl Pair {
    fn new(size: usize) -> Result<Self, Failed> {
        let device = device_of("sock", &[("ip", "127.0.0.1")]);
        let open = || Host::open(&Options::new().nodes(Nodes::new()).device(device.clone()));
        let hosts = [open()?, open()?];
        let id = |at: usize| std::process::id() << 8 | (size >> 12) as u32 | (at as u32) << 7;
        let (mut segments, mut connections, mut own, mut far) = (vec![], vec![], vec![], vec![]);
        for (at, host) in hosts.iter().enumerate() {
            let segment = host.create(id(at), size)?;
            segment.prepare()?;
            segment.publish()?;
            own.push(segment.map(0..size, Access::ReadWrite)?);
            segments.push(segment);
        }
        for (at, host) in hosts.iter().enumerate() {
            let connection = host.connect(host.node(), id(1 - at), None)?;
            far.push(connection.map(0..size, Access::ReadWrite)?);
            connections.push(connection);
        }
        Ok(Self { hosts, _segments: segments, _connections: connections, own, far })
    }

    /// A value that the other side has, polled by the library.
    fn wait(&self, side: usize, at: usize, value: u64) {
        while self.own[side].load(at) != Ok(value) {
            let _ = self.hosts[side].progress();
            std::thread::yield_now();
        }
    }
}

/// Two endpoints, connected, with memory of each.
struct Bare {
    ends: [Endpoint; 2],
    links: [Connection; 2],
    memory: [Arc<SharedMemory>; 2],
    registered: [Registration<Arc<SharedMemory>>; 2],
    source: [Registration<Arc<SharedMemory>>; 2],
    values: [Arc<SharedMemory>; 2],
}

impl Bare {
    fn new() -> Result<Self, Failed> {
        let device = device_of("sock", &[("ip", "127.0.0.1")]);
        let ends = [open(&device), open(&device)];
        let (first, second) = World::new([&ends[0], &ends[1]]).connect(0, 1, Attribute::ReliableOrdered);
        let memory = || SharedMemory::new(SIZE).map(Arc::new);
        let (memory, values) = ([memory()?, memory()?], [memory()?, memory()?]);
        let register =
            |at: usize, of: &[Arc<SharedMemory>; 2]| ends[at].register(Arc::clone(&of[at]), Rights::READ_WRITE);
        let registered = [register(0, &memory)?, register(1, &memory)?];
        let source = [register(0, &values)?, register(1, &values)?];
        Ok(Self { links: [first, second], memory, registered, source, values, ends })
    }

    fn word(&self, side: usize) -> u64 {
        let mut bytes = [0; 8];
        self.memory[side].read(0, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    fn write(&self, side: usize, len: usize, context: u64) {
        let rma = Rma::new(self.source[side].handle(), self.registered[1 - side].handle(), len as u64);
        while self.ends[side].write(self.links[side], &rma, context).is_err() {
            self.poll(side);
        }
    }

    /// Whether something has ended.
    fn poll(&self, side: usize) -> bool {
        matches!(self.ends[side].get_event(), Ok(Some(Event::Completed(_))))
    }
}

/// Times of single turns, us.
type Times = Vec<f64>;

/// The least time of a turn and the median, us, of each way, which makes so many turns at once.
fn measure(turns: u64, ways: &mut [&mut dyn FnMut(u64) -> Times]) -> Vec<[f64; 2]> {
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..BLOCKS {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            times.extend(way(turns));
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.into_iter().map(|times| [times[0], times[times.len() / 2]]).collect()
}

/// Makes turns one by one.
fn each(turns: std::ops::Range<u64>, mut turn: impl FnMut(u64)) -> Times {
    let timed = |at: u64| {
        let begun = Instant::now();
        turn(at);
        begun.elapsed().as_secs_f64() * 1e6
    };
    turns.map(timed).collect()
}

/// Round trips of a counter between two threads.
fn ping_pong(first: u64, turns: u64, send: impl Fn(usize, u64) + Sync, wait: impl Fn(usize, u64) + Sync) -> Times {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in first..first + turns {
                wait(1, turn);
                send(1, turn);
            }
        });
        let mut times = each(first..first + turns, |turn| {
            send(0, turn);
            wait(0, turn);
        });
        times.split_off(WARM as usize)
    })
}

fn show(names: &[&str], times: &[[f64; 2]], share: f64) {
    for (name, [least, median]) in names.iter().zip(times) {
        let [of_least, of_median] = [0, 1].map(|at| times[0][at]);
        println!(
            "  {name:18} least {:8.2} ({:.2}x), median {:8.2} ({:.2}x)",
            least / share,
            least / of_least,
            median / share,
            median / of_median,
        );
    }
}

fn main() -> Result<(), Failed> {
    let (small, large, bare) = (Pair::new(4096)?, Pair::new(SIZE)?, Bare::new()?);
    let mut next = [1; 3];
    let mut take = |at: usize, turns: u64| {
        let first: u64 = next[at];
        next[at] += turns;
        first
    };
    let mut firsts: Vec<Vec<u64>> = (0..3).map(|at| (0..BLOCKS).map(|_| take(at, TURNS)).rev().collect()).collect();
    let [mut of_bare, mut of_small, mut of_large] = [0, 1, 2].map(|at| std::mem::take(&mut firsts[at]));
    let through = |pair: &Pair, firsts: &mut Vec<u64>, turns: u64| {
        let send = |side: usize, turn: u64| {
            let _ = pair.far[side].store(0, turn);
            pair.far[side].flush();
        };
        ping_pong(firsts.pop().unwrap_or(0), turns, send, |side, turn| pair.wait(side, 0, turn))
    };
    let trips = measure(
        TURNS,
        &mut [
            &mut |turns| {
                let send = |side: usize, turn: u64| {
                    bare.values[side].write(0, &turn.to_ne_bytes());
                    bare.write(side, 8, 0);
                };
                let wait = |side: usize, turn: u64| {
                    while bare.word(side) != turn {
                        bare.poll(side);
                        std::thread::yield_now();
                    }
                };
                ping_pong(of_bare.pop().unwrap_or(0), turns, send, wait)
            },
            &mut |turns| through(&small, &mut of_small, turns),
            &mut |turns| through(&large, &mut of_large, turns),
        ],
    );
    println!("8 B one way, polled by the library, us:");
    show(&["RMA write", "window of 4 KiB", "window of 64 KiB"], &trips, 2.0);

    // The owner sleeps in its library: a thread of it wakes.
    std::thread::sleep(Duration::from_millis(300));
    let mut value = 1_u64 << 40;
    let mut waits = Vec::new();
    for _ in 0..1000 {
        value += 1;
        let begun = Instant::now();
        small.far[0].store(8, value)?;
        small.far[0].flush();
        while small.own[1].load(8) != Ok(value) {
            std::hint::spin_loop();
        }
        waits.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    waits.sort_by(f64::total_cmp);
    let at = |part: usize| waits[waits.len() * part / 100];
    println!("8 B one way, the owner makes no call, us: least {:.2}, median {:.2}, p99 {:.2}", at(0), at(50), at(99));

    let sequence = [&small, &large].map(|pair| pair.far[0].sequence());
    let round = std::cell::Cell::new(0_u64);
    let (bytes, mut others) = (vec![0_u8; SIZE], vec![0_u8; SIZE]);
    let serving = AtomicUsize::new(BARE);
    let until_ended = |len: usize| {
        bare.write(0, len, 1);
        while !bare.poll(0) {}
    };
    let (times, all) = std::thread::scope(|scope| {
        let owners = scope.spawn(|| {
            loop {
                match serving.load(Ordering::Relaxed) {
                    BARE => drop(bare.poll(1)),
                    SMALL => drop(small.hosts[1].progress()),
                    LARGE => drop(large.hosts[1].progress()),
                    _ => break,
                }
            }
        });
        // The owner's library polls, whichever it is.
        let by = |owner: usize, turns: u64, turn: &mut dyn FnMut()| {
            serving.store(owner, Ordering::Relaxed);
            (0..WARM).for_each(|_| turn());
            each(0..turns, |_| turn())
        };
        let one = |at: usize, pair: &Pair| {
            round.set(round.get() + 1);
            let _ = pair.far[0].store(64, round.get());
            assert_eq!(sequence[at].check(), SequenceStatus::Ok);
        };
        let times = measure(
            TURNS,
            &mut [
                &mut |turns| by(BARE, turns, &mut || until_ended(8)),
                &mut |turns| by(SMALL, turns, &mut || one(0, &small)),
                &mut |turns| by(LARGE, turns, &mut || one(1, &large)),
            ],
        );
        let (change, bytes) =
            (|bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1)), RefCell::new(bytes));
        let store = || {
            change(&mut bytes.borrow_mut());
            let _ = large.far[0].write(0, &bytes.borrow());
        };
        let all = measure(
            TURNS,
            &mut [
                &mut |turns| by(BARE, turns, &mut || until_ended(SIZE)),
                &mut |turns| {
                    by(LARGE, turns, &mut || {
                        store();
                        assert_eq!(sequence[1].check(), SequenceStatus::Ok);
                    })
                },
                &mut |turns| {
                    by(LARGE, turns, &mut || {
                        store();
                        large.far[0].flush();
                    })
                },
                &mut |turns| {
                    each(0..turns, |_| {
                        change(&mut others);
                        std::hint::black_box(&others);
                    })
                },
            ],
        );
        serving.store(LARGE + 1, Ordering::Relaxed);
        let _ = owners.join();
        (times, all)
    });
    println!("one word, until it is confirmed, us:");
    show(&["RMA write", "window of 4 KiB", "window of 64 KiB"], &times, 1.0);

    println!("64 KiB, all bytes changed, us (with the change of the source, which is apart too):");
    show(&["RMA write", "window, confirmed", "window, flushed", "change"], &all, 1.0);
    Ok(())
}
