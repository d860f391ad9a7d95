//! The OS handle: readable means "call get_event".

use crate::memory::Origin;
use crate::world::{LIMIT, World, drain, open, open_with, pattern, readable};
use cci::__binding::{Contract, Flags, Threading, set_threading};
use cci::{
    Attribute, Connect, Connection, ConnectionOption, Device, Endpoint, Event, EventKind, Failure, Notify, Rights, Rma,
    SendError,
};
use rustix::event::epoll;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Polls the handle, then asks for exactly one event; `None` when the readiness was spurious.
///
/// # Panics
///
/// The handle stays silent.
fn one_event<'e>(endpoint: &'e Endpoint, handle: &OwnedFd) -> Option<Event<'e>> {
    assert!(readable(handle, LIMIT), "the handle stays silent: an event was lost, or is not told");
    endpoint.get_event().expect("usable")
}

/// The next event of this kind, by polling the handle and one get_event at a time.
pub(super) fn wait_for<'e>(endpoint: &'e Endpoint, handle: &OwnedFd, kind: EventKind) -> Event<'e> {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "no event {kind:?}, only spurious readiness");
        match one_event(endpoint, handle) {
            Some(event) if event.kind() == kind => return event,
            _ => {}
        }
    }
}

/// Makes calls until the other side has ended: the acknowledgement of the last message may be lost,
/// and in virtual time nobody else answers when that comes again.
fn poll_until(endpoint: &Endpoint, is_over: &AtomicBool) {
    let begun = Instant::now();
    while !is_over.load(Ordering::Acquire) && begun.elapsed() < LIMIT {
        drop(endpoint.get_event().expect("usable"));
    }
}

/// Sends numbered messages with pauses of all sizes, from none to longer than any spinning. Then it
/// makes calls until all have left: what finds no room at its receiver is sent by a later call.
fn send_with_pauses(endpoint: &Endpoint, connection: Connection, count: u64) {
    let mut random = fastrand::Rng::with_seed(count);
    for number in 0..count {
        while let Err(error) = endpoint.send(connection, &number.to_ne_bytes(), Notify::OnFailure(number)) {
            assert_eq!(error, SendError::NoBuffers);
            drop(endpoint.get_event().expect("usable"));
        }
        match random.u32(0..20) {
            0 => std::thread::sleep(Duration::from_micros(random.u64(0..2000))),
            1..6 => (0..random.u32(0..3000)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
    let begun = Instant::now();
    while endpoint.report(connection).expect("open").open > 0 && begun.elapsed() < LIMIT {
        drain(endpoint);
    }
}

/// Wait, one get_event, wait: no event is ever lost, whatever the sender's pauses.
pub fn one_event_per_wake(device: &Device) {
    const MESSAGES: u64 = 10_000;
    let (a, b) = (open(device), open(device));
    let handle = b.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send_with_pauses(&a, connection, MESSAGES));
        for number in 0..MESSAGES {
            let event = wait_for(&b, &handle, EventKind::Recv);
            assert_eq!(event.received().expect("a message").to_vec(), number.to_ne_bytes());
        }
        sender.join().expect("the sender");
    });
}

/// A program that makes a sleeper for each sleep misses no message, nor one that came before the
/// sleeper was made.
pub fn sleeper_for_each_sleep(device: &Device) {
    const MESSAGES: u64 = 3_000;
    let (a, b) = (open(device), open(device));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let next = || loop {
        match b.get_event().expect("usable") {
            Some(event) if event.kind() == EventKind::Recv => break event,
            Some(_) => {}
            None => assert!(readable(b.sleeper().expect("usable"), LIMIT), "the sleeper sleeps on: a message was lost"),
        }
    };
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send_with_pauses(&a, connection, MESSAGES));
        for number in 0..MESSAGES {
            assert_eq!(next().received().expect("a message").to_vec(), number.to_ne_bytes());
        }
        sender.join().expect("the sender");
    });
}

/// Two programs that sleep on their handles and answer each other at once: no answer is lost while
/// that keeps them from sleeping, and when it is over both handles become quiet, and wake again.
pub fn answers_at_once(device: &Device) {
    const ROUNDS: u64 = 2000;
    let (a, b) = (open(device), open(device));
    let handles = [a.handle().expect("a handle"), b.handle().expect("a handle")];
    let (to, back) = World::new([&a, &b]).connect(0, 1, RO);
    let send = |endpoint: &Endpoint, connection, number: u64| {
        endpoint.send(connection, &number.to_ne_bytes(), Notify::OnFailure(number)).expect("a send");
    };
    let take = |endpoint: &Endpoint, handle, number: u64| {
        let event = wait_for(endpoint, handle, EventKind::Recv);
        assert_eq!(event.received().expect("a message").to_vec(), number.to_ne_bytes());
    };
    for _ in 0..3 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..ROUNDS {
                    take(&b, &handles[1], number);
                    send(&b, back, number);
                }
                quiet(&b, &handles[1]);
            });
            for number in 0..ROUNDS {
                send(&a, to, number);
                take(&a, &handles[0], number);
            }
            quiet(&a, &handles[0]);
        });
    }
}

