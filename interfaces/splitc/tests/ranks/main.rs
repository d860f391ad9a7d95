//! Ranks of one host: each scenario runs as a job of 1 to 4 processes, and as two whose ranks do
//! not map each other's memory. One runs as sealed jobs too.

mod collective;
mod dying;
mod memory;
mod sealed;

use cci_conformance::installed::{command, end, use_transport};
use cci_splitc::{Fault, World};
use std::path::Path;
use std::process::{ExitCode, Output};

/// What a rank does; by the name that its process gets as argument.
type Scenario = fn(&World) -> Result<(), Fault>;

/// Those that end well, whatever the number of ranks.
const WELL: [(&str, Scenario); 14] = [
    ("words", memory::words),
    ("bulk", memory::bulk),
    ("many_parts", memory::many_parts),
    ("phases", memory::phases),
    ("atomics", memory::atomics),
    ("wrong_pointers", memory::wrong_pointers),
    ("spread_memory", memory::spread_memory),
    ("too_large", memory::too_large),
    ("local_memory", memory::local_memory),
    ("together", collective::together),
    ("stores", collective::stores),
    ("sleepers", collective::sleepers),
    ("never_polls", memory::never_polls),
    ("idle", collective::idle),
];

/// Those in which ranks die.
const BADLY: [(&str, Scenario); 3] =
    [("quits", dying::quits), ("is_killed", dying::is_killed), ("fails", dying::fails)];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next().filter(|_| cci_job::Job::is_named()) else {
        all();
        return ExitCode::SUCCESS;
    };
    let scenario = WELL.iter().chain(&BADLY).find(|(known, _)| *known == name).expect("a scenario").1;
    match cci_splitc::run(scenario) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => dying::report(&why),
    }
}

fn all() {
    sealed::all();
    let dir = cci_conformance::build("cci-cli", env!("CARGO_TARGET_TMPDIR").as_ref());
    let cci = dir.join("cci");
    for (name, _) in WELL {
        for ranks in 1..=4 {
            succeeds(&cci, name, ranks, "");
        }
        // Peers that are reached over sockets map nothing: everything goes by RMA and messages; or
        // by Active Messages or the VI Architecture, where that is asked for.
        for way in ["sock", "am", "vi", "vi2"] {
            succeeds(&cci, name, 3, way);
        }
    }
    let output = run(&cci, "words", 2, "carrier pigeons");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("CCI_SPLITC_MAPPING is \"carrier pigeons\"; give direct, am, vi or vi2"), "{words}");
    for transport in ["", "sock", "vi", "vi2"] {
        dying::all(&cci, transport);
    }
}

fn program() -> std::path::PathBuf {
    std::env::current_exe().expect("this program")
}

/// Runs a scenario as a job over a transport, or by a mapping, or as it is by default.
fn run(cci: &Path, name: &str, ranks: u32, transport: &str) -> Output {
    let mut command = command(cci);
    command.args(["run", "-n", &ranks.to_string()]).arg(program()).arg(name);
    let dir = tempfile::tempdir().expect("a temporary directory");
    if ["am", "vi", "vi2", "carrier pigeons"].contains(&transport) {
        command.env("CCI_SPLITC_MAPPING", transport);
    } else {
        use_transport(&mut command, transport, dir.path());
    }
    end(command.spawn().expect("it starts"), &format!("{name} of {ranks} over '{transport}'"))
}

fn succeeds(cci: &Path, name: &str, ranks: u32, transport: &str) {
    let output = run(cci, name, ranks, transport);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} of {ranks} over '{transport}': {}\n{words}", output.status);
    assert!(output.stderr.is_empty() && output.stdout.is_empty(), "nobody has asked for it: {words}");
}
