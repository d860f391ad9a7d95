//! Programs that do nothing but wait for the handle and then take events until there is none: each
//! is woken for every word of a peer that it waits for.

use crate::memory::Origin;
use crate::{LIMIT, open, open_with, pattern, readable};
use cci::__binding::{Contract, Flags};
use cci::{
    Connect, Connection, Device, Endpoint, EndpointOptions, Event, EventKind, Notify, Rights, Rma, RmaHandle, SendError,
};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// A program that sleeps whenever it has nothing to do.
pub struct Sleeper<'e> {
    /// Its endpoint.
    pub endpoint: &'e Endpoint,
    handle: OwnedFd,
    /// Events that were taken and not looked at.
    events: VecDeque<Event<'e>>,
    /// Takes one event and looks at the handle again.
    takes_one: bool,
}

impl<'e> Sleeper<'e> {
    /// A program with this endpoint.
    ///
    /// # Panics
    ///
    /// No handle can be had.
    pub fn new(endpoint: &'e Endpoint) -> Self {
        let handle = endpoint.handle().expect("a handle");
        Self { endpoint, handle, events: VecDeque::new(), takes_one: false }
    }

    /// The next event. Sleeps until the handle is readable, then takes all that there are.
    ///
    /// # Panics
    ///
    /// Nothing wakes it.
    pub fn next(&mut self, what: &str) -> Event<'e> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            assert!(readable(&self.handle, LIMIT), "nothing wakes the sleeper that waits for {what}");
            while let Ok(Some(event)) = self.endpoint.get_event() {
                self.events.push_back(event);
                if self.takes_one {
                    break;
                }
            }
        }
    }

    /// The next event, which is of this kind.
    ///
    /// # Panics
    ///
    /// It is not, or nothing wakes the sleeper.
    pub fn next_of(&mut self, kind: EventKind) -> Event<'e> {
        let event = self.next(&format!("{kind:?}"));
        assert_eq!(event.kind(), kind);
        event
    }

    /// Connects, asleep.
    ///
    /// # Panics
    ///
    /// It fails.
    pub fn connect(&mut self, uri: &str) -> Connection {
        self.endpoint.connect(&Connect::to(uri)).expect("a connect");
        self.next_of(EventKind::Connect).connection().expect("accepted")
    }

    /// Accepts the next request, asleep.
    ///
    /// # Panics
    ///
    /// None comes.
    pub fn accept(&mut self) -> Connection {
        let request = self.next_of(EventKind::ConnectRequest);
        request.into_request().expect("a request").accept(0).expect("an accept");
        self.next_of(EventKind::Accept).connection().expect("accepted")
    }
}

/// Lets two sleepers with a connection run in two threads.
///
/// # Panics
///
/// One of them does.
pub fn both(
    device: &Device,
    change: impl Fn(&mut EndpointOptions),
    client: impl FnOnce(&mut Sleeper<'_>, Connection) + Send,
    server: impl FnOnce(&mut Sleeper<'_>, Connection),
) {
    let (a, b) = (open_with(device, &change), open_with(device, &change));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sleeper = Sleeper::new(&a);
            let connection = sleeper.connect(b.uri());
            client(&mut sleeper, connection);
        });
        let mut sleeper = Sleeper::new(&b);
        let connection = sleeper.accept();
        server(&mut sleeper, connection);
    });
}

/// Connects with a payload. Over `sm` that waits for a slot that the server grants. The server
/// granted the first slots after its WELCOME, and woke nobody: clients slept on for ever.
///
/// # Panics
///
/// A sleeper is not woken.
pub fn connects_with_a_payload_wake_clients_that_sleep(device: &Device) {
    const ROUNDS: u64 = 100;
    let server = open(device);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sleeper = Sleeper::new(&server);
            let mut asked = 0;
            while asked < ROUNDS {
                let event = sleeper.next("requests");
                if event.kind() == EventKind::ConnectRequest {
                    assert_eq!(event.request().expect("a request").payload(), b"hello");
                    event.into_request().expect("a request").accept(0).expect("an accept");
                    asked += 1;
                }
            }
        });
        for round in 0..ROUNDS {
            let client = open(device);
            let mut sleeper = Sleeper::new(&client);
            client.connect(&Connect::to(server.uri()).payload(b"hello").context(round)).expect("a connect");
            let event = sleeper.next_of(EventKind::Connect);
            assert_eq!((event.outcome(), event.context()), (Ok(()), round));
        }
    });
}

/// Many connects at once: the CONNECT frames wait for entries of the ring and for slots, and so do
/// the answers.
///
/// # Panics
///
/// A sleeper is not woken.
pub fn requests_and_answers_wake_sleepers_when_there_is_room(device: &Device) {
    const COUNT: usize = 1_500;
    let server = open_with(device, |options| {
        options.recv_buffers = 64;
        options.disconnect_events = true;
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sleeper = Sleeper::new(&server);
            let (mut asked, mut ended) = (0, 0);
            while ended < COUNT / 2 {
                let event = sleeper.next("requests");
                match event {
                    Event::Request(request) => {
                        if asked % 2 == 0 { request.accept(0) } else { request.reject() }.expect("an answer");
                        asked += 1;
                    }
                    Event::Disconnected(_) => ended += 1,
                    _ => {}
                }
            }
        });
        let client = open(device);
        let mut sleeper = Sleeper::new(&client);
        let (mut asked, mut answered, mut accepted) = (0, 0, 0);
        while answered < COUNT {
            while asked < COUNT && client.connect(&Connect::to(server.uri()).payload(&pattern(7, 700))).is_ok() {
                asked += 1;
            }
            let event = sleeper.next_of(EventKind::Connect);
            answered += 1;
            accepted += usize::from(event.outcome().is_ok());
        }
        assert_eq!(accepted, COUNT / 2);
    });
}

