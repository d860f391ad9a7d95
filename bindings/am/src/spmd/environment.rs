//! The environment of the master: that of rank 0, which its launcher has given it.

use super::program::{JOINED, Joined, WORLD};
use cci_job::JobError;
use cci_mem::arguments::Text;
use cci_mem::fork::PerProcess;
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;

/// Bytes of a value in the store.
const PIECE: usize = 60_000;

fn key(at: usize) -> String {
    format!("am.environment.{at}")
}

/// Rank 0 publishes its variables; in how many values.
pub(super) fn publish(joined: &Joined) -> Result<u32, JobError> {
    let Some(job) = joined.job.as_ref().filter(|job| job.rank() == 0 && job.size() > 1) else { return Ok(0) };
    let mut text = Vec::new();
    for (name, value) in std::env::vars_os() {
        text.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    let mut count = 0;
    for (at, piece) in text.chunks(PIECE).enumerate() {
        job.publish(&key(at), piece)?;
        count += 1;
    }
    Ok(count)
}

/// The variables of rank 0, `NAME=VALUE` each.
fn of_master() -> &'static [CString] {
    // Two threads may look it up at once, and a forked child never waits for one that it lacks.
    static VARIABLES: PerProcess<Vec<CString>> = PerProcess::new();
    let known = VARIABLES.inherit(|parent| parent.cloned().unwrap_or_else(look_up_all));
    known.map_or(&[], |(_, variables)| variables)
}

fn look_up_all() -> Vec<CString> {
    let job = JOINED.get().and_then(|joined| joined.job.as_ref());
    let Some((job, world)) = job.zip(WORLD.get()) else { return Vec::new() };
    let pieces = (0..world.environment as usize).map(|at| job.look_up(0, &key(at)).unwrap_or_default());
    let text = pieces.collect::<Vec<_>>().concat();
    text.split(|byte| *byte == 0).filter_map(|variable| CString::new(variable).ok()).collect()
}

/// Whether the master's environment is that of another process.
fn is_elsewhere() -> bool {
    WORLD.get().is_some() && JOINED.get().is_some_and(|joined| joined.rank > 0)
}

/// Any variable, `NAME=VALUE`, of the environment of rank 0 whose name begins so; NULL if there is
/// none.
///
/// # Safety
///
/// No other thread changes the environment.
pub(super) unsafe fn begins(prefix: Text<'_>) -> *const c_char {
    let Some(prefix) = prefix.get().map(CStr::to_bytes) else { return std::ptr::null() };
    // A name ends at the first '='.
    let is_one = |variable: &[u8]| variable.starts_with(prefix) && !prefix.contains(&b'=') && variable.contains(&b'=');
    if is_elsewhere() {
        let found = of_master().iter().find(|variable| is_one(variable.to_bytes()));
        return found.map_or(std::ptr::null(), |found| found.as_ptr());
    }
    // SAFETY: a variable of the C library; no other thread changes it, by the contract above.
    let mut at = unsafe { environ };
    loop {
        if at.is_null() {
            return std::ptr::null();
        }
        // SAFETY: an entry of the environment, which ends with NULL and which no other thread
        // changes.
        let variable = unsafe { at.read() };
        if variable.is_null() {
            return std::ptr::null();
        }
        // SAFETY: a string of the environment.
        if is_one(unsafe { CStr::from_ptr(variable) }.to_bytes()) {
            return variable;
        }
        at = at.wrapping_add(1);
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The value of a variable in the environment of rank 0; NULL if it has none.
///
/// # Safety
///
/// As `begins`.
pub(super) unsafe fn get(name: Text<'_>) -> *const c_char {
    let Some(name) = name.get() else { return std::ptr::null() };
    if !is_elsewhere() {
        // SAFETY: a string that ends with a NUL; no other thread changes the environment, by the
        // contract above.
        return unsafe { libc::getenv(name.as_ptr()) };
    }
    let name = name.to_bytes();
    let value = |variable: &&CString| variable.to_bytes().strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="));
    let found = of_master().iter().find(value);
    found.map_or(std::ptr::null(), |found| found.as_c_str()[name.len() + 1..].as_ptr())
}
