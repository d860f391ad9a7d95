//! An endpoint of this transport for tests.

use crate::progress::poll::LOOK_EVERY;
use crate::shortcut::Sm;
use cci_mem::guarded::Threading;
use cci_proto::{Attribute, EventKind};
use cci_transport::{Connect, Connection, Core, CoreOptions, Endpoint, Posted, Slot, Transport};
use std::time::{Duration, Instant};

/// Slots of an [`End`].
pub(crate) const OPTIONS: CoreOptions =
    CoreOptions { recv_count: 1024, send_count: 64, rma_count: 16, ..CoreOptions::DEFAULT };
/// How long a test waits for what is to come.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// An endpoint without a facade.
pub(crate) struct End {
    pub(crate) core: Core,
    pub(crate) sm: Sm,
}

impl End {
    pub(crate) fn new() -> Self {
        let mut core = None;
        let _ = Endpoint::open(Threading::Many, |endpoint| {
            core = Core::new(endpoint, &OPTIONS).ok();
            None
        });
        let core = core.expect("memory for slots");
        let sm = Sm::open(&[], None, false).expect("an endpoint");
        Self { core, sm }
    }

    /// One call of `get_event`.
    pub(crate) fn call(&mut self) -> Option<&'static Slot> {
        if !self.core.is_armed() && !self.core.is_handle_in_use() && !self.core.has_event() {
            return self.sm.poll(&mut self.core);
        }
        if self.core.wants_progress() {
            self.sm.progress(&mut self.core);
        }
        let slot = self.core.pop();
        if self.core.is_armed() {
            self.sm.settle(&mut self.core);
        }
        slot
    }

    /// Calls until a message comes; says how many.
    pub(crate) fn calls_until_message(&mut self, most: u32) -> u32 {
        for calls in 1..=most {
            if let Some(slot) = self.call() {
                assert_eq!(slot.kind(), EventKind::Recv as u32);
                assert!(slot.give_back());
                return calls;
            }
        }
        panic!("no message in {most} calls");
    }

    pub(crate) fn send(&mut self, cell: &'static Connection) {
        self.send_bytes(cell, b"8 bytes.");
    }

    pub(crate) fn send_bytes(&mut self, cell: &'static Connection, bytes: &[u8]) {
        let sent = self.sm.send(&mut self.core, cell, bytes.into(), Posted::Silent(0));
        assert!(sent.is_ok());
    }

    /// Calls until a message comes, which the program keeps.
    pub(crate) fn message(&mut self) -> &'static Slot {
        let message = (0..LOOK_EVERY).find_map(|_| self.call()).expect("a message");
        assert_eq!(message.kind(), EventKind::Recv as u32);
        message
    }

    pub(crate) fn connect(&mut self, server: &mut Self) -> &'static Connection {
        let uri = server.sm.uri().to_owned();
        let attribute = Attribute::ReliableOrdered;
        let connect = Connect { uri: &uri, payload: b"", attribute, context: 0, timeout: Some(LIMIT) };
        self.sm.connect(&mut self.core, &connect).expect("a connect");
        let begin = Instant::now();
        loop {
            if let Some(slot) = server.call() {
                if slot.kind() == EventKind::ConnectRequest as u32 {
                    server.sm.accept(&mut server.core, slot, 0).expect("an accept");
                }
                assert!(slot.give_back());
            }
            if let Some(slot) = self.call() {
                let cell = slot.connection.get().expect("connected");
                assert!(slot.give_back());
                return cell;
            }
            assert!(begin.elapsed() < LIMIT, "no connection");
        }
    }
}
