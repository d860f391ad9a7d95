//! An endpoint for tests: its events are those of a script, and whatever is sent is taken, unless
//! the script says no.

use super::driver::{Asking, Completion, Driver, DriverError, DriverEvent, DriverOptions, PostError, Transfer};
use cci::{Attribute, Memory, RmaHandle};
use cci_report::UserError;
use cci_report::environment::Path;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What an endpoint does.
pub(crate) trait Script: Sized {
    fn open() -> Result<Self, UserError> {
        Err(UserError(String::new()))
    }

    fn next(
        &self,
        bytes: &mut Vec<u8>,
        context_of: &mut dyn FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<u32>, DriverError>;

    fn poll(&self) -> Completion {
        Completion::Nothing
    }

    fn send(&self) -> Result<(), PostError> {
        Ok(())
    }

    /// What an endpoint is asked to send.
    fn sees(&self, _message: &[u8]) {}

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    /// One that sleeps has a handle.
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The endpoint; its connections are numbers.
pub(crate) struct Scripted<S>(pub(crate) S);

impl<S: Script> Driver for Scripted<S> {
    type Connection = u32;

    fn open(_: &DriverOptions) -> Result<Self, UserError> {
        S::open().map(Self)
    }

    fn uri(&self) -> String {
        String::new()
    }

    fn transport(&self) -> &str {
        "scripted"
    }

    fn max_send_size(&self, _: u32) -> u64 {
        1 << 16
    }

    fn path(&self, _: u32) -> Option<Path> {
        None
    }

    fn connect(&self, _: &str, _: &[u8], _: Attribute, _: u64, _: Duration) -> Result<(), UserError> {
        Ok(())
    }

    fn send(&self, _: u32, message: &[u8], _: bool) -> Result<(), PostError> {
        self.0.sees(message);
        self.0.send()
    }

    fn rma(&self, _: u32, _: &Transfer<'_>, _: bool) -> Result<(), PostError> {
        Ok(())
    }

    fn register(&self, _: Memory) -> Result<RmaHandle, UserError> {
        Err(UserError::new("no memory"))
    }

    fn poll<const TOUCH: bool>(&self) -> Result<Completion, DriverError> {
        Ok(self.0.poll())
    }

    fn poll_event(
        &self,
        bytes: &mut Vec<u8>,
        mut context_of: impl FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<u32>, DriverError> {
        self.0.next(bytes, &mut context_of)
    }

    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wait(&self) {}

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.0.handle()
    }
}
