//! What very many idle connections of one endpoint take: memory of its process, and time of a call that finds nothing. The
//! endpoint is in one process, the ends that connect to it in another.

use crate::arguments::ConnectionsArguments;
use crate::measure::local::die_with_parent;
use crate::measure::plan::{Mode, Plan, Threads};
use crate::measure::port::{Facade, Happening, Opening, Port, Seen};
use crate::measure::{Sentence, while_doing};
use cci::Attribute;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
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

/// Measures in processes of their own: bytes for each connection, and the time of a call with all of them over that with one.
pub(super) fn in_a_child(transport: &str, count: u32) -> Result<(f64, f64), Sentence> {
    let output = command(transport, count, &[])?
        .stderr(Stdio::piped())
        .output()
        .map_err(while_doing("cannot start a process to measure in"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("cci: ").to_owned();
        return Err(Sentence(if why.is_empty() { format!("the process ended: {}", output.status) } else { why }));
    }
    serde_json::from_slice(&output.stdout).map_err(while_doing("the measuring process gave no figures"))
}

fn command(transport: &str, count: u32, uris: &[String]) -> Result<Command, Sentence> {
    let program = std::env::current_exe().map_err(while_doing("cannot start a process to measure in"))?;
    let mut command = Command::new(program);
    command.args(["connections", "--transport", transport, "--count", &count.to_string()]);
    command.args(["--parent", &std::process::id().to_string()]);
    command.args(uris);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Measures, or connects, in the child.
pub(crate) fn connections(arguments: &ConnectionsArguments) -> Result<(), Sentence> {
    die_with_parent(arguments.parent)?;
    let opening = Opening {
        transport: Some(arguments.transport.clone()),
        threads: Threads::Many,
        mode: Mode::Polling,
        keys: Plan::keys_of_loopback(&arguments.transport),
        library: None,
    };
    let figures = match &arguments.uris[..] {
        [] => serde_json::to_string(&measure(arguments, &opening)?).map_err(while_doing("cannot write the figures"))?,
        [one, many] => return connect_all(&opening, one, many, arguments.count),
        _ => return Err(Sentence::new("two URIs are needed, or none")),
    };
    writeln!(std::io::stdout(), "{figures}").map_err(while_doing("cannot write the figures"))
}

/// Ends the other process when dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(arguments: &ConnectionsArguments, opening: &Opening) -> Result<(f64, f64), Sentence> {
    let (one, many) = (Facade::open(opening)?, Facade::open(opening)?);
    let mut command = command(&arguments.transport, arguments.count, &[one.uri(), many.uri()])?;
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut other = Other(spawned.map_err(while_doing("cannot start a process that connects"))?);
    // Each has one connection, so that nothing is used for the first time any more; then the rest.
    accept(&one, 1)?;
    accept(&many, 1)?;
    private_bytes()?;
    let before = private_bytes()?;
    go_on(&mut other.0)?;
    accept(&many, arguments.count - 1)?;
    settle(&many, &mut other.0)?;
    let bytes = (private_bytes()? - before).max(0.0) / f64::from(arguments.count - 1);
    Ok((bytes, cost_of_polling(&one, &many)?))
}

/// Accepts connections until there are so many more.
fn accept(endpoint: &Facade, count: u32) -> Result<(), Sentence> {
    let (mut open, mut bytes, mut since) = (0, Vec::new(), Instant::now());
    while open < count {
        match endpoint.look(&mut bytes, |_| 0)? {
            Happening::Open(..) => (open, since) = (open + 1, Instant::now()),
            Happening::NotOpen(status, _) => return Err(Sentence(format!("a connection failed: {status}"))),
            Happening::Nothing if since.elapsed() > SILENCE => {
                return Err(Sentence(format!("only {open} of {count} connections were made")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Has the other process go on.
fn go_on(other: &mut Child) -> Result<(), Sentence> {
    let input = other.stdin.as_mut().ok_or_else(|| Sentence::new("the connecting process has no input"))?;
    input.write_all(b"\n").map_err(while_doing("the connecting process is gone"))
}

/// Makes progress until the other process says that all its connections are open.
fn settle(endpoint: &Facade, other: &mut Child) -> Result<(), Sentence> {
    let output = other.stdout.take().ok_or_else(|| Sentence::new("the connecting process has no output"))?;
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).is_ok_and(|count| count > 0)
    });
    let since = Instant::now();
    while !reader.is_finished() && since.elapsed() < SILENCE {
        endpoint.poll::<false>()?;
    }
    match reader.is_finished() && reader.join().unwrap_or(false) {
        true => Ok(()),
        false => Err(Sentence::new("the connecting process ended early")),
    }
}

/// Bytes of this process that it shares with nobody.
fn private_bytes() -> Result<f64, Sentence> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").map_err(while_doing("cannot read the memory in use"))?;
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()
    };
    match (kilobytes("Private_Clean:"), kilobytes("Private_Dirty:")) {
        (Some(clean), Some(dirty)) => Ok((clean + dirty) * 1024.0),
        _ => Err(Sentence::new("the kernel does not tell private memory")),
    }
}

/// The time of a call that finds nothing, of the second endpoint over that of the first: blocks in turn.
fn cost_of_polling(one: &Facade, many: &Facade) -> Result<f64, Sentence> {
    let mut times = [Vec::new(), Vec::new()];
    for block in 0..2 * BLOCKS {
        let endpoint = if block % 2 == 0 { one } else { many };
        let begin = Instant::now();
        for _ in 0..CALLS {
            if endpoint.poll::<false>()? != Seen::Nothing {
                return Err(Sentence::new("an idle connection was not idle"));
            }
        }
        times[block % 2].push(begin.elapsed().as_secs_f64());
    }
    let [one, many] = times.map(super::speed::median);
    Ok(many / one)
}

/// The other process: one connection to each, and when it is told so the rest to the second; then nothing, until it is ended.
fn connect_all(opening: &Opening, one: &str, many: &str, count: u32) -> Result<(), Sentence> {
    let endpoint = Facade::open(opening)?;
    connect(&endpoint, one, 1)?;
    connect(&endpoint, many, 1)?;
    let mut input = std::io::stdin().lock();
    input.read_exact(&mut [0]).map_err(while_doing("the measuring process is gone"))?;
    connect(&endpoint, many, count - 1)?;
    let mut output = std::io::stdout();
    writeln!(output, "open").and_then(|()| output.flush()).map_err(while_doing("the measuring process is gone"))?;
    // Ended by the measuring process, or with it.
    let _ = input.read(&mut [0]);
    Ok(())
}

fn connect(endpoint: &Facade, uri: &str, count: u32) -> Result<(), Sentence> {
    let (mut asked, mut open, mut bytes, mut since) = (0, 0, Vec::new(), Instant::now());
    while open < count {
        while asked < count && asked < open + AT_ONCE {
            endpoint.connect(uri, &[], Attribute::ReliableOrdered, 0, LIMIT)?;
            asked += 1;
        }
        match endpoint.look(&mut bytes, |_| 0)? {
            Happening::Open(..) => (open, since) = (open + 1, Instant::now()),
            Happening::NotOpen(status, _) => return Err(Sentence(format!("a connection failed: {status}"))),
            Happening::Nothing if since.elapsed() > SILENCE => return Err(Sentence::new("nobody answers any more")),
            _ => {}
        }
    }
    Ok(())
}
