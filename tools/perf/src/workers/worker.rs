//! A worker process: its arguments, its channel to the parent, and its role.

use crate::interrupt;
use crate::machine::pin;
use crate::probe::shared::Shared;
use crate::probe::{Probe, Side, WakePair};
use crate::task::Task;
use cci_report::{UserError, while_doing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write, stdin, stdout};

/// A line from a worker to its parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Value(serde_json::Value),
    Done,
    Failed(String),
}

/// What a worker does: the role of one process in a method.
pub(crate) trait Work: Clone + Serialize + DeserializeOwned {
    /// The name of the worker's task.
    const NAME: &'static str;

    /// Does the work, in the worker.
    fn work(&self, channel: &mut Channel) -> Result<(), UserError>;
}

/// What a worker is to do, and where.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerTask<W> {
    pub(super) role: W,
    pub(super) number: usize,
    /// Processor to stay on.
    pub(super) cpu: Option<usize>,
    /// Descriptor of the shared memory.
    pub(super) memory: i32,
    /// Descriptors that wake the server, and the client, of probes.
    pub(super) wake: [i32; 2],
}

/// The channel from a worker to its parent, and the worker's side of the probes.
pub(crate) struct Channel {
    probe: Option<Probe>,
}

impl Channel {
    /// The worker's side of the probes: the first worker is the client, the second the server, the
    /// rest have none.
    pub(crate) fn probe(&mut self) -> Result<&mut Probe, UserError> {
        self.probe.as_mut().ok_or_else(|| UserError::new("this worker has no side of the probes"))
    }

    /// Sends a value to the parent.
    #[expect(clippy::unused_self, reason = "only a worker with a channel may send")]
    pub(crate) fn send(&self, value: &impl Serialize) -> Result<(), UserError> {
        write(&Line::Value(serde_json::to_value(value).map_err(while_doing("cannot write a value for the parent"))?));
        Ok(())
    }

    /// Receives a value from the parent; blocks.
    #[expect(clippy::unused_self, reason = "only a worker with a channel may receive")]
    pub(crate) fn recv<T: DeserializeOwned>(&self) -> Result<T, UserError> {
        let mut line = String::new();
        stdin().lock().read_line(&mut line).map_err(while_doing("cannot read the parent's message"))?;
        serde_json::from_str(&line).map_err(while_doing("cannot parse the parent's message"))
    }
}

impl<W: Work> Task for WorkerTask<W> {
    const NAME: &'static str = W::NAME;

    /// Does the work of a worker in this process, and reports its outcome to the parent.
    fn run(&self) -> Result<(), Option<UserError>> {
        let outcome = work(self);
        write(&match &outcome {
            Ok(()) => Line::Done,
            Err(why) => Line::Failed(why.0.clone()),
        });
        outcome.map_err(|_| None)
    }
}

fn work<W: Work>(task: &WorkerTask<W>) -> Result<(), UserError> {
    interrupt::watch_in_child()?;
    if let Some(cpu) = task.cpu {
        pin(cpu).map_err(while_doing("cannot pin this process to its processor"))?;
    }
    task.role.work(&mut Channel { probe: probe(task)? })
}

/// The side of the probes for the worker with this number.
fn probe<W>(task: &WorkerTask<W>) -> Result<Option<Probe>, UserError> {
    let side = match task.number {
        0 => Side::Client,
        1 => Side::Server,
        _ => return Ok(None),
    };
    let memory = Shared::inherit(task.memory).map_err(while_doing("cannot map the shared memory of the probes"))?;
    Ok(Some(Probe::new(memory, WakePair::inherit(task.wake), side)))
}

fn write(line: &Line) {
    let mut output = stdout().lock();
    // A failure needs no handling: the kernel kills this process when its parent dies.
    let _ = serde_json::to_writer(&mut output, line);
    let _ = writeln!(output);
    let _ = output.flush();
}
