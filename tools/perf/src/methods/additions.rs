//! Operations that CCI 2.2 does not have, each beside what a program does without it: a large
//! message beside an RMA write of as many bytes, an atomic operation beside an RMA write of a word,
//! a message written in place beside a message that is copied.

use super::beside::beside;
use crate::measure::driver::{Driver, DriverOptions, join};
use crate::measure::facade::Facade;
use crate::methods::middle;
use cci::{Atomic, Attribute, Connection, Endpoint, Event, HeapBytes, Memory, Rights, Rma, SharedMemory};
use cci_report::{UserError, while_doing};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Blocks of each kind.
const BLOCKS: usize = 7;
/// Operations before the first block.
const FIRST: usize = 5;
/// Bytes that a block moves: so many operations it has, but some at least, and no more than asked
/// for.
const BYTES: usize = 16 << 20;
const FEWEST: usize = 4;
/// Operations of a block, at most.
pub const OPERATIONS: usize = 2000;
/// How long one operation may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub enum Addition {
    /// Large messages of so many bytes.
    Large(usize),
    /// A fetch-and-add of 8 bytes.
    Atomic,
    /// Messages of so many bytes that are written in place.
    Reserved(usize),
}

/// The time of an operation, from its call to its event, over that of the other one: blocks of both
/// in turn, of at most so many.
///
/// # Errors
///
/// An operation fails, or does not end.
pub fn measure(transport: &str, addition: Addition, operations: usize) -> Result<f64, UserError> {
    let opening = DriverOptions::on_loopback(transport);
    let (client, server) = (Facade::open(&opening)?, Facade::open(&opening)?);
    let connection = join(&client, &server, Attribute::ReliableOrdered)?;
    let ends = Ends { client: client.into_endpoint(), server: server.into_endpoint(), connection, operations };
    let len = match addition {
        Addition::Large(len) | Addition::Reserved(len) => len,
        Addition::Atomic => 8,
    };
    ends.server.set_large_limit(4 * len as u64).map_err(refused)?;
    beside(|is_over| serve(&ends.server, is_over), || ends.measured(addition, len))
}

/// Takes and returns what comes until all is over.
fn serve(server: &Endpoint, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let _ = server.get_event();
    }
}

struct Ends {
    client: Endpoint,
    server: Endpoint,
    connection: Connection,
    /// Operations of a block, at most.
    operations: usize,
}

impl Ends {
    fn measured(&self, addition: Addition, len: usize) -> Result<f64, UserError> {
        let (client, connection) = (&self.client, self.connection);
        let bytes = vec![7; len];
        match addition {
            Addition::Large(_) => {
                let message = Memory::of_bytes(&Arc::new(HeapBytes::new(bytes.clone())));
                let local = self.client.register(bytes, Rights::NONE).map_err(refused)?;
                let remote = self.server.register(vec![0; len], Rights::WRITE).map_err(refused)?;
                let rma = Rma::new(local.handle(), remote.handle(), len as u64);
                self.ratio(
                    len,
                    || client.send_large(connection, &message, 1).map_err(refused),
                    || client.write(connection, &rma, 1).map_err(refused),
                )
            }
            Addition::Atomic => {
                let word = SharedMemory::new(len).map_err(while_doing("cannot get memory"))?;
                let local = self.client.register(bytes, Rights::NONE).map_err(refused)?;
                let remote = self.server.register(Arc::new(word), Rights::READ_WRITE).map_err(refused)?;
                let rma = Rma::new(local.handle(), remote.handle(), len as u64);
                self.ratio(
                    len,
                    || client.atomic(connection, &rma.atomic(Atomic::FetchAdd(1)), 1).map_err(refused),
                    || client.write(connection, &rma, 1).map_err(refused),
                )
            }
            Addition::Reserved(_) => self.ratio(
                len,
                || {
                    let mut message = client.reserve(connection, len).map_err(refused)?;
                    if !message.write_at(0, &bytes) {
                        return Err(UserError::new("a room is shorter than was asked for"));
                    }
                    message.send(1).map_err(|unsent| refused(unsent.why))
                },
                || client.send(connection, &bytes, 1).map_err(refused),
            ),
        }
    }

    /// The middle of the ratios of the blocks.
    fn ratio(
        &self,
        len: usize,
        addition: impl Fn() -> Result<(), UserError>,
        other: impl Fn() -> Result<(), UserError>,
    ) -> Result<f64, UserError> {
        let count = (BYTES / len).max(FEWEST).min(self.operations);
        self.block(FIRST, &addition)?;
        self.block(FIRST, &other)?;
        let ratios = (0..BLOCKS).map(|_| Ok(self.block(count, &addition)? / self.block(count, &other)?));
        Ok(middle(ratios.collect::<Result<_, UserError>>()?))
    }

    /// The time of so many operations, one after the other, seconds.
    fn block(&self, count: usize, operation: &impl Fn() -> Result<(), UserError>) -> Result<f64, UserError> {
        let begin = Instant::now();
        for _ in 0..count {
            operation()?;
            self.await_end(begin)?;
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    fn await_end(&self, begin: Instant) -> Result<(), UserError> {
        loop {
            match self.client.get_event().map_err(refused)? {
                Some(Event::Completed(operation)) => return operation.outcome().map_err(refused),
                Some(_) => return Err(UserError::new("an event that is no end of an operation")),
                None if begin.elapsed() > LIMIT => return Err(UserError::new("an operation does not end")),
                None => {}
            }
        }
    }
}

fn refused(why: impl Display) -> UserError {
    UserError(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_measured_over_each_transport() {
        for transport in ["sm", "sock"] {
            for addition in [Addition::Large(20_000), Addition::Atomic, Addition::Reserved(1000)] {
                let ratio = measure(transport, addition, 5).expect("a figure");
                assert!(ratio > 0.0 && ratio.is_finite(), "{addition:?} over {transport}: {ratio}");
            }
        }
    }
}
