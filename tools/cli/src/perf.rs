//! `cci perf`: measures between two processes.

use crate::arguments::{
    ComparedArguments, DeviceArguments, MeasurementArguments, PerfArguments, PerfCommand, ServerArguments,
};
use crate::compare;
use crate::footprints;
use crate::measure::client;
use crate::measure::client::{LEAST, Progress};
use crate::measure::control::Report;
use crate::measure::driver::{Facade, Opening, with_keys};
use crate::measure::local;
use crate::measure::machine;
use crate::measure::machine::{allowed, load, two_processors};
use crate::measure::plan::{Effort, Plan};
use crate::measure::points::{Finished, in_launches};
use crate::measure::server;
use crate::measure::server::Notice;
use crate::measure::{interrupt, virtual_time};
use crate::peers;
use crate::peers::{PeerSelection, PeerStatus};
use crate::probe::c_library;
use crate::probe::c_library::CLibrary;
use crate::reach::no_transport;
use crate::report;
use crate::scaling;
use cci::Context;
use cci_report::environment::Environment;
use cci_report::finding::Finding;
use cci_report::names::{Abi, Measurement, Mode, Operation, Threads};
use cci_report::output::{Files, findings, table};
use cci_report::row::{Document, Row};
use cci_report::session::Session;
use cci_report::{UserError, while_doing};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

