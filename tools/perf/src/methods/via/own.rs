//! An end of CCI's own messages and RMA, by which the ends also go from one way to another.

use super::row::{LONG, OWN, Way};
use crate::measure::driver::DriverOptions;
use crate::methods::own_end::{BURST, OwnEnd};
use cci::{Connection, Event, HeapBytes, Memory, Notify, Rma};
use cci_report::{UserError, while_doing};
use std::sync::Arc;

/// The end.
pub(super) struct Own {
    pub(super) end: OwnEnd,
    /// For RMA writes, and for RDMA writes of VIs: other pages would be as fast by chance only.
    pub(super) memory: Memory,
}

/// What a poll has found.
#[derive(Default)]
struct Seen {
    messages: u64,
    ended: u64,
    /// The first byte of the last message.
    first: u8,
    failed: Option<UserError>,
}

impl Own {
    pub(super) fn open(opening: &DriverOptions) -> Result<Self, UserError> {
        // As a VI's memory is: the program's own.
        let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![1; LONG])));
        Ok(Self { end: OwnEnd::open(opening, memory.clone())?, memory })
    }

    #[inline(always)]
    fn send(&self, to: Connection, message: &[u8]) -> Result<(), UserError> {
        // The message before has been answered: there is room.
        self.end.endpoint.send(to, message, Notify::OnFailure(0)).map_err(while_doing("cannot send a message"))
    }

    #[inline(always)]
    fn poll(&self) -> Result<Seen, UserError> {
        let mut seen = Seen::default();
        let polled = self.end.endpoint.poll(BURST, |event| match event {
            Event::Received(message) => {
                seen.messages += 1;
                seen.first = message.view().array::<1>(0).map_or(0, |[first]| first);
            }
            Event::Completed(ended) => match ended.outcome() {
                Ok(()) => seen.ended += 1,
                Err(why) => seen.failed = Some(while_doing("an operation failed")(why)),
            },
            Event::Disconnected(_) => seen.failed = Some(UserError::new("the other end is gone")),
            _ => {}
        });
        polled.map_err(while_doing("cannot take messages"))?;
        seen.failed.take().map_or(Ok(seen), Err)
    }

    /// Answers until the other end turns to another way; `None`: it is done.
    pub(super) fn serve(&self) -> Result<Option<Way>, UserError> {
        let (to, answer) = (self.end.to()?, [0; OWN]);
        loop {
            let seen = self.poll()?;
            if seen.messages > 0 {
                self.send(to, &answer)?;
            }
            if seen.first > 0 {
                return Ok(Way::of(seen.first - 1));
            }
        }
    }

    /// Has the other end go on by this way, or end.
    pub(super) fn turn_to(&self, next: Option<Way>) -> Result<(), UserError> {
        let mut message = [0; OWN];
        message[0] = 1 + next.map_or(0, |way| way as u8);
        self.send(self.end.to()?, &message)?;
        while self.poll()?.messages == 0 {}
        Ok(())
    }

    /// So many messages that are answered.
    pub(super) fn run(&self, count: u64) -> Result<(), UserError> {
        let (to, message) = (self.end.to()?, [0; OWN]);
        for _ in 0..count {
            self.send(to, &message)?;
            while self.poll()?.messages == 0 {}
        }
        Ok(())
    }

    /// So many RMA writes, one after the other.
    pub(super) fn write(&self, count: u64) -> Result<(), UserError> {
        let (to, failed) = (self.end.to()?, while_doing("cannot write"));
        let remote = self.end.remote()?;
        let rma = Rma::new(self.end.memory.handle(), remote, LONG as u64);
        for _ in 0..count {
            self.end.endpoint.write(to, &rma, 1).map_err(&failed)?;
            while self.poll()?.ended == 0 {}
        }
        Ok(())
    }
}
