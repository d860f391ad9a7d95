//! What the library has between `cci_init` and `cci_finalize`.

use crate::status::Refusal;
use crate::table::Table;
use cci::__binding::{EndpointCell, PerProcess};
use cci::Context;
use cci_job::Job;
use std::sync::{Arc, Mutex, PoisonError};

/// What is between the first `cci_init` and the last `cci_finalize`.
pub(crate) struct Opened {
    pub(crate) context: Context,
    pub(crate) table: Table,
    /// The job that the program has joined.
    pub(crate) job: Option<JoinedJob>,
    /// Open endpoints, with their generation.
    pub(crate) endpoints: Vec<(&'static EndpointCell, u32)>,
    /// Calls of `cci_init` without their `cci_finalize`.
    pub(crate) count: u64,
}

/// A job that the program has joined.
pub(crate) struct JoinedJob {
    pub(crate) job: Arc<Job>,
    /// Calls of `ccix_job_join` without their `ccix_job_leave`.
    pub(crate) count: u64,
}

type Library = Mutex<Option<Opened>>;

static LIBRARY: PerProcess<Library> = PerProcess::new();

/// Runs `act` on the library's state, whether initialized or not.
pub(crate) fn with_library<T>(act: impl FnOnce(&mut Option<Opened>) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let (_, library) = LIBRARY.get(Library::default).map_err(|_| Refusal::NoMemory)?;
    act(&mut library.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `act` if the library is initialized in this process.
pub(crate) fn with_opened<T>(act: impl FnOnce(&mut Opened) -> Result<T, Refusal>) -> Result<T, Refusal> {
    with_library(|library| act(library.as_mut().ok_or(Refusal::NotInitialized)?))
}

/// Strikes a closed endpoint off the list of those to be closed by the last `cci_finalize`.
pub(crate) fn forget(cell: &'static EndpointCell, generation: u32) {
    // Not initialized any more: there is no list.
    let _ = with_opened(|opened| {
        opened.endpoints.retain(|(other, of)| !(std::ptr::eq(*other, cell) && *of == generation));
        Ok(())
    });
}
