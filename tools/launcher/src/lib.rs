//! `cci run`: starts the ranks of a parallel job on this host and on others, and ends them
//! together.
//!
//! One thread polls everything. `docs/design/jobs.md` has the figure, what happens when, and the
//! frames between launchers.
#![deny(unsafe_code)]

mod end;
mod feed;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod hosts;
mod labels;
mod launcher;
mod mpi;
mod output;
mod polling;
mod remote;
mod security;
mod signals;
mod site;
mod sys;

pub use hosts::{Host, parse_hostfile, parse_hosts};
pub use launcher::run;
pub use mpi::Mpi;
pub use remote::remote;
pub use security::Security;
pub use site::Bind;

use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// What to run, where and how.
///
/// ```
/// let options = cci_launcher::RunOptions {
///     ranks: 2,
///     hosts: cci_launcher::parse_hosts("here:1,there:1")?,
///     program: "hostname".into(),
///     ..Default::default()
/// };
/// assert_eq!(options.hosts.len(), 2);
/// # Ok::<(), cci_report::UserError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the command makes it")]
pub struct RunOptions {
    /// How many ranks run `program`, at least 1.
    pub ranks: u32,
    /// The hosts; none for this one alone.
    pub hosts: Vec<Host>,
    /// The command that starts another one on a host, words between spaces; `ssh` if none.
    pub rsh: Option<String>,
    /// The processors of each rank.
    pub bind: Bind,
    /// Whether ranks seal what they send to other hosts.
    pub security: Security,
    /// Whether each line of output begins with its rank.
    pub label: bool,
    /// Whether the ranks are those of an MPI, which this launcher serves PMI to, and how.
    pub mpi: Option<Mpi>,
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The programs of more ranks, whose numbers follow.
    pub more: Vec<Program>,
    /// What messages begin with; `cci run` if nothing.
    pub speaker: Option<String>,
    /// The command `cci` on other hosts; the path of this program if none.
    pub command: Option<OsString>,
}

/// A program of a job that has several.
///
/// ```
/// let clients = cci_launcher::Program { ranks: 2, program: "./client".into(), arguments: Vec::new() };
/// let options = cci_launcher::RunOptions {
///     ranks: 1,
///     program: "./server".into(),
///     more: vec![clients],
///     ..Default::default()
/// };
/// assert_eq!(options.more[0].ranks, 2);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "the command makes it")]
pub struct Program {
    /// How many ranks run it, at least 1.
    pub ranks: u32,
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}
