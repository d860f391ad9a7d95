//! Where a job comes from: the first source whose variables are there.

use crate::addressed::{self, Address};
use crate::error::JobError;
use crate::place::{self, Local};
use crate::pmi::Pmi;
use crate::pmix::{self, Pmix};
use crate::secret::Secret;
use crate::source::{DESCRIPTOR, Environment, SOCKET, Source, check};
use crate::store_client::Client;
use std::time::{Duration, Instant};

/// A job that has been joined.
pub(crate) struct Joined {
    pub(crate) name: &'static str,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) local: Local,
    pub(crate) secret: Option<Secret>,
    /// Whether connections between ranks are in clear though the job has a secret.
    pub(crate) is_plain: bool,
    pub(crate) source: Box<dyn Source>,
}

/// How a process learns of its job.
enum Way {
    Launched,
    Pmix,
    Pmi,
    Addressed(Variables),
}

/// The first source that is there.
fn way(environment: &Environment<'_>) -> Option<Way> {
    let is_set = |name| environment.get(name).is_some();
    let all_set = |names: &[&'static str]| names.iter().all(|name| is_set(name));
    if is_set(DESCRIPTOR) {
        Some(Way::Launched)
    } else if pmix::is_there(environment) && !is_set("CCI_STORE") {
        // Only a user sets the store, who then wants it.
        Some(Way::Pmix)
    } else if is_set("PMI_FD") || is_set("PMI_PORT") {
        Some(Way::Pmi)
    } else if all_set(&["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]) {
        let (name, rank, size) = ("RANK, MASTER_ADDR", "RANK", "WORLD_SIZE");
        Some(Way::Addressed(Variables { name, rank, size, address: Address::of_master }))
    } else if all_set(&["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "CCI_STORE"]) {
        let (name, rank, size) = ("OMPI, CCI_STORE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
        Some(Way::Addressed(Variables { name, rank, size, address: Address::of_store }))
    } else if all_set(&["SLURM_PROCID", "SLURM_NTASKS", "CCI_STORE"]) {
        let (name, rank, size) = ("Slurm, CCI_STORE", "SLURM_PROCID", "SLURM_NTASKS");
        Some(Way::Addressed(Variables { name, rank, size, address: Address::of_store }))
    } else {
        None
    }
}

/// Whether the environment names a job.
pub(crate) fn is_named(environment: &Environment<'_>) -> bool {
    way(environment).is_some()
}

/// Joins by the first source that is there.
pub(crate) fn join(environment: &Environment<'_>, limit: Duration) -> Result<Joined, JobError> {
    match way(environment).ok_or(JobError::NoJob)? {
        Way::Launched => launched(environment, limit),
        Way::Pmix => by_pmix(environment, limit),
        Way::Pmi => by_pmi(environment, limit),
        Way::Addressed(variables) => addressed(environment, limit, variables),
    }
}

fn launched(environment: &Environment<'_>, limit: Duration) -> Result<Joined, JobError> {
    let descriptor = environment.number(DESCRIPTOR)?;
    let socket = environment.get(SOCKET).map(|_| environment.number::<u64>(SOCKET)).transpose()?;
    let (client, welcome) = Client::inherited(descriptor, socket, limit)?;
    let crate::wire::Welcome { rank, size, local, key } = welcome;
    let is_plain = key.is_plain();
    Ok(Joined { name: "cci run", rank, size, local, secret: key.secret(), is_plain, source: Box::new(client) })
}

fn by_pmix(environment: &Environment<'_>, limit: Duration) -> Result<Joined, JobError> {
    let (secret, begin) = (secret(environment)?, Instant::now());
    let (pmix, rank, size) = Pmix::join(limit)?;
    let limit = limit.saturating_sub(begin.elapsed());
    with_places(
        Joined { name: "PMIx", rank, size, local: ALONE, secret, is_plain: false, source: Box::new(pmix) },
        limit,
    )
}

fn by_pmi(environment: &Environment<'_>, limit: Duration) -> Result<Joined, JobError> {
    let begin = Instant::now();
    let (pmi, rank, size) = Pmi::join(environment, limit)?;
    let limit = limit.saturating_sub(begin.elapsed());
    let (name, secret) = (pmi.name(), secret(environment)?);
    with_places(Joined { name, rank, size, local: ALONE, secret, is_plain: false, source: Box::new(pmi) }, limit)
}

/// The secret of the file that the user has given to all ranks.
fn secret(environment: &Environment<'_>) -> Result<Option<Secret>, JobError> {
    let read = environment.get("CCI_SECRET_FILE").map(|path| Secret::read(path.as_ref())).transpose();
    read.map_err(|error| JobError::CannotJoin(error.to_string()))
}

/// The variables of a source that names an address.
struct Variables {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    address: fn(&Environment<'_>, Instant) -> Result<Address, JobError>,
}

fn addressed(environment: &Environment<'_>, limit: Duration, of: Variables) -> Result<Joined, JobError> {
    let (rank, size): (u32, u32) = (environment.number(of.rank)?, environment.number(of.size)?);
    check(rank, size)?;
    let secret = secret(environment)?;
    let is_open = environment.get("CCI_LISTEN").is_some_and(|value| value == "network");
    let deadline = Instant::now() + limit;
    let address = (of.address)(environment, deadline)?.allowed(secret.is_some(), is_open)?;
    let left = || deadline.saturating_duration_since(Instant::now());
    let source = addressed::join(&address, rank, size, secret.as_ref(), left())?;
    let limit = left();
    with_places(Joined { name: of.name, rank, size, local: ALONE, secret, is_plain: false, source }, limit)
}

/// A rank that knows of no other on its host yet.
const ALONE: Local = Local { rank: 0, size: 1, processors: 1 };

/// Asks all ranks where they are.
fn with_places(mut joined: Joined, limit: Duration) -> Result<Joined, JobError> {
    let places = joined.source.exchange(&place::own(), limit)?;
    joined.local = place::local(joined.rank, &places);
    Ok(joined)
}
