//! The state of a parallel program in this process.

use crate::endpoint::Endpoint;
use crate::names::Name;
use crate::refusal::Refusal;
use cci::{Context, Device};
use cci_job::Job;
use std::sync::OnceLock;
use std::time::Duration;

/// The longest sleep of a worker.
pub(super) const NAP: Duration = Duration::from_millis(100);

/// The job that this process has joined.
pub(super) struct Joined {
    /// None: a program by itself.
    pub(super) job: Option<Job>,
    pub(super) rank: u32,
    pub(super) size: u32,
    /// Where endpoints of the job are opened.
    pub(super) device: Device,
    /// Has the device's names.
    pub(super) _context: Context,
    /// The place of the dialect that it was started by.
    pub(super) dialect: usize,
}

/// A program that has been started.
pub(super) struct World {
    pub(super) endpoint: &'static Endpoint,
    /// The names of all workers' first endpoints.
    pub(super) names: Vec<Name>,
    /// In how many values rank 0 has published its environment.
    pub(super) environment: u32,
}

pub(super) static JOINED: OnceLock<Joined> = OnceLock::new();
pub(super) static WORLD: OnceLock<World> = OnceLock::new();

const NOT_STARTED: Refusal = Refusal::NotInit;

/// The first endpoint of a program that has been started. The program may have freed it, or ended
/// the library: then its cell may be that of another endpoint, which has another number.
pub(super) fn first_endpoint() -> Result<&'static Endpoint, Refusal> {
    let (joined, world) = JOINED.get().zip(WORLD.get()).ok_or(NOT_STARTED)?;
    let own = world.names.get(joined.rank as usize).ok_or(NOT_STARTED)?;
    let name = world.endpoint.name.borrow();
    let is_it = name.as_ref().is_some_and(|name| name.sealed().number == own.sealed().number);
    is_it
        .then_some(world.endpoint)
        .ok_or(Refusal::BadArg("the endpoint that the program was started with is gone; free it last"))
}

/// This process's rank, once it has joined its job.
pub(crate) fn rank() -> Option<u32> {
    JOINED.get().map(|joined| joined.rank)
}

/// The device of the job.
pub(crate) fn device() -> Option<&'static Device> {
    JOINED.get().map(|joined| &joined.device)
}

/// How long a wait of the program sleeps at most: the launcher may ask a worker to end.
pub(crate) fn longest_sleep() -> Duration {
    if JOINED.get().is_some() { NAP } else { Duration::from_secs(3600) }
}

/// The key that the URI of an endpoint is published under.
fn key(number: u32) -> String {
    format!("am.{number}")
}

/// Publishes the URI of an endpoint, for names in other processes of the job.
pub(crate) fn publish(number: u32, uri: &str) -> Result<(), Refusal> {
    const REFUSED: Refusal = Refusal::Resource("the job's store does not take the endpoint's name");
    let Some(job) = JOINED.get().and_then(|joined| joined.job.as_ref()) else { return Ok(()) };
    job.publish(&key(number), uri.as_bytes()).map_err(|_| REFUSED)
}

/// The URI of an endpoint of another process of the job, whose rank this is.
pub(crate) fn uri_of(rank: u32, number: u32) -> Option<Box<str>> {
    let joined = JOINED.get().filter(|joined| rank < joined.size)?;
    let of_start = WORLD.get().and_then(|world| world.names.get(rank as usize));
    if let Some(name) = of_start.filter(|name| name.sealed().number == number) {
        return Some(name.uri().into());
    }
    // Over PMI a value is found after an exchange only, for which nobody waits here.
    let job = joined.job.as_ref().filter(|job| job.source() != "PMI-1")?;
    let uri = job.look_up(rank, &key(number)).ok()?;
    Some(String::from_utf8(uri).ok()?.into())
}
