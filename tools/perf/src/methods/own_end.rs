//! An end of CCI's own messages and RMA, one of two.

use crate::measure::driver::{Driver, DriverOptions};
use crate::measure::facade::Facade;
use cci::{Connect, Connection, Endpoint, Event, Memory, Registration, Rights, RmaHandle};
use cci_report::environment::Path;
use cci_report::{UserError, while_doing};
use std::time::{Duration, Instant};

/// How long the other end may take to come.
pub(super) const ARRIVAL: Duration = Duration::from_secs(60);
/// Events of one poll, as many as Active Messages take.
pub(super) const BURST: usize = 64;

/// The end.
pub(super) struct OwnEnd {
    // Before the endpoint, whose registration it is.
    pub(super) memory: Registration<Memory>,
    pub(super) endpoint: Endpoint,
    transport: String,
    connection: Option<Connection>,
    remote: Option<RmaHandle>,
}

impl OwnEnd {
    /// Opens an endpoint, with memory that the other end may write.
    pub(super) fn open(opening: &DriverOptions, memory: Memory) -> Result<Self, UserError> {
        let driver = Facade::open(opening)?;
        let transport = driver.transport().to_owned();
        let endpoint = driver.into_endpoint();
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

    /// Makes the memory of the other end known.
    pub(super) fn know(&mut self, handle: [u64; 4]) {
        self.remote = Some(RmaHandle::from_words(handle));
    }

    pub(super) fn connect(&mut self, uri: &str, handle: [u64; 4]) -> Result<(), UserError> {
        self.know(handle);
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

    /// The connection.
    #[inline(always)]
    pub(super) fn to(&self) -> Result<Connection, UserError> {
        self.connection.ok_or_else(|| UserError::new("there is no connection"))
    }

    /// The memory of the other end.
    #[inline(always)]
    pub(super) fn remote(&self) -> Result<&RmaHandle, UserError> {
        self.remote.as_ref().ok_or_else(|| UserError::new("the memory of the other end is not known"))
    }
}
