//! The set of peer programs of a run. The loss of one does not stop the others.

use super::catalogue::Choice;
use super::program::{Answer, Program, Timeouts};
use crate::effort::{Effort, calibrate, per_operation};
use crate::point::{Label, Point};
use cci_report::UserError;
use cci_report::names::Measurement;
use cci_report::session::Session;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The peers that a run measures, as part of its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerSelection {
    /// Names of settings, such as `ucx:tcp`.
    pub names: Vec<String>,
    /// Where their programs are.
    pub directory: PathBuf,
    /// Processors of the client and of the server.
    pub processors: [usize; 2],
}

/// The loss of a peer, or its exclusion from a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerEvent {
    /// The peer is lost: its name, and why.
    Lost(String, String),
    /// The peer is left out of this size, for this reason.
    LeftOut(String),
}

/// The peers of a run.
#[derive(Default)]
pub(crate) struct PeerSet {
    peers: Vec<ActivePeer>,
    /// What peers measured of this size before they were lost.
    lost_points: Vec<Point>,
    events: Vec<PeerEvent>,
}

struct ActivePeer {
    choice: Choice,
    program: Program,
    /// As the program reports it.
    setting: String,
    /// Operations of a block of this size; none while it is left out of it.
    count: Option<u64>,
    point: Point,
}

impl PeerSet {
    /// Starts all programs, then waits for each.
    pub(crate) fn start(peers: &PeerSelection, largest: u64, timeouts: Timeouts) -> Self {
        let mut all = Self::default();
        let mut started = Vec::new();
        for name in &peers.names {
            let program = Choice::named(name).ok_or_else(|| {
                UserError(format!("no peer is named {name}; give --peers all, installed, or a list of names"))
            });
            let program = program.and_then(|choice| {
                let program = Program::start(choice, &peers.directory, peers.processors, largest, timeouts)?;
                Ok((choice, program))
            });
            match program {
                Ok(begun) => started.push(begun),
                Err(why) => all.events.push(PeerEvent::Lost(name.clone(), why.0)),
            }
        }
        for (choice, program) in started {
            all.add(choice, program);
        }
        all
    }

    /// Adds a program as soon as it is ready.
    fn add(&mut self, choice: Choice, mut program: Program) {
        match program.ready(choice.peer.library) {
            Ok(setting) => {
                let point = Point::default();
                self.peers.push(ActivePeer { choice, program, setting, count: None, point });
            }
            Err(why) => self.events.push(PeerEvent::Lost(choice.to_string(), why.0)),
        }
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Takes the events since the last call.
    pub(crate) fn events(&mut self) -> Vec<PeerEvent> {
        std::mem::take(&mut self.events)
    }

    /// Calibrates each peer for a size that CCI has a point for.
    pub(crate) fn calibrate(&mut self, point: &Point, session: &Session, effort: &Effort) {
        self.each(|peer, events| {
            let label = Label { name: peer.choice.to_string(), setting: peer.setting.clone() };
            peer.point = Point { pairs: vec![], operations: 0, label: Some(label), ..point.clone() };
            peer.count = None;
            let mut cannot = None;
            let calibrated = calibrate(effort, |count| {
                match peer.program.block(command(session), point.size, count, session.touch)? {
                    Answer::Took(took) => Ok(took),
                    Answer::Cannot(reason) => {
                        cannot = Some(reason.clone());
                        Err(UserError(reason))
                    }
                }
            });
            match (calibrated, cannot) {
                (Ok(count), _) => peer.count = Some(count),
                (Err(_), Some(reason)) => {
                    events.push(PeerEvent::LeftOut(format!("{} cannot {reason}", peer.choice)));
                }
                (Err(why), None) => return Err(why),
            }
            Ok(())
        });
    }

    /// Measures a block of each peer; `bare` is the probe's block of the same round.
    pub(crate) fn round(&mut self, session: &Session, bare: Option<f64>) {
        self.each(|peer, _| {
            let Some(count) = peer.count else { return Ok(()) };
            match peer.program.block(command(session), peer.point.size, count, session.touch)? {
                Answer::Took(took) => {
                    let exchange = session.measurement == Measurement::PingPong;
                    peer.point.pairs.push((per_operation(took, count, exchange), bare));
                    peer.point.operations += count;
                    Ok(())
                }
                Answer::Cannot(reason) => {
                    Err(UserError(format!("it measured this size before and now cannot: {reason}")))
                }
            }
        });
    }

    /// What was measured of this size, also by those that were lost meanwhile.
    pub(crate) fn points(&mut self) -> Vec<Point> {
        let of_members = self.peers.iter_mut().map(|peer| std::mem::take(&mut peer.point));
        of_members.chain(self.lost_points.drain(..)).collect()
    }

    /// Calls `act` for each peer; a peer for which it fails is lost.
    fn each(&mut self, mut act: impl FnMut(&mut ActivePeer, &mut Vec<PeerEvent>) -> Result<(), UserError>) {
        let Self { peers, lost_points, events } = self;
        peers.retain_mut(|peer| match act(peer, events) {
            Ok(()) => true,
            Err(why) => {
                lost_points.push(std::mem::take(&mut peer.point));
                events.push(PeerEvent::Lost(peer.choice.to_string(), why.0));
                false
            }
        });
    }
}

/// What a program is asked for. An RMA from the memory that the last one went to, as CCI's
/// ping-pong of RMA is, has its counterpart in an echo: lines that were just received are sent, and
/// change hands each time.
fn command(session: &Session) -> &'static str {
    match session.measurement {
        Measurement::PingPong if session.is_rma() => "echo",
        Measurement::PingPong => "pingpong",
        _ => "stream",
    }
}
