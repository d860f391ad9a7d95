//! `tcp` between network name spaces: what its page promises of a cable that is pulled, of
//! firewalls, loss and small frames.

use crate::namespace::{Net, pair};
use crate::traffic::everything as exchange;
use cci::__binding::Contract;
use cci::{
    Attribute, Connect, Connection, ConnectionOption, Endpoint, EndpointOptions, Event, EventKind, Failure, Notify,
};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, World, device_of, open_with, readable};
use std::time::{Duration, Instant};

/// Send timeout of the connections that have one.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A peer that has vanished is noticed so much later.
const NOTICED: Duration = Duration::from_secs(1);
/// Without a timeout: after this silence, at one of the signs of life that are asked for every
/// 10 s.
const SILENCE: Duration = Duration::from_secs(30);
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// A loaded machine gets so much more.
const SLACK: Duration = Duration::from_secs(3);
/// A server that is just starting refuses so long.
const STARTING: Duration = Duration::from_secs(2);

/// An endpoint in here, on this interface, with more keys.
fn endpoint(net: &Net, keys: &[(&str, &str)]) -> Endpoint {
    net.enter(|| open_with(&device_of("tcp", keys), |it: &mut EndpointOptions| it.disconnect_events = true))
}

/// Both ends of the cable, and an endpoint at each. The test runs at the first, which dials: a
/// stream belongs to the name space of the thread that dials.
fn at_the_first_of_two(mtu: u32, test: impl FnOnce([&Net; 2], [&Endpoint; 2]) + Send) {
    let nets = pair(mtu);
    let ends = [endpoint(&nets[0], &[("interface", "v0")]), endpoint(&nets[1], &[("interface", "v1")])];
    nets[0].enter(|| test(nets.each_ref(), ends.each_ref()));
}

/// What comes to a host is dropped, or rejected by these words.
fn block(net: &Net, verdict: &str) {
    net.rules(&format!(
        "add table ip b; add chain ip b in {{ type filter hook input priority 0; }}; \
         add rule ip b in iif != lo ip protocol tcp counter {verdict}"
    ));
}

/// A connection over which a message has gone.
fn connected(world: &World<'_>, attribute: Attribute) -> (Connection, Connection) {
    let (there, back) = world.connect(0, 1, attribute);
    world.endpoint(0).send(there, b"hello", Notify::OnFailure(0)).expect("a send");
    assert_eq!(world.message(1), b"hello");
    // So that nothing is under way when the cable is pulled.
    world.endpoint(1).send(back, b"hello", 9).expect("a send");
    assert_eq!(world.message(0), b"hello");
    assert_eq!(world.sent(1), 9);
    (there, back)
}

/// Waits for the next event of the first endpoint on its handle, as a program that sleeps does.
fn sleep_for<'e>(world: &World<'e>, limit: Duration) -> Event<'e> {
    let endpoint = world.endpoint(0);
    let (handle, begun) = (endpoint.handle().expect("a handle"), Instant::now());
    loop {
        if let Some(event) = endpoint.get_event().expect("an endpoint") {
            return event;
        }
        let left = limit.saturating_sub(begun.elapsed());
        assert!(readable(&handle, left), "no event within {limit:?}");
    }
}

/// Messages and RMA of every byte, both ways, where frames are of 1,280 bytes at most.
pub(crate) fn small_frames() {
    at_the_first_of_two(1280, |_, ends| {
        exchange(ends, 500, 4 << 20, 2);
    });
}

/// The same where one of twenty segments is lost, each way.
pub(crate) fn loss() {
    at_the_first_of_two(1500, |nets, ends| {
        for net in nets {
            net.rules(
                "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
                 add rule ip t in ip protocol tcp numgen random mod 100 < 5 counter drop",
            );
        }
        exchange(ends, 300, 1 << 20, 1);
        for net in nets {
            assert!(net.counted("t", "in") > 0, "nothing was lost");
        }
    });
}

