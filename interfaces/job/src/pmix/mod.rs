//! PMIx, by which Open MPI's `mpirun`, Slurm and others serve their ranks.

mod library;

use crate::error::JobError;
use crate::pmi::{bytes, digits, name_of};
use crate::source::{Environment, Source, cannot, check, lost};
use library::{Failed, Got, Library};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the server may take for what waits for no other rank.
const ANSWER: Duration = Duration::from_secs(10);

/// A rank that PMIx has started.
pub(crate) struct Pmix {
    /// None after a failure.
    library: Option<Library>,
    rank: u32,
    size: u32,
    exchanges: u64,
    published: BTreeSet<String>,
}

/// Whether the environment is that of PMIx.
pub(crate) fn is_there(environment: &Environment<'_>) -> bool {
    ["PMIX_RANK", "PMIX_NAMESPACE"].iter().all(|name| environment.get(name).is_some())
}

impl Pmix {
    /// Joins the job of the server that the environment names: the connection, rank and size.
    pub(crate) fn join() -> Result<(Self, u32, u32), JobError> {
        let mut library = Library::load()?;
        let refused = |failed| cannot(format!("the server of PMIx refuses: {}", words(failed)));
        let rank = library.begin().map_err(refused)?;
        let mut pmix = Self { library: Some(library), rank, size: 0, exchanges: 0, published: BTreeSet::new() };
        let size = pmix.library()?.get(None, "pmix.job.size", ANSWER).map_err(refused)?;
        let Got::Number(size) = size else {
            return Err(cannot("the server of PMIx does not state the size of the job"));
        };
        pmix.size = size;
        check(rank, size)?;
        Ok((pmix, rank, size))
    }

    fn library(&self) -> Result<&Library, JobError> {
        self.library.as_ref().ok_or_else(|| lost("an earlier call has failed"))
    }

    /// A value of another rank, which was put as digits.
    fn get(&self, rank: u32, name: &str, limit: Duration) -> Result<Result<Vec<u8>, Failed>, JobError> {
        match self.library()?.get(Some(rank), name, limit) {
            Ok(Got::Text(text)) => {
                let value = str::from_utf8(&text).ok().and_then(bytes);
                value
                    .map(Ok)
                    .ok_or_else(|| lost("the server of PMIx holds a value that no rank of this version has put"))
            }
            Ok(_) => Err(lost("the server of PMIx holds a value that no rank of this version has put")),
            Err(failed) => Ok(Err(failed)),
        }
    }

    /// After this failure nothing can be asked any more.
    fn lose(&mut self, failed: Failed) -> JobError {
        // A fence that others may still come to cannot be called back: the client stays as it is.
        self.library = None;
        match failed {
            Failed::Late => {
                lost("the server of PMIx does not answer within the limit; PMIx does not tell which ranks are missing")
            }
            Failed::Refused(why) => lost(format!("the server of PMIx: {why}")),
        }
    }
}

fn words(failed: Failed) -> String {
    match failed {
        Failed::Late => "no answer within 10 s".into(),
        Failed::Refused(why) => why,
    }
}

impl Source for Pmix {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError> {
        if !self.published.insert(key.into()) {
            return Err(JobError::Refused("this rank has published that key before; use another key"));
        }
        let put = self.library()?.put(&name_of(self.rank, key), &digits(value));
        put.map_err(|failed| self.lose(failed))
    }

    fn look_up(&mut self, rank: u32, key: &str, limit: Duration) -> Result<Vec<u8>, JobError> {
        match self.get(rank, &name_of(rank, key), limit)? {
            Ok(value) => Ok(value),
            Err(Failed::Late) => Err(JobError::NeverCame { ranks: vec![rank], limit }),
            Err(failed) => Err(self.lose(failed)),
        }
    }

    fn exchange(&mut self, value: &[u8], limit: Duration) -> Result<Vec<Vec<u8>>, JobError> {
        let deadline = Instant::now() + limit;
        self.exchanges += 1;
        let name = format!("cci-x{}", self.exchanges);
        let library = self.library()?;
        let met = library.put(&name, &digits(value)).and_then(|()| library.fence(limit));
        met.map_err(|failed| self.lose(failed))?;
        let mut values = Vec::with_capacity(self.size as usize);
        for rank in 0..self.size {
            if rank == self.rank {
                values.push(value.to_vec());
                continue;
            }
            // What was given before the fence is there behind it.
            let left = deadline.saturating_duration_since(Instant::now()).min(ANSWER);
            values.push(self.get(rank, &name, left)?.map_err(|_| JobError::Gone(vec![rank]))?);
        }
        Ok(values)
    }

    fn leave(&mut self) {
        // A launcher takes an end without this for a failure, as it shall where a call has failed.
        if let Some(library) = self.library.take() {
            library.end();
        }
    }
}

impl Drop for Pmix {
    fn drop(&mut self) {
        self.leave();
    }
}
