//! Who asks at the endpoint that listens, and who is about to connect for a run.
//!
//! ```text
//! client --- request ---> Reception --- launch ---> Hall --- both connections, ---> the run
//!                            |                        |       a first command
//!                            | malformed: refused     | late, gone, malformed:
//!                            v                        v its endpoint is closed
//!                         must leave within a second
//! ```
//!
//! Of both the loudest make room first, as far as the library tells who asks. Neither holds up the
//! server: it takes the first client of the hall that has connected. Between the blocks of a run
//! both are looked after; who has waited for another run is told so.

use super::control::{Answer, Client, Command, Hello, Report, Request, offer, parse};
use super::driver::{Asking, Driver, DriverError, DriverEvent};
use super::ends;
use super::ends::{CONTROL, OPERATIONS};
use super::visits::who;
use cci_admission::{Admission, Arrival, Limits, Origin};
use cci_report::UserError;
use cci_report::session::Session;
use std::collections::BTreeMap;
use std::time::Duration;

/// Clients that have been answered and are still connected, and how long they may stay.
const ANSWERED: Limits = Limits { places: 64, patience: Duration::from_secs(1), bytes: 0 };

/// Clients that may be about to connect at once, and that may wait: each has an endpoint.
const COMING: usize = 8;
/// The same, with those that have connected and wait.
const MOST_COMING: usize = 2 * COMING;

/// Lines about malformed requests: strangers must not fill the terminal.
const LINES: u32 = 16;

/// What has come to the endpoint that listens.
pub(super) enum Seen<C> {
    Nothing,
    /// Something that needs no answer.
    Other,
    Reports(u64, Report),
    Launches(Launch<C>),
    /// A line about somebody who was refused.
    Refused(String),
}

/// A client that launches a run.
pub(super) struct Launch<C> {
    pub(super) connection: C,
    pub(super) client: Client,
    pub(super) session: Session,
    pub(super) origin: Origin,
}

/// The endpoint that listens, and who is connected to it.
pub(super) struct Reception<P: Driver> {
    pub(super) driver: P,
    begin: Duration,
    /// Who has asked, by the context of the connection.
    asked: BTreeMap<u64, (Result<Hello, UserError>, Origin)>,
    next: u64,
    answered: Admission<P::Connection>,
    lines: u32,
    bytes: Vec<u8>,
}

impl<P: Driver> Reception<P> {
    pub(super) fn new(driver: P) -> Self {
        let (begin, answered) = (driver.now(), Admission::new(ANSWERED));
        driver.heed([None; 2]);
        Self { driver, begin, asked: BTreeMap::new(), next: 0, answered, lines: 0, bytes: Vec::new() }
    }

    /// Looks for one event.
    pub(super) fn look(&mut self) -> Result<Seen<P::Connection>, DriverError> {
        let (asked, next) = (&mut self.asked, &mut self.next);
        let seen = self.driver.poll_event(&mut self.bytes, |asking| {
            *next += 1;
            asked.insert(*next, (Hello::parse(asking.payload), (asking.origin)()));
            *next
        });
        match seen {
            Ok(DriverEvent::Nothing) => {
                self.end_late();
                Ok(Seen::Nothing)
            }
            Ok(DriverEvent::Asked) => Ok(match self.asked.get(&self.next) {
                Some((Ok(Hello { client, request: Request::Report(report), .. }), _)) => {
                    Seen::Reports(client.run, report.clone())
                }
                _ => Seen::Other,
            }),
            Ok(DriverEvent::Open(connection, context)) => Ok(self.meet(connection, context)),
            Ok(DriverEvent::NotOpen(_, context)) => {
                self.asked.remove(&context);
                Ok(Seen::Other)
            }
            // A client that has what it wanted closes. Somebody may send all the time.
            Ok(_) | Err(DriverError::PeerLost) => {
                self.end_late();
                Ok(Seen::Other)
            }
            Err(error) => Err(error),
        }
    }

    fn meet(&mut self, connection: P::Connection, context: u64) -> Seen<P::Connection> {
        let now = self.driver.now().saturating_sub(self.begin);
        let (hello, origin) = self.asked.remove(&context).unzip();
        let origin = origin.unwrap_or(Origin::Here);
        match self.answered.handle_arrival(now, connection, origin) {
            Arrival::Admitted => {}
            Arrival::Replaces(other) => self.driver.disconnect(other),
            Arrival::Refused => {
                let why = UserError::new("too many ask the server at once: try again later");
                turn_away(&self.driver, connection, &why);
                self.driver.disconnect(connection);
                return Seen::Other;
            }
        }
        match hello {
            Some(Ok(Hello { client, request: Request::Launch(session), .. })) => {
                Seen::Launches(Launch { connection, client, session, origin })
            }
            // The report was taken when it came.
            Some(Ok(_)) | None => Seen::Other,
            Some(Err(why)) => {
                refuse(&self.driver, connection, &why);
                self.refused(format!("A client was refused: {why}")).map_or(Seen::Other, Seen::Refused)
            }
        }
    }

