//! `cci perf report --measure`: runs every measurement, each as a command that a person could type,
//! and keeps what it writes.

use cci_report::documents;
use cci_report::html::Run;
use cci_report::{UserError, while_doing};
use std::fmt::Write as _;
use std::io::{Read, Write, stderr};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Measurements over each transport, in the quick setting: five to six minutes in all, most of it
/// with peers. There a point takes as long for each of them, and each launch starts their programs,
/// and all read what they receive, since bytes that nobody reads never leave a cache. The last is
/// about doing nothing.
const OVER_EACH: [&str; 17] = [
    "pingpong --touch --time 300ms --size 8,64,512,4096 --peers installed:PEERS --launches 24",
    "bw --touch --time 300ms --size 64,512,4096,8192 --peers installed:PEERS --launches 24",
    "rate --time 300ms --size 8 --peers installed:PEERS --launches 24",
    "pingpong --time 1s --size 8 --mode blocking",
    "bw --time 1s --op write --size 64,1K,16K,256K,1M",
    "bw --time 1s --op read --size 64,1K,16K,256K,1M",
    "logp --time normal",
    "breakdown --time normal",
    "gups --table 16M",
    "gups --table 16M --op am",
    "am --time 300ms",
    "logp --am --time normal",
    "jitter --time 1s --size 8",
    "overlap --time 1s --op write --size 4K,64K,1M",
    "threads --time normal",
    "memory --connections 1000",
    "idle --seconds 2",
];
/// The transports, and which settings of the peers stand beside each.
const TRANSPORTS: [(&str, &str); 3] = [("sm", "memory"), ("sock", "network"), ("tcp", "network")];
/// How long one command may take: many times what it does take.
const PATIENCE: Duration = Duration::from_secs(100);

/// What was measured, and the commands that gave nothing, with the reasons.
pub(super) struct Measured {
    pub(super) runs: Vec<Run>,
    pub(super) failures: Vec<(String, String)>,
}

/// Measures everything; the documents are kept in a directory.
///
/// # Errors
///
/// A file of the directory cannot be replaced, or this program cannot be started again.
pub(super) fn measure(directory: &Path) -> Result<Measured, UserError> {
    let commands = commands();
    let mut measured = Measured { runs: Vec::new(), failures: Vec::new() };
    for (number, command) in commands.iter().enumerate() {
        let shown = format!("cci perf {}", command.join(" "));
        say(&format!("{} of {}: {shown}", number + 1, commands.len()));
        let file = directory.join(format!("{:02}-{}.json", number + 1, command[0]));
        // What an earlier run has left is not this one's.
        if file.exists() {
            std::fs::remove_file(&file).map_err(while_doing(&format!("cannot replace {}", file.display())))?;
        }
        let told = run(command, &file)?;
        match documents::read(&file) {
            Ok(document) => measured.runs.push(Run { document, source: file.display().to_string() }),
            Err(_) => measured.failures.push((shown, told)),
        }
    }
    Ok(measured)
}

/// The words of each command after `cci perf`.
fn commands() -> Vec<Vec<String>> {
    let each = TRANSPORTS.iter().flat_map(|over| OVER_EACH.iter().map(move |command| (command, over)));
    each.map(|(command, (transport, peers))| {
        let command = command.replace("PEERS", peers);
        let (measurement, rest) = command.split_once(' ').unwrap_or((&command, ""));
        let line = format!("{measurement} --local --transport {transport} {rest}");
        line.split_whitespace().map(String::from).collect()
    })
    .collect()
}

/// Runs one command; the last thing that it said.
fn run(command: &[String], file: &Path) -> Result<String, UserError> {
    let failed = while_doing("cannot start a measurement");
    let program = std::env::current_exe().map_err(&failed)?;
    let mut child = Command::new(program)
        .arg("perf")
        .args(command)
        .arg("--json")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(&failed)?;
    let Some((said, status)) = ended(&mut child, PATIENCE) else {
        return Ok(format!("it took longer than {} s and was ended", PATIENCE.as_secs()));
    };
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // Of a command line that is not understood the first line says why; the rest is how to write
    // one.
    let is_usage = status.as_ref().is_ok_and(|status| status.code() == Some(2));
    let line = if is_usage { lines.next() } else { lines.next_back() };
    let mut told = line.unwrap_or("").trim_start_matches("cci: ").trim_start_matches("error: ").to_owned();
    if told.is_empty() {
        // Writing into a string cannot fail.
        let _ = match status {
            Ok(status) => write!(told, "it ended with {status}"),
            Err(error) => write!(told, "it could not be waited for: {error}"),
        };
    }
    Ok(told)
}

/// Waits for the end of a child: what it said, and how it ended. One that takes too long is ended.
fn ended(child: &mut Child, patience: Duration) -> Option<(String, std::io::Result<ExitStatus>)> {
    let (sender, said) = channel();
    let output = child.stderr.take();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut output) = output {
            // What was read until it broke is what there is.
            let _ = output.read_to_end(&mut text);
        }
        // Nobody listens any more when it took too long.
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    let said = said.recv_timeout(patience);
    if said.is_err() {
        // It fails only when the child has ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait();
    said.ok().map(|said| (said, status))
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn every_command_is_understood() {
        for command in commands() {
            let all = ["cci", "perf"].into_iter().map(String::from).chain(command.clone()).map(Into::into);
            assert!(Arguments::read(all).is_ok(), "{command:?}");
        }
    }

    #[test]
    fn a_child_that_takes_too_long_is_ended() {
        let mut child = Command::new("sleep").arg("1000").stderr(Stdio::piped()).spawn().unwrap();
        assert!(ended(&mut child, Duration::from_millis(10)).is_none());
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn what_a_child_said_is_heard() {
        let mut child = Command::new("sh").args(["-c", "echo why >&2; exit 3"]).stderr(Stdio::piped()).spawn().unwrap();
        let (said, status) = ended(&mut child, Duration::from_secs(60)).unwrap();
        assert_eq!((said.as_str(), status.unwrap().code()), ("why\n", Some(3)));
    }
}
