//! Both ends of a run as processes of this host: spawned by executing this program again, pinned to
//! different processors, with bare memory in common for the probes.
//!
//! The children write lines of JSON to their standard output. They die with their parent (the
//! kernel sees to that), and the parent notices the death of either by the end of its output.

use super::c_library::CLibrary;
use super::client;
use super::client::Progress;
use super::driver::{Driver, DriverOptions};
use super::facade::Facade;
use super::plan::Plan;
use super::points::{Finished, in_launches};
use super::server;
use super::server::Notice;
use super::virtual_time;
use crate::interrupt;
use crate::machine::{pin, two_processors};
use crate::peers::PeerEvent;
use crate::point::Point;
use crate::probe::shared;
use crate::probe::shared::Shared;
use crate::probe::{Probe, Side, WakePair, pass_on};
use crate::task::{self, Running, Task};
use cci_report::environment::Path;
use cci_report::names::{Abi, Mode, Threads};
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long the client may take to notice by itself that the server has died.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Time between two looks for a signal that ends the run.
const LOOK: Duration = Duration::from_millis(50);

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Listening(String),
    Path(Path),
    Size(u64),
    Point(Point),
    TooLarge(u64, u64),
    Peer(PeerEvent),
    Done,
    Failed(String),
}

enum Said {
    Line(Side, Line),
    Ended(Side),
}

/// The part of a run that a child plays.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EndTask {
    /// The server to measure against; without it this is the server.
    uri: Option<String>,
    /// Processor to stay on.
    cpu: usize,
    /// Descriptor of the common memory.
    memory: i32,
    /// Descriptors that wake the server, and the client.
    wake: [i32; 2],
    plan: Plan,
}

