//! Stores, loads, interrupts and transfers.

use crate::world::{bytes, connect, published, seen, two, until};
use cci_conformance::LIMIT;
use cci_sci::{Access, Direction, Error, Kind, QueueState, SequenceStatus, Then};
use std::time::Instant;

/// Not a multiple of a word, nor of a block.
const SIZE: usize = 200_005;

fn pattern(seed: usize) -> Vec<u8> {
    (0..SIZE).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

#[test]
fn what_is_stored_arrives_with_a_flush_and_without() {
    for protect in [true, false] {
        let [owner, other] = two(protect);
        let segment = published(&owner, SIZE);
        let own = seen(&segment);
        own.write(0, &pattern(0)).expect("inside");
        let (connection, window) = connect(&other, &owner, &segment);
        assert_eq!(window.kind(), Kind::Mirror);
        assert!(bytes(&window) == pattern(0), "a map reads");
        let sequence = window.sequence();

        window.store(8, 5_u64).expect("inside");
        window.flush();
        until("a flushed store", || own.load(8) == Ok(5_u64));
        // Nobody calls.
        window.store(72_000, 0x0001_0002_0003_0004_u64).expect("inside");
        until("a store that nobody flushes", || own.load(72_000) == Ok(0x0001_0002_0003_0004_u64));

        // All of it, then what a check confirms is there at once.
        for seed in 1..4 {
            window.write(0, &pattern(seed)).expect("inside");
            assert_eq!(sequence.check(), SequenceStatus::Ok);
            assert!(bytes(&own) == pattern(seed), "seed {seed}");
        }
        let random: Vec<u8> = (0..SIZE).map(|_| fastrand::u8(..)).collect();
        window.write(0, &random).expect("inside");
        assert_eq!(sequence.check(), SequenceStatus::Ok);
        assert!(bytes(&own) == random);

        // Another window of the connection shows the same; one that is not aligned has its range.
        let part = connection.map(4099..4109, Access::ReadWrite).expect("inside");
        part.write(0, b"unaligned!").expect("inside");
        drop(part);
        until("a store before the end of a window", || {
            let mut bytes = [0; 10];
            own.read(4099, &mut bytes).expect("inside");
            &bytes == b"unaligned!"
        });
        assert_eq!(window.load(4100), Ok(b'n'));
    }
}

/// An owner that polls the last word finds the rest.
#[test]
fn the_last_line_arrives_last() {
    let [owner, other] = two(true);
    let segment = published(&owner, 80_000);
    let own = seen(&segment);
    let (_connection, window) = connect(&other, &owner, &segment);
    for round in 1..60_u64 {
        // Long enough for RMA, and short.
        let words = if round % 2 == 0 { 9_000 } else { 20 };
        (0..words).for_each(|word| window.store(word * 8, round).expect("inside"));
        window.store(79_992, round).expect("inside");
        if round % 3 == 0 {
            window.flush();
        }
        until("the last word", || {
            owner.progress().expect("open");
            own.load(79_992) == Ok(round)
        });
        assert!((0..words).all(|word| own.load(word * 8) == Ok(round)), "round {round}");
    }
}

#[test]
fn two_writers_of_one_line_both_arrive() {
    let [owner, first] = two(true);
    let [_, second] = two(false);
    let segment = published(&owner, 64);
    let writers = [&first, &second];
    let last = std::thread::scope(|scope| {
        let running: Vec<_> = (0..2_usize)
            .map(|parity| {
                let (owner, segment) = (&owner, &segment);
                scope.spawn(move || {
                    let (_connection, window) = connect(writers[parity], owner, segment);
                    let mut random = fastrand::Rng::with_seed(parity as u64);
                    let mut last = [0; 64];
                    for _ in 0..2_000 {
                        let at = random.usize(..32) * 2 + parity;
                        last[at] = random.u8(..);
                        window.store(at, last[at]).expect("inside");
                        if random.u8(..8) == 0 {
                            window.flush();
                        }
                    }
                    assert_eq!(window.sequence().check(), SequenceStatus::Ok);
                    last
                })
            })
            .collect();
        running.into_iter().map(|writer| writer.join().expect("no panic")).collect::<Vec<_>>()
    });
    let expected: Vec<u8> = (0..64).map(|at| last[at % 2][at]).collect();
    assert_eq!(bytes(&seen(&segment)), expected);
}

#[test]
fn of_two_writers_of_one_byte_one_wins_and_none_is_invented() {
    let [owner, first] = two(true);
    let [_, second] = two(true);
    let segment = published(&owner, 8);
    let windows = [&first, &second].map(|host| connect(host, &owner, &segment));
    for round in 1..50_u8 {
        let (one, other) = (round, round | 0x80);
        std::thread::scope(|scope| {
            for (value, (_, window)) in [one, other].into_iter().zip(&windows) {
                scope.spawn(move || {
                    window.store(3, value).expect("inside");
                    assert_eq!(window.sequence().check(), SequenceStatus::Ok);
                });
            }
        });
        let got = seen(&segment).load::<u64>(0).expect("inside").to_ne_bytes();
        assert!([one, other].contains(&got[3]) && got[..3] == [0; 3] && got[4..] == [0; 4], "{got:?}");
    }
}

#[test]
fn a_flush_for_reading_shows_the_owners_stores_and_keeps_own_ones() {
    let [owner, other] = two(true);
    let segment = published(&owner, 70_000);
    let own = seen(&segment);
    let (_connection, window) = connect(&other, &owner, &segment);
    own.store(16, 7_u64).expect("inside");
    own.store(69_000, 8_u64).expect("inside");
    assert_eq!(window.load(16), Ok(0_u64), "as old as the map");
    window.store(24, 9_u64).expect("inside");
    window.flush_reads().expect("connected");
    assert_eq!([16, 24, 69_000].map(|at| window.load(at)), [7, 9, 8_u64].map(Ok));
    assert_eq!(own.load(24), Ok(9_u64));
    // Stores meanwhile are neither lost nor undone.
    std::thread::scope(|scope| {
        let storing = scope.spawn(|| (1..20_000_u64).for_each(|value| window.store(32, value).expect("inside")));
        while !storing.is_finished() {
            window.flush_reads().expect("connected");
        }
    });
    assert_eq!(window.load(32), Ok(19_999_u64));
    assert_eq!(window.sequence().check(), SequenceStatus::Ok);
    assert_eq!(own.load(32), Ok(19_999_u64));
}

/// An interrupt comes behind what was stored before it.
#[test]
fn stores_come_before_the_interrupt() {
    let [owner, other] = two(true);
    let segment = published(&owner, SIZE);
    let own = seen(&segment);
    let (_connection, window) = connect(&other, &owner, &segment);
    let (bell, data) = (owner.interrupt(None).expect("free"), owner.data_interrupt(None).expect("free"));
    let ring = other.connect_interrupt(4, bell.number(), Some(LIMIT)).expect("there");
    let ring_data = other.connect_data_interrupt(4, data.number(), Some(LIMIT)).expect("there");
    for seed in 0..6 {
        window.write(0, &pattern(seed)).expect("inside");
        if seed % 2 == 0 {
            ring.trigger().expect("connected");
            bell.wait(Some(LIMIT)).expect("triggered");
        } else {
            ring_data.trigger(b"x").expect("connected");
            data.wait(Some(LIMIT)).expect("triggered");
        }
        assert!(bytes(&own) == pattern(seed), "seed {seed}");
    }
}

#[test]
fn callbacks_store_to_quiet_windows() {
    let [owner, other] = two(true);
    let segment = published(&owner, 4096);
    let own = seen(&segment);
    let back = published(&other, 8);
    let (_connection, window) = connect(&other, &owner, &segment);
    let bell = other.interrupt(None).expect("free");
    let window = std::sync::Arc::new(window);
    let mut value = 0_u64;
    let storing = std::sync::Arc::clone(&window);
    bell.on_trigger(move |()| {
        value += 1;
        storing.store(0, value).expect("inside");
        storing.flush();
        cci_sci::Then::Continue
    })
    .expect("open");
    let ring = owner.connect_interrupt(8, bell.number(), Some(LIMIT)).expect("there");
    for round in 1..5 {
        // Until its pages are protected.
        std::thread::sleep(std::time::Duration::from_millis(5));
        ring.trigger().expect("connected");
        until("the callback's store", || own.load(0) == Ok(round));
    }
    drop((bell, back));
}

#[test]
fn queues_transfer_to_and_from_segments_of_other_hosts() {
    let [owner, other] = two(true);
    let segment = published(&owner, SIZE);
    let source = published(&other, SIZE);
    let (connection, window) = connect(&other, &owner, &segment);
    seen(&source).write(0, &pattern(3)).expect("inside");
    let queue = other.dma_queue(2).expect("room");
    queue.enqueue((&source, 0), (&connection, 0), SIZE, Direction::Write).expect("room");
    queue.post().expect("it has a transfer");
    assert_eq!(queue.wait(Some(LIMIT)), Ok(QueueState::Done));
    assert!(bytes(&seen(&segment)) == pattern(3));
    window.flush_reads().expect("connected");
    assert!(bytes(&window) == pattern(3));
}

/// What the first transfer reads is copied by the second one, within the host.
#[test]
fn a_copy_within_the_host_waits_for_the_transfer_before_it() {
    let [owner, other] = two(true);
    let segment = published(&owner, SIZE);
    let between = published(&other, SIZE);
    let last = published(&other, SIZE);
    let (connection, _window) = connect(&other, &owner, &segment);
    let within = other.connect(other.node(), last.id(), Some(LIMIT)).expect("published");
    let queue = other.dma_queue(3).expect("room");
    for round in 1..20 {
        seen(&segment).write(0, &pattern(round)).expect("inside");
        queue.enqueue((&between, 0), (&connection, 0), SIZE, Direction::Read).expect("room");
        queue.enqueue((&between, 0), (&within, 0), SIZE, Direction::Write).expect("room");
        queue.post().expect("it has transfers");
        assert_eq!(queue.wait(Some(LIMIT)), Ok(QueueState::Done));
        assert!(bytes(&seen(&last)) == pattern(round), "round {round}");
        queue.reset().expect("ended");
    }
}

/// Loads through a mirror need no flush for reading then.
#[test]
fn what_the_owner_stored_before_its_interrupt_is_loaded_after_it() {
    for protect in [true, false] {
        let [owner, other] = two(protect);
        let segment = published(&owner, SIZE);
        let own = seen(&segment);
        let (_connection, window) = connect(&other, &owner, &segment);
        let (bell, data) = (other.interrupt(None).expect("free"), other.data_interrupt(None).expect("free"));
        let ring = owner.connect_interrupt(8, bell.number(), Some(LIMIT)).expect("there");
        let ring_data = owner.connect_data_interrupt(8, data.number(), Some(LIMIT)).expect("there");
        for round in 1..50_u64 {
            // The other side stores too: its own bytes stay.
            window.store(16, round).expect("inside");
            own.store(8, round).expect("inside");
            own.store(150_000, round).expect("inside");
            match round % 2 {
                0 => ring.trigger().expect("there"),
                _ => ring_data.trigger(&round.to_le_bytes()).expect("room"),
            }
            match round % 2 {
                0 => bell.wait(Some(LIMIT)).expect("rung"),
                _ => assert_eq!(data.wait(Some(LIMIT)).expect("rung"), round.to_le_bytes()),
            }
            assert_eq!([8, 16, 150_000].map(|at| window.load(at)), [Ok(round); 3], "round {round}");
        }
    }
}

/// Several interrupts wait for one read, and keep their order; a callback loads what is new.
#[test]
fn interrupts_of_an_owner_keep_their_order() {
    let [owner, other] = two(true);
    let segment = published(&owner, 4096);
    let own = seen(&segment);
    let (_connection, window) = connect(&other, &owner, &segment);
    let data = other.data_interrupt(None).expect("free");
    let ring = owner.connect_data_interrupt(8, data.number(), Some(LIMIT)).expect("there");
    for round in 0..16_u64 {
        own.store(8, round).expect("inside");
        ring.trigger(&round.to_le_bytes()).expect("room");
    }
    for round in 0..16_u64 {
        assert_eq!(data.wait(Some(LIMIT)).expect("rung"), round.to_le_bytes());
        assert!(window.load(8).is_ok_and(|found: u64| found >= round), "round {round}");
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    data.on_data(move |bytes| {
        let _ = sender.send((bytes, window.load::<u64>(8)));
        Then::Continue
    })
    .expect("it waits for nobody");
    own.store(8, 99_u64).expect("inside");
    // That they were taken is known here some time later.
    let deadline = Instant::now() + LIMIT;
    while let Err(why) = ring.trigger(b"last") {
        assert!(why == Error::Overflow && Instant::now() < deadline, "{why}");
    }
    assert_eq!(receiver.recv_timeout(LIMIT), Ok((b"last".to_vec(), Ok(99))));
}
