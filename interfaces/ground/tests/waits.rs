//! Threads that wait for one state: none sleeps through what it waits for.

use cci::{Connect, Connection, Endpoint, EndpointOptions, Event, Notify};
use cci_conformance::sm_device;
use cci_ground::{Changing, Drive, Driven};
use cci_mem::barrier::{Pairing, prepare};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A wait that ends by its limit alone has lost a wake-up.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const SOON: Duration = Duration::from_secs(20);

/// What waits are for. Those of `Spinning` look for a while before they sleep.
#[derive(Default)]
struct State<const SPINNING: bool> {
    changes: u64,
    turn: u64,
    received: u64,
    connection: Option<Connection>,
    /// When the turn goes on by itself.
    due: Option<Instant>,
    /// How often progress was made.
    looks: u32,
    /// How many waits have looked for their result.
    waits: u32,
    is_deaf: bool,
}

impl<const SPINNING: bool> Changing for State<SPINNING> {
    fn changes(&self) -> u64 {
        self.changes
    }

    fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    fn wakes_sleeper(&self) -> bool {
        !self.is_deaf
    }
}

impl<const SPINNING: bool> Drive for State<SPINNING> {
    const SPINS: bool = SPINNING;

    fn progress(&mut self, endpoint: &Endpoint) {
        self.looks += 1;
        if self.due.is_some_and(|due| due <= Instant::now()) {
            (self.due, self.turn, self.changes) = (None, self.turn + 1, self.changes + 1);
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

impl<const SPINNING: bool> State<SPINNING> {
    fn give_on(&mut self) {
        (self.turn, self.changes) = (self.turn + 1, self.changes + 1);
    }
}

type Asleep = Driven<State<false>>;

fn driven<const SPINNING: bool>() -> Driven<State<SPINNING>> {
    let endpoint = Endpoint::open(&sm_device(), &EndpointOptions::new()).expect("an endpoint");
    Driven::new(endpoint, State::default()).expect("a descriptor")
}

/// Runs what ends by a wake-up, and not by [`LONG`].
fn soon<R>(act: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let result = act();
    assert!(begun.elapsed() < SOON, "a wake-up was lost");
    result
}

/// Returns once the state is so. A wait looks and falls asleep in one turn of the lock, so that one
/// whose look is seen here sleeps.
fn until(driven: &Asleep, is_so: impl Fn(&State<false>) -> bool) {
    let begun = Instant::now();
    while !is_so(&driven.lock()) {
        assert!(begun.elapsed() < SOON, "nothing happens");
        std::thread::yield_now();
    }
}

/// A connection to the first of two, whose events `here` takes in waits.
fn connect(here: &Asleep, there: &Asleep) -> Connection {
    there.endpoint().connect(&Connect::to(here.endpoint().uri())).expect("a connect");
    std::thread::scope(|scope| {
        scope.spawn(|| soon(|| here.wait_for(LONG, |state| (state.changes > 0).then_some(()))));
        soon(|| there.wait_for(LONG, |state| state.connection)).expect("a connection")
    })
}

fn send(from: &Asleep, connection: Connection) {
    from.endpoint().send(connection, b"one", Notify::OnFailure(0)).expect("room");
}

/// Each of four threads waits for its turn and gives it on. `CCI_WAITS`: turns.
fn go_round<const SPINNING: bool>() {
    let turns = std::env::var("CCI_WAITS").map_or(20_000, |turns| turns.parse().expect("a number"));
    let driven = driven::<SPINNING>();
    std::thread::scope(|scope| {
        for me in 0..4 {
            let driven = &driven;
            scope.spawn(move || {
                let mut at = me;
                while at < turns {
                    let found = soon(|| driven.wait_for(LONG, |state| (state.turn >= at).then_some(state.turn)));
                    assert_eq!(found, Some(at));
                    driven.with(State::give_on);
                    at += 4;
                }
            });
        }
    });
    assert_eq!(driven.lock().turn, turns);
}

#[test]
fn a_turn_that_goes_round_is_never_slept_through() {
    go_round::<false>();
    go_round::<true>();
}

/// The one that sleeps on the descriptors takes what the other one waits for.
#[test]
fn what_another_thread_has_taken_is_found() {
    let (here, there) = (driven(), driven());
    let connection = connect(&here, &there);
    std::thread::scope(|scope| {
        let looks = here.lock().looks;
        let for_ever = scope.spawn(|| soon(|| here.wait_for(LONG, |state| (state.turn > 0).then_some(()))));
        until(&here, |state| state.looks > looks);
        let beside = scope.spawn(|| soon(|| here.wait_for(LONG, |state| (state.received > 0).then_some(()))));
        until(&here, |state| state.looks > looks + 1);
        send(&there, connection);
        assert_eq!(beside.join().expect("no panic"), Some(()));
        here.with(State::give_on);
        assert_eq!(for_ever.join().expect("no panic"), Some(()));
    });
}

/// Has a wait on the descriptors end so, while another one sleeps beside it: that takes over.
fn takes_over(limit: Duration, ends: impl Fn(&State<false>) + Send + Sync, is_sent_before: bool) {
    let (here, there) = (driven(), driven());
    let connection = connect(&here, &there);
    std::thread::scope(|scope| {
        let looks = here.lock().looks;
        let first = scope.spawn(|| {
            here.wait_for(Some(limit), |state| {
                ends(state);
                None::<()>
            })
        });
        until(&here, |state| state.looks > looks);
        let second = scope.spawn(|| soon(|| here.wait_for(LONG, |state| (state.received > 0).then_some(()))));
        until(&here, |state| state.looks > looks + 1);
        if is_sent_before {
            send(&there, connection);
        }
        let _ = first.join();
        if !is_sent_before {
            send(&there, connection);
        }
        assert_eq!(second.join().expect("no panic"), Some(()));
    });
}

#[test]
fn who_sleeps_beside_takes_over_when_the_limit_of_the_other_is_over() {
    takes_over(Duration::from_millis(200), |_| (), false);
}

#[test]
fn who_sleeps_beside_takes_over_when_the_other_panics() {
    let panics = |state: &State<false>| {
        if state.received > 0 {
            std::panic::resume_unwind(Box::new(()));
        }
    };
    takes_over(Duration::from_secs(60), panics, true);
}

/// A thread makes the progress, others wait beside it, and a change is not for the thread.
#[test]
fn who_waits_beside_a_thread_is_woken_and_the_thread_is_not() {
    let driven: Asleep = driven();
    let wait = || {
        let ready = |state: &mut State<false>| {
            state.waits += 1;
            (state.turn > 0).then_some(())
        };
        soon(|| driven.wait_beside(LONG, || driven.lock(), ready))
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut state = driven.lock();
            while state.turn < 2 {
                state.progress(driven.endpoint());
                state = driven.sleep(state, LONG);
            }
        });
        until(&driven, |state| state.looks == 1);
        driven.with(|state| state.is_deaf = true);
        let waits = [(); 3].map(|()| scope.spawn(wait));
        until(&driven, |state| state.waits == 3);
        driven.with(State::give_on);
        for wait in waits {
            assert_eq!(wait.join().expect("no panic"), Some(()));
        }
        let looks = driven.with(|state| {
            state.is_deaf = false;
            state.give_on();
            state.looks
        });
        soon(|| thread.join().expect("no panic"));
        assert_eq!(looks, 1, "the thread was woken by what is not for it");
    });
}

