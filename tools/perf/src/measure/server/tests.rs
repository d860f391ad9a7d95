use super::super::driver::{Completion, DriverError, PostError, Transfer};
use super::super::plan::tests::session;
use super::*;
use cci::{Attribute, Memory};
use cci_report::environment::Path;
use cci_report::names::{Measurement, Operation};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An endpoint at which the end of the run comes after so many looks that find nothing.
struct Quiet {
    looks: Cell<u32>,
    /// One that sleeps has a handle.
    handle: Option<OwnedFd>,
}

impl Driver for Quiet {
    type Connection = ();

    fn open(_: &DriverOptions) -> Result<Self, UserError> {
        Err(UserError::new("a test makes it"))
    }

    fn uri(&self) -> String {
        String::new()
    }

    fn transport(&self) -> &str {
        "quiet"
    }

    fn max_send_size(&self, (): ()) -> u64 {
        0
    }

    fn path(&self, (): ()) -> Option<Path> {
        None
    }

    fn connect(&self, _: &str, _: &[u8], _: Attribute, _: u64, _: Duration) -> Result<(), UserError> {
        Ok(())
    }

    fn send(&self, (): (), _: &[u8], _: bool) -> Result<(), PostError> {
        Ok(())
    }

    fn rma(&self, (): (), _: &Transfer<'_>, _: bool) -> Result<(), PostError> {
        Ok(())
    }

    fn register(&self, _: Memory) -> Result<RmaHandle, UserError> {
        Err(UserError::new("no memory"))
    }

    fn poll<const TOUCH: bool>(&self) -> Result<Completion, DriverError> {
        Ok(Completion::Nothing)
    }

    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        _: impl FnMut(&[u8]) -> u64,
    ) -> Result<DriverEvent<Self::Connection>, DriverError> {
        let Some(left) = self.looks.get().checked_sub(1) else {
            *bytes = serde_json::to_vec(&Command::End).expect("text");
            return Ok(DriverEvent::Received(()));
        };
        self.looks.set(left);
        Ok(DriverEvent::Nothing)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wait(&self) {}

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }
}

/// How often a server looks after others while a run says nothing for so many looks.
fn attended(looks: u32, handle: Option<OwnedFd>) -> u32 {
    let (client, session) = (Client { run: 1, uri: String::new(), pid: 1, uid: 1 }, session());
    let count = Cell::new(0);
    let attend = |_: &Quiet| count.set(count.get() + 1);
    let mut run = Run { client: &client, session: &session, patience: PATIENCE, begin: Duration::ZERO, attend };
    let mut link = Link::new(Quiet { looks: Cell::new(looks), handle }, (), ());
    let command = run.next_command(&mut link, PATIENCE.silence).expect("a command");
    assert_eq!(command, Command::End);
    count.get()
}

#[test]
fn a_server_that_polls_looks_after_others_at_every_1024th_look_and_one_that_sleeps_at_each() {
    assert_eq!([1023, 1024, 5000].map(|looks| attended(looks, None)), [0, 1, 4]);
    let handle = || Some(OwnedFd::from(std::fs::File::open("/dev/null").expect("it is there")));
    assert_eq!([1, 1024].map(|looks| attended(looks, handle())), [1, 1024]);
}

#[test]
fn a_server_that_computes_hears_of_blocks() {
    let base = Session { measurement: Measurement::Bandwidth, operation: Operation::Write, ..session() };
    let hears_nothing = |target| ends::hears_nothing(&Session { target, ..base.clone() });
    assert_eq!([Target::Polling, Target::Computing].map(hears_nothing), [true, false]);
}
