//! The process that has the memory which is measured.

use super::other_end::obey_as_peers;
use super::population::{Endpoints, Population, SPARE};
use super::sockets::{Sockets, obey_as_sockets};
use super::subject::{CurveTask, Subject};
use crate::interrupt;
use crate::measure::kernel::{Growth, Kernel};
use crate::measure::shared_pages::shared_bytes;
use crate::measure::usage::Usage;
use crate::task::Task;
use cci_report::{UserError, while_doing};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

/// What was measured of a subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) points: Vec<Point>,
    /// Why there is no more.
    pub(super) notes: Vec<String>,
}

/// Bytes beyond those without a peer or connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) count: u32,
    pub(super) user: f64,
    /// Where it was read, and the count is not too small for it.
    pub(super) kernel: Option<f64>,
}

impl Task for CurveTask {
    const NAME: &'static str = "memory-curve";

    fn run(&self) -> Result<(), Option<UserError>> {
        run(self).map_err(Some)
    }
}

fn run(task: &CurveTask) -> Result<(), UserError> {
    let limit = raise_limit();
    if let Some(other) = &task.other {
        return match &task.subject {
            Subject::Peers(transport) | Subject::Connections(transport) => obey_as_peers(transport, other),
            Subject::Sockets => obey_as_sockets(other),
        };
    }
    interrupt::watch_in_child()?;
    let measured = match &task.subject {
        Subject::Connections(transport) => grow(&mut Endpoints::of_one_peer(transport, task)?, task, u32::MAX),
        Subject::Peers(transport) => grow(&mut Endpoints::of_peers(transport, task, limit)?, task, room(limit)?),
        Subject::Sockets => grow(&mut Sockets::open(task)?, task, room(limit)?),
    }?;
    let text = serde_json::to_string(&measured).map_err(while_doing("cannot write the figures"))?;
    writeln!(std::io::stdout(), "{text}").map_err(while_doing("cannot write the figures"))
}

/// Allows this process as many descriptors as the system does; how many these are.
fn raise_limit() -> u32 {
    let limit = getrlimit(Resource::Nofile);
    // The system may forbid it, and the old limit holds.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX)
}

/// Peers that there are descriptors for, one each.
fn room(limit: u32) -> Result<u32, UserError> {
    Ok(limit.saturating_sub(SPARE).saturating_sub(descriptors()?).max(1))
}

/// Descriptors of this process that are open.
fn descriptors() -> Result<u32, UserError> {
    let open = fs::read_dir("/proc/self/fd").map_err(while_doing("cannot count descriptors"))?.count();
    Ok(u32::try_from(open).unwrap_or(u32::MAX))
}

/// From so many on the kernel's counts are exact enough, which are those of whole pages of
/// objects.
const RESOLVED: u32 = 1000;

/// A curve while it is measured.
struct Curve {
    before: f64,
    /// Open ones before.
    descriptors: u32,
    /// None where the kernel does not show it; with what it had before and after a chunk.
    kernel: Option<(Growth, [Kernel; 2])>,
    begin: Instant,
    measured: Measured,
    open: u32,
}

/// Bytes of this process's own and of what it shares.
fn user() -> Result<f64, UserError> {
    Ok(Usage::now()?.own + shared_bytes()?)
}

/// Measures at each stop, as far as there is room and time.
fn grow(population: &mut impl Population, task: &CurveTask, room: u32) -> Result<Measured, UserError> {
    // The first readings take memory themselves.
    user()?;
    let mut kernel = [Kernel::default(), Kernel::default()];
    let readable = kernel.iter_mut().try_for_each(Kernel::read);
    let mut curve = Curve {
        kernel: readable.is_ok().then(|| (Growth::default(), kernel)),
        descriptors: descriptors()?,
        before: user()?,
        begin: Instant::now(),
        measured: Measured::default(),
        open: 0,
    };
    if let Err(why) = readable {
        curve.measured.notes.push(format!("without the kernel's part: {}; run as root", why.0));
    }
    let last = task.stops.last().copied().unwrap_or(0);
    let stops = task.stops.iter().copied().filter(|stop| *stop < room).chain((last >= room).then_some(room));
    let mut ended = Ok(());
    for stop in stops {
        ended = curve.grow_to(population, stop, task.time);
        if ended.is_err() {
            break;
        }
    }
    curve.end(ended, last, room)
}

impl Curve {
    /// Adds what is missing, in chunks, and measures.
    fn grow_to(&mut self, population: &mut impl Population, stop: u32, time: Duration) -> Result<(), UserError> {
        while self.open < stop {
            let more = population.chunk().min(stop - self.open);
            population.prepare(more)?;
            if let Some((_, [before, _])) = &mut self.kernel {
                before.read()?;
            }
            population.add(more)?;
            self.open += more;
            if let Some((growth, [before, after])) = &mut self.kernel {
                after.read()?;
                growth.add(more, before, after);
            }
            if self.open < stop && self.begin.elapsed() > time {
                self.measure()?;
                return Err(UserError::new("allow it more time by --time"));
            }
        }
        self.measure()
    }

    fn measure(&mut self) -> Result<(), UserError> {
        let user = (user()? - self.before).max(0.0);
        // An end whose descriptors do not grow has nothing in the kernel that does: what grows is
        // the other end's.
        let has_part = self.open >= RESOLVED && descriptors()?.saturating_sub(self.descriptors) >= self.open / 2;
        let kernel = self.kernel.as_ref().filter(|_| has_part).map(|(growth, _)| growth.of_one_end(self.open));
        self.measured.points.push(Point { count: self.open, user, kernel });
        Ok(())
    }

    /// What was measured, with the reason why there is no more; a failure where there is nothing.
    fn end(mut self, ended: Result<(), UserError>, last: u32, room: u32) -> Result<Measured, UserError> {
        let Some(reached) = self.measured.points.last().map(|point| point.count) else {
            return ended.and(Err(UserError::new(interrupt::ENDED)));
        };
        let notes = &mut self.measured.notes;
        match ended {
            Err(why) => {
                let seconds = self.begin.elapsed().as_secs_f64();
                notes.push(format!("stopped at {reached} after {seconds:.0} s: {}", why.0));
            }
            Ok(()) if last > room => notes.push(format!(
                "stopped at {reached}, which is the limit of descriptors (ulimit -n) but {SPARE} that stay free"
            )),
            Ok(()) => {}
        }
        Ok(self.measured)
    }
}
