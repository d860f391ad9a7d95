//! The parallel job that the program belongs to.

use crate::arguments::{self, MISSING, Options, Report, copied};
use crate::endpoint::{self, Places};
use crate::layout::{self, JobInfo};
use crate::library::{JoinedJob, Opened};
use crate::status::Refusal;
use crate::{connection, extension, guard, library};
use cci::__binding::EndpointCell;
use cci::__binding::{In, Out, Text};
use cci::{Endpoint, OpenError, Status};
use cci_job::{Job, JobError, Join, OpenFailed};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Why a call of a job failed, as C programs see it.
fn refusal(error: JobError) -> Refusal {
    let status = match &error {
        JobError::NoJob => Status::NotFound,
        JobError::Refused(sentence) => return Refusal::Argument(sentence),
        JobError::NeverCame { .. } | JobError::GivenUp(_) => Status::TimedOut,
        JobError::Gone(_) | JobError::Lost(_) => Status::Disconnected,
        _ => Status::Error,
    };
    OpenError::new(status, error.to_string()).into()
}

impl From<OpenFailed> for Refusal {
    fn from(failed: OpenFailed) -> Self {
        match failed {
            OpenFailed::Endpoint(error) => error.into(),
            OpenFailed::Job(error) => refusal(error),
        }
    }
}

/// The job, for a call that may wait: without the library's lock.
fn joined(opened: &Opened) -> Result<Arc<Job>, Refusal> {
    let joined = opened.job.as_ref().map(|joined| Arc::clone(&joined.job));
    joined.ok_or(Refusal::Fixed(Status::NotFound, "the program has joined no job; call ccix_job_join first"))
}

fn with_job<T>(act: impl FnOnce(&Job) -> Result<T, JobError>) -> Result<T, Refusal> {
    let job = library::with_opened(|opened| joined(opened))?;
    act(&job).map_err(refusal)
}

