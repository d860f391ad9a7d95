//! What other threads wake an endpoint's program by, without the endpoint's lock.

use crate::lock;
use cci_mem::descriptors;
use rustix::io::{Errno, Result};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// The descriptors of one endpoint: none while it is closed.
#[derive(Default)]
pub(crate) struct Wakers(Mutex<Option<Open>>);

struct Open {
    /// Part of the OS handle.
    handle: Arc<OwnedFd>,
    /// For calls that wait: readable from a wake-up until one of them has taken it. Made when it is
    /// first needed.
    waiting: Option<Arc<OwnedFd>>,
}

impl Wakers {
    pub(crate) fn open(&self, handle: Arc<OwnedFd>) {
        *self.lock() = Some(Open { handle, waiting: None });
    }

    /// Also wakes who still waits: it finds the endpoint closed.
    pub(crate) fn close(&self) {
        if let Some(waiting) = self.lock().take().and_then(|open| open.waiting) {
            write(&waiting);
        }
    }

    /// Makes the OS handle readable.
    pub(crate) fn ring(&self) {
        if let Some(open) = self.lock().as_ref() {
            write(&open.handle);
        }
    }

    /// The descriptor for calls that wait.
    pub(crate) fn waiting(&self) -> Result<Arc<OwnedFd>> {
        let mut open = self.lock();
        let open = open.as_mut().ok_or(Errno::BADF)?;
        if let Some(waiting) = &open.waiting {
            return Ok(Arc::clone(waiting));
        }
        let made = Arc::new(descriptors::eventfd(0)?);
        open.waiting = Some(Arc::clone(&made));
        Ok(made)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        lock(&self.0)
    }
}

/// Makes an eventfd readable. It is non-blocking, and never full.
fn write(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}