/// A cable is pulled while a message, a write and a read are open: each ends by the send timeout,
/// and with the first the connection.
pub(crate) fn pulled_with_a_timeout() {
    at_the_first_of_two(1500, |nets, ends| {
        let world = World::new(ends);
        let (there, _) = connected(&world, Attribute::ReliableOrdered);
        ends[0].set_option(there, ConnectionOption::SendTimeout, TIMEOUT).expect("an option");
        let memory = [Origin::Program.allocate(1 << 20), Origin::Program.allocate(1 << 20)];
        let local = ends[0].register_memory(memory[0].memory(), cci::Rights::NONE).expect("a registration");
        let remote = ends[1].register_memory(memory[1].memory(), cci::Rights::READ_WRITE).expect("a registration");
        nets.iter().for_each(|net| block(net, "drop"));
        let begun = Instant::now();
        ends[0].send(there, b"late", 1).expect("a send");
        ends[0].write(there, &cci::Rma::new(&local, &remote, 1 << 20), 2).expect("a write");
        ends[0].read(there, &cci::Rma::new(&local, &remote, 1 << 20), 3).expect("a read");
        let mut contexts: Vec<u64> = (0..3)
            .map(|_| {
                let event = sleep_for(&world, TIMEOUT + NOTICED + SLACK);
                assert_eq!((event.kind(), event.outcome()), (EventKind::Send, Err(Failure::TimedOut)));
                event.context()
            })
            .collect();
        contexts.sort_unstable();
        assert_eq!(contexts, [1, 2, 3]);
        assert_eq!(sleep_for(&world, SLACK).kind(), EventKind::Disconnect);
        let took = begun.elapsed();
        assert!(took >= TIMEOUT && took < TIMEOUT + NOTICED + SLACK, "{took:?}");
        say!("noticed after {took:?}");
    });
}

/// Without a send timeout 30 s without an acknowledgement end the lane, and a peer that only waits
/// for messages is not asked. One that has its cable back in time goes on as if nothing had been.
pub(crate) fn pulled_without_a_timeout() {
    at_the_first_of_two(1500, |nets, ends| {
        let world = World::new(ends);
        let (there, _) = connected(&world, Attribute::ReliableUnordered);
        let cut = |on: bool| {
            for net in nets {
                if on {
                    block(net, "drop");
                } else {
                    net.rules("delete table ip b");
                }
            }
        };
        cut(true);
        ends[0].send(there, b"in time", 1).expect("a send");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            world.step();
            std::thread::sleep(Duration::from_millis(1));
        }
        cut(false);
        assert_eq!((world.message(1), world.sent(0)), (b"in time".to_vec(), 1));
        cut(true);
        let begun = Instant::now();
        ends[0].send(there, b"late", 2).expect("a send");
        let longest = SILENCE + ASKED_EVERY + ASKED_EVERY / 4;
        let event = sleep_for(&world, longest + SLACK);
        let expected = (EventKind::Send, 2, Err(Failure::Disconnected));
        assert_eq!((event.kind(), event.context(), event.outcome()), expected);
        assert_eq!(sleep_for(&world, SLACK).kind(), EventKind::Disconnect);
        let took = begun.elapsed();
        // The last sign of life may be some milliseconds older than the send.
        assert!(took > SILENCE - NOTICED && took < longest + SLACK, "{took:?}");
        assert!(!world.poll(1), "the other side has nothing open, and is told nothing");
        say!("noticed after {took:?}");
    });
}

/// A firewall answers with RST: who sends is told at once, and the other side when it sends.
pub(crate) fn reset() {
    at_the_first_of_two(1500, |nets, ends| {
        let world = World::new(ends);
        let (there, back) = connected(&world, Attribute::ReliableOrdered);
        block(nets[1], "reject with tcp reset");
        let begun = Instant::now();
        ends[0].send(there, b"late", 1).expect("nobody has told yet");
        let event = sleep_for(&world, LIMIT);
        assert_eq!((event.context(), event.outcome()), (1, Err(Failure::Disconnected)));
        let event = sleep_for(&world, LIMIT);
        assert_eq!((event.kind(), event.connection()), (EventKind::Disconnect, Some(there)));
        let took = begun.elapsed();
        assert!(took < NOTICED + SLACK, "{took:?}");
        nets[1].rules("delete table ip b");
        // The stream is gone there: what this side sends is answered with RST.
        ends[1].send(back, b"to nobody", 2).expect("nobody has told yet");
        let event = world.next(1, EventKind::Send);
        assert_eq!((event.context(), event.outcome()), (2, Err(Failure::Disconnected)));
        assert_eq!(world.next(1, EventKind::Disconnect).connection(), Some(back));
        // Both endpoints serve on.
        connected(&world, Attribute::ReliableOrdered);
    });
}

