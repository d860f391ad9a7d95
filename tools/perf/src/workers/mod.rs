//! Worker processes that measure together on this host. The parent starts each by executing this
//! program again with a role, and pins the workers to different processors if there are enough.
//!
//! Parent and workers exchange lines of JSON over the workers' standard input and output. The
//! kernel kills the workers when their parent dies. The parent detects the death of a worker by the
//! end of its output.

mod worker;

pub(crate) use self::worker::{Channel, Work, WorkerTask};

use crate::interrupt;
use crate::machine::{allowed, two_processors};
use crate::probe::shared;
use crate::probe::shared::Shared;
use crate::probe::{WakePair, pass_on};
use crate::task::{self, Running};
use cci_report::{UserError, while_doing};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use worker::Line;

/// Time without a message after which the run has stalled; longer than any step of a run.
const STALL_TIMEOUT: Duration = Duration::from_secs(300);
/// Time that the parent waits for the end of a killed worker after another worker has failed.
const DEATH_TIMEOUT: Duration = Duration::from_secs(1);

/// A worker process, killed on drop.
struct Worker {
    child: Running,
    input: Option<ChildStdin>,
    /// Values received from it that the caller has not taken yet.
    pending: VecDeque<serde_json::Value>,
    /// It has reported the end of its work.
    is_done: bool,
}

/// What a reader thread passes on.
enum Received {
    Line(Line),
    /// The worker's output has ended.
    End,
}

/// The worker processes of a run.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    received: Receiver<(usize, Received)>,
    /// Memory and descriptors of the probes, which the workers inherit.
    probe: (Shared, WakePair),
    /// A signal has been passed on to the workers.
    is_asked: bool,
    /// Processors of the workers, if each has one of its own.
    pub(crate) processors: Option<Vec<usize>>,
}

impl Workers {
    /// Starts a worker for each role. The first is the client of the probes, the second the server.
    pub(crate) fn start<W: Work>(roles: &[W]) -> Result<Self, UserError> {
        let memory = Shared::create(shared::LEN).map_err(while_doing("cannot map memory for the probes"))?;
        let wake = WakePair::create().map_err(while_doing("cannot open descriptors for the probes"))?;
        let processors = processors(roles.len());
        let (sender, received) = channel();
        let probe = (memory, wake);
        let mut all = Self { workers: Vec::new(), received, probe, is_asked: false, processors };
        for (number, role) in roles.iter().enumerate() {
            let worker = all.spawn(number, role, &sender)?;
            all.workers.push(worker);
        }
        Ok(all)
    }

    fn spawn<W: Work>(&self, number: usize, role: &W, sender: &Sender<(usize, Received)>) -> Result<Worker, UserError> {
        let failed = while_doing("cannot start a worker");
        let (memory, wake) = &self.probe;
        let task = WorkerTask {
            role: role.clone(),
            number,
            cpu: self.processors.as_ref().map(|processors| processors[number]),
            memory: memory.number(),
            wake: wake.numbers(),
        };
        let mut command = task::command(&task)?;
        pass_on(&mut command, memory, wake);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(&failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(Ok(line)) = line.map(|line| serde_json::from_str(&line)) else { break };
                // The receiver is dropped at the end of the run.
                let _ = sender.send((number, Received::Line(line)));
            }
            let _ = sender.send((number, Received::End));
        });
        Ok(Worker { child: Running(child), input, pending: VecDeque::new(), is_done: false })
    }

    /// Sends a value to a worker.
    pub(crate) fn send(&mut self, number: usize, value: &impl Serialize) -> Result<(), UserError> {
        let text = serde_json::to_string(value).map_err(while_doing("cannot write a value for a worker"))?;
        let written = self.workers[number].input.as_mut().map(|input| writeln!(input, "{text}"));
        match written {
            Some(Ok(())) => Ok(()),
            // The worker has ended.
            _ => Err(self.exit_reason(number)),
        }
    }

    /// Receives the next value of a worker; blocks. Values of other workers stay pending.
    ///
    /// # Errors
    ///
    /// A worker failed, died, ended before it had sent the value, or sent nothing for
    /// [`STALL_TIMEOUT`]; or a signal ended it.
    pub(crate) fn recv<T: DeserializeOwned>(&mut self, number: usize) -> Result<T, UserError> {
        let value = loop {
            if let Some(value) = self.workers[number].pending.pop_front() {
                break value;
            }
            let received = self.recv_line(number);
            received.map_err(|why| if self.is_asked { UserError::new(interrupt::ENDED) } else { why })?;
        };
        serde_json::from_value(value).map_err(while_doing("cannot parse a worker's message"))
    }

    /// Receives one line of any worker; `awaited` is the worker whose value the caller needs.
    fn recv_line(&mut self, awaited: usize) -> Result<(), UserError> {
        match self.next_received() {
            Ok((number, Received::Line(Line::Value(value)))) => self.workers[number].pending.push_back(value),
            Ok((number, Received::Line(Line::Done))) => self.workers[number].is_done = true,
            Ok((number, Received::Line(Line::Failed(why)))) => {
                return Err(self.killed_other(number).unwrap_or(UserError(why)));
            }
            // A worker may end after its work, unless the caller awaits a value of it.
            Ok((number, Received::End)) if !self.workers[number].is_done || number == awaited => {
                return Err(self.exit_reason(number));
            }
            Ok((_, Received::End)) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(UserError(format!(
                    "no worker sent a message for {} s; try again on a machine that does nothing else",
                    STALL_TIMEOUT.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// The next that a reader thread passes on. A signal that asks the run to end is passed on to
    /// the workers meanwhile.
    fn next_received(&mut self) -> Result<(usize, Received), RecvTimeoutError> {
        let begin = Instant::now();
        loop {
            if interrupt::is_asked() && !self.is_asked {
                self.is_asked = true;
                self.workers.iter().for_each(|worker| interrupt::pass_on(&worker.child.0));
            }
            match self.received.recv_timeout(interrupt::LOOK) {
                Err(RecvTimeoutError::Timeout) if begin.elapsed() < STALL_TIMEOUT => {}
                ended => return ended,
            }
        }
    }

    /// Sends a value to every worker.
    pub(crate) fn send_all(&mut self, value: &impl Serialize) -> Result<(), UserError> {
        (0..self.workers.len()).try_for_each(|number| self.send(number, value))
    }

    /// Receives a value from every worker, in the order of their numbers.
    pub(crate) fn recv_all<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, UserError> {
        (0..self.workers.len()).map(|number| self.recv(number)).collect()
    }

    /// Why another worker than this one was killed, if one was: the cause of this worker's failure.
    fn killed_other(&mut self, number: usize) -> Option<UserError> {
        while let Ok((other, received)) = self.received.recv_timeout(DEATH_TIMEOUT) {
            if other != number && matches!(received, Received::End) && self.is_killed(other) {
                return Some(self.exit_reason(other));
            }
        }
        None
    }

    fn is_killed(&mut self, number: usize) -> bool {
        self.workers[number].child.0.wait().is_ok_and(|status| status.code().is_none())
    }

    /// The exit status of a worker, as an error.
    fn exit_reason(&mut self, number: usize) -> UserError {
        let status = self.workers[number].child.0.wait();
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        UserError(format!("worker {number} ended early: {how}"))
    }
}

/// A processor of its own for each of `count` workers, or none if there are too few.
fn processors(count: usize) -> Option<Vec<usize>> {
    let there = allowed();
    match count {
        2 => Some(two_processors().to_vec()),
        count if count <= there.len() => Some(there[..count].to_vec()),
        _ => None,
    }
}