    /// A line about somebody who was refused; none after many.
    pub(super) fn refused(&mut self, line: String) -> Option<String> {
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..LINES => Some(line),
            LINES => Some(line + "; the next ones are not reported"),
            _ => None,
        }
    }

    /// Ends connections of those who have their answer and stay.
    fn end_late(&mut self) {
        let now = self.driver.now().saturating_sub(self.begin);
        while let Some(late) = self.answered.poll_late(now) {
            self.driver.disconnect(late);
        }
    }
}

/// Says no.
pub(super) fn refuse<P: Driver>(driver: &P, connection: P::Connection, why: &UserError) {
    // The client may be gone, then nobody needs the reason.
    let _ = offer(driver, connection, &Answer::Refused { why: why.0.clone(), is_full: false });
}

/// Says that there is no place now.
pub(super) fn turn_away<P: Driver>(driver: &P, connection: P::Connection, why: &UserError) {
    let _ = offer(driver, connection, &Answer::Refused { why: why.0.clone(), is_full: true });
}

/// Why a server refuses a client during a run of another one.
pub(super) fn busy(client: &Client, since: Duration) -> UserError {
    let (who, seconds) = (who(client), since.as_secs());
    UserError(format!("the server is busy with {who} for {seconds} s: try again when that run has ended"))
}

/// Events of a client's endpoint that are taken at a time.
const BURST: usize = 64;
/// Connections whose first message is kept before the client's own is known.
const MOST_EARLY: usize = 16;

/// A client that has been told where to connect, and the endpoint for its run.
pub(super) struct Coming<P: Driver> {
    number: Number,
    pub(super) client: Client,
    pub(super) session: Session,
    pub(super) driver: P,
    control: Option<P::Connection>,
    operations: Option<P::Connection>,
    /// Its first command, and before its connection is known whatever comes first: it may know of
    /// both connections before this end does, where frames overtake each other.
    early: Vec<(P::Connection, Vec<u8>)>,
    /// When it was told where to connect, and whether it has begun to, and done so, since.
    since: Duration,
    has_begun: bool,
    is_here: bool,
}

/// A client that is gone, and why.
pub(super) type Gone = (Box<(Client, Session)>, UserError);

/// Both connections of a client, and its first command.
pub(super) type Connections<C> = (C, C, Vec<u8>);

impl<P: Driver> Coming<P> {
    pub(super) fn new(number: Number, client: Client, session: Session, driver: P) -> Self {
        let since = driver.now();
        let (control, operations, early) = (None, None, Vec::new());
        driver.heed([None; 2]);
        Self { number, client, session, driver, control, operations, early, since, has_begun: false, is_here: false }
    }

    /// Takes what has come.
    pub(super) fn look(&mut self) -> Result<(), UserError> {
        self.look_beside(ends::context_of, refuse)
    }

    /// Takes what has come. A request that is not one for this run gets a context from `context_of`
    /// that is none of the run's, and its connection an answer from `answer`.
    pub(super) fn look_beside(
        &mut self,
        mut context_of: impl FnMut(&Asking<'_>) -> u64,
        answer: impl Fn(&P, P::Connection, &UserError),
    ) -> Result<(), UserError> {
        let mut bytes = Vec::new();
        // Somebody may send all the time.
        for _ in 0..BURST {
            match self.driver.poll_event(&mut bytes, &mut context_of)? {
                DriverEvent::Open(connection, CONTROL) if self.control.is_none() => {
                    self.control = Some(connection);
                    self.driver.heed([self.control, self.operations]);
                }
                DriverEvent::Open(connection, OPERATIONS) if self.operations.is_none() => {
                    self.operations = Some(connection);
                    self.driver.heed([self.control, self.operations]);
                }
                DriverEvent::Open(connection, _) => {
                    let since = self.driver.now().saturating_sub(self.since);
                    answer(&self.driver, connection, &busy(&self.client, since));
                }
                DriverEvent::Received(from) if self.may_be_first(from) => {
                    self.early.push((from, std::mem::take(&mut bytes)));
                }
                DriverEvent::Nothing => break,
                _ => {}
            }
        }
        if let Some(control) = self.control {
            // What another connection brings is nothing.
            self.early.retain(|(from, _)| *from == control);
            if let Some((_, command)) = self.early.first() {
                let _is_one: Command = parse(command)?;
            }
        }
        self.is_here = self.control.is_some() && self.operations.is_some() && !self.early.is_empty();
        Ok(())
    }

    /// Whether a message of this connection is kept.
    fn may_be_first(&self, from: P::Connection) -> bool {
        match self.control {
            Some(control) => from == control && self.early.iter().all(|(other, _)| *other != control),
            None => self.early.len() < MOST_EARLY && self.early.iter().all(|(other, _)| *other != from),
        }
    }

    /// Its connections and its first command, once all are there.
    pub(super) fn connections(&mut self) -> Option<Connections<P::Connection>> {
        let (control, operations) = self.control.zip(self.operations)?;
        let at = self.early.iter().position(|(from, _)| *from == control)?;
        Some((control, operations, self.early.swap_remove(at).1))
    }

    fn refuse(&self, why: &UserError) {
        if let Some(control) = self.control {
            refuse(&self.driver, control, why);
        }
    }
}

/// A client's number in the hall.
pub(super) type Number = u64;

/// Clients that are about to connect, and those that wait for the end of another run.
pub(super) struct Hall<P: Driver> {
    coming: Vec<Coming<P>>,
    /// Those that are about to connect.
    admission: Admission<Number>,
    /// How long one may take to connect, and to wait.
    patience: Duration,
    next: Number,
}

/// What has become of a client of the hall.
pub(super) enum Next<P: Driver> {
    Come(Coming<P>),
    Gone(Gone),
}

fn gone<P: Driver>(coming: Coming<P>, why: UserError) -> Gone {
    (Box::new((coming.client, coming.session)), why)
}

impl<P: Driver> Hall<P> {
    /// An empty one.
    pub(super) fn new(patience: Duration) -> Self {
        let limits = Limits { places: COMING, patience, bytes: 1 };
        Self { coming: Vec::new(), admission: Admission::new(limits), patience, next: 0 }
    }