/// Sends and receives `count` messages of `len` bytes at the same time, as far as there is room.
fn exchange(sleeper: &mut Sleeper<'_>, connection: Connection, count: u64, len: usize) {
    let (mut sent, mut completed, mut received) = (0, 0, 0);
    while completed < count || received < count {
        while sent < count {
            match sleeper.endpoint.send(connection, &pattern(sent, len), sent) {
                Ok(()) => sent += 1,
                Err(SendError::NoBuffers) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let event = sleeper.next("messages, and room for them");
        match event.kind() {
            EventKind::Send => {
                assert_eq!((event.outcome(), event.context()), (Ok(()), completed));
                completed += 1;
            }
            EventKind::Recv => {
                assert!(event.received().expect("a message").to_vec() == pattern(received, len), "{received}");
                received += 1;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Entries of the ring, payload slots, receive slots, and the fewest that there can be.
///
/// # Panics
///
/// A sleeper is not woken.
pub fn room_for_messages_wakes_senders_that_sleep(device: &Device) {
    for (count, len, buffers) in [(4_000, 8, 8192), (3_000, 900, 8192), (1_500, 8, 4), (1_500, 4_000, 4)] {
        let change = |options: &mut EndpointOptions| {
            (options.recv_buffers, options.send_buffers) = (buffers, buffers.max(600));
        };
        let run = |sleeper: &mut Sleeper<'_>, connection: Connection| exchange(sleeper, connection, count, len);
        both(device, change, run, run);
    }
}

/// RMA with the target's help: each operation waits for the target's answer, a fenced one for those
/// before it; each piece for a slot, where `sm` relays it.
///
/// # Panics
///
/// A sleeper is not woken.
pub fn rma_wakes_initiator_and_target_that_sleep(device: &Device) {
    const LEN: usize = 200_000;
    const ROUNDS: u64 = 40;
    let target = Origin::Program.allocate(LEN);
    let client = |sleeper: &mut Sleeper<'_>, connection: Connection| {
        let source = Origin::Program.allocate(LEN);
        let local = sleeper.endpoint.register_memory(source.memory(), Rights::NONE).expect("a registration");
        let remote = handle_in(&sleeper.next_of(EventKind::Recv));
        for round in 0..ROUNDS {
            source.write(0, &pattern(round, LEN));
            for (way, len) in [(Flags::WRITE, LEN), (Flags::READ | Flags::FENCE, LEN / 2)] {
                let rma = Rma::new(&local, &remote, len as u64).message(&b"over"[..]);
                sleeper.endpoint.rma(connection, &rma, round, way).expect("an RMA");
            }
            for _ in 0..2 {
                assert_eq!(sleeper.next_of(EventKind::Send).outcome(), Ok(()));
            }
        }
    };
    let server = |sleeper: &mut Sleeper<'_>, connection: Connection| {
        let remote = sleeper.endpoint.register_memory(target.memory(), Rights::READ_WRITE).expect("a registration");
        sleeper.endpoint.send(connection, &remote.to_bytes(), Notify::OnFailure(0)).expect("a send");
        for _ in 0..2 * ROUNDS {
            sleeper.next_of(EventKind::Recv);
        }
    };
    both(device, |_| (), client, server);
    assert!(target.to_vec(0, LEN) == pattern(ROUNDS - 1, LEN), "other bytes arrived");
}

/// The handle in a message.
///
/// # Panics
///
/// There is none.
pub fn handle_in(event: &Event<'_>) -> RmaHandle {
    RmaHandle::from_bytes(&event.received().expect("a message").to_vec()).expect("a handle")
}

/// Two peers close while what they published, so many messages each, waits or finds no receive
/// slot. Both are delivered to the end, and both ends are told, to a program that sleeps and
/// returns events late.
///
/// # Panics
///
/// A sleeper is not woken.
pub fn rest_of_two_peers_that_are_gone_reaches_a_sleeper(device: &Device, recv_buffers: u32, count: u64) {
    for round in 0..10 {
        let server = open_with(device, |options| {
            options.recv_buffers = recv_buffers;
            options.disconnect_events = true;
        });
        let mut sleeper = Sleeper::new(&server);
        sleeper.takes_one = round % 2 == 0;
        let clients = [(); 2].map(|()| open(device));
        let connections = [&clients[0], &clients[1]].map(|client| {
            std::thread::scope(|scope| {
                let connecting = scope.spawn(|| Sleeper::new(client).connect(server.uri()));
                sleeper.accept();
                connecting.join().expect("connected")
            })
        });
        for (client, connection) in clients.iter().zip(connections) {
            for number in 0..count {
                client.send(connection, &number.to_ne_bytes(), Notify::OnFailure(0)).expect("room in the ring");
            }
        }
        drop(clients);
        let (mut received, mut ended) = (0, 0);
        let mut held = Vec::new();
        while received < 2 * count || ended < 2 {
            let event = sleeper.next(&format!("the rest in round {round}, after {received} messages and {ended} ends"));
            match event.kind() {
                EventKind::Recv => {
                    received += 1;
                    held.push(event);
                }
                EventKind::Disconnect => ended += 1,
                other => panic!("{other:?}"),
            }
            if held.len() == usize::min(4, 1 + round / 2) || received == 2 * count {
                held.clear();
            }
        }
    }
}
