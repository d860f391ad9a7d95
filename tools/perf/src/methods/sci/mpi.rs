//! MPI beside windows of SCI, as the thesis's `mpibench` and `scibench` are beside each other.
//! `docs/design/perf-sci.md` has the method.

use super::{Measured, SciOptions, launches, rows};
use crate::machine;
use crate::methods::Found;
use crate::peers;
use cci_report::UserError;
use cci_report::finding::{Finding, Mpi};
use std::path::PathBuf;

/// The ways of MPI, both through shared memory.
const PROGRAMS: &str = "openmpi:shm,mpich:shm";

/// Bytes of messages where none are asked for: those of the thesis's figures, and powers of two.
pub const SIZES: [u64; 23] = [
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
    192,
    256,
    320,
    384,
    448,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct MpiOptions {
    /// What is measured, as of windows alone.
    pub of: SciOptions,
    /// Where the programs are; by default where `make peers` puts them.
    pub programs_in: Option<PathBuf>,
}

/// Measures, with both ends on this host. `warn` gets what the user should know before it begins.
///
/// # Errors
///
/// No MPI is there; or as of [`super::measure`].
pub fn measure(options: &MpiOptions, warn: &dyn Fn(&str)) -> Result<Found, UserError> {
    let list = peers::parse_list(PROGRAMS).map_err(UserError)?;
    let (selection, status) = peers::select(&list, options.programs_in.as_deref());
    if selection.names.is_empty() {
        return Err(UserError(format!("no MPI is there to measure: {}", status.notices.join(" "))));
    }
    status.notices.iter().for_each(|notice| warn(notice));
    let measured = launches("mpi", &options.of, &selection, warn)?;
    let Measured { environment, transport, window, programs, launches, interrupted } = measured;
    let finding = Mpi {
        transport,
        window,
        programs,
        launches: launches.len() as u64,
        runs: options.of.runs.into(),
        processors: machine::allowed().len() as u64,
        points: rows::points(&launches),
    };
    Ok(Found { environment, finding: Finding::Mpi(finding), interrupted })
}
