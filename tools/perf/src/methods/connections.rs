//! What very many idle connections of one endpoint take: memory of its process, and time of a call
//! that finds nothing. The endpoint is in one process, the ends that connect to it in another.

use super::footprint::figures;
use crate::interrupt;
use crate::measure::driver::{Completion, Driver, DriverEvent, DriverOptions};
use crate::measure::facade::Facade;
use crate::measure::usage::Usage;
use crate::task::{self, Running, Task};
use cci::Attribute;
use cci_report::finding::MemoryPoint;
use cci_report::{UserError, while_doing};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Requests that are under way at once.
const AT_ONCE: u32 = 128;
/// How long one connection may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How long nothing may happen.
const SILENCE: Duration = Duration::from_secs(60);
/// Calls of a block, and blocks, of the time of a call that finds nothing.
const CALLS: u32 = 2000;
const BLOCKS: usize = 200;

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Memory of the process with so many connections, beyond that with one.
    pub points: Vec<MemoryPoint>,
    /// Time of a call that finds nothing, with all connections, over that with one; none where a
    /// signal ended the run.
    cost: Option<f64>,
}

impl Figures {
    /// Private bytes for each connection beyond the first, with the most.
    ///
    /// # Errors
    ///
    /// A signal ended the run before.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    pub fn private_per_connection(&self) -> Result<f64, UserError> {
        let last = self.points.last().ok_or_else(|| UserError::new(interrupt::ENDED))?;
        Ok(last.private_bytes / last.connections.saturating_sub(1).max(1) as f64)
    }

    /// Time of a call that finds nothing, with all connections, over that with one.
    ///
    /// # Errors
    ///
    /// A signal ended the run before.
    pub fn cost(&self) -> Result<f64, UserError> {
        self.cost.ok_or_else(|| UserError::new(interrupt::ENDED))
    }
}

/// Which connections, and which end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConnectionsTask {
    transport: String,
    /// Numbers of connections to measure with, one after the other: these grow, and begin above
    /// one.
    stops: Vec<u32>,
    /// Endpoints to connect to: the one with one connection, the one with all; without them this
    /// end measures.
    uris: Option<[String; 2]>,
}

/// Measures in processes of their own, with as many connections as each of `stops` says: these
/// grow, and begin above one.
pub fn in_a_child(transport: &str, stops: &[u32]) -> Result<Figures, UserError> {
    let task = ConnectionsTask { transport: transport.into(), stops: stops.into(), uris: None };
    figures(task::command(&task)?)
}

impl Task for ConnectionsTask {
    const NAME: &'static str = "connections";

    fn run(&self) -> Result<(), Option<UserError>> {
        connections(self).map_err(Some)
    }
}

/// Measures, or connects, in the child.
fn connections(task: &ConnectionsTask) -> Result<(), UserError> {
    interrupt::watch_in_child()?;
    let opening = DriverOptions::on_loopback(&task.transport);
    if let Some([one, many]) = &task.uris {
        return connect_all(&opening, one, many, &task.stops);
    }
    let figures = serde_json::to_string(&measure(task, &opening)?).map_err(while_doing("cannot write the figures"))?;
    writeln!(std::io::stdout(), "{figures}").map_err(while_doing("cannot write the figures"))
}

fn measure(task: &ConnectionsTask, opening: &DriverOptions) -> Result<Figures, UserError> {
    let (one, many) = (Facade::open(opening)?, Facade::open(opening)?);
    let other = ConnectionsTask { uris: Some([one.uri(), many.uri()]), ..task.clone() };
    let mut command = task::command(&other)?;
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut other = Running(spawned.map_err(while_doing("cannot start a process that connects"))?);
    let said = lines(&mut other.0)?;
    // Each has one connection, so that nothing is used for the first time any more; then the rest.
    accept(&one, 1)?;
    accept(&many, 1)?;
    if interrupt::is_asked() {
        return Err(UserError::new(interrupt::ENDED));
    }
    settle(&many, &said)?;
    Usage::now()?;
    let before = Usage::now()?;
    let (mut open, mut points) = (1, Vec::new());
    for &stop in &task.stops {
        go_on(&mut other.0)?;
        accept(&many, stop.saturating_sub(open))?;
        if interrupt::is_asked() {
            break;
        }
        settle(&many, &said)?;
        open = stop.max(open);
        let added = Usage::now()?.since(before);
        let (private_bytes, resident_bytes) = (added.private, added.resident);
        points.push(MemoryPoint { connections: open.into(), private_bytes, resident_bytes });
    }
    if points.is_empty() {
        return Err(UserError::new(interrupt::ENDED));
    }
    // What came since the last point may not be at rest, so that calls still find something.
    let cost = if interrupt::is_asked() { None } else { Some(cost_of_polling(&one, &many)?) };
    Ok(Figures { points, cost })
}

