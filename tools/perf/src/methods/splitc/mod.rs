//! Split-C: what accesses of the global address space cost. `docs/design/perf-splitc.md` has the
//! method.
//!
//! What is measured is what a program's accesses become: a program in Split-C, translated and
//! compiled on this machine, runs as two ranks of a job for each mapping.

mod network;
mod parse;
mod parts;
mod rank;

pub use network::Bare;
pub(crate) use network::NetworkRank;
pub(crate) use parts::PartsRank;

use crate::interrupt;
use crate::machine;
use crate::methods::{Found, warn_of_one_processor};
use crate::probe::ticks::tick_ns;
use crate::reach::scope;
use crate::task;
use cci::Scope;
use cci_report::finding::{Finding, SplitC};
use cci_report::{UserError, named, while_doing};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The program that measures.
const PROGRAM: &str = include_str!("measure.sc");

named! {
    /// How the run time reaches the memory of other ranks.
    pub enum SplitcMapping {
        /// Mapped memory, and messages for the rest
        Direct = "direct",
        /// Active Messages for all of it
        Am = "am",
        /// The VI Architecture for all of it, one VI a pair
        Vi = "vi",
        /// The same with two: one for words
        TwoVis = "vi2",
    }
}

impl SplitcMapping {
    /// Whether it tells the parts of a get.
    fn is_vi(self) -> bool {
        matches!(self, Self::Vi | Self::TwoVis)
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SplitcOptions {
    /// The transport of both ranks.
    pub transport: String,
    /// The transport of a network, for a get beside an RMA read; none: it is left out.
    pub network: Option<String>,
    /// The mappings, in the order of the tables.
    pub mappings: Vec<SplitcMapping>,
    /// Time for each line of the first table; a tenth of it for each other point.
    pub time: Duration,
    /// The translator; the one beside this program, or of the search path, when absent.
    pub splitcc: Option<PathBuf>,
}

/// Measures, with both ranks on this host. `warn` hears what the user should know before it begins.
///
/// # Errors
///
/// The translator or a compiler is missing, or a rank failed in the first job. What ends the run
/// later is told with what was found.
pub fn measure(options: &SplitcOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    warn_of_one_processor(warn);
    let scratch = tempfile::tempdir().map_err(while_doing("cannot make a folder for the program"))?;
    let program = compile(scratch.path(), options.splitcc.as_deref())?;
    let transport = options.transport.clone();
    let configuration = configuration(scratch.path(), &transport)?;
    let mut found = SplitC { transport, cycle_ns: tick_ns(), ..SplitC::default() };
    let mut interrupted = None;
    for (number, mapping) in options.mappings.iter().enumerate() {
        if interrupt::is_asked() {
            break;
        }
        let arguments = [options.time.as_millis().max(1).to_string()];
        match run(&program, &arguments, &configuration, *mapping) {
            Ok(text) => parse::lines(&text, mapping.name(), &mut found)?,
            Err(why) if number == 0 => return Err(why),
            Err(why) => {
                interrupted = Some(why.0);
                break;
            }
        }
    }
    for mapping in options.mappings.iter().filter(|mapping| mapping.is_vi()) {
        if interrupted.is_some() || interrupt::is_asked() {
            break;
        }
        let arguments = task::of_rank(&PartsRank { time: options.time })?;
        let text = run(&task::this_program()?, &arguments, &configuration, *mapping)?;
        parse::lines(&text, mapping.name(), &mut found)?;
    }
    if let Some(network) = options.network.as_ref().filter(|_| interrupted.is_none() && !interrupt::is_asked()) {
        let rank = NetworkRank { transport: network.clone(), time: options.time };
        let configuration = self::configuration(scratch.path(), network)?;
        let arguments = task::of_rank(&rank)?;
        let text = run(&task::this_program()?, &arguments, &configuration, SplitcMapping::Direct)?;
        parse::lines(&text, SplitcMapping::Direct.name(), &mut found)?;
    }
    let interrupted = interrupted.or_else(interrupt::why);
    Ok(Found { environment: machine::here(None), finding: Finding::SplitC(found), interrupted })
}

/// A file by which ranks on this host use a transport.
fn configuration(folder: &Path, transport: &str) -> Result<PathBuf, UserError> {
    let file = folder.join(format!("{transport}.ini"));
    let address = if scope(transport) == Some(Scope::Network) { "ip = 127.0.0.1\n" } else { "" };
    let text = format!("[device]\ntransport = {transport}\n{address}");
    std::fs::write(&file, text).map_err(while_doing("cannot write a configuration"))?;
    Ok(file)
}

/// The translator: as it was named, beside this program, or anywhere.
fn translator(named: Option<&Path>) -> PathBuf {
    let beside = || std::env::current_exe().ok()?.parent().map(|folder| folder.join("splitcc"));
    let found = named.map(Path::to_path_buf).or_else(|| beside().filter(|path| path.exists()));
    found.unwrap_or_else(|| "splitcc".into())
}

fn compile(folder: &Path, splitcc: Option<&Path>) -> Result<PathBuf, UserError> {
    let (source, program) = (folder.join("measure.sc"), folder.join("measure"));
    std::fs::write(&source, PROGRAM).map_err(while_doing("cannot write the program"))?;
    let splitcc = translator(splitcc);
    let mut command = Command::new(&splitcc);
    command.args(["-O2", "-D_GNU_SOURCE", "-o"]).arg(&program).arg(&source).arg("-lpthread");
    let output = command.output().map_err(|why| {
        UserError(format!("cannot run {}: {why}; install it beside cci, or name it by --splitcc", splitcc.display()))
    })?;
    succeeded(&output).map_err(while_doing("the program that measures cannot be compiled"))?;
    Ok(program)
}

/// What a program that failed has printed, and its status where it has printed nothing.
fn succeeded(output: &Output) -> Result<(), String> {
    let words = String::from_utf8_lossy(&output.stderr);
    match words.trim() {
        _ if output.status.success() => Ok(()),
        "" => Err(output.status.to_string()),
        words => Err(words.to_owned()),
    }
}

/// Runs a program as a job of two ranks: what they print.
fn run(
    program: &Path,
    arguments: &[String],
    configuration: &Path,
    mapping: SplitcMapping,
) -> Result<String, UserError> {
    let mut command = Command::new(task::this_program()?);
    command.args(["run", "-n", "2", "--bind", "core"]).arg(program).args(arguments);
    command.env("CCI_CONFIG", configuration).env("CCI_SPLITC_MAPPING", mapping.name());
    command.env_remove("CCI_CTP").stdin(Stdio::null());
    let output = command.output().map_err(while_doing("cannot start a job"))?;
    succeeded(&output).map_err(while_doing("the ranks that measure failed"))?;
    String::from_utf8(output.stdout).map_err(while_doing("cannot parse what was measured"))
}
