//! Endpoints over links in memory, driven by the test's thread.

use crate::memory_link::{Hub, MemoryLink};
use cci_instruments::payload;
use cci_mem::guarded::Threading;
use cci_mem::memory::Memory;
use cci_proto::{Attribute, EventKind, RegisterError, Rights, RmaError, RmaHandle, SendError, Status};
use cci_reliable::{Reliable, ReliableOptions};
use cci_seal::Psk;
use cci_transport::{
    Body, Connect, Connection, ConnectionReport, Core, CoreOptions, Endpoint, Posted, Protect, Rma, Security, Slot,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// Largest message, bytes.
pub(crate) const LARGEST: u32 = 8192;

/// One endpoint, closed when dropped.
pub(crate) struct End {
    pub(crate) cell: &'static Endpoint,
    pub(crate) uri: String,
    seen: RefCell<VecDeque<&'static Slot>>,
}

/// How an endpoint is opened.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) core: CoreOptions,
    pub(crate) threading: Threading,
    /// The byte of which its secret is made, and what it asks of connections.
    pub(crate) secret: Option<(u8, Protect)>,
}

impl Default for How {
    fn default() -> Self {
        let core = CoreOptions {
            recv_count: 256,
            send_count: 256,
            rma_count: 256,
            disconnect_events: true,
            ..CoreOptions::default()
        };
        Self { core, threading: Threading::Many, secret: None }
    }
}

impl How {
    /// An endpoint whose connections are sealed, under a secret of this byte.
    pub(crate) fn sealed(byte: u8) -> Self {
        Self { secret: Some((byte, Protect::Sealed)), ..Self::default() }
    }

    fn security(&self) -> Security {
        let psk = |byte| Psk::from_bytes(&[byte; 32]).expect("memory");
        self.secret.map_or(Security::off(), |(byte, protect)| Security::under(psk(byte), protect))
    }
}

/// Two ends of one hub, whose connections are sealed.
pub(crate) fn two_sealed() -> (Hub, End, End) {
    let hub = Hub::new();
    let (one, other) = (End::open(&hub, How::sealed(5)), End::open(&hub, How::sealed(5)));
    (hub, one, other)
}

/// Two ends of one hub.
pub(crate) fn two() -> (Hub, End, End) {
    let hub = Hub::new();
    let (one, other) = (End::open(&hub, How::default()), End::open(&hub, How::default()));
    (hub, one, other)
}

impl End {
    pub(crate) fn open(hub: &Hub, how: How) -> Self {
        Self::open_over(hub.link(), how)
    }

    pub(crate) fn open_over(link: MemoryLink, how: How) -> Self {
        let mut uri = String::new();
        let cell = Endpoint::open(how.threading, |cell| {
            let core = Core::new(cell, &how.core).expect("memory");
            // Every sequence passes its wrap within a test.
            let options = ReliableOptions {
                security: how.security(),
                max_send_size: LARGEST,
                threading: how.threading,
                unchecked_on_host: false,
                first_seq: Some(u32::MAX - 20),
            };
            let transport = Reliable::open(&core, link, &options).expect("a transport");
            cci_transport::Transport::uri(&transport).clone_into(&mut uri);
            Some(Body { core, transport: Box::new(transport) })
        });
        Self { cell: cell.expect("memory"), uri, seen: RefCell::default() }
    }

    pub(crate) fn connect(&self, uri: &str, attribute: Attribute, timeout: Duration, payload: &[u8]) {
        let connect = Connect { uri, payload, attribute, context: 1, timeout: Some(timeout) };
        self.cell.with(|core, transport| transport.connect(core, &connect)).expect("usable").expect("a connect");
    }

    pub(crate) fn accept(&self, request: &'static Slot, context: u64) {
        self.cell.with(|core, transport| transport.accept(core, request, context)).expect("usable").expect("accepted");
        request.mark.store(1, cci_mem::sync::Ordering::Relaxed);
    }

    pub(crate) fn post(&self, cell: &'static Connection, bytes: &[u8], posted: Posted) -> Result<(), SendError> {
        let sent = self.cell.with(|core, transport| transport.send(core, cell, bytes.into(), posted));
        sent.expect("usable").map(|slot| assert!(slot.is_none()))
    }

    pub(crate) fn send(&self, cell: &'static Connection, bytes: &[u8], context: u64) {
        self.post(cell, bytes, Posted::Event(context)).expect("a send");
    }