    /// Reserves a place, for which another client may have to go. The endpoint of a client is
    /// opened when it has a place: that takes long, and who has none takes no time from others.
    ///
    /// # Errors
    ///
    /// There is no place.
    pub(super) fn reserve(&mut self, now: Duration, origin: Origin) -> Result<Number, UserError> {
        self.next += 1;
        let arrival = match self.coming.len() {
            ..MOST_COMING => self.admission.handle_arrival(now, self.next, origin),
            MOST_COMING.. => Arrival::Refused,
        };
        match arrival {
            Arrival::Admitted => {}
            // It has not connected. There may be many such, so nobody is told.
            Arrival::Replaces(other) => drop(self.take(other)),
            Arrival::Refused => return Err(UserError::new("too many clients wait for the server: try again later")),
        }
        Ok(self.next)
    }

    /// Takes a client in that has a place, and has been told where to connect: its time begins.
    pub(super) fn enter(&mut self, coming: Coming<P>, origin: Origin) {
        self.admission.remove(&coming.number);
        // It had this place.
        let _ = self.admission.handle_arrival(coming.driver.now(), coming.number, origin);
        self.coming.push(coming);
    }

    /// Gives back a place that no client has taken.
    pub(super) fn give_back(&mut self, number: Number) {
        self.admission.remove(&number);
    }

    fn leave(&mut self, number: Number, why: UserError) -> Option<Gone> {
        self.take(number).map(|coming| gone(coming, why))
    }

    /// The endpoints whose events matter.
    pub(super) fn drivers(&self) -> impl Iterator<Item = &P> {
        self.coming.iter().map(|coming| &coming.driver)
    }

    /// The next client that has connected, or will not. While the server is `busy` those that have
    /// connected wait, and are told at the end of their time.
    pub(super) fn look(&mut self, now: Duration, busy: Option<&dyn Fn() -> UserError>) -> Option<Next<P>> {
        for at in 0..self.coming.len() {
            let patience = self.patience;
            let coming = &mut self.coming[at];
            let number = coming.number;
            if let Err(why) = coming.look() {
                return self.leave(number, why).map(Next::Gone);
            }
            if coming.control.is_some() && !std::mem::replace(&mut coming.has_begun, true) {
                // Its other connection and its command follow by round trips, for which it may take
                // longer than one that has not connected at all. One such byte is no excess.
                let _ = self.admission.handle_bytes(&number, 1);
            }
            if !coming.is_here {
                continue;
            }
            // It is a stranger no more.
            self.admission.remove(&number);
            match busy {
                None => return self.take(number).map(Next::Come),
                Some(why) if now.saturating_sub(coming.since) > patience => {
                    let why = why();
                    coming.refuse(&why);
                    return self.leave(number, why).map(Next::Gone);
                }
                Some(_) => {}
            }
        }
        let late = self.admission.poll_late(now)?;
        self.leave(late, UserError::new("the client did not connect for its run")).map(Next::Gone)
    }

    fn take(&mut self, number: Number) -> Option<Coming<P>> {
        self.admission.remove(&number);
        let at = self.coming.iter().position(|coming| coming.number == number)?;
        Some(self.coming.remove(at))
    }
}
