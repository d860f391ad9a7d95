//! Endpoints over UDP sockets whose links lose, repeat, reorder and delay what they receive.

use cci_instruments::payload;
use cci_mem::arena::SharedMemory;
use cci_mem::guarded::Threading;
use cci_mem::sync::{AtomicU64, Ordering};
use cci_proto::{Access, Attribute, EventKind, Rights, SendError, Status};
use cci_reliable::{FaultCounters, FaultLink, Faults, Reliable, ReliableOptions};
use cci_sock::Sock;
use cci_transport::{Body, Connect, Connection, Core, CoreOptions, Endpoint, Message, Posted, Rma, Slot, Transport};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for.
const LIMIT: Duration = Duration::from_secs(60);
const MESSAGES: u32 = 3000;
const BYTES: usize = 1 << 20;

struct End {
    cell: &'static Endpoint,
    uri: String,
    counters: Arc<FaultCounters>,
}

impl End {
    fn open(faults: Faults) -> Self {
        let (mut uri, mut counters) = (String::new(), None);
        let cell = Endpoint::open(Threading::Many, |cell| {
            let core = Core::new(cell, &CoreOptions::default()).expect("memory");
            let keys = [("ip".into(), "127.0.0.1".into())];
            let link = FaultLink::new(Sock::open(&keys, None).expect("a socket"), faults);
            counters = Some(link.counters());
            let options = ReliableOptions {
                security: cci_transport::Security::off(),
                max_send_size: 8192,
                threading: Threading::Many,
                unchecked_on_host: false,
                first_seq: None,
            };
            let transport = Reliable::open(&core, link, &options).expect("a transport");
            transport.uri().clone_into(&mut uri);
            Some(Body { core, transport: Box::new(transport) })
        });
        Self { cell: cell.expect("memory"), uri, counters: counters.expect("a link") }
    }

    fn poll(&self) -> Option<&'static Slot> {
        let event = self.cell.with(|core, transport| {
            transport.progress(core);
            core.pop()
        });
        event.expect("usable")
    }

    fn with<T>(&self, act: impl FnOnce(&mut Core, &mut dyn Transport) -> T) -> T {
        self.cell.with(act).expect("usable")
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Ok(mut body) = self.cell.close() {
            body.transport.close(&mut body.core, Duration::from_millis(100));
            drop(body);
            self.cell.recycle();
        }
    }
}

/// Polls both ends until this one has an event, which must be of this kind.
fn next(ends: &[&End; 2], at: usize, kind: EventKind) -> &'static Slot {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LIMIT, "no event {kind:?}");
        if let Some(slot) = ends[at].poll() {
            assert_eq!(slot.kind(), kind as u32);
            return slot;
        }
        let other = ends[1 - at];
        other.with(|core, transport| transport.progress(core));
    }
}

/// Connects the first end to the second.
fn join(ends: &[&End; 2]) -> &'static Connection {
    let connect = Connect {
        uri: &ends[1].uri,
        payload: b"",
        attribute: Attribute::ReliableOrdered,
        context: 1,
        timeout: Some(LIMIT),
    };
    ends[0].with(|core, transport| transport.connect(core, &connect)).expect("a connect");
    let request = next(ends, 1, EventKind::ConnectRequest);
    ends[1].with(|core, transport| transport.accept(core, request, 2)).expect("accepted");
    request.mark.store(1, Ordering::Relaxed);
    assert!(request.give_back());
    let [connected, accepted] = [(0, EventKind::Connect), (1, EventKind::Accept)].map(|(at, kind)| {
        let slot = next(ends, at, kind);
        assert_eq!(Status::from_u32(slot.detail()), Some(Status::Success));
        let connection = slot.connection.get().expect("it has one");
        assert!(slot.give_back());
        connection
    });
    let _ = accepted;
    connected
}

