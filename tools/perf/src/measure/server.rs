//! The end that serves runs.

use super::control::{Answer, Client, Command, Hello, Link, Request, What, offer, parse};
use super::driver::{Asking, Driver, DriverEvent, DriverOptions, await_event};
use super::ends;
use super::ends::{Area, Handles};
use super::loops::{Lane, marker};
use super::ports::{is_in_use, is_out_of_descriptors};
use super::reception::{
    Coming, Connections, Gone, Hall, Launch, Next, Number, Reception, Seen, busy, refuse, turn_away,
};
use super::turns::Turns;
use super::visits::{Sizes, Visits, printable, who};
use crate::probe::Probe;
use cci::RmaHandle;
use cci_report::UserError;
use cci_report::names::{AttributeName, Mode, Target, Threads};
use cci_report::session::Session;
use std::time::{Duration, Instant};

/// How long a client may take to leave the listening endpoint, and a port to be free again.
const FAREWELL: Duration = Duration::from_secs(2);
/// Time between two attempts to open an endpoint.
const AGAIN: Duration = Duration::from_millis(10);
/// After how many looks that found nothing an end that never sleeps looks after others: that takes
/// system calls, which would slow down what a client measures meanwhile.
const LOOKS: u32 = 1024;
/// Looks at those who come, before the run goes on.
const BURST: usize = 64;

/// How long a client may take.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// To connect after it was told where. Meanwhile others are served.
    pub(crate) arrival: Duration,
    /// The same where its endpoint has the port of the listening one, so that others wait.
    pub(crate) arrival_in_place: Duration,
    /// From one command to the next, but for the memory's where the server is passive. Within a
    /// block `loops::Silence` has its own.
    pub(crate) silence: Duration,
}

/// How long a run may be in which only the client acts, and says nothing: one that is stopped and
/// not dead shall not keep others out for ever.
const LONGEST_PASSIVE: Duration = Duration::from_secs(3600);

/// Others are told that the server is busy, and with whom.
pub(crate) const PATIENCE: Patience = Patience {
    arrival: Duration::from_secs(10),
    arrival_in_place: Duration::from_secs(3),
    silence: Duration::from_secs(30),
};