/// Serves, or measures, or tells of runs; the status that the process is to end with.
pub(crate) fn perf(arguments: &PerfArguments) -> Result<ExitCode, UserError> {
    let done = match &arguments.command {
        PerfCommand::PingPong(arguments) => compared(Measurement::PingPong, arguments),
        PerfCommand::OneWay(arguments) => alone(Measurement::OneWay, arguments),
        PerfCommand::Rate(arguments) => compared(Measurement::Rate, arguments),
        PerfCommand::Bandwidth(arguments) => compared(Measurement::Bandwidth, arguments),
        PerfCommand::Jitter(arguments) => alone(Measurement::Jitter, arguments),
        PerfCommand::Overlap(arguments) => alone(Measurement::Overlap, arguments),
        PerfCommand::Threads(arguments) => scaling::threads(arguments),
        PerfCommand::Memory(arguments) => footprints::memory(arguments),
        PerfCommand::Idle(arguments) => footprints::idle(arguments),
        PerfCommand::Server(arguments) => serve(arguments),
        PerfCommand::Report(arguments) => report::report(arguments),
        PerfCommand::Compare(arguments) => return Ok(compare::compare(arguments)),
        PerfCommand::Breakdown(arguments) => crate::breakdown::breakdown(arguments),
        PerfCommand::Gups(arguments) => crate::gups::gups(arguments),
        PerfCommand::Logp(arguments) => crate::logp::logp(arguments),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The shared library that a build puts beside this program, and an installation into `lib` next to `bin`.
pub(crate) fn library_beside() -> Option<PathBuf> {
    let directory = std::env::current_exe().ok()?.parent()?.to_owned();
    let beside = ["libcci.so.2", "libcci.so", "libcci_c.so"].map(|name| directory.join(name));
    let installed = directory.join("../lib/libcci.so.2");
    beside.into_iter().chain([installed]).find(|path| path.exists())
}

fn serve(arguments: &ServerArguments) -> Result<(), UserError> {
    if arguments.device.transport.as_deref() == Some(virtual_time::TRANSPORT) {
        return Err(UserError::new(VIRTUAL_IS_LOCAL));
    }
    let opening = Opening {
        transport: arguments.device.transport.clone(),
        threads: Threads::Many,
        mode: Mode::Blocking,
        keys: arguments.device.keys(),
        library: arguments.library.clone().or_else(library_beside),
        ends: 1,
    };
    let served = match arguments.abi {
        Abi::Rust => server::serve::<Facade>(&opening, None, notice),
        Abi::C => server::serve::<CLibrary>(&opening, None, notice),
    };
    served.map(|never| match never {})
}

fn notice(notice: Notice<'_>) {
    // A server whose output is closed goes on serving.
    let _ = match notice {
        Notice::Listening(uri) => writeln!(stdout(), "{uri}").and_then(|()| stdout().flush()),
        Notice::Ended(line) => writeln!(stderr(), "{line}"),
    };
}

/// The plan that the command line describes.
fn plan(measurement: Measurement, arguments: &MeasurementArguments) -> Result<Plan, UserError> {
    let mut session = Session {
        measurement,
        operation: arguments.op,
        attribute: arguments.attribute,
        mode: arguments.mode,
        silent: arguments.silent,
        threads: arguments.threads,
        memory: arguments.memory,
        touch: arguments.touch,
        target: arguments.target,
        window: arguments.window,
        bidirectional: arguments.bidirectional,
        largest: 0,
    };
    let sizes = arguments.size.clone().map_or_else(|| Plan::natural_sizes(&session), |sizes| sizes.0);
    session.largest = sizes.iter().copied().max().unwrap_or(0);
    if let Some(why) = session.contradiction() {
        return Err(UserError::new(why));
    }
    if session.is_rma() && sizes.contains(&0) {
        return Err(UserError::new("an RMA moves at least one byte: leave size 0 out"));
    }
    if arguments.abi == Abi::C {
        if session.operation != Operation::Send {
            return Err(UserError::new(c_library::SENDS_ONLY));
        }
        c_library::refuse_one_thread(session.threads)?;
    }
    let asked = arguments.device.transport.clone().or_else(|| arguments.connect.as_deref().and_then(client::scheme));
    let transport = transport(asked.as_deref())?;
    let mut keys = with_keys(&transport.arguments, &arguments.device.keys());
    if arguments.local && arguments.abi == Abi::Rust {
        keys = on_loopback(&transport.name, keys);
    }
    let natural = || Plan::natural_probe(&session, &transport.name);
    let probe = (arguments.local && !arguments.no_probe).then(|| arguments.probe.or_else(natural)).flatten();
    let plan = Plan {
        session,
        sizes,
        effort: effort(arguments),
        probe,
        // Also where the device of virtual networks is the default one.
        transport: Some(transport.name)
            .filter(|name| name == virtual_time::TRANSPORT)
            .or(arguments.device.transport.clone()),
        keys,
        abi: arguments.abi,
        library: arguments.library.clone().or_else(library_beside),
        peers: PeerSelection::default(),
    };
    if !plan.is_virtual() {
        return Ok(plan);
    }
    if !arguments.local {
        return Err(UserError::new(VIRTUAL_IS_LOCAL));
    }
    match plan.not_virtual(arguments.probe.is_some()) {
        Some(why) => Err(UserError::new(why)),
        None => Ok(virtual_time::adapt(plan)),
    }
}

/// How long a point takes. A number of operations is shared out to blocks, one a launch while these do not become too short.
fn effort(arguments: &MeasurementArguments) -> Effort {
    let shared = arguments.iterations.map(|all| {
        let blocks = (all / LEAST).clamp(1, arguments.launches.into());
        (all.div_ceil(blocks), u32::try_from(blocks).unwrap_or(1))
    });
    let (count, blocks) =
        shared.map_or((arguments.count, arguments.blocks), |(count, blocks)| (Some(count), Some(blocks)));
    Effort { time: arguments.time, count, blocks, launches: arguments.launches, bound: arguments.accuracy }
}

pub(crate) const VIRTUAL_IS_LOCAL: &str = "the network of `sim` is in one process: use --local with --transport sim";

/// The transport of a run, as far as it is known before the run.
struct Transport {
    name: String,
    /// Keys of its device by its configuration.
    arguments: Vec<(String, String)>,
}

/// The transport that is asked for, or of the device that a program without preference gets.
fn transport(name: Option<&str>) -> Result<Transport, UserError> {
    let context = Context::new().map_err(while_doing("cannot find the devices"))?;
    let device = match name {
        Some(name) => context.devices().iter().find(|device| device.transport == name),
        None => context.default_device().ok(),
    };
    let name = name.map(str::to_owned).or_else(|| device.map(|device| device.transport.clone()));
    let arguments = device.map(|device| device.arguments.clone()).unwrap_or_default();
    Ok(Transport { name: name.unwrap_or_default(), arguments })
}

/// The name of the transport of a run, and the keys of its devices: of one whose ends are all on this host, or against the server at `uri`.
pub(crate) fn device_of_ends(
    asked: &DeviceArguments,
    uri: Option<&str>,
) -> Result<(String, Vec<(String, String)>), UserError> {
    let name = asked.transport.clone().or_else(|| uri.and_then(client::scheme));
    let transport = transport(name.as_deref())?;
    let keys = with_keys(&transport.arguments, &asked.keys());
    let keys = if uri.is_none() { on_loopback(&transport.name, keys) } else { keys };
    Ok((transport.name, keys))
}

/// Whether a key of a device says which of this host's addresses it has.
fn places(key: &str) -> bool {
    key == "ip" || key == "interface"
}

/// Both ends of a local run meet on the loop-back interface, where the probe is, unless they are told where.
fn on_loopback(transport: &str, mut keys: Vec<(String, String)>) -> Vec<(String, String)> {
    if !keys.iter().any(|(key, _)| places(key)) {
        keys.extend(Plan::keys_of_loopback(transport));
    }
    keys
}

/// Measures CCI.
fn alone(measurement: Measurement, arguments: &MeasurementArguments) -> Result<(), UserError> {
    measure(&plan(measurement, arguments)?, arguments, PeerStatus::default())
}

/// Measures CCI, and the peers that are asked for.
fn compared(measurement: Measurement, arguments: &ComparedArguments) -> Result<(), UserError> {
    let mut plan = plan(measurement, &arguments.measurement)?;
    let status = peers::select(&mut plan, &arguments.peers)?;
    status.notices.iter().for_each(|notice| say(notice));
    measure(&plan, &arguments.measurement, status)
}

fn measure(plan: &Plan, arguments: &MeasurementArguments, mut status: PeerStatus) -> Result<(), UserError> {
    let mut files = arguments.results.open(arguments.plot.as_deref())?;
    interrupt::watch()?;
    if arguments.local && !plan.is_virtual() {
        warn_of_one_processor();
    }
    let is_virtual = plan.is_virtual();
    let mut environment = Environment { settings: plan.keys.clone(), is_virtual, ..machine::here(None) };
    let bar = Bar::new(plan.sizes.len() as u64, plan.effort.launches().into());
    let mut on = |progress: Progress<'_>| {
        bar.show(&progress);
        match progress {
            Progress::Path(path) => environment.path = Some(path.clone()),
            Progress::Peer(event) => bar.shown.suspend(|| say(&status.record(event))),
            _ => {}
        }
    };
    let finished = match &arguments.connect {
        None => local::run(plan, &mut on)?,
        Some(uri) => remote(plan, uri, &mut on)?,
    };
    let pinned = (arguments.local && !plan.is_virtual()).then(two_processors);
    bar.shown.finish_and_clear();
    let environment = Environment { pinned, load_after: load(), ..environment };
    let interrupted = status.interrupted(finished.interrupted);
    conclude(&document(environment, finished.rows, finished.findings, interrupted), &mut files)
}

/// The transport that is asked for, or of the default device.
///
/// # Errors
///
/// There is no such device, or its ends cannot be in different threads or processes.
pub(crate) fn real_transport(asked: Option<&str>) -> Result<String, UserError> {
    if asked == Some(virtual_time::TRANSPORT) {
        return Err(UserError::new(
            "this measures real hardware, and `sim` is a virtual network: use --transport sm or sock",
        ));
    }
    let context = Context::new().map_err(while_doing("cannot find the devices"))?;
    match asked {
        Some(name) if context.devices().iter().any(|device| device.transport == name) => Ok(name.to_owned()),
        Some(name) => Err(no_transport(name)),
        None => {
            let device = context.default_device().map_err(|error| UserError(error.to_string()))?;
            Ok(device.transport.clone())
        }
    }
}

/// What this command line gave, and why there is no more if the run ended early.
pub(crate) fn document(
    environment: Environment,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    interrupted: Option<String>,
) -> Document {
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command = std::iter::once("cci".into()).chain(typed).collect();
    Document { command, ..Document::new(environment, rows, findings, interrupted) }
}

/// Says so when ends on this host have to share a processor.
pub(crate) fn warn_of_one_processor() {
    if allowed().len() < 2 {
        say("Only one processor: both ends share it, and every wait costs a change of context.");
    }
}

/// A run says so, and fails with `--strict`, when more than one point in so many is not accurate.
const VAGUE: usize = 10;

/// Shows and writes what was measured.
///
/// # Errors
///
/// Nothing was measured, or not all; what was measured has been shown and written nevertheless.
pub(crate) fn conclude(document: &Document, files: &mut Files) -> Result<(), UserError> {
    report(document, files)?;
    let vague = document.rows.iter().filter(|row| !row.accurate).count();
    match &document.interrupted {
        None if vague * VAGUE > document.rows.len() => {
            let why = format!(
                "{vague} of {} points are not accurate, and marked: measure for longer (--time long), or on a machine that \
                 does nothing else",
                document.rows.len()
            );
            if files.strict {
                return Err(UserError(why));
            }
            say(&format!("{why}."));
            Ok(())
        }
        None if document.rows.is_empty() && document.findings.is_empty() => Err(UserError::new(
            "nothing was measured: every size exceeds the largest message; give smaller sizes by --size",
        )),
        None => Ok(()),
        Some(why) => Err(UserError(format!("the run is incomplete, and its results are kept: {why}"))),
    }
}

/// Measures against a server that somebody else has started, and reports to it.
fn remote(plan: &Plan, uri: &str, mut on: impl FnMut(Progress<'_>)) -> Result<Finished, UserError> {
    let mut is_served = false;
    let on = |progress: Progress<'_>| {
        is_served |= matches!(progress, Progress::Size(_));
        on(progress);
    };
    let finished = in_launches(plan, on, |plan, on| match plan.abi {
        Abi::Rust => client::run::<Facade>(plan, uri, None, on),
        Abi::C => client::run::<CLibrary>(plan, uri, None, on),
    });
    if is_served {
        client::report::<Facade>(plan, uri, ending(&finished));
    }
    finished
}

/// What the server is told.
fn ending(finished: &Result<Finished, UserError>) -> Report {
    match finished {
        Ok(finished) => Report { result: table::in_short(&finished.rows), early: finished.interrupted.clone() },
        Err(why) => Report { result: String::new(), early: Some(why.0.clone()) },
    }
}

fn report(document: &Document, files: &mut Files) -> Result<(), UserError> {
    let mut text = String::new();
    if !document.rows.is_empty() || document.findings.is_empty() {
        text += &table::table(&document.rows);
    }
    document.findings.iter().for_each(|finding| text += &findings::text(finding));
    text += &document.environment.line();
    text.push('\n');
    if files.take_the_terminal() {
        say(text.trim_end());
    } else {
        stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the table"))?;
    }
    files.write(document)
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr(), "{text}");
}