/// Sends numbered messages, which must arrive once each, in order.
fn exchange(ends: &[&End; 2], connection: &'static Connection) {
    let begun = Instant::now();
    let (mut sent, mut received) = (0_u32, 0_u32);
    while received < MESSAGES {
        assert!(begun.elapsed() < LIMIT, "{received} of {MESSAGES} messages arrived");
        if sent < MESSAGES {
            let bytes = sent.to_ne_bytes();
            let message = Message::from(&bytes[..]);
            match ends[0].with(|core, transport| transport.send(core, connection, message, Posted::Silent(0))) {
                Ok(_) => sent += 1,
                Err(error) => assert_eq!(error, SendError::NoBuffers),
            }
        }
        ends[0].with(|core, transport| transport.progress(core));
        while let Some(slot) = ends[1].poll() {
            assert_eq!(slot.kind(), EventKind::Recv as u32);
            assert_eq!(payload(slot), received.to_ne_bytes(), "out of order, lost or twice");
            received += 1;
            assert!(slot.give_back());
        }
    }
}

#[test]
fn messages_and_rma_survive_a_bad_network() {
    let faults = |seed| Faults {
        seed,
        drop: 30,
        duplicate: 30,
        reorder: 30,
        delay: 30,
        longest_delay: Duration::from_millis(2),
    };
    let (a, b) = (End::open(faults(1)), End::open(faults(2)));
    let ends = [&a, &b];
    let connection = join(&ends);
    exchange(&ends, connection);

    let pattern: Vec<u8> = (0_u32..).map(|at| at.wrapping_mul(0x9e37_79b1).to_be_bytes()[0]).take(BYTES).collect();
    let [source, target] = [(); 2].map(|()| SharedMemory::new(BYTES).expect("memory"));
    source.write(0, &pattern);
    let register = |end: &End, memory: &SharedMemory, rights| {
        end.with(|core, transport| transport.register(core, memory.memory(), rights, None)).expect("registered")
    };
    let (local, remote) = (register(&a, &source, Rights::NONE), register(&b, &target, Rights::WRITE));
    let rma = Rma {
        local: &local,
        local_offset: 0,
        remote: &remote,
        remote_offset: 0,
        len: BYTES as u64,
        access: Access::Write,
        fence: false,
        message: None,
    };
    a.with(|core, transport| transport.rma(core, connection, &rma, Posted::Event(3))).expect("started");
    let end = next(&ends, 0, EventKind::Send);
    assert_eq!(Status::from_u32(end.detail()), Some(Status::Success));
    assert!(end.give_back());
    assert!(target.to_vec(0, BYTES) == pattern, "bytes differ");

    let happened = |of: fn(&FaultCounters) -> &AtomicU64| -> u64 {
        ends.iter().map(|end| of(&end.counters).load(Ordering::Relaxed)).sum()
    };
    let counts = [
        happened(|counters| &counters.dropped),
        happened(|counters| &counters.duplicated),
        happened(|counters| &counters.reordered),
        happened(|counters| &counters.delayed),
    ];
    assert!(counts.iter().all(|count| *count > 5), "too good a network: {counts:?}");
}

/// The twin: a network that loses everything delivers nothing, so the faults are real.
#[test]
fn a_link_that_drops_every_frame_connects_nobody() {
    let (a, b) = (End::open(Faults::default()), End::open(Faults { drop: 1000, ..Faults::default() }));
    let connect = Connect {
        uri: &b.uri,
        payload: b"",
        attribute: Attribute::ReliableOrdered,
        context: 1,
        timeout: Some(Duration::from_millis(200)),
    };
    a.with(|core, transport| transport.connect(core, &connect)).expect("a connect");
    let slot = next(&[&a, &b], 0, EventKind::Connect);
    assert_eq!(Status::from_u32(slot.detail()), Some(Status::TimedOut));
    assert!(slot.give_back());
    assert!(b.counters.dropped.load(Ordering::Relaxed) > 0);
}
