//! The start of a worker: it joins the job, and knows all others afterwards.

use super::program::{JOINED, Joined, WORLD, World};
use super::{collective, ending, environment};
use crate::answer::say;
use crate::dialect::Dialect;
use crate::endpoint::{Eb, Ep, Handle};
use crate::names::Name;
use crate::refusal::{Answer, Refusal};
use crate::{calls, registry};
use cci::Context;
use cci_job::{Job, JobError, Join};
use cci_mem::arguments::Out;
use std::ffi::c_int;
use std::time::Duration;

/// The variable with how many seconds the start waits for other workers, and how many it is at
/// most without that.
const LIMIT: (&str, f64) = ("CCI_AM_START_LIMIT", 60.0);

/// Why the start failed, which is written whether errors are verbose or not: a program that has
/// just been started has no other way to learn it.
fn failed<D: Dialect>(why: &str) -> Refusal {
    say(D::START, why);
    Refusal::Resource("the program cannot start")
}

/// Which limit may be raised.
fn explained(why: &JobError) -> String {
    match why {
        JobError::NeverCame { .. } => format!("{why}: {}=SECONDS", LIMIT.0),
        _ => why.to_string(),
    }
}

fn limit() -> Duration {
    let text = std::env::var(LIMIT.0).ok();
    let seconds = text.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0.0).unwrap_or(LIMIT.1);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// What a worker gives to all others.
struct Card {
    tag: u64,
    /// That of rank 0 is the job's.
    number: u64,
    /// Of rank 0: in how many values its environment is.
    environment: u32,
    name: Name,
}

impl Card {
    fn emit(&self) -> Vec<u8> {
        let numbers = [self.tag.to_le_bytes(), self.number.to_le_bytes()];
        let text = self.name.introduction();
        [numbers.as_flattened(), &self.environment.to_le_bytes(), text.as_bytes()].concat()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (environment, text) = rest.split_first_chunk()?;
        Some(Self {
            tag: u64::from_le_bytes(*tag),
            number: u64::from_le_bytes(*number),
            environment: u32::from_le_bytes(*environment),
            name: Name::introduced(str::from_utf8(text).ok()?)?,
        })
    }
}

/// Two random numbers, of which the first is no special tag.
fn numbers() -> std::io::Result<[u64; 2]> {
    let mut words = [0_u64; 2];
    // SAFETY: sixteen bytes that may be written; so few come whole.
    let length = unsafe { libc::getrandom(words.as_mut_ptr().cast(), size_of_val(&words), 0) };
    if length < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok([words[0].clamp(1, u64::MAX - 1), words[1]])
}

/// Joins the job; a program that was started by itself is one of one worker.
fn join<D: Dialect>() -> Result<&'static Joined, Refusal> {
    if JOINED.get().is_some() {
        return Err(Refusal::Resource("this process has started already"));
    }
    let context = Context::new().map_err(|why| failed::<D>(&why.to_string()))?;
    let job = Job::is_named().then(|| Join::new().limit(limit()).join()).transpose();
    let job = job.map_err(|why| failed::<D>(&explained(&why)))?;
    let device = match &job {
        Some(job) => job.device(&context),
        None => context.default_device().cloned(),
    };
    let device = device.map_err(|why| failed::<D>(&why.to_string()))?;
    let (rank, size) = job.as_ref().map_or((0, 1), |job| (job.rank(), job.size()));
    Ok(JOINED.get_or_init(|| Joined { job, rank, size, device, _context: context, dialect: D::PLACE }))
}

/// Starts a worker. All workers' first endpoints are mapped, at the index that is their rank.
pub(super) fn start<D: Dialect>(number: Out<'_, u64>, bundle: Out<'_, Eb>, endpoint: Out<'_, Ep>) -> Answer {
    const MISSING: Refusal = Refusal::BadArg("a pointer for the bundle or the endpoint is NULL");
    let (bundle, endpoint) = (bundle.variable(MISSING)?, endpoint.variable(MISSING)?);
    let joined = join::<D>()?;
    ending::watch().map_err(|why| failed::<D>(&why.to_string()))?;
    calls::init::<D>()?;
    let own_bundle = registry::new_bundle()?;
    let (cell, _) = calls::new_endpoint::<D>(own_bundle)?;
    let own = Handle::to(cell);
    let [tag, random] = numbers().map_err(|why| failed::<D>(&format!("no random numbers: {why}")))?;
    calls::set_tag::<D>(own, tag)?;
    collective::set_control(cell)?;

    let environment = environment::publish(joined).map_err(|why| failed::<D>(&why.to_string()))?;
    let name = cell.name.borrow().clone().ok_or(Refusal::BadArg("the endpoint is gone"))?;
    let card = Card { tag, number: random, environment, name }.emit();
    let cards = match &joined.job {
        Some(job) => job.exchange(&card).map_err(|why| failed::<D>(&explained(&why)))?,
        None => vec![card],
    };
    let cards: Option<Vec<Card>> = cards.iter().map(|card| Card::parse(card)).collect();
    let cards = cards.ok_or_else(|| failed::<D>("another worker is of another version of libam; build them alike"))?;

    let count = c_int::try_from(joined.size).map_err(|_| Refusal::Resource("too many workers"))?;
    calls::set_num_translations::<D>(own, count.max(256))?;
    for (index, card) in cards.iter().enumerate() {
        calls::enter(cell, index, card.name.clone(), card.tag)?;
    }
    let (first, names) = (&cards[0], cards.iter().map(|card| card.name.clone()).collect());
    let (id, environment) = (first.number, first.environment);
    collective::begin(joined.rank, joined.size)?;
    if WORLD.set(World { endpoint: cell, names, environment }).is_err() {
        return Err(Refusal::Resource("this process has started already"));
    }
    bundle.put(Handle::to(own_bundle));
    endpoint.put(own);
    number.offer(id);
    Ok(())
}
