//! The command line.

use crate::measure::local::EndArguments;
use crate::measure::plan::{
    Abi, AttributeName, Measurement, MemoryOrigin, Mode, Operation, ProbeKind, Target, Threads,
};
use crate::sizes::{Sizes, parse_key, parse_sizes, parse_time};
use clap::{ArgGroup, Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Devices, paths and measurements of the Common Communication Interface
#[derive(Parser, Debug)]
#[command(name = "cci", version, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// List the devices of this host, and why each is or is not usable
    Info(InfoArguments),
    /// Say which way to an endpoint messages and RMA take, and why: by connecting to it
    ///
    /// Connects to the endpoint as a client does, describes the connection, and leaves. The program there sees it: a
    /// connection request, which it must accept, an ACCEPT event, and the end of the connection. A program that counts its
    /// clients, or serves one and ends, counts this one.
    Explain(ExplainArguments),
    /// Measure latency, rate or bandwidth between two processes
    Perf(Box<PerfArguments>),
    /// Measure everything that the project promises of its speed and size, with a verdict for each
    Bench(BenchArguments),
    /// One end of a run of `cci perf --local`
    #[command(hide = true)]
    End(EndArguments),
    /// One measurement of `cci bench` that needs a process of its own
    #[command(hide = true)]
    Footprint(FootprintArguments),
    /// Very many connections, of `cci bench`: the end that measures, or the one that connects
    #[command(hide = true)]
    Connections(ConnectionsArguments),
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
#[command(group(ArgGroup::new("where").required(true).args(["local", "server", "connect"])))]
pub(crate) struct PerfArguments {
    /// What to measure (not with --server: the client says)
    #[arg(value_enum, required_unless_present = "server")]
    pub(crate) measurement: Option<Measurement>,
    /// Run both ends as processes of this host, pinned to different processors, with a bare probe in between
    #[arg(long)]
    pub(crate) local: bool,
    /// Serve runs until ended; prints the URI to connect to
    #[arg(long, conflicts_with = "measurement")]
    pub(crate) server: bool,
    /// Measure against the server with this URI
    #[arg(long, value_name = "URI")]
    pub(crate) connect: Option<String>,
    /// Operation
    #[arg(long, value_enum, default_value = "send")]
    pub(crate) op: Operation,
    /// Sizes in bytes: 8,64,4096 or powers of two, 1..1M
    #[arg(long, value_parser = parse_sizes)]
    pub(crate) size: Option<Sizes>,
    /// What the measured connection promises
    #[arg(long, value_enum, default_value = "ro")]
    pub(crate) attribute: AttributeName,
    /// How both ends wait
    #[arg(long, value_enum, default_value = "polling")]
    pub(crate) mode: Mode,
    /// Operations without SEND events, instead of reaping these
    #[arg(long)]
    pub(crate) silent: bool,
    /// Endpoints for one thread, or for many
    #[arg(long, value_enum, default_value = "many")]
    pub(crate) threads: Threads,
    /// Memory of RMA
    #[arg(long, value_enum, default_value = "library")]
    pub(crate) memory: MemoryOrigin,
    /// What the target of RMA does meanwhile
    #[arg(long, value_enum, default_value = "polling")]
    pub(crate) target: Target,
    /// Read every byte of each received message
    #[arg(long)]
    pub(crate) touch: bool,
    /// Transport to use; the default device's when absent
    #[arg(long)]
    pub(crate) transport: Option<String>,
    /// A key of the device, as in the configuration file: --key port=5000. With sock, --local means --key interface=lo
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key)]
    pub(crate) key: Vec<(String, String)>,
    /// Most operations in flight; as many as there is room for, and 16 RMA, when absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Call the library through this interface
    #[arg(long, value_enum, default_value = "rust")]
    pub(crate) abi: Abi,
    /// The shared library for --abi c; when absent the one beside this program, or in ../lib
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
    /// Bare operation to compare with; when absent the one that does the same as the measurement
    #[arg(long, value_enum, conflicts_with_all = ["connect", "server"])]
    pub(crate) probe: Option<ProbeKind>,
    /// No bare operation to compare with
    #[arg(long, conflicts_with = "probe")]
    pub(crate) no_probe: bool,
    /// Operations of a block; calibrated when absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(crate) count: Option<u64>,
    /// Time for each size: short, normal, long, or such as 250ms
    #[arg(long, default_value = "normal", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Number of blocks of each size; from the time when absent
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) blocks: Option<u32>,
    /// Write JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write CSV to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw latency and bandwidth over size to this SVG file, - for standard output
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    /// Write JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// End with a status other than 0 when a bar is missed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Shorter: the idle endpoint idles for 1 s instead of 10, and each row takes less time
    #[arg(long)]
    pub(crate) quick: bool,
    /// Transport to measure; all when absent
    #[arg(long, value_parser = ["sm", "sock"])]
    pub(crate) transport: Option<String>,
    /// The shared library for the row through the C ABI; when absent the one beside this program, or in ../lib
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct FootprintArguments {
    /// Process that must be the parent
    #[arg(long)]
    pub(crate) parent: i32,
    /// Transport to measure
    #[arg(long)]
    pub(crate) transport: String,
    /// Seconds to idle
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// What to measure
    #[arg(value_enum)]
    pub(crate) what: Footprint,
}

#[derive(Args, Debug)]
pub(crate) struct ConnectionsArguments {
    /// Process that must be the parent
    #[arg(long)]
    pub(crate) parent: i32,
    /// Transport to measure
    #[arg(long)]
    pub(crate) transport: String,
    /// Connections
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) count: u32,
    /// Endpoints to connect to: the one with one connection, the one with all; without them this end measures
    pub(crate) uris: Vec<String>,
}

/// Measurements that need a process of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Footprint {
    /// Resident bytes of a fresh endpoint
    Endpoint,
    /// Resident bytes of an idle connection
    Connection,
    /// Time, context switches and wake-ups of an idle endpoint
    Idle,
    /// Time of a process that sleeps as long without an endpoint
    Asleep,
    /// Allocations over 100,000 send, receive, return
    Allocations,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> String {
        let all = std::iter::once("cci").chain(arguments.iter().copied());
        Arguments::try_parse_from(all).unwrap_err().to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_run_is_local_or_a_server_or_connects() {
        assert!(refused(&["perf", "pingpong"]).contains("--local"));
        assert!(refused(&["perf", "pingpong", "--local", "--connect", "sm://1/2"]).contains("cannot be used with"));
        assert!(refused(&["perf", "pingpong", "--server"]).contains("cannot be used with"));
        assert!(refused(&["perf", "--local"]).contains("<MEASUREMENT>"));
    }

    #[test]
    fn unknown_sizes_and_operations_are_told_with_the_known_ones() {
        assert!(refused(&["perf", "pingpong", "--local", "--op", "push"]).contains("send, write, read"));
        assert!(refused(&["perf", "pingpong", "--local", "--size", "big"]).contains("4096"));
        assert!(refused(&["perf", "speed", "--local"]).contains("pingpong, oneway, rate, bw"));
    }

    #[test]
    fn a_probe_needs_both_ends_on_this_host() {
        assert!(refused(&["perf", "bw", "--connect", "sm://1/2", "--probe", "pipe"]).contains("cannot be used with"));
    }
}