#[unsafe(no_mangle)]
extern "C" fn ccix_job_join(limit: In<'_, libc::timeval>) -> c_int {
    guard::call(|| {
        let limit = limit.get().map(|time| connection::duration(&time)).transpose()?;
        let is_joined = library::with_opened(|opened| Ok(opened.job.as_mut().map(|joined| joined.count += 1)))?;
        if is_joined.is_some() {
            return Ok(());
        }
        let join = limit.map_or(Join::new(), |limit| Join::new().limit(limit));
        let job = Arc::new(join.join().map_err(refusal)?);
        library::with_opened(|opened| {
            opened.job = Some(JoinedJob { job, count: 1 });
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_job_leave() -> c_int {
    guard::call(|| {
        let last = library::with_opened(|opened| {
            joined(opened)?;
            let is_last = opened.job.as_mut().is_some_and(|joined| {
                joined.count -= 1;
                joined.count == 0
            });
            Ok(if is_last { opened.job.take() } else { None })
        })?;
        // Without the library's lock: rank 0 may have to serve others first.
        drop(last);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_job_info(info: Report<'_, JobInfo>) -> c_int {
    guard::call(|| {
        let place = info.place("set size to sizeof(struct ccix_job_report)")?;
        place.fill(&with_job(|job| Ok(describe(job, place.size())))?);
        Ok(())
    })
}

fn describe(job: &Job, size: u32) -> JobInfo {
    let local = job.local();
    JobInfo {
        size,
        rank: job.rank(),
        ranks: job.size(),
        local_rank: local.rank,
        local_ranks: local.size,
        processors: local.processors,
        ranks_per_core: local.ranks_per_core(),
        authenticated: job.is_authenticated().into(),
        source: extension::text(job.source()),
    }
}

/// # Safety
///
/// `length` bytes are readable at `value`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_job_publish(key: Text<'_>, value: *const c_void, length: u32) -> c_int {
    guard::call(|| {
        let key = copied(key, "the key is NULL")?;
        // SAFETY: readable during the call, in which it is copied; by the contract above.
        let value = unsafe { arguments::bytes(value, length) }?.to_vec();
        with_job(|job| job.publish(&key, &value))
    })
}

/// # Safety
///
/// `length` is NULL or readable and writable, and `value` is NULL or writable for as many bytes as
/// it says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_job_look_up(rank: u32, key: Text<'_>, value: *mut c_void, length: *mut u32) -> c_int {
    guard::call(|| {
        let key = copied(key, "the key is NULL")?;
        // SAFETY: NULL, or readable and writable during the call, by the contract above.
        let (asked, place) = unsafe { (In::new(length), Out::new(length)) };
        let room = asked.get().ok_or(Refusal::Argument("the place of the length is NULL"))?;
        let found = with_job(|job| job.look_up(rank, &key))?;
        place.variable(MISSING)?.put(u32::try_from(found.len()).unwrap_or(u32::MAX));
        // SAFETY: `value` is NULL or writable for `room` bytes, by the contract above.
        unsafe { copy_out(&found, value, room) }
    })
}

/// Copies a value to the program, which has room for so many bytes.
///
/// # Safety
///
/// `place` is NULL, or writable for `room` bytes. No byte of `value` is among them.
unsafe fn copy_out(value: &[u8], place: *mut c_void, room: u32) -> Result<(), Refusal> {
    let fits = value.len().min(room as usize);
    if fits > 0 {
        arguments::present(place)?;
        // SAFETY: `value` has `fits` bytes, and `place` is not NULL and has room for them; they do
        // not overlap, by the contract above.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), place.cast::<u8>(), fits) };
    }
    if fits == value.len() {
        Ok(())
    } else {
        Err(Refusal::Fixed(Status::MsgSize, "the value is longer than its place"))
    }
}

/// # Safety
///
/// `length` bytes are readable at `value`; `values` is NULL or writable for `room` bytes of each
/// rank, and `lengths` is NULL or writable for a number of each rank.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_job_exchange(
    value: *const c_void,
    length: u32,
    values: *mut c_void,
    room: u32,
    lengths: *mut u32,
) -> c_int {
    guard::call(|| {
        // SAFETY: readable during the call, in which it is copied; by the contract above.
        let value = unsafe { arguments::bytes(value, length) }?.to_vec();
        let all = with_job(|job| job.exchange(&value))?;
        let mut copied = Ok(());
        for (rank, value) in all.iter().enumerate() {
            if !lengths.is_null() {
                // SAFETY: not NULL, so writable for a number of each rank.
                let place = unsafe { Out::new(lengths.add(rank)) };
                place.variable(MISSING)?.put(u32::try_from(value.len()).unwrap_or(u32::MAX));
            }
            if values.is_null() {
                continue;
            }
            // SAFETY: not NULL, so writable for `room` bytes of each rank.
            let place = unsafe { values.cast::<u8>().add(rank * room as usize) };
            // SAFETY: writable for the `room` bytes of this rank; `value` is the library's own.
            copied = copied.and(unsafe { copy_out(value, place.cast(), room) });
        }
        copied
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_job_open(
    options: Options<'_, layout::EndpointOptions<'_>>,
    endpoint: Out<'_, *const EndpointCell>,
    fd: Out<'_, c_int>,
) -> c_int {
    guard::call(|| {
        let places = Places::new(endpoint, fd)?;
        let options = extension::endpoint_options(&options)?;
        let (job, cell, uri) = library::with_opened(|opened| {
            let job = joined(opened)?;
            let device = job.device(&opened.context)?;
            let at = opened.context.devices().iter().position(|other| other.name == device.name);
            let at = at.ok_or(Refusal::Argument("the device is none of cci_get_devices"))?;
            let opening = Endpoint::open(&device, &options)?;
            let uri = opening.uri().to_owned();
            Ok((job, endpoint::keep(opened, at, opening), uri))
        })?;
        let opened = announce(&job, &uri).and_then(|()| endpoint::hand_out(cell, &places));
        if opened.is_err() {
            // It is closed all the same if a peer copies; the program has not got it.
            let _ = endpoint::close(cell, cell.generation());
        }
        opened
    })
}

/// Waits for the endpoints of all ranks, and has the library know them by their names.
fn announce(job: &Job, uri: &str) -> Result<(), Refusal> {
    let names = job.announce(uri).map_err(refusal)?;
    library::with_opened(|opened| {
        opened.context.set_names(names);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status;
    use std::time::Duration;

    #[test]
    fn each_failure_of_a_job_has_a_status() {
        let code = |error| status::refused(refusal(error));
        assert_eq!(code(JobError::NoJob), status::code(Status::NotFound));
        assert_eq!(code(JobError::Refused("no")), libc::EINVAL);
        let late = JobError::NeverCame { ranks: vec![1], limit: Duration::from_secs(1) };
        assert_eq!([code(late), code(JobError::GivenUp(vec![2]))], [libc::ETIMEDOUT; 2]);
        assert_eq!(code(JobError::Gone(vec![1])), status::code(Status::Disconnected));
        assert_eq!(code(JobError::CannotJoin("so".into())), status::code(Status::Error));
    }
}
