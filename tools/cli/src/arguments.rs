//! The command line.

use crate::choice::choice;
use crate::commands::am::AmArguments;
use crate::commands::breakdown::BreakdownArguments;
use crate::commands::footprints::{IdleArguments, MemoryArguments};
use crate::commands::gups::GupsArguments;
use crate::commands::logp::LogpArguments;
use crate::commands::mpi::MpiArguments;
use crate::commands::mx::MxArguments;
use crate::commands::portals::PortalsArguments;
use crate::commands::sci::SciArguments;
use crate::commands::splitc::SplitcArguments;
use crate::commands::threads::ThreadsArguments;
use crate::commands::via::ViaArguments;
use crate::compare::CompareArguments;
use crate::device::DeviceArguments;
use crate::examples;
use crate::programs;
use crate::report::arguments::ReportArguments;
use crate::results::{NarrowPlot, ResultsArguments};
use cci_perf::peers::{PeerList, parse_list};
use cci_report::names::{Abi, AttributeName, MemoryOrigin, Mode, Operation, ProbeKind, Target, Threads};
use cci_report::sizes::{Sizes, parse_percent, parse_sizes, parse_time};
use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Devices, paths and measurements of the Common Communication Interface
#[derive(Parser, Debug)]
#[command(
    name = "cci",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = examples::OF_ALL
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Understands a command line.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or the help that it asks for.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = measurement_first(without_help_of_help(words.into_iter().collect()));
        let (words, more) = programs::split(words);
        let mut all = Self::try_parse_from(words).map_err(|mut error| {
            if error.kind() == ErrorKind::InvalidSubcommand {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![known(&error).into()]));
            }
            error
        })?;
        if let Command::Run(run) = &mut all.command {
            run.more = programs::parse(more)?;
        }
        Ok(all)
    }
}

/// Leaves out a request for help about the help, which is the help: `cci model help --help`.
fn without_help_of_help(mut words: Vec<OsString>) -> Vec<OsString> {
    let help = words.iter().take(3).position(|word| word == "help");
    if let Some(help) = help {
        let after = words.split_off(help + 1);
        words.extend(after.into_iter().filter(|word| word != "--help" && word != "-h"));
    }
    words
}

/// The words that could stand where an unknown one stands.
fn known(error: &clap::Error) -> String {
    let command = Arguments::command();
    let text = error.to_string();
    let is_of = |name: &&clap::Command| text.contains(&format!("Usage: cci {} ", name.get_name()));
    let of = command.get_subcommands().find(is_of).unwrap_or(&command);
    let names: Vec<_> = of.get_subcommands().map(clap::Command::get_name).collect();
    format!("there are {}", names.join(", "))
}

/// Puts what to measure in front of its options, where people may have it between them; `--server`
/// is the same as `server`.
fn measurement_first(mut words: Vec<OsString>) -> Vec<OsString> {
    let command = Arguments::command();
    let Some(perf) = command.find_subcommand("perf").filter(|_| words.get(1).is_some_and(|word| word == "perf")) else {
        return words;
    };
    let takes_value = |word: &str| {
        let options = perf.get_subcommands().flat_map(clap::Command::get_arguments);
        let mut of_that_name = options.filter(|option| option.get_long() == word.strip_prefix("--"));
        of_that_name.any(|option| option.get_action().takes_values())
    };
    let mut at = 2;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        let is_server = text == "--server";
        if is_server || perf.find_subcommand(&*text).is_some() {
            if is_server {
                words[at] = "server".into();
            }
            words[2..=at].rotate_right(1);
            break;
        }
        at += if takes_value(&text) { 2 } else { 1 };
    }
    words
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// List the devices of this host, and why each is or is not usable
    #[command(after_help = examples::INFO)]
    Info(InfoArguments),
    /// Report which way to an endpoint messages and RMA take, and why: by connecting to it
    ///
    /// Connects to the endpoint as a client does, describes the connection, and leaves. The program
    /// there sees it: a connection request, which it must accept, an ACCEPT event, and the end of
    /// the connection. A program that counts its clients, or serves one and ends, counts this one.
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArguments),
    /// Measure latency, rate or bandwidth between two processes
    #[command(after_help = examples::PERF)]
    Perf(Box<PerfArguments>),
    /// Measure everything that the project promises of its speed and size, with a verdict for each
    #[command(after_help = examples::BENCH)]
    Bench(BenchArguments),
    /// Report what on this host keeps the library from being fast or from working, with the remedy
    ///
    /// Changes nothing. Ends with status 1 if something does not work; what is only slow leaves the
    /// status 0.
    #[command(after_help = examples::DOCTOR)]
    Doctor(crate::doctor::DoctorArguments),
    /// Compute how long messages take by topology, size and traffic; without more, a worked example
    #[command(after_help = examples::MODEL)]
    Model(Box<crate::model::ModelArguments>),
    /// Start a parallel job: processes that know their rank, on this host or on several
    ///
    /// Standard input goes to rank 0, signals go to all. A process that ends by a signal or with a
    /// status other than 0 ends the job with that status.
    #[command(after_help = examples::RUN)]
    Run(crate::run::RunArguments),
    /// Print the variables by which an MPI sends over CCI, for mpiexec, srun and batch scripts
    #[command(name = "mpi-env", after_help = examples::MPI_ENV)]
    MpiEnv(crate::mpi::MpiEnvArguments),
    /// Join the job that this process belongs to, exchange, and show what a program would find out
    #[command(after_help = examples::JOB)]
    Job(crate::job::JobArguments),
    /// Make the secret that programs on several hosts share, or show its label
    ///
    /// A secret is 64 hexadecimal digits in a file of one user. Every host whose programs connect
    /// to each other needs the same.
    #[command(after_help = examples::KEY)]
    Key(crate::key::KeyArguments),
    /// Show the endpoints of this host's processes, live: rates, what is in flight, whom they wait
    /// for
    #[command(after_help = examples::TOP)]
    Top(crate::top::TopArguments),
    /// Print the completion of this command's words for a shell
    #[command(after_help = examples::COMPLETION)]
    Completion(CompletionArguments),
}

