//! What grows: peers of an endpoint, or connections to one peer.

use super::subject::CurveTask;
use crate::interrupt;
use crate::measure::driver::{Driver, DriverEvent, DriverOptions};
use crate::measure::facade::Facade;
use crate::methods::other_process::OtherProcess;
use crate::task;
use cci_report::UserError;
use std::time::{Duration, Instant};

/// What is measured while it grows.
pub(super) trait Population {
    /// How many are added at once.
    fn chunk(&self) -> u32;
    /// Makes ready what is not measured: ends of peers that are not connected yet.
    fn prepare(&mut self, more: u32) -> Result<(), UserError>;
    /// Connects as many as were made ready.
    fn add(&mut self, more: u32) -> Result<(), UserError>;
}

/// Peers that are connected at once.
const PEERS: u32 = 500;
/// Connections to one peer that are made at once.
const CONNECTIONS: u32 = 10_000;
/// Descriptors of a peer in the process of the peers, at most.
const DESCRIPTORS: u32 = 8;
/// Descriptors that stay free for everything else.
pub(super) const SPARE: u32 = 200;
/// How long nothing may happen.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// An endpoint, and the processes that connect to it.
pub(super) struct Endpoints {
    /// Ended before the endpoints, which their peers would lose otherwise.
    others: Vec<OtherProcess>,
    /// Used once, so that the measured one does nothing for the first time.
    first: Facade,
    measured: Facade,
    /// Where these are.
    to: [String; 2],
    task: CurveTask,
    /// Peers that a process has descriptors for, and how many more the last process may have; none
    /// where one peer has all connections.
    room: Option<[u32; 2]>,
}

impl Endpoints {
    /// To one peer.
    pub(super) fn of_one_peer(transport: &str, task: &CurveTask) -> Result<Self, UserError> {
        let mut endpoints = Self::open(transport, task, None)?;
        endpoints.start_other()?;
        endpoints.order("open 1", 0)?;
        Ok(endpoints)
    }

    /// To endpoints of processes that may have so many descriptors.
    pub(super) fn of_peers(transport: &str, task: &CurveTask, limit: u32) -> Result<Self, UserError> {
        let each = (limit.saturating_sub(SPARE) / DESCRIPTORS).max(1);
        let mut endpoints = Self::open(transport, task, Some([each, each]))?;
        endpoints.start_other()?;
        Ok(endpoints)
    }

    fn open(transport: &str, task: &CurveTask, room: Option<[u32; 2]>) -> Result<Self, UserError> {
        let opening = DriverOptions::on_loopback(transport);
        let (first, measured) = (Facade::open(&opening)?, Facade::open(&opening)?);
        let to = [first.uri(), measured.uri()];
        Ok(Self { first, measured, to, others: Vec::new(), task: task.clone(), room })
    }

    /// Starts one more process of peers, the first of which uses everything once.
    fn start_other(&mut self) -> Result<(), UserError> {
        let number = u8::try_from(self.others.len()).unwrap_or(u8::MAX);
        let task = self.task.of_other(number, self.to.clone());
        self.others.push(OtherProcess::start(task::command(&task)?)?);
        if self.others.len() == 1 { self.use_once() } else { Ok(()) }
    }

    fn use_once(&mut self) -> Result<(), UserError> {
        let other = self.others.last_mut().ok_or_else(none)?;
        other.tell("first")?;
        accept(&self.first, other, 1)
    }

    /// Has the last process do something, which opens so many connections.
    fn order(&mut self, what: &str, opens: u32) -> Result<(), UserError> {
        let other = self.others.last_mut().ok_or_else(none)?;
        other.tell(what)?;
        accept(&self.measured, other, opens)
    }
}

fn none() -> UserError {
    UserError::new("the process of the peers ended early")
}

impl Population for Endpoints {
    fn chunk(&self) -> u32 {
        self.room.map_or(CONNECTIONS, |[each, _]| each.min(PEERS))
    }

    fn prepare(&mut self, more: u32) -> Result<(), UserError> {
        let Some([each, left]) = self.room else { return Ok(()) };
        let left = if left < more { self.start_other().map(|()| each)? } else { left };
        self.room = Some([each, left - more]);
        self.order(&format!("open {more}"), 0)
    }

    fn add(&mut self, more: u32) -> Result<(), UserError> {
        let what = if self.room.is_some() { "connect" } else { "connect-again" };
        self.order(&format!("{what} {more}"), more)
    }
}

/// Accepts so many connections, and makes progress until the other process has answered.
fn accept(endpoint: &Facade, other: &mut OtherProcess, count: u32) -> Result<(), UserError> {
    let (mut open, mut bytes, mut since) = (0, Vec::new(), Instant::now());
    while open < count || !other.has_answered() {
        if interrupt::is_asked() {
            return Err(UserError::new(interrupt::ENDED));
        }
        match endpoint.poll_event(&mut bytes, |_| 0)? {
            DriverEvent::Open(..) => (open, since) = (open + 1, Instant::now()),
            DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
            DriverEvent::Nothing if count > 0 && since.elapsed() > SILENCE => {
                return Err(UserError(format!("only {open} of {count} connections were made")));
            }
            DriverEvent::Nothing if other.has_ended() => return Err(none()),
            _ => {}
        }
    }
    other.answer()
}