/// A bar that moves between sizes only, and is not there unless on a terminal.
struct Bar {
    shown: ProgressBar,
    launches: u64,
}

impl Bar {
    fn new(sizes: u64, launches: u64) -> Self {
        let shown = ProgressBar::new(sizes * launches);
        // The template is a constant that a test parses.
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            shown.set_style(style);
        }
        Self { shown, launches }
    }

    fn show(&self, progress: &Progress<'_>) {
        match progress {
            Progress::Path(_) | Progress::Peer(_) => {}
            Progress::Size(size) => {
                self.shown.set_message(cci_report::sizes::show_size(*size));
                self.shown.tick();
            }
            Progress::Point(point) => self.shown.inc(u64::from(point.label.is_none())),
            Progress::TooLarge(size, most) => {
                self.shown.inc(self.launches);
                self.shown.suspend(|| say(&format!("Left out {size} bytes: a message here has at most {most}.")));
            }
        }
    }
}

const TEMPLATE: &str = "{bar:32} {pos}/{len}  measuring {msg}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};

    fn planned(arguments: &[&str]) -> Result<Plan, UserError> {
        let all = ["cci", "perf"].iter().chain(arguments).map(std::ffi::OsString::from);
        let Command::Perf(perf) = Arguments::read(all).unwrap().command else { panic!("{arguments:?}") };
        match &perf.command {
            PerfCommand::PingPong(arguments) => plan(Measurement::PingPong, &arguments.measurement),
            PerfCommand::Rate(arguments) => plan(Measurement::Rate, &arguments.measurement),
            PerfCommand::Bandwidth(arguments) => plan(Measurement::Bandwidth, &arguments.measurement),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_becomes_a_plan() {
        let plan = planned(&["bw", "--local", "--op", "write", "--size", "64K,1M", "--memory", "any", "--silent"]);
        let plan = plan.unwrap();
        assert_eq!(plan.sizes, [65536, 1 << 20]);
        assert_eq!(plan.session.largest, 1 << 20);
        assert_eq!(plan.probe.map(|probe| probe.name()), Some("process-vm"));
        assert!(plan.session.silent);
    }

    #[test]
    fn without_a_common_host_there_is_no_probe() {
        assert_eq!(planned(&["pingpong", "--connect", "sm://1/2"]).unwrap().probe, None);
        assert_eq!(planned(&["pingpong", "--local", "--no-probe"]).unwrap().probe, None);
    }

    #[test]
    fn what_does_not_fit_together_is_told() {
        let told = |arguments: &[&str]| planned(arguments).unwrap_err().0;
        assert!(told(&["bw", "--local", "--op", "read", "--size", "0"]).contains("at least one byte"));
        assert!(told(&["bw", "--local", "--op", "read", "--abi", "c"]).contains("--abi rust"));
        assert!(told(&["rate", "--local", "--abi", "c", "--threads", "one"]).contains("thread-safe"));
        assert!(told(&["bw", "--local", "--op", "read", "--attribute", "uu"]).contains("reliable"));
    }

    #[test]
    fn the_template_of_the_bar_is_one() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
