//! A connect step by step, while other threads use its VI and its NIC.

use super::*;
use crate::attributes::Reliability;
use crate::few_descriptors::until_listening;
use crate::liars::{attributes, name};
use crate::rendezvous::{Accept, ports};
use crate::state::{Invitation, State};
use crate::task::Completion;
use cci_conformance::process::thread_time;
use cci_conformance::{LIMIT, device_of};

/// Nothing is posted.
struct Nothing;

impl Token for Nothing {
    fn complete(&mut self, _: &Completion) {}
}

/// A NIC with one VI, and the address at which it listens to peers.
struct Side {
    core: Core<Nothing>,
    vi: u32,
    at: Address,
}

impl Side {
    fn new() -> Self {
        let core = Core::open(&device_of("sm", &[])).expect("a NIC");
        let tag = core.create_tag().expect("a tag");
        let vi = core.create_vi(&ViAttributes { tag, ..attributes(Reliability::Delivery) }, None, None).expect("a VI");
        let at = Address::new(core.host(), &name());
        Self { core, vi, at }
    }

    /// Of a peer whose discriminator is greater than each name.
    fn remote(&self) -> Address {
        Address::new(self.core.host(), b"z")
    }

    fn listen(&self, limit: Option<Duration>) {
        self.core.peer_request(self.vi, &self.at, &self.remote(), limit).expect("a port");
    }

    fn number(&self) -> u32 {
        self.core.last_connect(self.vi).expect("a VI")
    }

    fn step(&self) -> Box<PeerConnect> {
        match self.core.peer_step(self.vi, self.number()).expect("under way") {
            Progress::Waits(peer) => peer,
            _ => panic!("it is not to be slept for"),
        }
    }

    fn with_vi<R>(&self, act: impl FnOnce(&mut crate::state::Vi<Nothing>) -> R) -> R {
        self.core.with(|state| act(state.vis.get_mut(self.vi).expect("a VI")))
    }

    fn fail_endpoint(&self) {
        self.core.with(|state| {
            state.has_failed = true;
            state.progress(self.core.endpoint());
        });
    }

    /// Steps until a client that asks by this question is invited. Returns the invitation.
    fn invite(&self, question: &mut Question) -> Accept {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "nobody is invited");
            assert_eq!(self.core.peer_done(self.vi), Ok(None));
            if let Some(accept) = question.poll().expect("it listens") {
                return accept;
            }
        }
    }

    /// A client of the ticket has come, and is accepted. Returns the context of its connection.
    fn use_ticket(&self, accept: &Accept) -> u64 {
        self.core.with(|state| {
            assert_eq!(state.tickets.remove(&accept.ticket), Some(self.vi), "no such ticket");
            state.vis.get_mut(self.vi).expect("a VI").next_attempt(self.vi)
        })
    }
}

fn question(side: &Side) -> Question {
    Question::new(&side.at, &side.remote(), &attributes(Reliability::Delivery), true)
}

#[test]
fn a_step_of_an_earlier_connect_leaves_a_later_one_alone() {
    let side = Side::new();
    side.listen(None);
    let (number, earlier) = (side.number(), side.step());
    side.core.disconnect(side.vi).expect("a VI");
    side.listen(Some(LIMIT));
    side.core.put_back(side.vi, earlier);
    assert!(side.with_vi(|vi| matches!(&vi.steps, Steps::Ready(peer) if peer.deadline.is_some())));
    let accept = side.invite(&mut question(&side));
    side.with_vi(|vi| vi.invitation = Invitation::Failed);
    assert!(!side.core.take_failed_invitation(side.vi, number));
    side.with_vi(|vi| vi.invitation = Invitation::None);
    let is_withdrawn = side.core.with(|state: &mut State<Nothing>| state.withdraw_ticket(side.vi, number));
    assert!(!is_withdrawn);
    assert_eq!(side.core.end_connect(side.vi, number, Error::Timeout), Err(Error::Timeout));
    side.use_ticket(&accept);
    assert!(side.with_vi(|vi| vi.state == ViState::ConnectPending));
}

#[test]
fn a_connect_that_another_thread_finds_connected_has_succeeded() {
    let side = Side::new();
    let (number, own) = side.core.begin_connect(side.vi).expect("idle");
    side.with_vi(|vi| (vi.state, vi.peer_attributes) = (ViState::Connected, Some(own)));
    let accept = Accept { ticket: 7, attributes: own, uri: side.core.uri().to_owned() };
    assert_eq!(side.core.follow(side.vi, number, &accept, None), Ok(()));
    assert_eq!(side.core.end_connect(side.vi, number, Error::Timeout), Ok(own));
    assert!(side.with_vi(|vi| vi.state == ViState::Connected));
}

/// Whichever call takes the event, and whichever thread asks how it ended.
#[test]
fn an_accept_that_fails_in_flight_ends_its_connect_as_not_reachable() {
    let side = Side::new();
    let mut clients = side.core.clients(&side.at).expect("a port");
    let mut client = Question::new(&side.at, &side.remote(), &attributes(Reliability::Delivery), false);
    let begun = Instant::now();
    let mut asking = loop {
        assert!(begun.elapsed() < LIMIT, "no client");
        assert!(client.poll().expect("it listens").is_none());
        if let Some(asking) = clients.next() {
            break asking;
        }
    };
    side.core.begin_accept(&mut asking, side.vi, LIMIT).expect("agreed");
    let context = side.with_vi(|vi| vi.next_attempt(side.vi));
    assert_eq!(side.core.peer_done(side.vi), Ok(None));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| side.core.peer_wait(side.vi));
        side.core.with(|state| state.not_opened(context));
        assert_eq!(waiting.join().expect("a thread"), Err(Error::NotReachable));
    });
    assert_eq!(side.core.peer_done(side.vi), Err(Error::NotReachable));
    side.core.disconnect(side.vi).expect("a VI");
    assert!(matches!(side.core.peer_done(side.vi), Err(Error::State(_))));
}