/// What the other process says, line by line.
fn lines(other: &mut Child) -> Result<Receiver<()>, UserError> {
    let output = other.stdout.take().ok_or_else(|| UserError::new("the connecting process has no output"))?;
    let (sender, said) = channel();
    std::thread::spawn(move || {
        // Nobody listens any more once the measurement has ended.
        BufReader::new(output).lines().map_while(Result::ok).for_each(|_| {
            let _ = sender.send(());
        });
    });
    Ok(said)
}

/// Accepts connections until there are so many more, or a signal comes.
fn accept(endpoint: &Facade, count: u32) -> Result<(), UserError> {
    let (mut open, mut bytes, mut since) = (0, Vec::new(), Instant::now());
    while open < count && !interrupt::is_asked() {
        match endpoint.poll_event(&mut bytes, |_| 0)? {
            DriverEvent::Open(..) => (open, since) = (open + 1, Instant::now()),
            DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
            DriverEvent::Nothing if since.elapsed() > SILENCE => {
                return Err(UserError(format!("only {open} of {count} connections were made")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Has the other process go on.
fn go_on(other: &mut Child) -> Result<(), UserError> {
    let input = other.stdin.as_mut().ok_or_else(|| UserError::new("the connecting process has no input"))?;
    input.write_all(b"\n").map_err(while_doing("the connecting process ended early"))
}

/// Makes progress until the other process says that its connections so far are open.
fn settle(endpoint: &Facade, said: &Receiver<()>) -> Result<(), UserError> {
    let since = Instant::now();
    while since.elapsed() < SILENCE {
        match said.try_recv() {
            Ok(()) => return Ok(()),
            Err(TryRecvError::Empty) => endpoint.poll::<false>().map(|_| ())?,
            Err(TryRecvError::Disconnected) => return Err(UserError::new("the connecting process ended early")),
        }
    }
    Err(UserError::new("the connecting process does not answer any more"))
}

/// The time of a call that finds nothing, of the second endpoint over that of the first: blocks in
/// turn.
fn cost_of_polling(one: &Facade, many: &Facade) -> Result<f64, UserError> {
    let mut times = [Vec::new(), Vec::new()];
    for block in 0..2 * BLOCKS {
        let endpoint = if block % 2 == 0 { one } else { many };
        let begin = Instant::now();
        for _ in 0..CALLS {
            if endpoint.poll::<false>()? != Completion::Nothing {
                return Err(UserError::new("an idle connection was not idle"));
            }
        }
        times[block % 2].push(begin.elapsed().as_secs_f64());
    }
    let [one, many] = times.map(crate::methods::middle);
    Ok(many / one)
}

/// The other process: one connection to each, and, each time that it is told so, more to the
/// second; then nothing, until it is ended.
fn connect_all(opening: &DriverOptions, one: &str, many: &str, stops: &[u32]) -> Result<(), UserError> {
    let endpoint = Facade::open(opening)?;
    connect(&endpoint, one, 1)?;
    connect(&endpoint, many, 1)?;
    let (mut input, mut output, mut open) = (std::io::stdin().lock(), std::io::stdout(), 1);
    let mut say = || writeln!(output, "open").and_then(|()| output.flush());
    say().map_err(while_doing(GONE))?;
    for &stop in stops {
        input.read_exact(&mut [0]).map_err(while_doing(GONE))?;
        connect(&endpoint, many, stop.saturating_sub(open))?;
        open = stop.max(open);
        say().map_err(while_doing(GONE))?;
    }
    // Ended by the measuring process, or with it.
    let _ = input.read(&mut [0]);
    Ok(())
}

const GONE: &str = "the measuring process ended early";

/// Makes so many connections.
pub(super) fn connect(endpoint: &Facade, uri: &str, count: u32) -> Result<(), UserError> {
    let (mut asked, mut open, mut bytes, mut since) = (0, 0, Vec::new(), Instant::now());
    while open < count {
        while asked < count && asked < open + AT_ONCE {
            endpoint.connect(uri, &[], Attribute::ReliableOrdered, 0, LIMIT)?;
            asked += 1;
        }
        match endpoint.poll_event(&mut bytes, |_| 0)? {
            DriverEvent::Open(..) => (open, since) = (open + 1, Instant::now()),
            DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
            DriverEvent::Nothing if since.elapsed() > SILENCE => {
                return Err(UserError::new("no peer answers any more"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_a_signal_left_out_is_no_zero() {
        let point = MemoryPoint { connections: 11, private_bytes: 2000.0, resident_bytes: 0.0 };
        let all = Figures { points: vec![point], cost: Some(1.25) };
        assert_eq!((all.private_per_connection(), all.cost()), (Ok(200.0), Ok(1.25)));
        let ended = UserError::new(interrupt::ENDED);
        assert_eq!(Figures { points: vec![point], cost: None }.cost(), Err(ended.clone()));
        assert_eq!(Figures::default().private_per_connection(), Err(ended));
    }
}
