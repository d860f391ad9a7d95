//! The job of the process, if `cci run` has started it.

use cci_fabric::{Code, Domain};
use cci_job::{DESCRIPTOR, Job};
use cci_mem::fork::PerProcess;
use std::sync::OnceLock;

/// What a process has of its job, joined at most once. A child of a fork is no rank.
static JOB: PerProcess<OnceLock<Option<Job>>> = PerProcess::new();

/// The job, joined by the descriptor of `cci run` alone: PMI and PMIx are the MPI's.
fn joined() -> Result<Option<&'static Job>, Code> {
    let (_, place) = JOB.get(OnceLock::new).map_err(|_| Code::NoMemory)?;
    if let Some(job) = place.get() {
        return Ok(job.as_ref());
    }
    let is_rank = std::env::var_os(DESCRIPTOR).is_some_and(|value| !value.is_empty());
    let job = if is_rank {
        let joined = Job::join().inspect_err(|why| tracing::warn!("cci run's job cannot be joined: {why}"));
        Some(joined.map_err(|_| Code::Other)?)
    } else {
        None
    };
    Ok(place.get_or_init(|| job).as_ref())
}

/// A domain on the default device, with the secret and the network of the job.
///
/// # Errors
///
/// No device is usable, or the job cannot be joined.
pub(crate) fn domain() -> Result<Domain, Code> {
    let Some(job) = joined()? else { return Domain::open() };
    let context = cci::Context::new().map_err(|why| refused(&why))?;
    let device = job.device(&context).map_err(|why| refused(&why))?;
    Ok(Domain::beside(device, job.local().ranks_per_core() > 1.0))
}

fn refused(why: &cci::OpenError) -> Code {
    tracing::warn!("no device: {why}");
    Code::NoDevice
}
