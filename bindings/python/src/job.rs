//! The job that this process belongs to.

use crate::arguments::{self, Seconds};
use crate::devices::{Options, context};
use crate::errors::{OrRaise, error};
use cci::Status;
use cci_job::{JobError, Join};
use cci_mem::quiet_thread;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long a wait for other ranks sleeps between two looks at signals.
const SLICE: Duration = Duration::from_millis(50);

/// The job that this process belongs to: `job()` joins it.
///
/// Calls that wait for other ranks release the interpreter; Ctrl-C ends them.
#[pyclass(frozen, module = "cci")]
pub(crate) struct Job(Arc<cci_job::Job>);

/// Runs a call that waits for other ranks in a thread of its own, so that a signal ends the wait.
/// The thread goes on until the limit of the job is over.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, JobError> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    // Whoever waited may have gone.
    quiet_thread::spawn("cci-job", quiet_thread::STACK, move || drop(sender.send(call())))?;
    let receiver = std::sync::Mutex::new(receiver);
    loop {
        let done = py.detach(|| match receiver.lock() {
            Ok(receiver) => receiver.recv_timeout(SLICE),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        });
        match done {
            Ok(done) => return done.or_raise(py),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error(py, Status::Error, "the call for the job failed inside; report this"));
            }
        }
    }
}

impl Job {
    /// Opens the endpoint of this rank, and announces it.
    pub(crate) fn open(&self, py: Python<'_>, options: &Options) -> PyResult<cci::Endpoint> {
        let context = context(py)?;
        let device = self.0.device(&context).or_raise(py)?;
        let endpoint = cci::Endpoint::open(&device, &options.for_library(None)).or_raise(py)?;
        options.apply(py, &endpoint)?;
        let (job, uri) = (Arc::clone(&self.0), endpoint.uri().to_owned());
        context.set_names(interruptible(py, move || job.announce(&uri))?);
        Ok(endpoint)
    }
}

/// Joins the job that this process belongs to, under `cci run` or another launcher. A process joins
/// once.
///
/// timeout: for how long this call and later ones wait for other ranks, seconds.
#[pyfunction]
#[pyo3(signature = (*, timeout=None))]
pub(crate) fn job(py: Python<'_>, timeout: Seconds<'_, '_>) -> PyResult<Job> {
    let limit = arguments::seconds("timeout", timeout)?;
    let join = limit.map_or(Join::new(), |limit| Join::new().limit(limit));
    Ok(Job(Arc::new(interruptible(py, move || join.join())?)))
}

#[pymethods]
impl Job {
    /// The number of this process among all of the job, from 0.
    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank()
    }

    /// How many processes the job has.
    #[getter]
    fn size(&self) -> u32 {
        self.0.size()
    }

    /// The number of this process among those of its host.
    #[getter]
    fn local_rank(&self) -> u32 {
        self.0.local().rank
    }

    /// How many processes the job has on this host.
    #[getter]
    fn local_size(&self) -> u32 {
        self.0.local().size
    }

    /// Publishes a value of this rank, at most 65,536 bytes, which others find by `look_up`.
    fn publish(&self, py: Python<'_>, key: &str, value: &[u8]) -> PyResult<()> {
        let (job, key, value) = (Arc::clone(&self.0), key.to_owned(), value.to_vec());
        interruptible(py, move || job.publish(&key, &value))
    }

    /// The value that a rank has published; waits until it has.
    fn look_up<'py>(&self, py: Python<'py>, rank: u32, key: &str) -> PyResult<Bound<'py, PyBytes>> {
        let (job, key) = (Arc::clone(&self.0), key.to_owned());
        Ok(PyBytes::new(py, &interruptible(py, move || job.look_up(rank, &key))?))
    }

    /// Gives a value to all ranks and takes theirs, in the order of ranks: a barrier with data.
    #[pyo3(signature = (value=None))]
    fn exchange<'py>(&self, py: Python<'py>, value: Option<&[u8]>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let (job, value) = (Arc::clone(&self.0), value.unwrap_or_default().to_vec());
        let values = interruptible(py, move || job.exchange(&value))?;
        Ok(values.iter().map(|value| PyBytes::new(py, value)).collect())
    }

    fn __repr__(&self) -> String {
        format!("<cci.Job: rank {} of {}>", self.0.rank(), self.0.size())
    }
}