/// Waits as a program that sleeps does until the handle lets it.
fn quiet(endpoint: &Endpoint, handle: &OwnedFd) {
    let begun = Instant::now();
    while readable(handle, Duration::from_millis(20)) {
        assert!(begun.elapsed() < LIMIT, "the handle never becomes quiet");
        assert!(endpoint.get_event().expect("usable").is_none(), "nothing more was sent");
    }
}

/// The handle stays readable while events remain.
pub fn stays_readable(device: &Device) {
    let (a, b) = (open(device), open(device));
    let handle = b.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    for number in 0..50u64 {
        a.send(connection, &number.to_ne_bytes(), Notify::OnFailure(0)).expect("a send");
    }
    let mut got = 0u64;
    let mut empty = 0;
    while got < 50 {
        assert!(readable(&handle, LIMIT), "not readable with {} messages left", 50 - got);
        match b.get_event().expect("usable") {
            Some(event) => {
                assert_eq!(event.received().expect("a message").to_vec(), got.to_ne_bytes());
                got += 1;
            }
            None => empty += 1,
        }
        assert!(empty < 100_000, "readable for ever without an event");
    }
}

/// A program that holds the handle and never polls it gets everything by get_event alone.
pub fn held_without_polling(device: &Device) {
    let (a, b) = (open(device), open(device));
    let _handles = (a.handle().expect("a handle"), b.handle().expect("a handle"));
    let (world, connection, at_b) = World::joined([&a, &b], RO);
    for number in 0..3000u64 {
        a.send(connection, &number.to_ne_bytes(), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(1), number.to_ne_bytes());
        b.send(at_b, &pattern(number, 200), number).expect("a send");
        assert_eq!(world.message(0), pattern(number, 200));
        assert_eq!(world.sent(1), number);
    }
}

/// Some empty calls after the last event the handle is quiet, and one more event makes it readable.
pub fn becomes_quiet(device: &Device) {
    let (a, b) = (open(device), open(device));
    let handle = b.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    for round in 0..20u64 {
        let begun = Instant::now();
        while readable(&handle, Duration::ZERO) {
            assert!(begun.elapsed() < LIMIT, "readable for ever, round {round}");
            assert!(b.get_event().expect("usable").is_none(), "nobody sent");
            // Virtual time leaps when all endpoints of a network poll, and creeps when one may be
            // computing.
            assert!(a.get_event().expect("usable").is_none(), "a silent message has no event");
        }
        a.send(connection, &round.to_ne_bytes(), Notify::OnFailure(0)).expect("a send");
        let event = wait_for(&b, &handle, EventKind::Recv);
        assert_eq!(event.received().expect("a message").to_vec(), round.to_ne_bytes());
    }
}

/// Connecting, accepting and disconnecting work by waiting alone, at both sides.
pub fn connect_wakes(device: &Device) {
    let (a, b) = (open(device), open(device));
    let b = &b;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let handle = b.handle().expect("a handle");
            for round in 0..50u64 {
                let request = wait_for(b, &handle, EventKind::ConnectRequest);
                request.into_request().expect("a request").accept(round).expect("an accept");
                let accepted = wait_for(b, &handle, EventKind::Accept);
                let message = wait_for(b, &handle, EventKind::Recv);
                assert_eq!(message.connection(), accepted.connection());
            }
        });
        let handle = a.handle().expect("a handle");
        for round in 0..50u64 {
            a.connect(&Connect::to(b.uri()).context(round).timeout(LIMIT)).expect("a connect");
            let connected = wait_for(&a, &handle, EventKind::Connect);
            assert_eq!((connected.outcome(), connected.context()), (Ok(()), round));
            let connection = connected.connection().expect("one");
            a.send(connection, b"hello", 0).expect("a send");
            assert_eq!(wait_for(&a, &handle, EventKind::Send).outcome(), Ok(()));
        }
    });
}

