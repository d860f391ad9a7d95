//! Why a call of a job failed.

use std::fmt;
use std::time::Duration;

/// Why a call of a [`Job`](crate::Job) failed, as a sentence that states the remedy.
///
/// ```
/// use cci_job::JobError;
/// use std::time::Duration;
///
/// let late = JobError::NeverCame { ranks: vec![3, 5], limit: Duration::from_secs(2) };
/// assert!(late.to_string().starts_with("ranks 3, 5 did not come within 2 s"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// The environment names no job.
    NoJob,
    /// The job cannot be joined, and why.
    CannotJoin(String),
    /// An argument is refused, and why; nothing happened.
    Refused(&'static str),
    /// These ranks did not come within the limit of the call.
    NeverCame {
        /// The ranks that are missing, in order.
        ranks: Vec<u32>,
        /// How long the call waited.
        limit: Duration,
    },
    /// These ranks did not come within the limit of another rank, so that the exchange has failed
    /// for all.
    GivenUp(Vec<u32>),
    /// These ranks have ended, or closed their connection to the store, and can not come any more.
    Gone(Vec<u32>),
    /// The connection to the store, or to the process manager, is of no use any more, and why.
    Lost(String),
    /// This process is a forked child of the one that has joined.
    Forked,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJob => f.write_str(
                "this process belongs to no job; start it by `cci run -n N PROGRAM` or `srun --mpi=pmix`, or set RANK, \
                 WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
            ),
            Self::CannotJoin(why) => write!(f, "cannot join the job: {why}"),
            Self::Refused(why) => f.write_str(why),
            Self::NeverCame { ranks, limit } => {
                let limit = limit.as_secs_f64();
                write!(f, "{} did not come within {limit} s; see that they run, or raise the limit", Ranks(ranks))
            }
            Self::GivenUp(ranks) => {
                write!(
                    f,
                    "another rank has given this exchange up, because {} did not come within its limit",
                    Ranks(ranks)
                )
            }
            Self::Gone(ranks) => write!(f, "{} will not come: no connection to the store any more", Ranks(ranks)),
            Self::Lost(why) => write!(f, "the job is lost: {why}"),
            Self::Forked => f.write_str("this job belongs to the parent process; use it there"),
        }
    }
}

impl std::error::Error for JobError {}

/// The most ranks that a message names.
const NAMED: usize = 16;

/// Ranks as a message names them: the first few, and how many others.
struct Ranks<'a>(&'a [u32]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.0.iter().take(NAMED).map(u32::to_string).collect();
        match self.0.len() {
            0 => f.write_str("some ranks"),
            1 => write!(f, "rank {}", named[0]),
            count if count <= NAMED => write!(f, "ranks {}", named.join(", ")),
            count => write!(f, "ranks {} and {} others", named.join(", "), count - NAMED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranks_are_counted_and_not_all_named() {
        let gone = |count: u32| JobError::Gone((0..count).collect()).to_string();
        assert!(gone(1).starts_with("rank 0 will"), "{}", gone(1));
        assert!(gone(2).starts_with("ranks 0, 1 will"), "{}", gone(2));
        assert!(gone(20).contains(", 15 and 4 others will"), "{}", gone(20));
    }
}
