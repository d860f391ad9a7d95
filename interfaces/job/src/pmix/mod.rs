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
    pub(crate) fn join(limit: Duration) -> Result<(Self, u32, u32), JobError> {
        let deadline = Instant::now() + limit;
        let mut library = Library::load()?;
        let rank = library.begin(limit).map_err(refused)?;
        let mut pmix = Self { library: Some(library), rank, size: 0, exchanges: 0, published: BTreeSet::new() };
        let size = match pmix.library()?.get(None, "pmix.job.size", left(deadline)) {
            Ok(Got::Number(size)) => Ok(size),
            Ok(_) => Err(cannot("the server of PMIx does not state the size of the job")),
            Err(failed) => Err(refused(failed)),
        };
        let size = size.and_then(|size| check(rank, size).map(|()| size));
        // Whoever has not joined says no farewell, for which the server would have time of its own.
        pmix.size = size.inspect_err(|_| pmix.library = None)?;
        let size = pmix.size;
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

/// Why a rank cannot join.
fn refused(failed: Failed) -> JobError {
    match failed {
        Failed::Late => cannot("the server of PMIx does not answer within the limit; see that it runs"),
        Failed::Refused(why) => cannot(format!("the server of PMIx refuses: {why}")),
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

impl Source for Pmix {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError> {
        if !self.published.insert(key.into()) {
            return Err(JobError::Refused("this rank has published that key before; use another key"));
        }
        let put = self.library()?.put(&name_of(self.rank, key), &digits(value), ANSWER);
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
        let met = library.put(&name, &digits(value), limit).and_then(|()| library.fence(left(deadline)));
        met.map_err(|failed| self.lose(failed))?;
        let mut values = Vec::with_capacity(self.size as usize);
        for rank in 0..self.size {
            if rank == self.rank {
                values.push(value.to_vec());
                continue;
            }
            // What was given before the fence is there behind it.
            match self.get(rank, &name, left(deadline))? {
                Ok(value) => values.push(value),
                Err(Failed::Late) => return Err(self.lose(Failed::Late)),
                Err(_) => return Err(JobError::Gone(vec![rank])),
            }
        }
        Ok(values)
    }

    fn leave(&mut self) {
        // A launcher takes an end without this for a failure, as it shall where a call has failed.
        if let Some(library) = self.library.take() {
            library.end(ANSWER);
        }
    }
}

impl Drop for Pmix {
    fn drop(&mut self) {
        self.leave();
    }
}
