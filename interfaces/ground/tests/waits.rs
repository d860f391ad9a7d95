//! Threads that wait for one state: none sleeps through what it waits for.

use cci::{Connect, Endpoint, EndpointOptions, Event, Notify};
use cci_conformance::sm_device;
use cci_ground::{Changing, Drive, Driven};
use std::time::{Duration, Instant};

/// Longer than any test takes: who waits so long has lost a wake-up.
const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// Whose turn it is, what has come, and how often the state was driven.
#[derive(Default)]
struct State {
    changes: u64,
    turn: u64,
    received: u64,
    connection: Option<cci::Connection>,
    /// What is due in a while, how often.
    ticks: u32,
    looks: u32,
}

impl Changing for State {
    fn changes(&self) -> u64 {
        self.changes
    }

    fn left(&self) -> Option<Duration> {
        (self.ticks > 0).then_some(Duration::from_millis(1))
    }
}

impl Drive for State {
    fn progress(&mut self, endpoint: &Endpoint) {
        self.looks += 1;
        if self.looks > 1 && self.ticks > 0 {
            (self.ticks, self.turn, self.changes) = (self.ticks - 1, self.turn + 1, self.changes + 1);
        }
        let taken = endpoint.poll(64, |event| {
            match event {
                Event::Received(_) => self.received += 1,
                Event::Connected(opened) => self.connection = opened.connection(),
                Event::Request(request) => drop(request.accept(0)),
                _ => return,
            }
            self.changes += 1;
        });
        assert!(taken.is_ok(), "{taken:?}");
    }
}

fn driven() -> Driven<State> {
    let endpoint = Endpoint::open(&sm_device(), &EndpointOptions::new()).expect("an endpoint");
    Driven::new(endpoint, State::default()).expect("a descriptor")
}

/// Each of four threads waits for its turn and gives it on. `CCI_WAITS`: turns.
#[test]
fn a_turn_that_goes_round_is_never_slept_through() {
    let turns = std::env::var("CCI_WAITS").map_or(20_000, |turns| turns.parse().expect("a number"));
    let driven = driven();
    std::thread::scope(|scope| {
        for me in 0..4 {
            let driven = &driven;
            scope.spawn(move || {
                let mut at = me;
                while at < turns {
                    assert_eq!(driven.wait_for(LONG, |state| (state.turn >= at).then_some(state.turn)), Some(at));
                    driven.with(|state| (state.turn, state.changes) = (state.turn + 1, state.changes + 1));
                    at += 4;
                }
            });
        }
    });
    assert_eq!(driven.lock().turn, turns);
}

/// Of two who wait, the one that sleeps on the descriptors takes what the other one waits for; when
/// it goes, the other one takes over its sleep.
#[test]
fn what_comes_to_the_endpoint_is_found_by_who_waits_for_it() {
    let (here, there) = (driven(), driven());
    let connect = Connect::to(here.endpoint().uri());
    there.endpoint().connect(&connect).expect("a connect");
    std::thread::scope(|scope| {
        let connection = scope.spawn(|| there.wait_for(LONG, |state| state.connection));
        // Accepts, and takes the first message.
        let first = scope.spawn(|| here.wait_for(LONG, |state| (state.received >= 1).then_some(())));
        let second = scope.spawn(|| here.wait_for(LONG, |state| (state.received >= 2).then_some(())));
        let connection = connection.join().expect("no panic").expect("a connection");
        let send = || there.endpoint().send(connection, b"one", Notify::OnFailure(0)).expect("room");
        send();
        assert_eq!(first.join().expect("no panic"), Some(()));
        send();
        assert_eq!(second.join().expect("no panic"), Some(()));
    });
}

/// A thread that makes the progress, and others that wait beside it.
#[test]
fn who_waits_beside_a_thread_is_woken_by_it() {
    let driven = driven();
    std::thread::scope(|scope| {
        let beside = |turn| move |state: &mut State| (state.turn >= turn).then_some(());
        let waits: Vec<_> = (1..4)
            .map(|turn| {
                let driven = &driven;
                scope.spawn(move || driven.wait_beside(LONG, || driven.lock(), beside(turn)))
            })
            .collect();
        (0..3).for_each(|_| driven.with(|state| (state.turn, state.changes) = (state.turn + 1, state.changes + 1)));
        for wait in waits {
            assert_eq!(wait.join().expect("no panic"), Some(()));
        }
    });
}

/// What is due by the clock ends a sleep of the thread on the descriptors, though nothing comes.
#[test]
fn what_is_due_ends_a_sleep() {
    let driven = driven();
    driven.with(|state| state.ticks = 3);
    assert_eq!(driven.wait_for(LONG, |state| (state.turn == 3).then_some(())), Some(()));
    let begun = Instant::now();
    assert_eq!(driven.wait_for(Some(Duration::from_millis(5)), |_| None::<()>), None);
    assert!(begun.elapsed() >= Duration::from_millis(5));
    assert!(driven.lock().looks < 10_000, "it looks without a sleep");
}

#[test]
#[should_panic(expected = "called its interface as it was dropped")]
fn a_call_from_within_a_call_ends_in_a_panic() {
    let driven = driven();
    // So often that this thread takes it without a lock.
    (0..300).for_each(|_| driven.with(|_| ()));
    driven.with(|_| drop(driven.lock()));
}
