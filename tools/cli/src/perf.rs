//! `cci perf`: measures between two processes.

use crate::arguments::{ComparedArguments, MeasurementArguments, PerfArguments, PerfCommand, ServerArguments};
use crate::commands::{am, breakdown, footprints, gups, logp, mpi, mx, portals, sci, splitc, threads, via};
use crate::compare;
use crate::conclusion::{conclude, document, say};
use crate::report;
use cci_perf::effort::{Effort, LEAST};
use cci_perf::interrupt;
use cci_perf::machine;
use cci_perf::machine::{allowed, two_processors};
use cci_perf::measure;
use cci_perf::measure::plan::Plan;
use cci_perf::measure::request::{ProbeChoice, Request};
use cci_perf::measure::{Notice, Progress};
use cci_perf::peers::PeerStatus;
use cci_report::environment::Environment;
use cci_report::names::Measurement;
use cci_report::session::Session;
use cci_report::{UserError, while_doing};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{Write, stderr, stdout};
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
        PerfCommand::Threads(arguments) => threads::threads(arguments),
        PerfCommand::Memory(arguments) => footprints::memory(arguments),
        PerfCommand::Idle(arguments) => footprints::idle(arguments),
        PerfCommand::Server(arguments) => serve(arguments),
        PerfCommand::Report(arguments) => report::report(arguments),
        PerfCommand::Compare(arguments) => return Ok(compare::compare(arguments)),
        PerfCommand::Breakdown(arguments) => breakdown::breakdown(arguments),
        PerfCommand::Gups(arguments) => gups::gups(arguments),
        PerfCommand::Am(arguments) => am::am(arguments),
        PerfCommand::Splitc(arguments) => splitc::splitc(arguments),
        PerfCommand::Via(arguments) => via::via(arguments),
        PerfCommand::Portals(arguments) => portals::portals(arguments),
        PerfCommand::Mx(arguments) => mx::mx(arguments),
        PerfCommand::Sci(arguments) => sci::sci(arguments),
        PerfCommand::Mpi(arguments) => mpi::mpi(arguments),
        PerfCommand::Logp(arguments) => logp::logp(arguments),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn serve(arguments: &ServerArguments) -> Result<(), UserError> {
    let library = arguments.library.clone();
    let served = measure::serve(&arguments.device.asked(), arguments.abi, library, notice);
    served.map(|never| match never {})
}

fn notice(notice: Notice<'_>) -> Result<(), UserError> {
    match notice {
        // Nobody can reach a server whose URI nobody has.
        Notice::Listening(uri) => {
            let written = writeln!(stdout(), "{uri}").and_then(|()| stdout().flush());
            written.map_err(while_doing("cannot write the URI of the server"))
        }
        // A server whose error output is closed goes on serving.
        Notice::Ended(line) => {
            let _ = writeln!(stderr(), "{line}");
            Ok(())
        }
    }
}

/// What the command line asks for.
fn request(measurement: Measurement, arguments: &MeasurementArguments) -> Request {
    let session = Session {
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
    Request {
        session,
        sizes: arguments.size.clone().map(|sizes| sizes.0),
        effort: effort(arguments),
        server: arguments.connect.clone(),
        device: arguments.device.asked(),
        probe: match arguments.probe {
            _ if arguments.no_probe => ProbeChoice::Without,
            None => ProbeChoice::Natural,
            Some(kind) => ProbeChoice::This(kind),
        },
        abi: arguments.abi,
        library: arguments.library.clone(),
    }
}

/// How long a point takes. A number of operations is shared out to blocks, one a launch while these
/// do not become too short.
fn effort(arguments: &MeasurementArguments) -> Effort {
    let shared = arguments.iterations.map(|all| {
        let blocks = (all / LEAST).clamp(1, arguments.launches.into());
        (all.div_ceil(blocks), u32::try_from(blocks).unwrap_or(1))
    });
    let (count, blocks) =
        shared.map_or((arguments.count, arguments.blocks), |(count, blocks)| (Some(count), Some(blocks)));
    Effort { time: arguments.time, count, blocks, launches: arguments.launches, bound: arguments.accuracy }
}

/// Measures CCI.
fn alone(measurement: Measurement, arguments: &MeasurementArguments) -> Result<(), UserError> {
    measure(&request(measurement, arguments).plan()?, arguments, PeerStatus::default())
}

/// Measures CCI, and the peers that are asked for.
fn compared(measurement: Measurement, arguments: &ComparedArguments) -> Result<(), UserError> {
    let mut plan = request(measurement, &arguments.measurement).plan()?;
    let status = match &arguments.peers.peers {
        None => PeerStatus::default(),
        Some(list) => plan.add_peers(list, arguments.peers.peers_in.as_deref())?,
    };
    status.notices.iter().for_each(|notice| say(notice));
    measure(&plan, &arguments.measurement, status)
}

fn measure(plan: &Plan, arguments: &MeasurementArguments, mut status: PeerStatus) -> Result<(), UserError> {
    let mut files = arguments.results.open_with_plots(arguments.plot.as_deref(), &arguments.narrow)?;
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
    let finished = measure::run(plan, arguments.connect.as_deref(), &mut on)?;
    let pinned = (arguments.local && !plan.is_virtual()).then(two_processors);
    bar.shown.finish_and_clear();
    let environment = Environment { pinned, ..environment };
    let interrupted = status.interrupted(finished.interrupted);
    conclude(&document(environment, finished.rows, finished.findings, interrupted), &mut files)
}

/// Says so when ends on this host have to share a processor.
fn warn_of_one_processor() {
    if allowed().len() < 2 {
        say(machine::ONE_PROCESSOR);
    }
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
            PerfCommand::PingPong(arguments) => request(Measurement::PingPong, &arguments.measurement).plan(),
            PerfCommand::Rate(arguments) => request(Measurement::Rate, &arguments.measurement).plan(),
            PerfCommand::Bandwidth(arguments) => request(Measurement::Bandwidth, &arguments.measurement).plan(),
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