/// Runs a plan with both ends on this host, in as many launches as it asks for; over `sim` in this
/// process.
///
/// # Errors
///
/// Nothing could be begun. A run that ended early is no error here: it has rows.
pub(crate) fn run(plan: &Plan, on: impl FnMut(Progress<'_>)) -> Result<Finished, UserError> {
    if plan.is_virtual() {
        return in_launches(plan, on, |plan, on| virtual_time::launch(plan, on));
    }
    let pinned = two_processors();
    let mut peers = plan.peers.clone();
    in_launches(plan, on, |plan, on| {
        let mut lost = Vec::new();
        let plan = Plan { peers: peers.clone(), ..plan.clone() };
        let ended = launch(&plan, pinned, &mut |progress| {
            if let Progress::Peer(PeerEvent::Lost(name, _)) = &progress {
                lost.push((*name).clone());
            }
            on(progress);
        });
        // A peer that is lost is not tried again.
        peers.names.retain(|name| !lost.contains(name));
        ended
    })
}

/// Runs a plan with two fresh processes.
fn launch(plan: &Plan, pinned: [usize; 2], on: &mut dyn FnMut(Progress<'_>)) -> Result<(), UserError> {
    let memory = Shared::create(shared::LEN).map_err(while_doing("cannot map memory for the probes"))?;
    let wake = WakePair::create().map_err(while_doing("cannot open descriptors for the probes"))?;
    let (sender, said) = channel();
    let spawn = |side, cpu, uri| spawn(plan, &memory, &wake, side, cpu, uri, &sender);
    let mut server = spawn(Side::Server, pinned[1], None)?;
    let uri = match said.recv() {
        Ok(Said::Line(_, Line::Listening(uri))) => uri,
        Ok(Said::Line(_, Line::Failed(why))) => return Err(UserError(why)),
        _ => return Err(UserError(format!("the server end did not start: {}", how_ended(server.0.wait())))),
    };
    let mut client = spawn(Side::Client, pinned[0], Some(&uri))?;
    listen(&said, &mut server, &mut client, on)
}

/// Passes on what the client says until it has finished or either end has died.
fn listen(
    said: &Receiver<Said>,
    server: &mut Running,
    client: &mut Running,
    on: &mut dyn FnMut(Progress<'_>),
) -> Result<(), UserError> {
    let mut server_died = None;
    let mut asked: Option<Instant> = None;
    loop {
        let next = said.recv_timeout(if server_died.is_some() { LAST_WORDS } else { LOOK });
        if interrupt::is_asked() && asked.is_none() {
            asked = Some(Instant::now());
            // It tells what it has measured of this size, and ends.
            interrupt::pass_on(&client.0);
        }
        match next {
            Err(RecvTimeoutError::Timeout) if asked.is_some_and(|since| since.elapsed() > LAST_WORDS) => {
                return Err(UserError::new(interrupt::ENDED));
            }
            Err(RecvTimeoutError::Timeout) if server_died.is_none() => {}
            Ok(Said::Line(_, Line::Failed(_)) | Said::Ended(_)) if asked.is_some() => {
                return Err(UserError::new(interrupt::ENDED));
            }
            Ok(Said::Line(Side::Client, Line::Path(path))) => on(Progress::Path(&path)),
            Ok(Said::Line(Side::Client, Line::Size(size))) => on(Progress::Size(size)),
            Ok(Said::Line(Side::Client, Line::TooLarge(size, most))) => on(Progress::TooLarge(size, most)),
            Ok(Said::Line(Side::Client, Line::Point(point))) => on(Progress::Point(&point)),
            Ok(Said::Line(Side::Client, Line::Peer(event))) => on(Progress::Peer(&event)),
            Ok(Said::Line(Side::Client, Line::Done)) => return Ok(()),
            Ok(Said::Line(side, Line::Failed(why))) => {
                // The end that is left may say that the other is gone before the system says that
                // it was killed.
                let (other, name) = if side == Side::Client { (server, "server") } else { (client, "client") };
                let killed = server_died.or_else(|| killed(said, side, &mut other.0, name));
                return Err(UserError(killed.unwrap_or(why)));
            }
            Ok(Said::Line(..)) => {}
            Ok(Said::Ended(Side::Server)) => {
                server_died = Some(format!("the server end died: {}", how_ended(server.0.wait())));
            }
            Ok(Said::Ended(Side::Client)) => {
                let died = || format!("the client end died: {}", how_ended(client.0.wait()));
                return Err(UserError(server_died.unwrap_or_else(died)));
            }
            Err(_) => return Err(UserError(server_died.unwrap_or_else(|| "both ends died".into()))),
        }
    }
}

/// What killed the end other than `side`, if something did.
fn killed(said: &Receiver<Said>, side: Side, other: &mut Child, name: &str) -> Option<String> {
    let begin = Instant::now();
    while let Ok(next) = said.recv_timeout(LAST_WORDS.saturating_sub(begin.elapsed())) {
        if matches!(next, Said::Ended(ended) if ended != side) {
            let status = other.wait();
            let by_signal = status.as_ref().is_ok_and(|status| status.code().is_none());
            return by_signal.then(|| format!("the {name} end died: {}", how_ended(status)));
        }
    }
    None
}

fn how_ended(status: std::io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

fn spawn(
    plan: &Plan,
    memory: &Shared,
    wake: &WakePair,
    side: Side,
    cpu: usize,
    uri: Option<&str>,
    sender: &Sender<Said>,
) -> Result<Running, UserError> {
    let task =
        EndTask { uri: uri.map(str::to_owned), cpu, memory: memory.number(), wake: wake.numbers(), plan: plan.clone() };
    let mut command = task::command(&task)?;
    pass_on(&mut command, memory, wake);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(while_doing("cannot start an end of the run"))?;
    let output = child.stdout.take();
    let sender = sender.clone();
    std::thread::spawn(move || {
        for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
            let Ok(Ok(line)) = line.map(|line| serde_json::from_str(&line)) else { break };
            // Nobody listens any more once the run has ended.
            let _ = sender.send(Said::Line(side, line));
        }
        let _ = sender.send(Said::Ended(side));
    });
    Ok(Running(child))
}

impl Task for EndTask {
    const NAME: &'static str = "end";

    /// Runs one end, and reports its outcome to the parent.
    fn run(&self) -> Result<(), Option<UserError>> {
        let outcome = end_of(self);
        match &outcome {
            Ok(()) => say(&Line::Done),
            Err(why) => say(&Line::Failed(why.0.clone())),
        }
        outcome.map_err(|_| None)
    }
}

fn end_of(task: &EndTask) -> Result<(), UserError> {
    interrupt::watch_in_child()?;
    pin(task.cpu).map_err(while_doing("cannot pin this process to its processor"))?;
    let memory = Shared::inherit(task.memory).map_err(while_doing("cannot map the memory of the probes"))?;
    let side = if task.uri.is_some() { Side::Client } else { Side::Server };
    let probe = Probe::new(memory, WakePair::inherit(task.wake), side);
    match task.plan.abi {
        Abi::Rust => play::<Facade>(&task.plan, task.uri.as_deref(), probe),
        Abi::C => play::<CLibrary>(&task.plan, task.uri.as_deref(), probe),
    }
}

fn play<P: Driver>(plan: &Plan, uri: Option<&str>, probe: Probe) -> Result<(), UserError> {
    if let Some(uri) = uri {
        return client::run::<P>(plan, uri, Some(probe), |progress| {
            say(&match progress {
                Progress::Path(path) => Line::Path(path.clone()),
                Progress::Size(size) => Line::Size(size),
                Progress::Point(point) => Line::Point(point.clone()),
                Progress::Peer(event) => Line::Peer(event.clone()),
                Progress::TooLarge(size, most) => Line::TooLarge(size, most),
            });
        });
    }
    let opening = DriverOptions {
        transport: plan.transport.clone(),
        threads: Threads::Many,
        mode: Mode::Blocking,
        keys: plan.keys.clone(),
        library: plan.library.clone(),
        ends: 2,
    };
    let served = server::serve::<P>(&opening, server::PATIENCE, Some(probe), |notice| {
        // Of what has ended the client hears, and tells.
        if let Notice::Listening(uri) = notice {
            say(&Line::Listening(uri.into()));
        }
        Ok(())
    });
    served.map(|never| match never {})
}

fn say(line: &Line) {
    let mut output = std::io::stdout().lock();
    // A parent that is gone takes this process with it.
    let _ = serde_json::to_writer(&mut output, line);
    let _ = writeln!(output);
    let _ = output.flush();
}