#[test]
fn a_peer_listens_again_once_the_holder_of_its_ticket_fails_to_connect() {
    let side = Side::new();
    side.listen(None);
    let mut stranger = question(&side);
    let context = side.use_ticket(&side.invite(&mut stranger));
    side.core.with(|state| state.not_opened(context));
    // The stranger stays on the line.
    let accept = side.invite(&mut question(&side));
    assert_eq!(side.core.with(|state| state.tickets.get(&accept.ticket).copied()), Some(side.vi));
}

#[test]
fn the_late_connection_of_an_earlier_client_is_not_that_of_the_next_one() {
    let side = Side::new();
    side.listen(None);
    let mut earlier = question(&side);
    let context = side.use_ticket(&side.invite(&mut earlier));
    for end in [Core::disconnect, |core: &Core<Nothing>, vi| {
        core.with(|state| state.abandon(vi, state.vis.get(vi).expect("a VI").connect, Error::Timeout));
        Ok(())
    }] {
        end(&side.core, side.vi).expect("a VI");
        side.listen(None);
        assert!(!side.with_vi(|vi| vi.is_current(context)));
    }
}

#[test]
fn a_connect_that_is_ended_as_it_begins_is_refused() {
    let side = Side::new();
    side.listen(None);
    let peer = side.step();
    side.core.disconnect(side.vi).expect("a VI");
    assert_eq!(side.core.begin_steps(side.vi, *peer, None), Err(DISCONNECTED));
    assert!(side.with_vi(|vi| matches!(vi.steps, Steps::None) && vi.state == ViState::Idle));
}

#[test]
fn waits_for_peers_and_clients_end_once_the_endpoint_has_failed() {
    let side = Side::new();
    side.listen(Some(2 * LIMIT));
    side.fail_endpoint();
    let begun = Instant::now();
    assert!(matches!(side.core.peer_wait(side.vi), Err(Error::Resource(_))));
    let elsewhere = Address::new(side.core.host(), &name());
    assert!(matches!(side.core.listen(&elsewhere, Some(2 * LIMIT)), Err(Error::Resource(_))));
    side.core.disconnect(side.vi).expect("a VI");
    assert!(matches!(side.core.request(side.vi, &elsewhere, &side.at, Some(2 * LIMIT)), Err(Error::Resource(_))));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn a_wait_for_a_client_ends_once_the_nic_is_closed() {
    let side = Side::new();
    assert!(matches!(side.core.close(), Err(Error::Resource(_))), "it has a VI");
    side.core.destroy_vi(side.vi).expect("an idle VI");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| side.core.listen(&side.at, Some(2 * LIMIT)).err());
        until_listening(ports(&side.at.discriminator)[0]);
        side.core.close().expect("no VI is left");
        assert!(matches!(waiting.join().expect("a thread"), Some(Error::Parameter(_))));
    });
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    assert!(matches!(side.core.close(), Err(Error::Parameter(_))));
    assert!(matches!(side.core.create_queue(1), Err(Error::Parameter(_))));
}

/// What a thread that has panicked had taken nobody else would go on with.
#[test]
fn a_panic_amid_a_step_ends_the_connect_for_all_who_wait() {
    let side = Side::new();
    side.listen(Some(2 * LIMIT));
    let (begun, number) = (Instant::now(), side.number());
    let _taken = side.step();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| side.core.peer_wait(side.vi));
        while !side.with_vi(|vi| matches!(vi.steps, Steps::Running { is_awaited: true })) {
            std::thread::yield_now();
        }
        let panics = scope.spawn(|| {
            let _turn = Turn { core: &side.core, number: side.vi, connect: number };
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panics.join().is_err());
        let ended = side.core.peer_done(side.vi);
        if ended.is_ok() {
            // Otherwise the other thread would wait for ever.
            side.core.disconnect(side.vi).expect("a VI");
        }
        assert!(matches!(ended, Err(Error::Resource(_))), "{ended:?}");
        assert!(matches!(waiting.join().expect("a thread"), Err(Error::Resource(_))));
    });
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn a_wait_for_a_change_sleeps_at_a_failed_endpoint_until_a_call_changes_something() {
    const PERIOD: Duration = Duration::from_secs(1);
    let side = Side::new();
    side.fail_endpoint();
    let switches = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("/proc");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("a count");
        line.trim().parse::<u64>().expect("a number")
    };
    let seen = side.core.changes();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let (before, busy) = (switches(), thread_time());
            side.core.wait_change(seen);
            (switches() - before, thread_time().saturating_sub(busy))
        });
        std::thread::sleep(PERIOD);
        assert!(!waiting.is_finished(), "nothing has changed");
        side.core.disconnect(side.vi).expect("a VI");
        let (switches, busy) = waiting.join().expect("a thread");
        assert!(busy < PERIOD / 10, "{busy:?}");
        // One that looks every 100 ms has 10.
        assert!(switches < 8, "it slept {switches} times in {PERIOD:?}");
    });
}
