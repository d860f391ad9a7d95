//! A ping-pong over one path: the client is a thread here, the server a process of its own. Each is
//! in its node's name space.

use crate::bed::{Bed, address};
use cci_conformance::process::Running;
use cci_conformance::sys::ends_with_its_parent;
use cci_perf::device::Device;
use cci_perf::effort::Effort;
use cci_perf::machine;
use cci_perf::measure::request::{ProbeChoice, Request};
use cci_perf::measure::{self, Notice, Progress};
use cci_report::names::Abi;
use cci_report::row::Document;
use cci_report::session::Session;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Messages that are measured, bytes; each fits into a frame.
pub(crate) const SIZES: [u64; 4] = [8, 64, 256, 1024];

/// Connections that each document is measured over: minima need no more.
const LAUNCHES: u32 = 4;

/// A spread that counts as accurate, as of `cci perf`; minima need no such accuracy.
const BOUND: f64 = 0.035;

/// The first argument of a server; the second is its address.
pub(crate) const SERVER: &str = "serve";

/// How to measure.
pub(crate) struct Method {
    /// Time for each size.
    pub(crate) time: Duration,
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
        // The server ends with the thread that starts it, however this program ends: the thread
        // stays.
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

/// Keeps this thread, and what it starts, on one of the processors that it may use, if there are
/// several.
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

fn device(ip: &str) -> Device {
    Device { transport: Some("sock".into()), keys: vec![("ip".into(), ip.into())] }
}

/// Starts a server on the first processor, which ends with this thread; its URI.
fn serve(method: &Method, ip: &str) -> Result<(Running, String), String> {
    pin(0);
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(own);
    command.args([SERVER, ip]);
    ends_with_its_parent(&mut command);
    let log = File::options().create(true).append(true).open(&method.log);
    let log = log.map_err(|error| format!("cannot write {}: {error}", method.log.display()))?;
    let child = command.stdout(Stdio::piped()).stderr(log).spawn();
    let mut server = Running(child.map_err(|error| format!("cannot start a server: {error}"))?);
    let mut uri = String::new();
    let output = server.0.stdout.take().ok_or("the server has no output")?;
    BufReader::new(output).read_line(&mut uri).map_err(|error| format!("cannot read from the server: {error}"))?;
    if uri.trim().is_empty() {
        return Err(format!("the server ended without a URI; {} says why", method.log.display()));
    }
    Ok((server, uri.trim().into()))
}

/// What such a process does: it says its URI, and serves runs until it is ended.
pub(crate) fn server(ip: &str) -> Result<(), String> {
    let served = measure::serve(&device(ip), Abi::Rust, None, |notice| {
        // Who does not listen any more ends this process.
        let _ = match notice {
            Notice::Listening(uri) => writeln!(std::io::stdout(), "{uri}"),
            Notice::Ended(line) => writeln!(std::io::stderr(), "{line}"),
        };
        Ok(())
    });
    served.map(|never| match never {}).map_err(|why| why.0)
}

/// Measures from this thread, on the second processor; the document.
fn ask(method: &Method, uri: &str, ip: &str) -> Result<Document, String> {
    pin(1);
    let request = Request {
        session: Session::default(),
        sizes: Some(SIZES.into()),
        effort: Effort { time: method.time, count: None, blocks: None, launches: LAUNCHES, bound: BOUND },
        server: Some(uri.into()),
        device: device(ip),
        probe: ProbeChoice::Without,
        abi: Abi::Rust,
        library: None,
    };
    let plan = request.plan().map_err(|why| why.0)?;
    let mut environment = machine::here(None);
    environment.settings.clone_from(&plan.keys);
    let finished = measure::run(&plan, Some(uri), |progress| {
        if let Progress::Path(path) = progress {
            environment.path = Some(path.clone());
        }
    });
    let finished = finished.map_err(|why| why.0)?;
    environment.load_after = machine::load();
    if finished.rows.is_empty() {
        return Err(format!("nothing was measured: {}", finished.interrupted.as_deref().unwrap_or("no size fits")));
    }
    let document = Document::new(environment, finished.rows, finished.findings, finished.interrupted);
    Ok(Document { command: std::env::args().collect(), ..document })
}

/// The document with the path's name and counts.
pub(crate) fn annotated(document: &Document, way: &Way<'_>) -> Result<String, String> {
    let [links, forwardings, switchings] = way.count();
    let mut document: Value = serde_json::to_value(document).map_err(|error| error.to_string())?;
    document["path"] = json!({ "name": way.name(), "o": 2, "p": links, "f": forwardings, "s": switchings });
    serde_json::to_string_pretty(&document).map_err(|error| error.to_string())
}
