//! Accepting on another endpoint when the answer fails after that one was told to expect the
//! client.

use cci::__binding::{EndpointCell, EventCell, Threading, accept_on};
use cci::{
    ConnectError, ConnectionReport, EventKind, Memory, RegisterError, RequestError, Rights, RmaError, RmaHandle,
    SendError,
};
use cci_transport::{Body, Connect, Connection, Core, CoreOptions, Message, Posted, Rma, Slot, Transport};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tokens that are expected, in the order in which they came.
type Expected = Arc<Mutex<Vec<u64>>>;

/// A transport of which only the broker's part works, and the redirect as told.
struct Brokered {
    descriptor: Arc<OwnedFd>,
    expected: Expected,
    redirects: bool,
}

impl Transport for Brokered {
    fn uri(&self) -> &str {
        "test://here"
    }

    fn handle(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn expect(&mut self, _: &mut Core, token: u64, _: u64, _: Duration) -> Result<(), RequestError> {
        self.expected.lock().expect("one thread").push(token);
        Ok(())
    }

    fn forget_expected(&mut self, _: &mut Core, token: u64) -> bool {
        self.expected.lock().expect("one thread").retain(|expected| *expected != token);
        true
    }

    fn redirect(&mut self, _: &mut Core, _: &'static Slot, _: &str, _: u64) -> Result<(), RequestError> {
        if self.redirects { Ok(()) } else { Err(RequestError::OtherDevice) }
    }

    fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor)
    }

    fn connect(&mut self, _: &mut Core, _: &Connect<'_>) -> Result<(), ConnectError> {
        Err(ConnectError::NotImplemented)
    }

    fn accept(&mut self, _: &mut Core, _: &'static Slot, _: u64) -> Result<(), RequestError> {
        Ok(())
    }

    fn reject(&mut self, _: &mut Core, _: &'static Slot) -> Result<(), RequestError> {
        Ok(())
    }

    fn disconnect(&mut self, _: &mut Core, _: &'static Connection) {}

    fn send(
        &mut self,
        _: &mut Core,
        _: &'static Connection,
        _: Message<'_>,
        _: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        Err(SendError::Disconnected)
    }

    fn rma(
        &mut self,
        _: &mut Core,
        _: &'static Connection,
        _: &Rma<'_>,
        _: Posted,
    ) -> Result<Option<&'static Slot>, RmaError> {
        Err(RmaError::Disconnected)
    }

    fn register(
        &mut self,
        _: &mut Core,
        _: Memory,
        _: Rights,
        _: Option<&'static Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        Err(RegisterError::NoMemory)
    }

    fn deregister(&mut self, _: &mut Core, _: &RmaHandle) -> Result<(), RegisterError> {
        Err(RegisterError::UnknownHandle)
    }

    fn progress(&mut self, _: &mut Core) {}

    fn arm(&mut self, _: &mut Core) -> bool {
        true
    }

    fn settle(&mut self, _: &mut Core) {}

    fn refill(&mut self, _: &mut Core) {}

    fn options_changed(&mut self, _: &mut Core, _: &'static Connection) {}

    fn report(&self, _: &Core, _: &'static Connection) -> ConnectionReport {
        ConnectionReport::default()
    }

    fn close(&mut self, _: &mut Core, _: Duration) {}
}

fn open(redirects: bool) -> (&'static EndpointCell, Expected) {
    let expected = Expected::default();
    let cell = EndpointCell::open(Threading::Many, |cell| {
        let descriptor = std::fs::File::open("/dev/null").expect("a descriptor");
        let transport = Brokered { descriptor: Arc::new(descriptor.into()), expected: expected.clone(), redirects };
        // Few slots, so that an interpreter gets through them.
        let options = CoreOptions { recv_count: 8, send_count: 8, rma_count: 8, ..CoreOptions::default() };
        let core = Core::new(cell, &options).ok()?;
        Some(Body { core, transport: Box::new(transport) })
    });
    (cell.expect("memory"), expected)
}

/// A connection request of this endpoint, in the program's hands.
fn request(cell: &'static EndpointCell) -> &'static EventCell {
    let taken = cell.with(|core, _| {
        let slot = core.take_recv(|_| ())?;
        slot.mark.store(0, cci_mem::sync::Ordering::Relaxed);
        slot.fill(EventKind::ConnectRequest as u32, 0, [0, 0]);
        core.push(slot);
        core.pop()
    });
    taken.expect("open").expect("a free slot")
}

#[test]
fn a_client_that_cannot_be_sent_on_is_not_expected_any_more() {
    let (broker, _) = open(false);
    let (worker, expected) = open(true);
    let event = request(broker);
    assert_eq!(accept_on(event, worker, 1), Err(RequestError::OtherDevice));
    assert_eq!(*expected.lock().expect("one thread"), [0; 0], "expected for ever");
    cci::__binding::reject(event).expect("the request can still be answered");
}

#[test]
fn a_client_that_is_sent_on_is_expected_once() {
    let (broker, _) = open(true);
    let (worker, expected) = open(true);
    let event = request(broker);
    accept_on(event, worker, 1).expect("sent on");
    assert_eq!(expected.lock().expect("one thread").len(), 1);
    assert_eq!(accept_on(event, worker, 1), Err(RequestError::AlreadyAnswered));
    assert_eq!(expected.lock().expect("one thread").len(), 1, "the refusal took the first back, or added one");
}