/// Timeouts make the handle readable: of a connect, of a send, of a keepalive.
pub fn timeouts_wake(device: &Device) {
    let (a, deaf) = (open(device), open(device));
    let handle = a.handle().expect("a handle");
    a.connect(&Connect::to(deaf.uri()).context(1).timeout(Duration::from_millis(60))).expect("a connect");
    assert_eq!(wait_for(&a, &handle, EventKind::Connect).outcome(), Err(Failure::TimedOut));
    let deaf = open(device);
    let (connection, _) = World::new([&a, &deaf]).connect(0, 1, RO);
    a.set_option(connection, ConnectionOption::KeepaliveTimeout, Duration::from_millis(60)).expect("an option");
    assert_eq!(wait_for(&a, &handle, EventKind::KeepaliveTimedOut).connection(), Some(connection));
    a.set_option(connection, ConnectionOption::SendTimeout, Duration::from_millis(60)).expect("an option");
    let mut posted = 0;
    while posted < 2000 && a.send(connection, &[1; 100], 7).is_ok() {
        posted += 1;
    }
    let failed = (0..posted).filter(|_| wait_for(&a, &handle, EventKind::Send).outcome().is_err()).count();
    assert!(failed > 0, "{posted} sends to a peer that never polls all succeeded");
}

/// A sender without buffers is woken when there is room again.
pub fn room_wakes(device: &Device) {
    const MESSAGES: u64 = 20_000;
    let (a, b) = (open(device), open(device));
    let handle = a.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    a.set_send_buffers(64).expect("an option");
    std::thread::scope(|scope| {
        let b = &b;
        scope.spawn(move || {
            let begun = Instant::now();
            let mut got = 0u64;
            while got < MESSAGES && begun.elapsed() < LIMIT {
                if let Some(event) = b.get_event().expect("usable") {
                    assert_eq!(event.received().expect("a message").to_vec(), pattern(got, 100));
                    got += 1;
                    if got.is_multiple_of(1000) {
                        std::thread::sleep(Duration::from_millis(3));
                    }
                }
            }
            assert_eq!(got, MESSAGES);
        });
        let (mut sent, mut completed) = (0, 0);
        while completed < MESSAGES {
            while sent < MESSAGES && a.send(connection, &pattern(sent, 100), sent).is_ok() {
                sent += 1;
            }
            let event = wait_for(&a, &handle, EventKind::Send);
            assert_eq!((event.outcome(), event.context()), (Ok(()), completed));
            completed += 1;
        }
    });
}

/// A sender that is refused for want of buffers, takes what events there are and sleeps is woken
/// when it can send again: no event tells it, because its messages are silent.
pub fn refused_send_wakes(device: &Device) {
    const MESSAGES: u64 = 3000;
    let (a, b) = (open(device), open(device));
    let handles = (a.handle().expect("a handle"), b.handle().expect("a handle"));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    a.set_send_buffers(16).expect("an option");
    let (is_refused, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A receiver that keeps up leaves nothing to be refused.
            let begun = Instant::now();
            while !is_refused.load(Ordering::Acquire) && begun.elapsed() < LIMIT {
                std::thread::yield_now();
            }
            for number in 0..MESSAGES {
                let event = wait_for(&b, &handles.1, EventKind::Recv);
                assert_eq!(event.received().expect("a message").to_vec(), pattern(number, 100));
            }
            poll_until(&b, &is_over);
        });
        let mut refused = 0;
        for number in 0..MESSAGES {
            while let Err(error) = a.send(connection, &pattern(number, 100), Notify::OnFailure(number)) {
                assert_eq!(error, SendError::NoBuffers);
                refused += 1;
                is_refused.store(true, Ordering::Release);
                assert_eq!(drain(&a), 0, "a silent message has no event");
                if refused % 16 == 0 {
                    // Long enough for the transport to go on by itself, if it does.
                    std::thread::sleep(Duration::from_millis(3));
                }
                assert!(readable(&handles.0, LIMIT), "nobody tells that message {number} can be sent");
            }
        }
        assert!(refused > 0, "16 buffers sufficed for {MESSAGES} messages");
        // What waits leaves in calls of this side.
        while a.report(connection).expect("open").open > 0 {
            assert!(readable(&handles.0, LIMIT), "nobody tells that what waits can leave");
            drain(&a);
        }
        is_over.store(true, Ordering::Release);
    });
}

/// The call that finds room for a refused sender, and no event, leaves the handle readable; a call
/// after that lets it be quiet.
pub fn room_is_told(device: &Device) {
    // For one thread: no other call than those here finds the room.
    let (a, b) = (open_with(device, |options| set_threading(options, Threading::One)), open(device));
    let handle = a.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    a.set_send_buffers(4).expect("an option");
    let open_operations = || a.report(connection).expect("open").open;
    for round in 0..10 {
        quiet(&a, &handle);
        while a.send(connection, b"silent", Notify::OnFailure(0)).is_ok() {}
        let (refused_with, begun) = (open_operations(), Instant::now());
        while open_operations() == refused_with {
            assert!(begun.elapsed() < LIMIT, "there is never room, round {round}");
            drain(&b);
            assert!(a.get_event().expect("usable").is_none(), "a silent message has no event");
        }
        assert!(readable(&handle, Duration::ZERO), "nobody tells of the room, round {round}");
        while open_operations() > 0 {
            assert!(begun.elapsed() < LIMIT, "what waits never leaves, round {round}");
            drain(&b);
            drain(&a);
        }
    }
}

