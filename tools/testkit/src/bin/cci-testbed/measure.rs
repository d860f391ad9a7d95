//! `cci perf` over one path.

use crate::bed::{Bed, address};
use cci_testkit::sys::ends_with_its_parent;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// Messages that are measured, bytes; each fits into a frame.
const SIZES: &str = "8,64,256,1024";

/// Connections that each document is measured over: minima need no more.
const LAUNCHES: &str = "4";

/// How to measure.
pub(crate) struct Method {
    /// The command `cci`.
    pub(crate) command: PathBuf,
    /// Time for each size, as `cci perf --time` takes it.
    pub(crate) time: String,
    /// Where servers say what they have to say.
    pub(crate) log: PathBuf,
}

/// Two nodes of a bed.
pub(crate) struct Way<'b> {
    pub(crate) bed: &'b Bed,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Way<'_> {
    /// `ring:8 0-4`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}-{}", self.bed.name, self.from, self.to)
    }

    /// Links, forwardings and switchings one way, which are those of the way back.
    pub(crate) fn count(&self) -> [usize; 3] {
        let [there, back] = [self.bed.count(self.from, self.to), self.bed.count(self.to, self.from)];
        assert_eq!(there, back, "half a round trip of {} is no path", self.name());
        there
    }
}

/// Measures a way, and writes the document with the path's counts to a file.
pub(crate) fn measure(method: &Method, way: &Way<'_>, file: &Path) -> Result<(), String> {
    let (tell, told) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // The server ends with the thread that starts it, however this program ends: the thread stays.
        scope.spawn(move || {
            way.bed.node(way.to).enter(move || {
                let started = serve(method, &address(way.to));
                let (_server, uri) = match started {
                    Ok((server, uri)) => (Some(server), Ok(uri)),
                    Err(why) => (None, Err(why)),
                };
                // Nobody listens or waits only when the measurement has failed.
                let _ = tell.send(uri);
                let _ = is_done.recv();
            });
        });
        let outcome = told.recv().map_err(|_| "the server's thread has ended".to_owned()).and_then(|uri| {
            let uri = uri?;
            way.bed.node(way.from).enter(|| ask(method, &uri, &address(way.from)))
        });
        drop(done);
        std::fs::write(file, annotated(&outcome?, way)?)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))
    })
}

/// A process that is ended when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `cci perf` on one of the processors, ending with this thread.
fn perf(method: &Method, processor: usize, arguments: &[&str]) -> Command {
    pin(processor);
    let mut command = Command::new(&method.command);
    command.arg("perf").args(arguments);
    ends_with_its_parent(&mut command);
    command
}

/// Keeps this thread, and what it starts, on one of the processors that it may use, if there are several.
fn pin(number: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    if processors.len() > 1 {
        let mut one = CpuSet::new();
        one.set(processors[number % processors.len()]);
        // Unpinned it is measured all the same, with more noise.
        let _ = sched_setaffinity(None, &one);
    }
}

fn serve(method: &Method, ip: &str) -> Result<(Running, String), String> {
    let key = format!("ip={ip}");
    let mut command = perf(method, 0, &["server", "--transport", "sock", "--key", &key]);
    let log = File::options().create(true).append(true).open(&method.log);
    let log = log.map_err(|error| format!("cannot write {}: {error}", method.log.display()))?;
    let child = command.stdout(Stdio::piped()).stderr(log).spawn();
    let mut server = Running(child.map_err(|error| format!("cannot start {}: {error}", method.command.display()))?);
    let mut uri = String::new();
    let output = server.0.stdout.take().ok_or("the server has no output")?;
    BufReader::new(output).read_line(&mut uri).map_err(|error| format!("cannot read from the server: {error}"))?;
    if uri.trim().is_empty() {
        return Err(format!("the server ended without a URI; {} says why", method.log.display()));
    }
    Ok((server, uri.trim().into()))
}

/// Measures; the document.
fn ask(method: &Method, uri: &str, ip: &str) -> Result<Value, String> {
    let key = format!("ip={ip}");
    let arguments = ["pingpong", "--connect", uri, "--transport", "sock", "--key", &key, "--size", SIZES];
    let mut command = perf(method, 1, &arguments);
    command.args(["--time", &method.time, "--launches", LAUNCHES, "--json", "-"]);
    let output = command.output().map_err(|error| format!("cannot start {}: {error}", method.command.display()))?;
    // A run whose points are not as accurate as the command wants says so by its status; minima need no such accuracy.
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(document) if document["rows"].as_array().is_some_and(|rows| !rows.is_empty()) => Ok(document),
        _ => Err(format!("cci perf measured nothing: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The document with the path's name and counts.
fn annotated(document: &Value, way: &Way<'_>) -> Result<String, String> {
    let [links, forwardings, switchings] = way.count();
    let mut document = document.clone();
    document["path"] = json!({ "name": way.name(), "o": 2, "p": links, "f": forwardings, "s": switchings });
    serde_json::to_string_pretty(&document).map_err(|error| error.to_string())
}
