//! The end that serves runs.

use super::control::{Answer, Command, Hello, Link, Request, What, send};
use super::driver::{Driver, DriverError, DriverEvent, DriverOptions, await_event};
use super::ends;
use super::ends::{Area, CONTROL, Handles, OPERATIONS};
use super::loops::{Lane, marker};
use super::ports::is_in_use;
use super::visits::{Sizes, Visits, printable, who};
use crate::probe::Probe;
use cci::RmaHandle;
use cci_report::UserError;
use cci_report::names::{AttributeName, Mode, Target, Threads};
use cci_report::session::Session;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a client may take to connect after it was told where.
const ARRIVAL: Duration = Duration::from_secs(10);
/// How long a client may take to leave the listening endpoint, and a port to be free again.
const FAREWELL: Duration = Duration::from_secs(2);
/// Time between two attempts to open an endpoint.
const AGAIN: Duration = Duration::from_millis(10);
/// How long a client may say nothing: longer than any block.
const SILENCE: Duration = Duration::from_secs(300);

/// Serves launches, one at a time, until the process ends. `on` is told the URI, and of each run
/// who it was for and how it ended.
pub(crate) fn serve<P: Driver>(
    opening: &DriverOptions,
    probe: Option<Probe>,
    mut on: impl FnMut(Notice<'_>),
) -> Result<std::convert::Infallible, UserError> {
    let listening = DriverOptions { threads: Threads::Many, mode: Mode::Blocking, ..opening.clone() };
    let mut driver = P::open(&listening)?;
    on(Notice::Listening(&driver.uri()));
    let mut server = Server { opening, listening, probe, visits: Visits::new(driver.transport()) };
    let mut asked = BTreeMap::new();
    let mut bytes = Vec::new();
    let mut next = 0;
    loop {
        let seen = driver.poll_event(&mut bytes, |payload| {
            next += 1;
            asked.insert(next, Hello::parse(payload));
            next
        });
        let line = match seen {
            Ok(DriverEvent::Nothing) => {
                let line = server.visits.overdue(Instant::now());
                if line.is_none() {
                    driver.wait();
                }
                line
            }
            Ok(DriverEvent::Asked) => server.report(asked.get(&next)),
            Ok(DriverEvent::Open(connection, context)) => {
                let Some(hello) = asked.remove(&context) else { continue };
                let line;
                (driver, line) = server.answer(driver, connection, hello)?;
                line
            }
            Ok(DriverEvent::NotOpen(_, context)) => {
                asked.remove(&context);
                None
            }
            // A client that has what it wanted closes; the next one is awaited.
            Ok(_) | Err(DriverError::PeerLost) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(line) = line {
            on(Notice::Ended(&line));
        }
    }
}

/// What a server tells of.
pub enum Notice<'a> {
    /// It can be reached there.
    Listening(&'a str),
    /// A run has ended: who measured what, and with what result.
    Ended(&'a str),
}

/// A server, but for the endpoint that listens.
struct Server<'o> {
    opening: &'o DriverOptions,
    listening: DriverOptions,
    probe: Option<Probe>,
    visits: Visits,
}

impl Server<'_> {
    /// The line of a run whose client reports, if that is what this request does.
    fn report(&mut self, asked: Option<&Result<Hello, UserError>>) -> Option<String> {
        let Some(Ok(Hello { client, request: Request::Report(report), .. })) = asked else { return None };
        self.visits.report(client.run, report)
    }

    /// Answers a request whose connection is open: the endpoint that listens from now on, and the
    /// line of a run that is over.
    fn answer<P: Driver>(
        &mut self,
        driver: P,
        connection: P::Connection,
        hello: Result<Hello, UserError>,
    ) -> Result<(P, Option<String>), UserError> {
        let (client, session) = match hello {
            Ok(Hello { client, request: Request::Launch(session), .. }) => (client, session),
            // The report was taken when it came.
            Ok(_) => return Ok((driver, None)),
            Err(why) => return Ok((refuse(driver, connection, &why), Some(format!("A client was refused: {why}")))),
        };
        let beside = match begin::<P>(&driver, connection, self.opening, &session, self.probe.is_some()) {
            Ok(beside) => beside,
            Err(why) => {
                let line = format!("{}: refused: {}", who(&client), printable(&why.0, 300));
                return Ok((refuse(driver, connection, &why), Some(line)));
            }
        };
        let mut sizes = Sizes::default();
        let (driver, ended) = match beside {
            Some(beside) => (driver, run(beside, &session, &mut self.probe, &mut sizes)),
            None => self.in_place_of(driver, &session, &mut sizes)?,
        };
        let line = self.visits.add(client, session, sizes, ended.err(), Instant::now());
        Ok((driver, line))
    }

    /// Plays the server's part at the port of the listening endpoint, and listens there again.
    fn in_place_of<P: Driver>(
        &mut self,
        driver: P,
        session: &Session,
        sizes: &mut Sizes,
    ) -> Result<(P, Result<(), UserError>), UserError> {
        await_farewell(&driver);
        let [there, then] = [self.opening.for_session(session), self.listening.clone()].map(|it| it.at(&driver));
        drop(driver);
        let ended = open_again::<P>(&there).and_then(|driver| run(driver, session, &mut self.probe, sizes));
        Ok((open_again(&then)?, ended))
    }
}

/// Says no.
fn refuse<P: Driver>(driver: P, connection: P::Connection, why: &UserError) -> P {
    // The client may be gone, then nobody needs the reason.
    let _ = send(&driver, connection, &Answer::Refused { why: why.0.clone() });
    driver
}

/// Plays the server's part of a launch on this endpoint.
fn run<P: Driver>(driver: P, session: &Session, probe: &mut Option<Probe>, sizes: &mut Sizes) -> Result<(), UserError> {
    let mut end = End { link: arrive(driver)?, session, area: None, handles: None, buffer: vec![] };
    loop {
        match end.link.recv(SILENCE)? {
            Command::End => return Ok(()),
            Command::Memory { handle } => end.show_memory(handle)?,
            Command::Block { what: What::Measured, size, count, number } => {
                sizes.add(size);
                end.measured(size, count, number, probe.as_ref())?;
            }
            Command::Block { what: What::Probe(kind), size, count, .. } => {
                let probe = probe.as_mut().ok_or_else(|| {
                    UserError::new("the ends share no memory for a probe: use --local, or --no-probe")
                })?;
                probe.prepare(kind, size).map_err(|error| UserError(format!("no memory for the probe: {error}")))?;
                end.link.send(&Answer::Go)?;
                probe.run(kind, size, count).map_err(|error| UserError(format!("the probe failed: {error}")))?;
            }
        }
    }
}

/// Agrees on a run with a client: the run's endpoint, or none where the listening one has the only
/// port, which the run's then takes.
fn begin<P: Driver>(
    listener: &P,
    client: P::Connection,
    opening: &DriverOptions,
    session: &Session,
    has_probe: bool,
) -> Result<Option<P>, UserError> {
    if let Some(why) = session.contradiction() {
        return Err(UserError::new(why));
    }
    if session.target == Target::Computing && !has_probe {
        return Err(UserError::new("a computing target needs both ends on one host: use --local"));
    }
    let beside = match P::open(&opening.for_session(session)) {
        Ok(driver) => Some(driver),
        Err(why) if is_in_use(&why) => None,
        Err(why) => return Err(why),
    };
    let uri = beside.as_ref().map_or_else(|| listener.uri(), P::uri);
    send(listener, client, &Answer::Ready { uri })?;
    Ok(beside)
}

/// Waits until a client has left the listening endpoint, which it does when it knows where the run
/// is.
fn await_farewell<P: Driver>(listener: &P) {
    // A client that stays is left by this end.
    let _ = await_event(listener, &mut Vec::new(), FAREWELL, |_, _| None::<()>);
}

/// Opens an endpoint at a port that was closed just now: another program may have had it for a
/// moment.
fn open_again<P: Driver>(opening: &DriverOptions) -> Result<P, UserError> {
    let begin = Instant::now();
    loop {
        match P::open(opening) {
            Err(why) if is_in_use(&why) && begin.elapsed() < FAREWELL => std::thread::sleep(AGAIN),
            opened => return opened,
        }
    }
}

/// Waits for both connections of a client, and keeps what it says meanwhile: it may know of both
/// before this end does, where frames overtake each other.
fn arrive<P: Driver>(driver: P) -> Result<Link<P>, UserError> {
    let begin = driver.now();
    let mut bytes = Vec::new();
    let (mut control, mut operations, mut early) = (None, None, None);
    loop {
        if let (Some(control), Some(operations)) = (control, operations) {
            // Of its messages the one who waits learns nothing when it dies.
            driver.watch(control)?;
            let mut link = Link::new(driver, control, operations);
            if let Some(early) = early {
                link.keep(early);
            }
            return Ok(link);
        }
        match driver.poll_event(&mut bytes, ends::context_of)? {
            DriverEvent::Open(connection, CONTROL) => control = Some(connection),
            DriverEvent::Open(connection, OPERATIONS) => operations = Some(connection),
            // Another client, which came to the port of the listening endpoint.
            DriverEvent::Open(connection, _) => {
                let why = "the server is busy with another run: try again when that has ended".into();
                send(&driver, connection, &Answer::Refused { why })?;
            }
            DriverEvent::Received(_) => early = Some(bytes.clone()),
            DriverEvent::Nothing if driver.now() - begin > ARRIVAL => {
                return Err(UserError::new("the client did not connect for its run"));
            }
            DriverEvent::Nothing => driver.wait(),
            _ => {}
        }
    }
}

/// The server's end of a run. Fields drop in order: the endpoint before the memory that is
/// registered with it.
struct End<'a, P: Driver> {
    link: Link<P>,
    session: &'a Session,
    handles: Option<Handles>,
    area: Option<Area>,
    buffer: Vec<u8>,
}

