//! An end of CCI's own messages and RMA, by which the ends also go from one way to another.

use super::row::{LONG, OWN, Way};
use crate::measure::driver::{Driver, DriverOptions, Facade};
use cci::{Connect, Connection, Endpoint, Event, HeapBytes, Memory, Notify, Registration, Rights, Rma, RmaHandle};
use cci_report::environment::Path;
use cci_report::{UserError, while_doing};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the other end may take to come.
pub(super) const ARRIVAL: Duration = Duration::from_secs(60);
/// Events of one poll, as many as Active Messages take.
const BURST: usize = 64;

/// The end.
pub(super) struct Own {
    // Before the endpoint, whose registration it is.
    memory: Registration<Memory>,
    endpoint: Endpoint,
    transport: String,
    connection: Option<Connection>,
    remote: Option<RmaHandle>,
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
        let driver = Facade::open(opening)?;
        let transport = driver.transport().to_owned();
        let endpoint = driver.into_endpoint();
        // As a VI's memory is: the program's own.
        let memory = Memory::of_bytes(&Arc::new(HeapBytes::new(vec![1; LONG])));
        let memory = endpoint.register(memory, Rights::WRITE).map_err(while_doing("cannot register memory"))?;
        Ok(Self { memory, endpoint, transport, connection: None, remote: None })
    }

    pub(super) fn uri(&self) -> &str {
        self.endpoint.uri()
    }

    pub(super) fn transport(&self) -> &str {
        &self.transport
    }

    pub(super) fn handle(&self) -> [u64; 4] {
        self.memory.handle().words()
    }

    pub(super) fn path(&self) -> Option<Path> {
        let report = self.endpoint.report(self.connection?).ok()?;
        Some(Path { messages: report.path, rma: report.rma_path, why: report.why })
    }

    pub(super) fn connect(&mut self, uri: &str, handle: [u64; 4]) -> Result<(), UserError> {
        self.remote = Some(RmaHandle::from_words(handle));
        let connect = Connect::to(uri).timeout(ARRIVAL);
        self.endpoint.connect(&connect).map_err(while_doing("cannot connect to the other end"))?;
        self.accept()
    }

    /// Waits until there is a connection.
    pub(super) fn accept(&mut self) -> Result<(), UserError> {
        let (begin, failed) = (Instant::now(), while_doing("the ends of the run cannot connect"));
        while self.connection.is_none() {
            match self.endpoint.get_event().map_err(while_doing("the ends of the run cannot connect"))? {
                Some(Event::Request(request)) => {
                    request.accept(0).map_err(while_doing("the ends of the run cannot connect"))?;
                }
                Some(Event::ConnectFailed(why)) => return Err(failed(why.failure())),
                Some(event) => self.connection = event.connection(),
                None if begin.elapsed() > ARRIVAL => {
                    return Err(UserError::new("the ends of the run did not connect to each other in time"));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn to(&self) -> Result<Connection, UserError> {
        self.connection.ok_or_else(|| UserError::new("there is no connection"))
    }

    #[inline(always)]
    fn send(&self, to: Connection, message: &[u8]) -> Result<(), UserError> {
        // The message before has been answered: there is room.
        self.endpoint.send(to, message, Notify::OnFailure(0)).map_err(while_doing("cannot send a message"))
    }

    #[inline(always)]
    fn poll(&self) -> Result<Seen, UserError> {
        let mut seen = Seen::default();
        let polled = self.endpoint.poll(BURST, |event| match event {
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
        let (to, answer) = (self.to()?, [0; OWN]);
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
        self.send(self.to()?, &message)?;
        while self.poll()?.messages == 0 {}
        Ok(())
    }

    /// So many messages that are answered.
    pub(super) fn run(&self, count: u64) -> Result<(), UserError> {
        let (to, message) = (self.to()?, [0; OWN]);
        for _ in 0..count {
            self.send(to, &message)?;
            while self.poll()?.messages == 0 {}
        }
        Ok(())
    }

    /// So many RMA writes, one after the other.
    pub(super) fn write(&self, count: u64) -> Result<(), UserError> {
        let (to, failed) = (self.to()?, while_doing("cannot write"));
        let remote = self.remote.as_ref().ok_or_else(|| UserError::new("the memory of the other end is not known"))?;
        let rma = Rma::new(self.memory.handle(), remote, LONG as u64);
        for _ in 0..count {
            self.endpoint.write(to, &rma, 1).map_err(&failed)?;
            while self.poll()?.ended == 0 {}
        }
        Ok(())
    }
}
