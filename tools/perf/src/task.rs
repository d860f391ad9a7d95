//! Tasks of processes that a measurement starts: this program, executed again with a task instead
//! of a command line.

use cci_report::{UserError, while_doing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command};

/// The first argument of such a process; the second is its order as JSON.
const WORD: &str = "cci-perf-child";

/// What a process does that was started for it.
pub(crate) trait Task: Serialize + DeserializeOwned {
    /// The name by which an order finds the task.
    const NAME: &'static str;

    /// Does the task in this process.
    ///
    /// # Errors
    ///
    /// What failed; nothing where the task has reported it to the parent itself.
    fn run(&self) -> Result<(), Option<UserError>>;
}

/// A process that is ended when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A task, and the process that must be the parent, if one must.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// None: a rank of a job, which ends with its launcher.
    parent: Option<u32>,
    /// Name of the task.
    pub(crate) task: String,
    /// The task itself, as JSON.
    pub(crate) arguments: Value,
}

/// The command that executes this program again for a task. The process ends with its parent.
pub(crate) fn command<T: Task>(task: &T) -> Result<Command, UserError> {
    let mut command = Command::new(this_program()?);
    command.args(order(task, Some(std::process::id()))?);
    Ok(command)
}

/// The program of this process.
pub(crate) fn this_program() -> Result<PathBuf, UserError> {
    std::env::current_exe().map_err(while_doing("cannot find this program to start it again"))
}

/// The arguments with which this program does a task as a rank of a job.
pub(crate) fn of_rank<T: Task>(task: &T) -> Result<[String; 2], UserError> {
    order(task, None)
}

fn order<T: Task>(task: &T, parent: Option<u32>) -> Result<[String; 2], UserError> {
    let failed = while_doing("cannot write a task");
    let arguments = serde_json::to_value(task).map_err(&failed)?;
    let order = Order { parent, task: T::NAME.into(), arguments };
    Ok([WORD.into(), serde_json::to_string(&order).map_err(&failed)?])
}

impl Order {
    /// The order of this process, if a measurement has started it. From now on the process ends
    /// with its parent.
    pub(crate) fn of_this_process() -> Option<Result<Self, UserError>> {
        let mut words = std::env::args_os().skip(1);
        if words.next().as_deref() != Some(OsStr::new(WORD)) {
            return None;
        }
        let order = words.next().unwrap_or_default();
        Some(Self::parse(&order.to_string_lossy()))
    }

    fn parse(order: &str) -> Result<Self, UserError> {
        let order: Self = serde_json::from_str(order).map_err(while_doing("cannot parse the task"))?;
        order.parent.map_or(Ok(()), die_with)?;
        Ok(order)
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