/// Serves launches, one at a time, until the process ends. `on` is told the URI, and of each run
/// who it was for and how it ended; its error ends the server.
pub(crate) fn serve<P: Driver>(
    opening: &DriverOptions,
    patience: Patience,
    probe: Option<Probe>,
    mut on: impl FnMut(Notice<'_>) -> Result<(), UserError>,
) -> Result<std::convert::Infallible, UserError> {
    let listening = DriverOptions { threads: Threads::Many, mode: Mode::Blocking, ..opening.clone() };
    let driver = P::open(&listening)?;
    on(Notice::Listening(&address_of(&driver, opening)))?;
    let visits = Visits::new(driver.transport());
    let hall = Hall::new(patience.arrival);
    let ledger = Ledger { visits, lines: Vec::new() };
    let mut server = Server { opening, listening, patience, probe, ledger, hall, turns: Turns::default() };
    let mut reception = Reception::new(driver);
    let mut looks = 0_usize;
    loop {
        let seen = reception.look()?;
        looks = looks.wrapping_add(1);
        // Somebody may send all the time.
        let is_idle = matches!(seen, Seen::Nothing);
        let has_nothing_to_do = (is_idle || looks.is_multiple_of(BURST)) && !server.go_on(&mut reception);
        if is_idle && has_nothing_to_do {
            reception.driver.wait_beside(server.hall.drivers());
        }
        reception = server.answer(reception, seen)?;
        for line in server.ledger.lines.drain(..) {
            on(Notice::Ended(&line))?;
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
struct Server<'o, P: Driver> {
    opening: &'o DriverOptions,
    listening: DriverOptions,
    patience: Patience,
    probe: Option<Probe>,
    ledger: Ledger,
    hall: Hall<P>,
    turns: Turns,
}

/// The runs, and the lines that are to be told of them.
struct Ledger {
    visits: Visits,
    lines: Vec<String>,
}

impl Ledger {
    fn ended(&mut self, client: Client, session: Session, sizes: Sizes, ended: Result<(), UserError>) {
        let line = self.visits.add(client, session, sizes, ended.err(), Instant::now());
        self.lines.extend(line);
    }

    fn gone(&mut self, (who, why): Gone) {
        self.ended(who.0, who.1, Sizes::default(), Err(why));
    }

    /// Notes what needs no answer.
    fn seen<C>(&mut self, seen: Seen<C>) {
        match seen {
            Seen::Reports(run, report) => self.lines.extend(self.visits.report(run, &report)),
            Seen::Refused(line) => self.lines.push(line),
            Seen::Nothing | Seen::Other | Seen::Launches(_) => {}
        }
    }
}

impl<P: Driver> Server<'_, P> {
    /// Serves a client that has connected, or tells of one that did not, or of a run whose client
    /// does not come back; whether there was something to do.
    fn go_on(&mut self, reception: &mut Reception<P>) -> bool {
        match self.hall.look(reception.driver.now(), None) {
            Some(Next::Come(coming)) => self.serve_beside(coming, reception),
            Some(Next::Gone(gone)) => self.ledger.gone(gone),
            None => {
                let overdue = self.ledger.visits.overdue(Instant::now());
                let is_told = overdue.is_some();
                self.ledger.lines.extend(overdue);
                return is_told;
            }
        }
        true
    }

    /// Answers a request; the endpoint that listens from now on.
    fn answer(&mut self, mut reception: Reception<P>, seen: Seen<P::Connection>) -> Result<Reception<P>, UserError> {
        let launch = match seen {
            Seen::Launches(launch) => launch,
            other => {
                self.ledger.seen(other);
                return Ok(reception);
            }
        };
        let begun =
            begin(&mut reception, &mut self.hall, &mut self.ledger, launch, (self.opening, self.probe.is_some()));
        let Some(launch) = begun else { return Ok(reception) };
        if !self.turns.take(launch.client.run, launch.origin, Instant::now()) {
            let why = UserError::new("others wait for the only port of the server: try again later");
            turn_away(&reception.driver, launch.connection, &why);
            return Ok(reception);
        }
        let uri = address_of(&reception.driver, self.opening);
        if offer(&reception.driver, launch.connection, &Answer::Ready { uri }).is_ok() {
            // The next thing that it does is to leave.
            reception.driver.heed([Some(launch.connection), None]);
            reception = self.in_place_of(reception, launch)?;
        }
        Ok(reception)
    }

    /// Plays the server's part on an endpoint beside the listening one.
    fn serve_beside(&mut self, mut coming: Coming<P>, reception: &mut Reception<P>) {
        let Some(connections) = coming.connections() else { return };
        let Coming { client, session, driver, .. } = coming;
        let (begin, mut sizes) = (driver.now(), Sizes::default());
        let (hall, ledger, opening) = (&mut self.hall, &mut self.ledger, (self.opening, self.probe.is_some()));
        let attend = |driver: &P| {
            let why = || busy(&client, driver.now().saturating_sub(begin));
            attend(reception, hall, ledger, opening, &why);
            driver.wait_beside(hall.drivers().chain([&reception.driver]));
        };
        let mut run = Run { client: &client, session: &session, patience: self.patience, begin, attend };
        let ended = run.serve(driver, connections, &mut self.probe, &mut sizes);
        self.ledger.ended(client, session, sizes, ended);
    }

    /// Plays the server's part at the port of the listening endpoint, and listens there again.
    fn in_place_of(
        &mut self,
        reception: Reception<P>,
        launch: Launch<P::Connection>,
    ) -> Result<Reception<P>, UserError> {
        let (driver, Launch { client, session, origin, .. }) = (reception.driver, launch);
        await_farewell(&driver);
        let [there, then] = [self.opening.for_session(&session), self.listening.clone()].map(|it| it.at(&driver));
        drop(driver);
        let mut sizes = Sizes::default();
        let (begin, attend) = (Duration::ZERO, |driver: &P| driver.wait());
        let mut run = Run { client: &client, session: &session, patience: self.patience, begin, attend };
        let ended = open_again::<P>(&there).and_then(|driver| {
            let arrived = run.arrive(driver, &mut self.turns);
            match arrived {
                Ok(_) => self.turns.clear(),
                Err(_) => self.turns.failed(origin, Instant::now()),
            }
            let (driver, connections) = arrived?;
            run.serve(driver, connections, &mut self.probe, &mut sizes)
        });
        self.ledger.ended(client, session, sizes, ended);
        let gone = Instant::now();
        let driver = loop {
            match open_again(&then) {
                // The port is this server's; who has taken it may leave.
                Err(why) if is_in_use(&why) => {}
                opened => break opened?,
            }
        };
        if gone.elapsed() >= FAREWELL {
            let seconds = gone.elapsed().as_secs();
            self.ledger.lines.push(format!("Another program had the port of this server for {seconds} s"));
        }
        Ok(Reception::new(driver))
    }
}

/// Looks after those who come while a run goes on: they wait, or are told that the server is busy.
fn attend<P: Driver>(
    reception: &mut Reception<P>,
    hall: &mut Hall<P>,
    ledger: &mut Ledger,
    opening: (&DriverOptions, bool),
    busy: &dyn Fn() -> UserError,
) {
    // Somebody may send all the time.
    for _ in 0..BURST {
        match reception.look() {
            Ok(Seen::Launches(launch)) => {
                if let Some(launch) = begin(reception, hall, ledger, launch, opening) {
                    // It has no port of its own.
                    refuse(&reception.driver, launch.connection, &busy());
                }
            }
            // An endpoint that fails is found out after the run.
            Ok(Seen::Nothing) | Err(_) => break,
            Ok(seen) => ledger.seen(seen),
        }
    }
    while let Some(Next::Gone(gone)) = hall.look(reception.driver.now(), Some(busy)) {
        ledger.gone(gone);
    }
}

/// Tells a client where to connect, or that it has no place, or why there is no run for it. The
/// client comes back where the listening endpoint has the only port.
fn begin<P: Driver>(
    reception: &mut Reception<P>,
    hall: &mut Hall<P>,
    ledger: &mut Ledger,
    launch: Launch<P::Connection>,
    (opening, has_probe): (&DriverOptions, bool),
) -> Option<Launch<P::Connection>> {
    let driver = &reception.driver;
    let opened = check(&launch.session, has_probe).and_then(|()| {
        let number = match hall.reserve(driver.now(), launch.origin) {
            Ok(number) => number,
            Err(full) => {
                turn_away(driver, launch.connection, &full);
                return Ok(None);
            }
        };
        let opened = P::open(&opening.for_session(&launch.session));
        if opened.is_err() {
            hall.give_back(number);
        }
        opened.map(|opened| Some((number, opened)))
    });
    match opened {
        Ok(None) => {}
        Ok(Some((number, opened))) => invite(driver, hall, launch, (number, opened)),
        Err(why) if is_in_use(&why) => return Some(launch),
        // Others have them, and leave.
        Err(why) if is_out_of_descriptors(&why) => turn_away(driver, launch.connection, &why),
        Err(why) => {
            refuse(driver, launch.connection, &why);
            let line = format!("{}: refused: {}", who(&launch.client), printable(&why.0, 300));
            ledger.lines.extend(reception.refused(line));
        }
    }
    None
}

/// Tells a client that has a place where to connect.
fn invite<P: Driver>(driver: &P, hall: &mut Hall<P>, launch: Launch<P::Connection>, (number, beside): (Number, P)) {
    let uri = beside.uri();
    match offer(driver, launch.connection, &Answer::Ready { uri }) {
        Ok(()) => hall.enter(Coming::new(number, launch.client, launch.session, beside), launch.origin),
        // It is gone, or asks again.
        Err(_) => {
            hall.give_back(number);
            driver.disconnect(launch.connection);
        }
    }
}

/// A run of a client. `attend` is called where it has nothing to do between blocks; it may sleep.
struct Run<'a, A> {
    client: &'a Client,
    session: &'a Session,
    patience: Patience,
    /// When it began.
    begin: Duration,
    attend: A,
}

impl<A> Run<'_, A> {
    /// Waits for both connections of the client alone. Others are told to ask again: a client that
    /// does not connect shall not cost them their runs.
    fn arrive<P: Driver>(&mut self, driver: P, turns: &mut Turns) -> Result<(P, Connections<P::Connection>), UserError>
    where
        A: FnMut(&P),
    {
        self.begin = driver.now();
        let mut coming = Coming::new(0, self.client.clone(), self.session.clone(), driver);
        loop {
            let context_of = |asking: &Asking<'_>| {
                if let Ok(Hello { client, request: Request::Launch(_), .. }) = Hello::parse(asking.payload) {
                    turns.add(client.run, (asking.origin)(), Instant::now());
                }
                ends::context_of(asking)
            };
            coming.look_beside(context_of, turn_away)?;
            if let Some(connections) = coming.connections() {
                return Ok((coming.driver, connections));
            }
            if coming.driver.now().saturating_sub(self.begin) > self.patience.arrival_in_place {
                return Err(UserError::new("the client did not connect for its run"));
            }
            (self.attend)(&coming.driver);
        }
    }

    /// Obeys the client until it ends the run.
    fn serve<P: Driver>(
        &mut self,
        driver: P,
        (control, operations, early): Connections<P::Connection>,
        probe: &mut Option<Probe>,
        sizes: &mut Sizes,
    ) -> Result<(), UserError>
    where
        A: FnMut(&P),
    {
        // Of its messages the one who waits learns nothing when it dies.
        driver.watch(control)?;
        let mut link = Link::new(driver, control, operations);
        link.keep(early);
        let mut end = End { link, session: self.session, area: None, handles: None, buffer: vec![] };
        loop {
            // Such blocks have no command: from the memory to the end of the run none may come.
            let is_passive = end.handles.is_some() && ends::hears_nothing(self.session);
            let silence = if is_passive { LONGEST_PASSIVE } else { self.patience.silence };
            match self.next_command(&mut end.link, silence)? {
                Command::End => return Ok(()),
                // Each registration takes memory until the end of the run.
                Command::Memory { .. } if end.handles.is_some() => {
                    return Err(UserError::new(
                        "the client sent its memory twice: use the same release of cci on both sides",
                    ));
                }
                Command::Memory { handle } => end.show_memory(handle)?,
                Command::Block { what: What::Measured, size, count, number } => {
                    sizes.add(size);
                    end.measured(size, count, number, probe.as_ref())?;
                }
                Command::Block { what: What::Probe(kind), size, count, .. } => {
                    let probe = probe.as_mut().ok_or_else(|| {
                        UserError::new("the ends share no memory for a probe: use --local, or --no-probe")
                    })?;
                    probe
                        .prepare(kind, size)
                        .map_err(|error| UserError(format!("no memory for the probe: {error}")))?;
                    end.link.send(&Answer::Go)?;
                    probe.run(kind, size, count).map_err(|error| UserError(format!("the probe failed: {error}")))?;
                }
            }
        }
    }

    /// Waits for the next command, at most for `silence`, and refuses others that have come to this
    /// endpoint. The death of the client ends it before, for which that is watched.
    fn next_command<P: Driver>(&mut self, link: &mut Link<P>, silence: Duration) -> Result<Command, UserError>
    where
        A: FnMut(&P),
    {
        if let Some(early) = link.take_early() {
            return parse(&early);
        }
        let (begin, mut bytes, mut looks) = (link.driver.now(), Vec::new(), 0_u32);
        loop {
            match link.driver.poll_event(&mut bytes, ends::context_of)? {
                DriverEvent::Received(connection) if connection == link.control => return parse(&bytes),
                DriverEvent::Open(connection, _) => {
                    let since = link.driver.now().saturating_sub(self.begin);
                    refuse(&link.driver, connection, &busy(self.client, since));
                }
                // What others send holds nobody up either.
                event => {
                    let is_idle = matches!(event, DriverEvent::Nothing);
                    looks = looks.wrapping_add(1);
                    let is_time = looks.is_multiple_of(LOOKS) || is_idle && link.driver.handle().is_some();
                    if !is_time {
                        if is_idle {
                            link.driver.wait();
                        }
                        continue;
                    }
                    if link.driver.now().saturating_sub(begin) > silence {
                        let seconds = silence.as_secs();
                        return Err(UserError(format!("the client sent no command for {seconds} s")));
                    }
                    (self.attend)(&link.driver);
                }
            }
        }
    }
}

/// Why there is no run with these options.
fn check(session: &Session, has_probe: bool) -> Result<(), UserError> {
    if let Some(why) = session.contradiction() {
        return Err(UserError::new(why));
    }
    if session.target == Target::Computing && !has_probe {
        return Err(UserError::new("a computing target needs both ends on one host: use --local"));
    }
    // Both ends of one user are the user's own affair.
    if session.is_rma() && !has_probe {
        ends::check_room(session.largest)?;
    }
    Ok(())
}

/// The URI by which clients find an endpoint. A URI of several ways names this endpoint alone;
/// where the port is the same for those that follow, it is found by that.
fn address_of<P: Driver>(driver: &P, opening: &DriverOptions) -> String {
    let uri = driver.uri();
    let at_port = || {
        let (scheme, ways) = uri.split_once("://")?;
        let way = ways.split(',').skip(1).find(|way| way.contains(':'))?;
        Some(format!("{scheme}://{}", way.split_once('=')?.1))
    };
    let has_port = opening.keys.iter().any(|(key, _)| key == "port");
    has_port.then(at_port).flatten().unwrap_or(uri)
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

#[cfg(test)]
mod tests;
