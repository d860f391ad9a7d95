//! All programs of a run. One that is lost does not stop the others.

use super::catalogue::Choice;
use super::program::{Answer, Patience, Program};
use super::{Guests, Label};
use crate::measure::UserError;
use crate::measure::client::{calibrate, per_operation};
use crate::measure::plan::{Effort, Measurement, Session};
use crate::measure::points::Point;
use serde::{Deserialize, Serialize};

/// What befalls a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    /// It is gone: its name, and why.
    Lost(String, String),
    /// It is left out of this size, for this reason.
    LeftOut(String),
}

/// The peers of a run.
#[derive(Default)]
pub(crate) struct Company {
    members: Vec<Member>,
    /// What members measured of this size before they were lost.
    left: Vec<Point>,
    news: Vec<News>,
}

struct Member {
    choice: Choice,
    program: Program,
    /// As the program tells it.
    setting: String,
    /// Operations of a block of this size; none while it is left out of it.
    count: Option<u64>,
    point: Point,
}

impl Company {
    /// Starts all programs, then waits for each.
    pub(crate) fn start(guests: &Guests, largest: u64, patience: Patience) -> Self {
        let mut company = Self::default();
        let mut started = Vec::new();
        for name in &guests.names {
            let program = Choice::named(name).ok_or_else(|| UserError(format!("there is no peer {name}")));
            let program = program.and_then(|choice| {
                let program = Program::start(choice, &guests.directory, guests.processors, largest, patience)?;
                Ok((choice, program))
            });
            match program {
                Ok(begun) => started.push(begun),
                Err(why) => company.news.push(News::Lost(name.clone(), why.0)),
            }
        }
        for (choice, program) in started {
            company.join(choice, program);
        }
        company
    }

    /// Takes in a program as soon as it is ready.
    fn join(&mut self, choice: Choice, mut program: Program) {
        match program.ready(choice.peer.library) {
            Ok(setting) => {
                let point = Point::default();
                self.members.push(Member { choice, program, setting, count: None, point });
            }
            Err(why) => self.news.push(News::Lost(choice.to_string(), why.0)),
        }
    }

    /// Whether there is nobody.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What has befallen peers since this was last asked.
    pub(crate) fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Gets ready for a size, which CCI has a point for.
    pub(crate) fn calibrate(&mut self, point: &Point, session: &Session, effort: &Effort) {
        self.each(|member, news| {
            let label = Label { name: member.choice.to_string(), setting: member.setting.clone() };
            member.point = Point { pairs: vec![], operations: 0, label: Some(label), ..point.clone() };
            member.count = None;
            let mut cannot = None;
            let calibrated = calibrate(effort, |count| {
                match member.program.block(what(session), point.size, count, session.touch)? {
                    Answer::Took(took) => Ok(took),
                    Answer::Cannot(reason) => {
                        cannot = Some(reason.clone());
                        Err(UserError(reason))
                    }
                }
            });
            match (calibrated, cannot) {
                (Ok(count), _) => member.count = Some(count),
                (Err(_), Some(reason)) => {
                    news.push(News::LeftOut(format!("{} cannot {reason}", member.choice)));
                }
                (Err(why), None) => return Err(why),
            }
            Ok(())
        });
    }

    /// A block of each, beside the probe's block of the same round.
    pub(crate) fn round(&mut self, session: &Session, bare: Option<f64>) {
        self.each(|member, _| {
            let Some(count) = member.count else { return Ok(()) };
            match member.program.block(what(session), member.point.size, count, session.touch)? {
                Answer::Took(took) => {
                    let exchange = session.measurement == Measurement::PingPong;
                    member.point.pairs.push((per_operation(took, count, exchange), bare));
                    member.point.operations += count;
                    Ok(())
                }
                Answer::Cannot(reason) => Err(UserError(format!("it did this before, and now cannot: {reason}"))),
            }
        });
    }

    /// What was measured of this size, also by those that were lost meanwhile.
    pub(crate) fn points(&mut self) -> Vec<Point> {
        let of_members = self.members.iter_mut().map(|member| std::mem::take(&mut member.point));
        of_members.chain(self.left.drain(..)).collect()
    }

    /// Does something with each; one with which it fails is lost.
    fn each(&mut self, mut act: impl FnMut(&mut Member, &mut Vec<News>) -> Result<(), UserError>) {
        let Self { members, left, news } = self;
        members.retain_mut(|member| match act(member, news) {
            Ok(()) => true,
            Err(why) => {
                left.push(std::mem::take(&mut member.point));
                news.push(News::Lost(member.choice.to_string(), why.0));
                false
            }
        });
    }
}

/// What a program is asked for. An RMA from the memory that the last one went to, as CCI's ping-pong of RMA is, has its counterpart
/// in an echo: lines that were just received are sent, and change hands each time.
fn what(session: &Session) -> &'static str {
    match session.measurement {
        Measurement::PingPong if session.is_rma() => "echo",
        Measurement::PingPong => "pingpong",
        _ => "stream",
    }
}