/// The same where the program itself holds the buffers: the return of one event wakes whoever
/// sleeps, and only once.
pub fn returned_event_wakes_the_refused(device: &Device) {
    let (a, b) = (open(device), open(device));
    let handle = a.handle().expect("a handle");
    let (world, connection, _) = World::joined([&a, &b], RO);
    a.set_send_buffers(4).expect("an option");
    for number in 0..4 {
        a.send(connection, b"held", number).expect("a send");
    }
    let mut held: Vec<_> = (0..4).map(|_| world.next(0, EventKind::Send)).collect();
    for round in 0..3 {
        assert_eq!(a.send(connection, b"more", 9), Err(SendError::NoBuffers));
        quiet(&a, &handle);
        let returned = held.pop();
        std::thread::scope(|scope| scope.spawn(|| drop(returned)).join().expect("returned"));
        assert!(readable(&handle, LIMIT), "nobody tells of the buffer that was returned, round {round}");
        quiet(&a, &handle);
        a.send(connection, b"more", 9).expect("the buffer that was returned");
        held.insert(0, world.next(0, EventKind::Send));
    }
}

/// The same while the receiver, which sleeps too, keeps what it gets.
pub fn room_wakes_though_events_are_held(device: &Device) {
    const MESSAGES: u64 = 200;
    let (a, b) = (open(device), open(device));
    let handles = (a.handle().expect("a handle"), b.handle().expect("a handle"));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let held: Vec<_> = (0..MESSAGES).map(|_| wait_for(&b, &handles.1, EventKind::Recv)).collect();
            for (number, event) in (0..).zip(&held) {
                assert_eq!(event.received().expect("a message").to_vec(), pattern(number, 100));
            }
            poll_until(&b, &is_over);
        });
        for number in 0..MESSAGES {
            a.send(connection, &pattern(number, 100), number).expect("a send");
        }
        for number in 0..MESSAGES {
            let event = wait_for(&a, &handles.0, EventKind::Send);
            assert_eq!((event.outcome(), event.context()), (Ok(()), number));
        }
        is_over.store(true, Ordering::Release);
    });
}

/// `epoll` understands the handle, level-triggered.
pub fn epoll(device: &Device) {
    let (a, b) = (open(device), open(device));
    let handle = b.handle().expect("a handle");
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
    epoll::add(&set, &handle, epoll::EventData::new_u64(5), epoll::EventFlags::IN).expect("a pollable handle");
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send_with_pauses(&a, connection, 1000));
        let mut got = 0u64;
        while got < 1000 {
            let mut ready = Vec::with_capacity(4);
            let limit = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut ready), Some(&limit)).expect("epoll");
            assert_eq!(ready.len(), 1, "an event was lost after {got}");
            if let Some(event) = b.get_event().expect("usable") {
                assert_eq!(event.received().expect("a message").to_vec(), got.to_ne_bytes());
                got += 1;
            }
        }
        sender.join().expect("the sender");
    });
}

/// The completion of a long RMA, and its message at the target, are told by the handle.
pub fn rma_wakes(device: &Device) {
    const LEN: usize = 6 << 20;
    let (a, b) = (open(device), open(device));
    let handles = (a.handle().expect("a handle"), b.handle().expect("a handle"));
    let (connection, _) = World::new([&a, &b]).connect(0, 1, RO);
    let (source, target) = (Origin::Program.allocate(LEN), Origin::Program.allocate(LEN));
    source.write(0, &pattern(4, LEN));
    let local = a.register_memory(source.memory(), Rights::NONE).expect("a registration");
    let remote = b.register_memory(target.memory(), Rights::WRITE).expect("a registration");
    std::thread::scope(|scope| {
        scope
            .spawn(|| assert_eq!(wait_for(&b, &handles.1, EventKind::Recv).received().expect("one").to_vec(), b"done"));
        let message = Some(&b"done"[..]);
        let rma = Rma::new(&local, &remote, LEN as u64).message(message);
        a.rma(connection, &rma, 8, Flags::WRITE).expect("a write");
        let event = wait_for(&a, &handles.0, EventKind::Send);
        assert_eq!((event.outcome(), event.context()), (Ok(()), 8));
    });
    assert_eq!(target.to_vec(0, LEN), pattern(4, LEN));
}