/// What is due by the clock ends a sleep of the thread on the descriptors, though nothing comes.
#[test]
fn what_is_due_ends_a_sleep() {
    let driven: Asleep = driven();
    driven.with(|state| state.due = Some(Instant::now() + Duration::from_millis(50)));
    assert_eq!(soon(|| driven.wait_for(LONG, |state| (state.turn == 1).then_some(()))), Some(()));
    // One look before the sleep, one after it, and some where a clock rounds.
    assert!(driven.lock().looks < 20, "it looks without a sleep: {}", driven.lock().looks);
}

/// Another thread says that something is due, to one that sleeps without a limit of its own.
#[test]
fn what_becomes_due_during_a_sleep_ends_it() {
    let driven: Asleep = driven();
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| soon(|| driven.wait_for(LONG, |state| (state.turn == 1).then_some(()))));
        until(&driven, |state| state.looks == 1);
        driven.with(|state| state.due = Some(Instant::now() + Duration::from_millis(20)));
        assert_eq!(wait.join().expect("no panic"), Some(()));
    });
}

/// What a wait looks at makes something due, and it goes to sleep beside the one that is to see it.
#[test]
fn what_a_wait_beside_makes_due_ends_the_sleep_on_the_descriptors() {
    let driven: Asleep = driven();
    let turned = |state: &mut State<false>| (state.turn == 1).then_some(());
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| soon(|| driven.wait_for(LONG, turned)));
        until(&driven, |state| state.looks == 1);
        let beside = soon(|| {
            driven.wait_for(LONG, |state| {
                if state.turn == 0 && state.due.is_none() {
                    state.due = Some(Instant::now() + Duration::from_millis(20));
                }
                turned(state)
            })
        });
        assert_eq!([beside, wait.join().expect("no panic")], [Some(()); 2]);
    });
}

#[test]
fn a_limit_ends_a_wait_and_not_before_it_is_over() {
    let driven: Asleep = driven();
    let begun = Instant::now();
    assert_eq!(driven.wait_for(Some(Duration::from_millis(20)), |_| None::<()>), None);
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert!(driven.lock().looks < 20, "it looks without a sleep: {}", driven.lock().looks);
}

#[test]
fn a_call_from_within_a_call_ends_in_a_panic() {
    // Without a bias, which needs such fences, it would wait for itself.
    if prepare() != Pairing::Asymmetric {
        return;
    }
    let driven: Asleep = driven();
    // So often that this thread takes it without a lock.
    (0..300).for_each(|_| driven.with(|_| ()));
    let called = catch_unwind(AssertUnwindSafe(|| driven.with(|_| drop(driven.lock()))));
    let text = called.expect_err("it has taken the lock twice");
    assert!(text.downcast_ref::<&str>().is_some_and(|text| text.contains("called its interface")), "{text:?}");
}
