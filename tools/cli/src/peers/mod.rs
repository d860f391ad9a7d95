//! Other libraries, measured side by side with CCI; see `docs/design/peers.md`.

mod catalogue;
mod peer_set;
mod program;
pub(crate) mod side_by_side;

pub(crate) use peer_set::{Company, News};
pub(crate) use program::Patience;

use crate::measure::UserError;
use crate::measure::environment::two_processors;
use crate::measure::plan::{Abi, Mode, Operation, Plan, Threads};
use crate::measure::row::Row;
use catalogue::{Choice, Selection, parse_selection};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which peers to measure.
#[derive(Args, Debug)]
pub(crate) struct PeersArguments {
    /// Other libraries to measure in turn with CCI: all, installed, or a list such as openmpi,ucx:tcp,installed:memory
    #[arg(long, value_name = "LIST", requires = "local", value_parser = parse_selection)]
    peers: Option<Selection>,
    /// Where `make peers` has put their programs; when absent peers beside this program, or beside its directory
    #[arg(long, value_name = "DIR", requires = "peers")]
    peers_in: Option<PathBuf>,
}

/// The peers of a run, as its plan has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Guests {
    /// Names of [`Choice`]s.
    pub(crate) names: Vec<String>,
    /// Where their programs are.
    pub(crate) directory: PathBuf,
    /// Processors of the client and of the server.
    pub(crate) processors: [usize; 2],
}

/// Whose point it is, when it is not CCI's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label {
    /// Name of the [`Choice`].
    pub(crate) name: String,
    /// Its setting, as its program tells it.
    pub(crate) setting: String,
}

impl Label {
    /// Makes the row of a point a peer's: what the session says of CCI's operations does not hold for it.
    pub(crate) fn onto(&self, row: Row) -> Row {
        let Some(Choice { peer, setting }) = Choice::named(&self.name) else { return row };
        Row {
            library: peer.library.into(),
            setting: Some(format!("{}: {}", setting.name, self.setting)),
            attribute: setting.attribute.name().to_uppercase(),
            operation: Operation::Send.name().into(),
            mode: peer.mode.name().into(),
            abi: Abi::C,
            threads: Threads::One.name().into(),
            completion: "reaped".into(),
            memory: None,
            target: None,
            window: 0,
            ..row
        }
    }
}

/// Who of the peers came, and why others did not.
#[derive(Debug, Default)]
pub(crate) struct Attendance {
    /// Sentences of those that were asked for and are missed.
    missed: Vec<String>,
    /// Sentences to say before the run.
    pub(crate) said: Vec<String>,
}

impl Attendance {
    /// Hears what befell a peer: a sentence to say at once.
    pub(crate) fn hear(&mut self, news: &News) -> String {
        match news {
            News::LeftOut(why) => format!("Left out: {why}."),
            News::Lost(name, why) => {
                let sentence = format!("the peer {name} is lost: {}", why.trim_end_matches('.'));
                self.missed.push(sentence.clone());
                format!("{sentence}.")
            }
        }
    }

    /// Why the run is not complete, if it is not.
    pub(crate) fn interrupted(self, run: Option<String>) -> Option<String> {
        let all: Vec<_> = run.into_iter().chain(self.missed).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Adds to a plan the peers that are asked for and there.
///
/// # Errors
///
/// Peers cannot be measured in such a session.
pub(crate) fn invite(plan: &mut Plan, arguments: &PeersArguments) -> Result<Attendance, UserError> {
    let Some(selection) = &arguments.peers else { return Ok(Attendance::default()) };
    if let Some(why) = contradiction(plan) {
        return Err(UserError::new(why));
    }
    let directory = arguments.peers_in.clone().unwrap_or_else(directory_beside);
    let found = selection.find(&directory);
    plan.guests = Guests {
        names: found.choices.iter().map(Choice::to_string).collect(),
        directory,
        processors: two_processors(),
    };
    // The time is that of a row.
    plan.effort.time *= u32::try_from(1 + plan.guests.names.len()).unwrap_or(u32::MAX);
    let missed: Vec<_> = found.missed.into_iter().map(|why| why.0).collect();
    let left_out = found.left_out.into_iter().map(|why| format!("Left out: {why}."));
    let said = missed.iter().map(|why| format!("{why}.")).chain(left_out).collect();
    Ok(Attendance { missed, said })
}

/// Why peers cannot be measured in such a run, if they cannot.
fn contradiction(plan: &Plan) -> Option<&'static str> {
    if plan.session.operation == Operation::Read {
        return Some("peers send and receive: use --peers with --op send or write");
    }
    if plan.session.mode == Mode::Blocking {
        return Some("peers wait in their own best way: leave out --mode blocking, or --peers");
    }
    if plan.transport.as_deref() == Some("sim") {
        return Some("peers take real time, and the transport sim virtual time: use --peers with another transport");
    }
    None
}

/// Where `make peers` puts the programs: beside this one, or beside its directory.
fn directory_beside() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let directory = own.parent().unwrap_or(Path::new("."));
    let beside = directory.join("peers");
    if beside.is_dir() { beside } else { directory.join("../peers") }
}
