//! Processes that a measurement starts: this program, executed again with a task instead of a
//! command line.

use crate::measure::local;
use crate::measure::local::EndTask;
use crate::methods::connections;
use crate::methods::connections::ConnectionsTask;
use crate::methods::footprint;
use crate::methods::footprint::FootprintTask;
use crate::methods::many_peers;
use crate::methods::many_peers::ManyPeersTask;
use crate::workers;
use crate::workers::WorkerTask;
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, ExitCode};

/// The first argument of such a process; the second is its order as JSON.
const WORD: &str = "cci-perf-child";

/// What a process is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Task {
    /// One end of a local run.
    End(EndTask),
    /// One process of a measurement that needs several.
    Worker(WorkerTask),
    /// One figure that needs a process of its own.
    Footprint(FootprintTask),
    /// Very many connections: the end that measures, or the one that connects.
    Connections(ConnectionsTask),
    /// Many peers of one endpoint: the end that measures, or the peers.
    ManyPeers(ManyPeersTask),
}

/// A task, and the process that must be the parent.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    parent: u32,
    task: Task,
}

/// The command that executes this program again for a task. The process ends with its parent.
pub(crate) fn command(task: Task) -> Result<Command, UserError> {
    let program = std::env::current_exe().map_err(while_doing("cannot find this program to start it again"))?;
    let order = Order { parent: std::process::id(), task };
    let order = serde_json::to_string(&order).map_err(while_doing("cannot write a task"))?;
    let mut command = Command::new(program);
    command.args([WORD, &order]);
    Ok(command)
}

/// Does the task of this process if a measurement has started it, and returns the status to end
/// with. A program that measures calls this first in `main`.
#[must_use]
pub fn run() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next().as_deref() != Some(OsStr::new(WORD)) {
        return None;
    }
    let order = words.next().unwrap_or_default();
    Some(match done(&order.to_string_lossy()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Ends and workers have told their parent already, which reads no more; others tell it
            // so.
            let _ = why.map(|why| writeln!(std::io::stderr(), "{}.", why.0.trim_end_matches('.')));
            ExitCode::FAILURE
        }
    })
}

/// Does what the order says. What failed is told here unless the parent knows.
fn done(order: &str) -> Result<(), Option<UserError>> {
    let order: Order = serde_json::from_str(order).map_err(while_doing("cannot parse the task"))?;
    die_with(order.parent)?;
    match order.task {
        Task::End(task) => local::end(&task).map_err(|_| None),
        Task::Worker(task) => workers::worker(&task).map_err(|_| None),
        Task::Footprint(task) => footprint::footprint(&task).map_err(Some),
        Task::Connections(task) => connections::connections(&task).map_err(Some),
        Task::ManyPeers(task) => many_peers::many_peers(&task).map_err(Some),
    }
}

/// Asks the kernel to end this process when its parent ends, and looks whether that has happened
/// already.
fn die_with(parent: u32) -> Result<(), UserError> {
    let asked = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    asked.map_err(while_doing("cannot bind this process to its parent"))?;
    let now = rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero);
    let is_there = now.is_some_and(|now| u32::try_from(now.get()) == Ok(parent));
    if is_there { Ok(()) } else { Err(UserError::new("the parent has ended")) }
}
