//! What a job comes from: variables, and what carries values between ranks.

use crate::error::JobError;
use std::ffi::OsString;
use std::time::Duration;

/// The variable by which `cci run` names the descriptor of a rank.
///
/// ```
/// let is_started_by_cci_run = std::env::var_os(cci_job::DESCRIPTOR).is_some();
/// # let _ = is_started_by_cci_run;
/// ```
pub const DESCRIPTOR: &str = "CCI_JOB_FD";

/// The variable by which `cci run` names the socket behind that descriptor, by its inode: a
/// program may have closed the descriptor and have another file of that number.
///
/// ```
/// assert_eq!(cci_job::SOCKET, "CCI_JOB_SOCKET");
/// ```
pub const SOCKET: &str = "CCI_JOB_SOCKET";

/// The most bytes of a value that is published or exchanged.
///
/// ```
/// assert_eq!(cci_job::LONGEST_VALUE, 65_536);
/// ```
pub const LONGEST_VALUE: usize = crate::wire::LONGEST_VALUE;

/// What carries values between ranks.
pub(crate) trait Source: Send {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError>;
    fn look_up(&mut self, rank: u32, key: &str, limit: Duration) -> Result<Vec<u8>, JobError>;
    fn exchange(&mut self, value: &[u8], limit: Duration) -> Result<Vec<Vec<u8>>, JobError>;

    /// Has the launcher end the job. False: it cannot.
    fn end(&mut self, _: u8) -> bool {
        false
    }

    /// This rank ends well.
    fn leave(&mut self) {}

    /// The status with which a rank has ended the job.
    fn ended(&mut self) -> Option<u8> {
        None
    }
}

/// The variables of a process.
pub(crate) struct Environment<'a>(pub(crate) &'a dyn Fn(&str) -> Option<OsString>);

impl Environment<'_> {
    /// A variable, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
    }

    /// A variable that is a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, JobError> {
        let value = self.get(name).ok_or_else(|| cannot(format!("{name} is not set; the launcher sets it")))?;
        value.parse().map_err(|_| cannot(format!("{name} is '{value}', which is no number here; the launcher sets it")))
    }
}

pub(crate) fn cannot(why: impl Into<String>) -> JobError {
    JobError::CannotJoin(why.into())
}

pub(crate) fn lost(why: impl Into<String>) -> JobError {
    JobError::Lost(why.into())
}

/// The most ranks of a job: lists of ranks fit into memory.
const MOST_RANKS: u32 = 1 << 20;

/// Checks what a launcher, or a store, states.
pub(crate) fn check(rank: u32, size: u32) -> Result<(), JobError> {
    if rank >= size {
        return Err(cannot(format!("rank {rank} is not below the size {size} of the job")));
    }
    if size > MOST_RANKS {
        return Err(cannot(format!("the job has {size} ranks; start at most 1048576")));
    }
    Ok(())
}
