//! The end that measures.

use super::control::{Answer, Client, Command, Hello, Link, Report, Request, VERSION, What, parse, silent};
use super::driver::{Driver, DriverError, DriverEvent, DriverOptions, NotOpen, await_event};
use super::ends;
use super::ends::{Area, CONTROL, Handles, OPERATIONS};
use super::plan::Plan;
use super::ports::from_the_end;
use crate::device;
use crate::effort::{calibrate, per_operation};
use crate::interrupt;
use crate::peers::{PeerEvent, PeerSet, Timeouts};
use crate::point::{Point, histogram};
use crate::probe::{Probe, Remote};
use crate::reach::{advice_on, is_unresolved};
use cci::{Attribute, Failure, RmaHandle, Status};
use cci_report::environment::Path;
use cci_report::names::{Measurement, Mode, Operation, ProbeKind, Threads};
use cci_report::{UserError, while_doing};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// How long a server may take to answer a request.
const CALL: Duration = Duration::from_secs(5);
/// How long a server may be away that gave its port to a run and takes it back.
const REOPEN: Duration = Duration::from_secs(1);
/// Time between two attempts to reach an endpoint that is about to open.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a server is asked again that has no place for this client, which others take.
const FULL: Duration = Duration::from_secs(20);
/// How long it may take to get ready for a block, or to finish one: much longer than any block.
pub(super) const ANSWER: Duration = Duration::from_secs(60);
/// What a run tells of while it goes on, between blocks only.
pub enum Progress<'a> {
    /// How the operations travel.
    Path(&'a Path),
    /// A size is about to be measured.
    Size(u64),
    /// A size has been measured by one launch, at least in part.
    Point(&'a Point),
    /// A size was left out: the connection carries at most so many bytes.
    TooLarge(u64, u64),
    /// Something has befallen a peer.
    Peer(&'a PeerEvent),
}

/// Measures a whole plan against the server at `uri`.
///
/// # Errors
///
/// What could not be begun, or why it ended early; rows measured by then have been told.
pub(crate) fn run<P: Driver>(
    plan: &Plan,
    uri: &str,
    probe: Option<Probe>,
    mut on: impl FnMut(Progress<'_>),
) -> Result<(), UserError> {
    // Before the server waits for this end.
    let peer_set = PeerSet::start(&plan.peers, plan.session.largest, Timeouts::default());
    let mut end = join::<P>(plan, uri, probe)?;
    end.peer_set = peer_set;
    if plan.session.is_rma() {
        end.exchange_memory()?;
    }
    if let Some(path) = end.link.driver.path(end.link.operations) {
        on(Progress::Path(&path));
    }
    let most = end.link.driver.max_send_size(end.link.operations);
    for &size in &plan.sizes {
        if plan.session.operation == Operation::Send && size > most {
            on(Progress::TooLarge(size, most));
            continue;
        }
        on(Progress::Size(size));
        let mut point = Point { transport: end.link.driver.transport().into(), size, ..Point::default() };
        let outcome = end.point(&mut point);
        on(Progress::Point(&point));
        end.peer_set.points().iter().for_each(|point| on(Progress::Point(point)));
        end.peer_set.events().iter().for_each(|event| on(Progress::Peer(event)));
        outcome?;
        if interrupt::is_asked() {
            // The server goes on to the next client; whether it hears of the end does not matter.
            let _ = end.link.send(&Command::End);
            return Err(UserError::new(interrupt::ENDED));
        }
    }
    end.link.send(&Command::End)
}

/// Meets the server at `uri`, for blocks of this plan.
pub(crate) fn join<'p, P: Driver>(plan: &'p Plan, uri: &str, probe: Option<Probe>) -> Result<End<'p, P>, UserError> {
    // A probe is there where both ends are on this host.
    let opening = opening(plan, uri, if probe.is_some() { 2 } else { 1 });
    let begin = Instant::now();
    let (driver, [control, operations]) = loop {
        let there = agree::<P>(plan, &opening, uri)?;
        // An endpoint in place of the listening one opens when this client has left that.
        let is_beside = there != uri;
        let driver = P::open(&opening.for_session(&plan.session))?;
        match connect(&driver, &there, plan, if is_beside { Duration::ZERO } else { CALL })? {
            Ok(connections) => break (driver, connections),
            // It made room for others.
            Err(NotOpen { status: Status::ConnRefused | Status::Disconnected, .. })
                if is_beside && begin.elapsed() < FULL => {}
            Err(why) => return Err(not_reached(&there, &why)),
        }
    };
    driver.watch(control)?;
    let link = Link::new(driver, control, operations);
    let singles = histogram()?;
    let peer_set = PeerSet::default();
    Ok(End { link, plan, handles: None, area: None, probe, buffer: vec![], number: 0, peer_set, singles })
}

/// How the endpoint that asks the server at `uri` is opened.
fn opening(plan: &Plan, uri: &str, ends: u32) -> DriverOptions {
    DriverOptions {
        transport: plan.transport.clone().or_else(|| device::scheme(uri)),
        threads: Threads::Many,
        mode: Mode::Polling,
        keys: from_the_end(&plan.keys),
        library: plan.library.clone(),
        ends,
    }
}

/// Asks the server for an endpoint that is opened as the run needs it; its URI.
fn agree<P: Driver>(plan: &Plan, opening: &DriverOptions, uri: &str) -> Result<String, UserError> {
    let driver = P::open(opening)?;
    let payload = payload(&driver, Request::Launch(plan.session.clone()))?;
    let begin = driver.now();
    loop {
        let connection = call_soon(&driver, uri, &payload, Attribute::ReliableOrdered, CONTROL, REOPEN)?;
        driver.heed([Some(connection), None]);
        let why = match answer_on(&driver, connection)? {
            Some(Answer::Ready { uri }) => return Ok(uri),
            Some(Answer::Refused { why, is_full }) => {
                let why = UserError(format!("the server refused: {why}"));
                if !is_full {
                    return Err(why);
                }
                why
            }
            Some(other) => return Err(out_of_turn(&other)),
            None => UserError::new("the server closed the connection without an answer: too many ask it at once"),
        };
        if driver.now() - begin > FULL || interrupt::is_asked() {
            return Err(why);
        }
        driver.heed([None; 2]);
        driver.disconnect(connection);
        // Clients that were refused together do not come back together.
        std::thread::sleep(AGAIN.mul_f64(fastrand::f64()));
    }
}

/// The server's answer; none where it closes the connection before, to make room.
fn answer_on<P: Driver>(driver: &P, connection: P::Connection) -> Result<Option<Answer>, UserError> {
    let answer = await_event(driver, &mut Vec::new(), ANSWER, |event, bytes| match event {
        DriverEvent::Received(from) if from == connection => Some(parse(bytes)),
        _ => None,
    });
    match answer {
        Ok(Some(answer)) => answer.map(Some),
        Ok(None) => Err(silent(ANSWER)),
        Err(DriverError::PeerLost) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reports to the server at `uri` how a run has ended. A server that has gone does without.
pub(crate) fn report<P: Driver>(plan: &Plan, uri: &str, report: Report) {
    // A request has little room, and a letter may take six bytes of it.
    let short =
        |text: String| text.chars().take(300).map(|letter| if letter.is_ascii() { letter } else { '?' }).collect();
    let report = Report { result: short(report.result), early: report.early.map(short) };
    let _ = P::open(&opening(plan, uri, 1)).and_then(|driver| {
        let patience = if report.early.is_some() { Duration::ZERO } else { CALL };
        let payload = payload(&driver, Request::Report(report))?;
        call_soon(&driver, uri, &payload, Attribute::ReliableOrdered, CONTROL, patience)
    });
}

fn payload(driver: &impl Driver, request: Request) -> Result<Vec<u8>, UserError> {
    let hello = Hello { cci_perf: VERSION, client: Client::at(driver), request };
    serde_json::to_vec(&hello).map_err(while_doing("cannot write the request"))
}

/// Both connections of a run.
fn connect<P: Driver>(
    driver: &P,
    uri: &str,
    plan: &Plan,
    patience: Duration,
) -> Result<Result<[P::Connection; 2], NotOpen>, UserError> {
    let payload = ends::payload_of(CONTROL);
    let control = call_again(driver, uri, payload, Attribute::ReliableOrdered, CONTROL, patience)?;
    let attribute = ends::attribute(plan.session.attribute);
    let operations = || call_once(driver, uri, ends::payload_of(OPERATIONS), attribute, OPERATIONS);
    Ok(match control {
        Ok(control) => operations()?.map(|operations| [control, operations]),
        Err(why) => Err(why),
    })
}

/// Connects and waits for the outcome.
pub(crate) fn call<P: Driver>(
    driver: &P,
    uri: &str,
    payload: &[u8],
    attribute: Attribute,
    context: u64,
) -> Result<P::Connection, UserError> {
    call_once(driver, uri, payload, attribute, context)?.map_err(|why| not_reached(uri, &why))
}

/// Connects to an endpoint that may be about to open: while nobody listens there, tries again for
/// so long.
fn call_soon<P: Driver>(
    driver: &P,
    uri: &str,
    payload: &[u8],
    attribute: Attribute,
    context: u64,
    patience: Duration,
) -> Result<P::Connection, UserError> {
    call_again(driver, uri, payload, attribute, context, patience)?.map_err(|why| not_reached(uri, &why))
}

fn call_again<P: Driver>(
    driver: &P,
    uri: &str,
    payload: &[u8],
    attribute: Attribute,
    context: u64,
    patience: Duration,
) -> Result<Result<P::Connection, NotOpen>, UserError> {
    let begin = driver.now();
    loop {
        match call_once(driver, uri, payload, attribute, context)? {
            Err(why) if why.status == Status::ConnRefused && driver.now() - begin < patience => {
                std::thread::sleep(AGAIN);
            }
            called => return Ok(called),
        }
    }
}

fn call_once<P: Driver>(
    driver: &P,
    uri: &str,
    payload: &[u8],
    attribute: Attribute,
    context: u64,
) -> Result<Result<P::Connection, NotOpen>, UserError> {
    driver.connect(uri, payload, attribute, context, CALL)?;
    let opened = await_event(driver, &mut Vec::new(), 2 * CALL, |event, _| match event {
        DriverEvent::Open(connection, of) if of == context => Some(Ok(connection)),
        DriverEvent::NotOpen(why, of) if of == context => Some(Err(why)),
        _ => None,
    });
    match opened {
        Ok(opened) => Ok(opened.unwrap_or(Err(Status::TimedOut.into()))),
        // The server has closed the endpoint, and with it a connection that was open.
        Err(DriverError::PeerLost) => Ok(Err(Status::Disconnected.into())),
        Err(error) => Err(error.into()),
    }
}

fn not_reached(uri: &str, why: &NotOpen) -> UserError {
    let failure = Failure::from_status(why.status);
    let reason = why.reason.as_deref();
    let hint = failure.map_or_else(|| why.to_string(), |it| advice_on(uri, it, reason, CALL));
    if let Some(reason) = reason.filter(|_| is_unresolved(reason)) {
        return UserError(format!("the server at {uri} was not reached: {reason}; {hint}"));
    }
    let and = match why.status {
        Status::ConnRefused => "; is the server running?",
        Status::TimedOut => "; or the server is busy with another run",
        _ => "",
    };
    UserError(format!("the server at {uri} was not reached: {hint}{and}"))
}

pub(super) fn out_of_turn(answer: &Answer) -> UserError {
    match answer {
        Answer::Refused { why, .. } => UserError(format!("the server gave up: {why}")),
        other => UserError(format!("the server sent an unexpected message: {other:?}")),
    }
}

/// The client's end of a run. Fields drop in order: the endpoint before the memory that is
/// registered with it.
pub(crate) struct End<'p, P: Driver> {
    pub(crate) link: Link<P>,
    pub(crate) plan: &'p Plan,
    pub(super) handles: Option<Handles>,
    area: Option<Area>,
    pub(super) probe: Option<Probe>,
    pub(super) buffer: Vec<u8>,
    /// Blocks begun so far.
    pub(super) number: u64,
    peer_set: PeerSet,
    /// Nanoseconds of the round trips of this point, where each is timed.
    pub(super) singles: Histogram<u64>,
}

impl<P: Driver> End<'_, P> {
    fn exchange_memory(&mut self) -> Result<(), UserError> {
        let area = Area::new(self.plan.session.memory, self.plan.session.largest)?;
        let local = self.link.driver.register(area.memory())?;
        self.area = Some(area);
        self.link.send(&Command::Memory { handle: local.words() })?;
        let Answer::Memory { handle, pid, address } = self.link.recv(ANSWER)? else {
            return Err(UserError::new("the server did not send the handle of its memory"));
        };
        self.handles = Some(Handles { local, remote: RmaHandle::from_words(handle) });
        if let Some(probe) = &mut self.probe {
            let read = self.plan.session.operation == Operation::Read;
            probe.remote = Some(Remote { pid, address, read });
        }
        Ok(())
    }

    /// Measures one size: calibrates, then alternates blocks of the probe with blocks of the
    /// library.
    fn point(&mut self, point: &mut Point) -> Result<(), UserError> {
        let begun = self.link.driver.now();
        let outcome = self.blocks_of(point);
        point.took = self.link.driver.now() - begun;
        outcome
    }

    fn blocks_of(&mut self, point: &mut Point) -> Result<(), UserError> {
        let size = point.size;
        if self.plan.session.operation == Operation::Send {
            let len = usize::try_from(size).map_err(while_doing("the size is too large"))?;
            self.buffer.resize(len, 1);
        }
        let effort = self.plan.effort;
        let count = calibrate(&effort, |count| self.measured(size, count, None).map(|(took, _)| took))?;
        let probe = match self.plan.probe.filter(|_| self.probe.is_some()) {
            None => None,
            Some(kind) => Some((kind, calibrate(&effort, |count| self.probed(kind, size, count))?)),
        };
        let session = &self.plan.session;
        let measurement = session.measurement;
        self.give_way(|peer_set| peer_set.calibrate(point, session, &effort))?;
        // Of a ping-pong the half counts, of the probes' too; of jitter the whole.
        let halved = measurement == Measurement::PingPong;
        let work = self.work_like_a_transfer(size, count)?;
        self.singles.reset();
        let begin = self.link.driver.now();
        while !effort.is_enough(point.pairs.len() as u64, self.link.driver.now() - begin) && !interrupt::is_asked() {
            let bare = match probe {
                None => None,
                Some((kind, count)) => {
                    let took = self.probed(kind, size, count)?;
                    Some(per_operation(took, count, kind.is_exchange() && measurement != Measurement::Jitter))
                }
            };
            let alone = self.alone(size, count, work)?;
            let (took, moved) = self.measured(size, count, work)?;
            point.pairs.push((per_operation(took, moved, halved), bare));
            point.operations += moved;
            let both = per_operation(took, moved, false);
            point.overlaps.extend(alone.map(|[transfer, compute]| [transfer, compute, both]));
            self.give_way(|peer_set| peer_set.round(session, bare))?;
        }
        point.singles =
            self.singles.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        point.clock_ns = self.cost_of_the_clock();
        Ok(())
    }

    /// Leaves the processors to the peers: meanwhile the server sleeps until it is woken, as in the
    /// probe of waking.
    fn give_way(&mut self, act: impl FnOnce(&mut PeerSet)) -> Result<(), UserError> {
        if self.peer_set.is_empty() {
            return Ok(());
        }
        self.begin(What::Probe(ProbeKind::Wake), 0, 1)?;
        act(&mut self.peer_set);
        let probe = self.probe.as_mut().ok_or_else(|| UserError::new("the ends share no memory to wait in"))?;
        probe.run(ProbeKind::Wake, 0, 1).map_err(while_doing("the server was not woken"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_told_with_its_uri_and_a_hint() {
        let text = not_reached("sm://1/2", &Status::ConnRefused.into()).0;
        assert!(text.contains("sm://1/2") && text.contains("is the server running?"), "{text}");
    }

    #[test]
    fn a_host_whose_name_has_no_address_is_told_without_routes_and_servers() {
        let reason = "the host name 'silent.example' cannot be resolved: not known";
        for status in [Status::ConnRefused, Status::TimedOut] {
            let text = not_reached("tcp://silent.example:5000", &NotOpen { status, reason: Some(reason.into()) }).0;
            assert!(text.contains(reason) && text.contains("getent hosts silent.example)"), "{text}");
            for word in ["route", "firewall", "is the server running?", "busy"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }
}