/// How the connect of the first endpoint to this URI ends: why, and after what time.
fn failed_connect(end: &Endpoint, uri: &str, timeout: Duration) -> (Failure, String, Duration) {
    let begun = Instant::now();
    end.connect(&Connect::to(uri).context(7).timeout(timeout)).expect("a connect");
    let world = World::new([end]);
    let event = sleep_for(&world, timeout + SLACK);
    assert_eq!((event.kind(), event.context()), (EventKind::Connect, 7));
    let failure = event.outcome().expect_err("nobody is there");
    (failure, event.reason().expect("a reason"), begun.elapsed())
}

/// Where nobody listens a connect is refused, after the time that a server gets to start; where a
/// firewall drops, its time ends. The sentences tell one from the other.
pub(crate) fn refused_or_dropped() {
    at_the_first_of_two(1500, |nets, ends| {
        let (failure, reason, took) = failed_connect(ends[0], "tcp://10.0.0.2:7", LIMIT);
        assert_eq!(failure, Failure::Refused);
        assert!(reason.contains("nobody listens at tcp://10.0.0.2:7"), "{reason}");
        assert!(took >= STARTING && took < STARTING + Duration::from_secs(1) + SLACK, "{took:?}");
        block(nets[1], "reject with tcp reset");
        let (failure, reason, _) = failed_connect(ends[0], ends[1].uri(), LIMIT);
        assert!(failure == Failure::Refused && reason.contains("nobody listens"), "{failure:?}: {reason}");
        nets[1].rules("delete table ip b");
        block(nets[1], "drop");
        let (failure, reason, took) = failed_connect(ends[0], ends[1].uri(), TIMEOUT);
        assert_eq!(failure, Failure::TimedOut);
        assert!(reason.contains("does not answer; is a firewall between?"), "{reason}");
        assert!(took >= TIMEOUT && took < TIMEOUT + NOTICED + SLACK, "{took:?}");
        assert!(nets[1].counted("b", "in") > 0, "nothing was dropped");
        nets[1].rules("delete table ip b");
        // A server that starts while a client dials is found.
        let late = std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let world = World::new([ends[0]]);
                ends[0].connect(&Connect::to("tcp://10.0.0.2:6000").context(1).timeout(LIMIT)).expect("a connect");
                world.next(0, EventKind::Connect).outcome()
            });
            std::thread::sleep(Duration::from_millis(500));
            let server = endpoint(nets[1], &[("interface", "v1"), ("port", "6000")]);
            let world = World::new([&server]);
            world.next(0, EventKind::ConnectRequest).into_request().expect("a request").accept(0).expect("an accept");
            assert_eq!(world.next(0, EventKind::Accept).outcome(), Ok(()));
            while !client.is_finished() {
                world.step();
            }
            client.join().expect("the client")
        });
        assert_eq!(late, Ok(()));
    });
}

/// A server behind a firewall that lets nothing pass but its port, and a client behind one that
/// lets only streams pass which it has begun.
pub(crate) fn one_port() {
    let nets = pair(1500);
    nets[1].rules(
        "add table inet wall; \
         add chain inet wall to { type filter hook input priority 0; policy drop; }; \
         add chain inet wall from { type filter hook output priority 0; policy drop; }; \
         add rule inet wall to tcp dport 5000 accept; \
         add rule inet wall from tcp sport 5000 accept",
    );
    nets[0].rules(
        "add table inet wall; \
         add chain inet wall to { type filter hook input priority 0; policy drop; }; \
         add rule inet wall to ct state established,related accept",
    );
    nets[0].enter(|| {
        let client = endpoint(&nets[0], &[("interface", "v0")]);
        for round in 0..2 {
            // There again at once: the port's last streams are in TIME_WAIT.
            let server = endpoint(&nets[1], &[("interface", "v1"), ("port", "5000")]);
            assert_eq!(server.uri(), "tcp://10.0.0.2:5000", "round {round}");
            exchange([&client, &server], 200, 1 << 20, 1);
        }
    });
}