#[derive(Args, Debug)]
pub(crate) struct CompletionArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct InfoArguments {
    /// Print JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// URI of an endpoint, as its program prints it
    pub(crate) uri: String,
    /// How long to wait for its answer
    #[arg(long, default_value = "5s", value_parser = parse_time)]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct PerfArguments {
    #[command(subcommand)]
    pub(crate) command: PerfCommand,
}

/// What `cci perf` does.
#[derive(Subcommand, Debug)]
#[command(subcommand_value_name = "MEASUREMENT", subcommand_help_heading = "Measurements and more")]
pub(crate) enum PerfCommand {
    /// Half round trip: one operation there, one back
    #[command(name = "pingpong")]
    PingPong(ComparedArguments),
    /// One operation at a time, each waited for until its SEND event (in shared memory: until it is
    /// published)
    #[command(name = "oneway")]
    OneWay(MeasurementArguments),
    /// Operations per second, one direction, as many in flight as there is room
    Rate(ComparedArguments),
    /// Bytes per second, one direction, as many in flight as there is room
    #[command(name = "bw")]
    Bandwidth(ComparedArguments),
    /// The distribution of single round trips, each timed
    Jitter(MeasurementArguments),
    /// How much of a transfer hides behind computation: one operation at a time, computing for as
    /// long as it takes
    Overlap(MeasurementArguments),
    /// Operations per second over threads: all of one endpoint, and each of its own
    Threads(ThreadsArguments),
    /// Memory of an endpoint, and over the number of its connections
    Memory(MemoryArguments),
    /// Processor time of an endpoint that has nothing to do
    Idle(IdleArguments),
    /// Serve runs until ended; prints the URI to connect to
    Server(ServerArguments),
    /// Report what changed beyond noise between the runs of two builds; status 1 if anything became
    /// slower
    Compare(CompareArguments),
    /// Write runs as one HTML page that needs nothing else
    Report(ReportArguments),
    /// Latency, overheads, gap and gap per byte of the LogP model, told apart by bursts of growing
    /// length and delay
    #[command(name = "logp")]
    Logp(LogpArguments),
    /// What the time of a request and its reply goes to: base transport, event notification, flow
    /// control, semantics
    #[command(name = "breakdown")]
    Breakdown(BreakdownArguments),
    /// Random access to a table that several processes share (HPCC RandomAccess), verified
    /// afterwards
    #[command(name = "gups")]
    Gups(GupsArguments),
    /// Active Messages beside CCI's own messages and RMA, in turn in the same run
    #[command(name = "am")]
    Am(AmArguments),
    /// Accesses of the global address space of Split-C, beside what they stand on
    #[command(name = "splitc")]
    Splitc(SplitcArguments),
    /// VIs of the VI Architecture beside CCI's own messages and RMA, in turn in the same run
    #[command(name = "via")]
    Via(ViaArguments),
    /// Portals 3.3 beside CCI's own messages and RMA, in turn in the same run
    #[command(name = "portals")]
    Portals(PortalsArguments),
    /// Myrinet Express beside CCI's own messages and RMA, in turn in the same run
    #[command(name = "mx")]
    Mx(MxArguments),
    /// Windows of SCI beside bare memory: streams and ping-pongs by stores and copies
    ///
    /// One way with a last acknowledgement, and ping-pong, as the thesis's scibench: single stores
    /// up to 8 bytes, then copies. The receiver polls its own memory. A figure is the fastest of
    /// its runs.
    #[command(name = "sci")]
    Sci(SciArguments),
    /// MPI beside windows of SCI, as the thesis's mpibench and scibench
    ///
    /// One way with a last acknowledgement, and ping-pong, by the programs of Open MPI and MPICH
    /// that `make peers` builds. The plot has the thesis's figures of 1999 beside.
    #[command(name = "mpi")]
    Mpi(MpiArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Call the library through this interface
    #[arg(long, value_parser = choice::<Abi>(), default_value = "rust")]
    pub(crate) abi: Abi,
    /// The shared library for --abi c; when absent the one beside this program, or in ../lib
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

/// A measurement that other libraries can be compared in.
#[derive(Args, Debug)]
pub(crate) struct ComparedArguments {
    #[command(flatten)]
    pub(crate) measurement: MeasurementArguments,
    #[command(flatten)]
    pub(crate) peers: PeersArguments,
}

/// Arguments that select peers.
#[derive(Args, Debug)]
pub(crate) struct PeersArguments {
    /// Other libraries to measure in turn with CCI: all, installed, or a list such as
    /// openmpi,ucx:tcp,installed:memory
    #[arg(long, value_name = "LIST", requires = "local", value_parser = parse_list)]
    pub(crate) peers: Option<PeerList>,
    /// Where `make peers` has put their programs; when absent peers beside this program, or beside
    /// its directory
    #[arg(long, value_name = "DIR", requires = "peers")]
    pub(crate) peers_in: Option<PathBuf>,
}

/// What measurements share: where their ends are, what is varied, how long it takes, where the
/// results go.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("where").required(true).args(["local", "connect"])))]
#[command(mut_arg("key", |key| key.help(
    "A key of the device, as in the configuration file: --key port=5000. With sock, --local means --key interface=lo"
)))]
pub(crate) struct MeasurementArguments {
    /// Run both ends as processes of this host, pinned to different processors, with a bare probe
    /// in between
    #[arg(long)]
    pub(crate) local: bool,
    /// Measure against the server with this URI
    #[arg(long, value_name = "URI")]
    pub(crate) connect: Option<String>,
    /// Operation
    #[arg(long, value_parser = choice::<Operation>(), default_value = "send")]
    pub(crate) op: Operation,
    /// Sizes in bytes: 8,64,4096 or powers of two, 1..1M
    #[arg(short, long, value_parser = parse_sizes)]
    pub(crate) size: Option<Sizes>,
    /// What the measured connection promises
    #[arg(long, value_parser = choice::<AttributeName>(), default_value = "ro")]
    pub(crate) attribute: AttributeName,
    /// How both ends wait
    #[arg(long, value_parser = choice::<Mode>(), default_value = "polling")]
    pub(crate) mode: Mode,
    /// Operations without SEND events, instead of reaping these
    #[arg(long)]
    pub(crate) silent: bool,
    /// Endpoints for one thread, or for many
    #[arg(long, value_parser = choice::<Threads>(), default_value = "many")]
    pub(crate) threads: Threads,
    /// Memory of RMA
    #[arg(long, value_parser = choice::<MemoryOrigin>(), default_value = "library")]
    pub(crate) memory: MemoryOrigin,
    /// What the target of RMA does meanwhile
    #[arg(long, value_parser = choice::<Target>(), default_value = "polling")]
    pub(crate) target: Target,
    /// Read every byte of each received message
    #[arg(long)]
    pub(crate) touch: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Most operations in flight; as many as there is room for, and 16 RMA, when absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Both ends begin operations; figures are those of both directions together
    #[arg(long)]
    pub(crate) bidirectional: bool,
    /// Call the library through this interface
    #[arg(long, value_parser = choice::<Abi>(), default_value = "rust")]
    pub(crate) abi: Abi,
    /// The shared library for --abi c; when absent the one beside this program, or in ../lib
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
    /// Bare operation to compare with; when absent the one that does the same as the measurement
    #[arg(long, value_parser = choice::<ProbeKind>(), conflicts_with = "connect")]
    pub(crate) probe: Option<ProbeKind>,
    /// No bare operation to compare with
    #[arg(long, conflicts_with = "probe")]
    pub(crate) no_probe: bool,
    /// Operations of each size in all, at least; from the time when absent
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=1 << 40), conflicts_with_all = ["count", "blocks"])]
    pub(crate) iterations: Option<u64>,
    /// Operations of a block; calibrated when absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(crate) count: Option<u64>,
    /// Time for each size: short, normal, long, seconds, or such as 250ms
    #[arg(short, long, default_value = "normal", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Number of blocks of each size; from the time when absent
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) blocks: Option<u32>,
    /// Launches that these are shared out to, each with fresh processes, or fresh endpoints with
    /// --connect
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) launches: u32,
    /// Spread of a point, by which its median is uncertain, beyond which it is marked as not
    /// accurate: two medians within 3.5% are within 5% of each other
    #[arg(long, value_name = "PERCENT", default_value = "3.5%", value_parser = parse_percent)]
    pub(crate) accuracy: f64,
    #[command(flatten)]
    pub(crate) results: ResultsArguments,
    /// Draw latency and bandwidth over size to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) narrow: NarrowPlot,
}

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    /// Write JSON to this file; to standard output without a file, or with -
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Write the figures into the tables of this page too, between <!-- cci bench TRANSPORT --> and
    /// <!-- end of cci bench TRANSPORT -->
    #[arg(long, value_name = "PAGE.md", requires = "commit")]
    pub(crate) page: Option<PathBuf>,
    /// What the page says of the build that was measured
    #[arg(long, value_name = "COMMIT", requires = "page")]
    pub(crate) commit: Option<String>,
    /// End with a status other than 0 when a bar is missed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Shorter: the idle endpoint idles for 1 s instead of 10, and each row takes less time
    #[arg(long)]
    pub(crate) quick: bool,
    /// Transport to measure; all when absent
    #[arg(long, value_parser = PossibleValuesParser::new(crate::bench::transports()))]
    pub(crate) transport: Option<String>,
    /// The shared library for the row through the C ABI; when absent the one beside this program,
    /// or in ../lib
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> String {
        let all = std::iter::once("cci").chain(arguments.iter().copied());
        Arguments::read(all.map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_run_is_local_or_a_server_or_connects() {
        assert!(refused(&["perf", "pingpong"]).contains("--local"));
        assert!(refused(&["perf", "pingpong", "--local", "--connect", "sm://1/2"]).contains("cannot be used with"));
        assert!(refused(&["perf", "pingpong", "--server"]).contains("unexpected argument '--server'"));
        assert!(refused(&["perf", "--local"]).contains("<MEASUREMENT>"));
    }

    #[test]
    fn unknown_sizes_and_operations_are_told_with_the_known_ones() {
        assert!(refused(&["perf", "pingpong", "--local", "--op", "push"]).contains("send, write, read"));
        assert!(refused(&["perf", "pingpong", "--local", "--size", "big"]).contains("4096"));
        assert!(refused(&["perf", "speed", "--local"]).contains("pingpong, oneway, rate, bw"));
        assert!(refused(&["measure"]).contains("info, explain, perf, bench"));
    }

    #[test]
    fn a_word_that_resembles_a_command_is_answered_with_it() {
        assert!(refused(&["explan"]).contains("'explain'"));
        let text = refused(&["endd"]);
        assert!(!text.contains("similar") && text.contains("info, explain, perf"), "{text}");
    }

    #[test]
    fn help_of_the_help_is_the_help() {
        for line in [&["model", "help", "--help"][..], &["perf", "help", "-h"], &["help", "--help"]] {
            let text = refused(line);
            assert!(text.contains("Usage: cci") && !text.contains("error:"), "{text}");
        }
        assert!(refused(&["perf", "help", "--help", "pingpong"]).contains("Half round trip"));
    }

    #[test]
    fn options_may_stand_before_the_measurement_and_the_server_may_be_an_option() {
        let ordered = |line: &str| {
            let words = measurement_first(line.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        let first = "cci perf pingpong --local --size 8";
        assert_eq!(ordered(first), first);
        assert_eq!(ordered("cci perf --local --size 8 pingpong"), "cci perf pingpong --local --size 8");
        assert_eq!(ordered("cci perf --json rate --local bw"), "cci perf bw --json rate --local");
        assert_eq!(ordered("cci perf --transport sock --server"), "cci perf server --transport sock");
        assert_eq!(ordered("cci perf --local"), "cci perf --local");
        assert_eq!(ordered("cci info perf"), "cci info perf");
        let served = Arguments::read("cci perf --server --key port=5000".split(' ').map(OsString::from));
        assert!(
            matches!(served.unwrap().command, Command::Perf(perf) if matches!(perf.command, PerfCommand::Server(_)))
        );
    }

    #[test]
    fn a_probe_needs_both_ends_on_this_host() {
        assert!(refused(&["perf", "bw", "--connect", "sm://1/2", "--probe", "pipe"]).contains("cannot be used with"));
    }
}
