//! The end of a worker: by itself, or because the job ends.

use super::program::JOINED;
use crate::boundary::Shared;
use crate::refusal::{Answer, Refusal};
use crate::registry;
use cci_mem::cancellation::Uncancelled;
use cci_mem::fork::PerProcess;
use cci_mem::mutex::lock;
use cci_mem::sync::{AtomicBool, Ordering};
use signal_hook::consts::SIGTERM;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};

/// A C function that gets the status.
pub(super) type OnExit = extern "C" fn(c_int);

/// Whether the launcher has asked this process to end.
static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// A forked child runs that of its parent.
static CALLBACK: PerProcess<Mutex<Option<OnExit>>> = PerProcess::new();

#[unsafe(export_name = "AMUDP_SPMDkillmyprocess")]
static UDP_KILL: Shared<OnExit> = Shared::new(end);
#[unsafe(export_name = "AMMPI_SPMDkillmyprocess")]
static MPI_KILL: Shared<OnExit> = Shared::new(end);

extern "C" fn end(status: c_int) {
    // SAFETY: functions that the program has registered for its end run.
    unsafe { libc::exit(status) }
}

/// Notes SIGTERM from now on; a second one ends the process.
pub(super) fn watch() -> std::io::Result<()> {
    if ASKED.get().is_none() {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(SIGTERM, Arc::clone(&asked))?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&asked))?;
        let _ = ASKED.set(asked);
    }
    Ok(())
}

/// Whether the launcher has asked this process to end.
#[inline]
fn is_ending() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// Ends this process if the launcher has asked for it. The library's locks are not held.
#[inline]
pub(crate) fn leave_if_asked() {
    if is_ending() {
        leave_asked();
    }
}

#[cold]
fn leave_asked() {
    // A poll is no call in which cancellation is held off, and the job's store is asked.
    let _uncancelled = Uncancelled::new();
    let job = JOINED.get().and_then(|joined| joined.job.as_ref());
    leave(job.and_then(cci_job::Job::ended).map_or(128 + SIGTERM, c_int::from));
}

pub(super) fn set_callback(callback: Option<OnExit>) -> Answer {
    change_callback(callback).map(drop)
}

/// Sets the callback, and returns the one before.
fn change_callback(callback: Option<OnExit>) -> Result<Option<OnExit>, Refusal> {
    // A thread that the child lacks may hold the parent's lock.
    let of_parent = |parent: &Mutex<Option<OnExit>>| parent.try_lock().ok().and_then(|callback| *callback);
    let place = CALLBACK.inherit(|parent| Mutex::new(parent.and_then(of_parent)));
    let (_, place) = place.map_err(|_| registry::NO_MEMORY)?;
    Ok(std::mem::replace(&mut *lock(place), callback))
}

/// Has SIGTERM do nothing from now on. The launcher sends it to all workers once one of them ends
/// the job: a worker that ends already needs none, and a handler of the program's own that ends the
/// program too would wait for what the interrupted end holds, until the launcher kills it.
fn take_no_requests_to_end() {
    // Not SIG_IGN, which programs that the callback starts would inherit.
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: the function may run at any time, since it does nothing.
    unsafe { libc::signal(SIGTERM, nothing as *const () as libc::sighandler_t) };
}

/// Ends the job with this status.
pub(super) fn exit(status: c_int) -> ! {
    take_no_requests_to_end();
    if let Some(job) = JOINED.get().and_then(|joined| joined.job.as_ref()) {
        // Without a launcher of CCI the status of this process may do it. What the system has of a
        // status are its lower 8 bits.
        let _ = job.end(status as u8);
    }
    // What was sent leaves. A handler's bundle cannot be closed, and the system closes it then.
    for bundle in registry::bundles() {
        let _ = registry::free_cell(bundle);
    }
    leave(status)
}

/// Runs the program's callback, and ends the process.
fn leave(status: c_int) -> ! {
    if let Ok(Some(callback)) = change_callback(None) {
        callback(status);
    }
    if let Some(job) = JOINED.get().and_then(|joined| joined.job.as_ref()).filter(|_| status == 0) {
        job.leave();
    }
    let is_udp = JOINED.get().is_none_or(|joined| joined.dialect == 0);
    if is_udp {
        UDP_KILL.get()(status)
    } else {
        MPI_KILL.get()(status)
    }
    // SAFETY: a function of the program's that has returned did not do it.
    unsafe { libc::_exit(status) }
}