    pub(crate) fn rma(&self, cell: &'static Connection, rma: &Rma<'_>, context: u64) -> Result<(), RmaError> {
        let started = self.cell.with(|core, transport| transport.rma(core, cell, rma, Posted::Event(context)));
        started.expect("usable").map(|slot| assert!(slot.is_none()))
    }

    pub(crate) fn register(&self, memory: Memory, rights: Rights) -> RmaHandle {
        self.cell
            .with(|core, transport| transport.register(core, memory, rights, None))
            .expect("usable")
            .expect("registered")
    }

    pub(crate) fn deregister(&self, handle: &RmaHandle) -> Result<(), RegisterError> {
        self.cell.with(|core, transport| transport.deregister(core, handle)).expect("usable")
    }

    pub(crate) fn disconnect(&self, cell: &'static Connection) {
        self.cell.with(|core, transport| transport.disconnect(core, cell)).expect("usable");
    }

    pub(crate) fn report(&self, cell: &'static Connection) -> ConnectionReport {
        self.cell.with(|core, transport| transport.report(core, cell)).expect("usable")
    }

    /// Asks for an event, as `get_event` does.
    pub(crate) fn poll(&self) -> Option<&'static Slot> {
        let event = self.cell.with(|core, transport| {
            if core.wants_progress() {
                transport.progress(core);
            }
            core.pop()
        });
        event.expect("usable")
    }

    /// Gives an event back, as `return_event` does.
    pub(crate) fn give_back(&self, slot: &'static Slot) {
        assert!(slot.give_back(), "not borrowed");
        self.cell.pairing.light();
        if self.cell.starving.load(cci_mem::sync::Ordering::Relaxed) {
            self.cell.with(|core, transport| transport.refill(core)).expect("usable");
        }
    }

    pub(crate) fn close(&self) {
        if let Ok(mut body) = self.cell.close() {
            body.transport.close(&mut body.core, Duration::from_millis(100));
            drop(body);
            self.cell.recycle();
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.close();
    }
}

/// Polls all ends until one of them has an event of this kind; others are kept.
pub(crate) fn next(ends: &[&End], at: usize, kind: EventKind) -> &'static Slot {
    let begun = Instant::now();
    loop {
        let mut seen = ends[at].seen.borrow_mut();
        if let Some(place) = seen.iter().position(|slot| slot.kind() == kind as u32) {
            return seen.remove(place).expect("just seen");
        }
        drop(seen);
        assert!(begun.elapsed() < LIMIT, "no event {kind:?} at {at}");
        let found = ends.iter().filter(|end| end.poll().map(|slot| end.seen.borrow_mut().push_back(slot)).is_some());
        if found.count() == 0 {
            std::thread::yield_now();
        }
    }
}

/// Polls all ends until `done`; events are kept.
pub(crate) fn until(ends: &[&End], mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "waited in vain");
        for end in ends {
            end.seen.borrow_mut().extend(end.poll());
        }
    }
}

/// How many events of this kind nobody has asked for.
pub(crate) fn waiting(end: &End, kind: EventKind) -> usize {
    end.seen.borrow().iter().filter(|slot| slot.kind() == kind as u32).count()
}

/// The next message of an end, returned at once.
pub(crate) fn message(ends: &[&End], at: usize) -> Vec<u8> {
    let slot = next(ends, at, EventKind::Recv);
    let bytes = payload(slot);
    ends[at].give_back(slot);
    bytes
}

/// The next event of this kind: its status and third word, returned at once.
pub(crate) fn outcome(ends: &[&End], at: usize, kind: EventKind) -> (Option<Status>, u64) {
    let slot = next(ends, at, kind);
    let told = (Status::from_u32(slot.detail()), slot.words()[1]);
    ends[at].give_back(slot);
    told
}

/// The connection of a CONNECT or ACCEPT event that succeeded.
pub(crate) fn opened(ends: &[&End], at: usize, kind: EventKind) -> &'static Connection {
    let slot = next(ends, at, kind);
    assert_eq!(Status::from_u32(slot.detail()), Some(Status::Success));
    let connection = slot.connection.get().expect("it has one");
    ends[at].give_back(slot);
    connection
}

/// Connects the first end to the second: the connection at either side.
pub(crate) fn join(ends: &[&End; 2], attribute: Attribute) -> (&'static Connection, &'static Connection) {
    ends[0].connect(&ends[1].uri, attribute, LIMIT, b"");
    let request = next(ends, 1, EventKind::ConnectRequest);
    ends[1].accept(request, 2);
    ends[1].give_back(request);
    (opened(ends, 0, EventKind::Connect), opened(ends, 1, EventKind::Accept))
}