impl<P: Driver> End<'_, P> {
    fn show_memory(&mut self, handle: [u64; 4]) -> Result<(), UserError> {
        let area = Area::new(self.session.memory, self.session.largest)?;
        let local = self.link.driver.register(area.memory())?;
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        self.link.send(&Answer::Memory { handle: local.words(), pid, address: area.address() })?;
        self.handles = Some(Handles { local, remote: RmaHandle::from_words(handle) });
        self.area = Some(area);
        Ok(())
    }

    fn measured(&mut self, size: u64, count: u64, number: u64, probe: Option<&Probe>) -> Result<(), UserError> {
        let session = self.session;
        if !session.is_rma() {
            let len = usize::try_from(size.min(self.link.driver.max_send_size(self.link.operations))).unwrap_or(0);
            self.buffer.resize(len, 1);
        } else if session.target == Target::Computing {
            self.link.send(&Answer::Go)?;
            if let Some(probe) = probe {
                probe.compute(number);
            }
            return Ok(());
        }
        self.link.send(&Answer::Go)?;
        let lane = Lane { driver: &self.link.driver, connection: self.link.operations, silent: session.silent };
        if session.bidirectional {
            let handles = self.handles.as_ref();
            let open = ends::duplex(&lane, session, &self.buffer, handles, size, count)?;
            return Ok(self.link.settle(open)?);
        }
        if session.measurement.is_exchange() {
            let act = ends::act(session, &self.buffer, self.handles.as_ref(), size, true);
            let open = ends::exchange(&lane, &act, count, session.touch, false)?;
            return Ok(self.link.settle(open)?);
        }
        let marker = (session.attribute == AttributeName::Uu).then(|| marker(size));
        let received = ends::collect(&lane, count, marker, session.touch)?;
        self.link.send(&Answer::Done { received })
    }
}
