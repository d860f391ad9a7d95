//! Other libraries, measured side by side with CCI; see `docs/design/peers.md`.

mod catalogue;
mod peer_set;
mod program;

pub(crate) use peer_set::PeerSet;
pub use peer_set::{PeerEvent, PeerSelection};
pub(crate) use program::{Answer, Program, Timeouts};

use crate::machine::two_processors;
use crate::point::Label;
pub(crate) use catalogue::Choice;
pub use catalogue::{PeerList, parse_list};
use cci_report::names::{Abi, Operation, Threads};
use cci_report::row::Row;
use std::path::{Path, PathBuf};

impl Label {
    /// Makes the row of a point a peer's: what the session says of CCI's operations does not hold
    /// for it.
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

/// Status of the peers of a run: which are missing or lost, and why.
#[derive(Debug, Default)]
pub struct PeerStatus {
    /// Errors of the peers that were selected and are missing or lost.
    missing: Vec<String>,
    /// Messages to show before the run.
    pub notices: Vec<String>,
}

impl PeerStatus {
    /// Records an event of a peer; returns the message to show.
    pub fn record(&mut self, event: &PeerEvent) -> String {
        match event {
            PeerEvent::LeftOut(why) => format!("Left out: {why}."),
            PeerEvent::Lost(name, why) => {
                let error = format!("the peer {name} is lost: {}", why.trim_end_matches('.'));
                self.missing.push(error.clone());
                format!("{error}.")
            }
        }
    }

    /// Why the run is not complete, if it is not.
    pub fn interrupted(self, run: Option<String>) -> Option<String> {
        let all: Vec<_> = run.into_iter().chain(self.missing).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The peers of the list whose programs exist, in this directory, or where `make peers` puts them.
pub(crate) fn select(list: &PeerList, directory: Option<&Path>) -> (PeerSelection, PeerStatus) {
    let directory = directory.map_or_else(directory_beside, Path::to_owned);
    let found = list.find(&directory);
    let names = found.choices.iter().map(Choice::to_string).collect();
    let missing: Vec<_> = found.missing.into_iter().map(|why| why.0).collect();
    let left_out = found.left_out.into_iter().map(|why| format!("Left out: {why}."));
    let notices = missing.iter().map(|why| format!("{why}.")).chain(left_out).collect();
    (PeerSelection { names, directory, processors: two_processors() }, PeerStatus { missing, notices })
}

/// Where `make peers` puts the programs: beside this one, or beside its directory.
fn directory_beside() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let directory = own.parent().unwrap_or(Path::new("."));
    let beside = directory.join("peers");
    if beside.is_dir() { beside } else { directory.join("../peers") }
}
