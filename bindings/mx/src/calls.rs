//! Endpoints and requests.

use crate::answer::{ALREADY_INITIALIZED, Answer, DEVICE_CYCLE, ErrorHandler, NULL, Refusal, handler_of};
use crate::layout::{CAddress, CParameter, CSegment, CStatus, segments};
use crate::registry::{self, End, Handle, Membership, lock, registry};
use cci::{Context, Device};
use cci_job::Job;
use cci_mem::arguments::{In, Out, Variable};
use cci_mem::boundary::uncancelled;
use cci_mem::sync::{AtomicBool, Ordering};
use cci_mx::{Endpoint, Error, Match, NotOpened, Options, Place, Request, Status, Unexpected};
use cci_peers::{NoDevice, device_beneath};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

const ANY: u32 = u32::MAX;
/// A parameter of this library: the endpoint is not that of the rank.
const OUTSIDE_JOB: u32 = 64;
/// A parameter of this library: how long sends and connects wait for an endpoint that nobody has.
const ABSENT_LIMIT: u32 = 65;

pub(crate) fn init(api: c_int) -> Answer {
    if api >> 8 != 3 {
        return Err(Error::Failure.into());
    }
    if registry()?.set_initialised(true) { Ok(()) } else { Err(Refusal(ALREADY_INITIALIZED)) }
}

/// Closes the endpoints that are left.
pub(crate) fn finalize() -> Answer {
    let registry = registry()?;
    registry.check()?;
    for handle in registry.all() {
        // Closed by another thread meanwhile; or its own handler calls this.
        match registry.close(handle) {
            Err(Refusal(code)) if code == Error::CloseInHandler.code() => return Err(Refusal(code)),
            _ => {}
        }
    }
    registry.set_initialised(false);
    Ok(())
}

pub(crate) fn set_error_handler(handler: Option<ErrorHandler>) -> Answer {
    registry::set_error_handler(handler_of(handler));
    Ok(())
}

/// What a program's words are for the engine.
pub(crate) fn limit(ms: u32) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms.into()))
}

fn word(context: *mut c_void) -> u64 {
    context.expose_provenance() as u64
}

/// What parameters ask for: options, the error handler, and whether the endpoint may be the rank's.
type Asked = (Options, Option<ErrorHandler>, bool);

/// Reads the parameters of an endpoint.
///
/// # Safety
///
/// `list` is NULL or leads to `count` parameters, each with the value that its key names.
unsafe fn options(list: *const CParameter, count: u32) -> Result<Asked, Refusal> {
    let (mut options, mut handler, mut may_be_rank) = (Options::new(), None, true);
    if count > 0 && list.is_null() {
        return Err(Error::BadParameterList.into());
    }
    for at in 0..count as usize {
        // SAFETY: not NULL, as checked above, and one of `count` parameters; of any alignment.
        let parameter = unsafe { list.add(at).read_unaligned() };
        // SAFETY: the key says which value it is, and any bytes are a number; a handler that is
        // named leads to a function.
        unsafe {
            match parameter.key {
                0 => handler = Some(handler_of(parameter.value.handler)),
                1 => options = options.unexpected_max(parameter.value.unexpected_max),
                2 => {
                    let id = parameter.value.context_id;
                    options = options.context_ids(id.bits.into(), id.shift.into());
                }
                OUTSIDE_JOB => may_be_rank = false,
                ABSENT_LIMIT => {
                    let limit = Duration::from_millis(parameter.value.absent_limit.into());
                    options = options.absent_limit(limit);
                }
                _ => return Err(Error::BadParameterName.into()),
            }
        }
    }
    Ok((options, handler, may_be_rank))
}

/// The device that `CCI_MX_DEVICE` names, or the default one.
fn device() -> Result<(Context, Device), Refusal> {
    device_beneath("CCI_MX_DEVICE").map_err(|why| match why {
        NoDevice::Cycle => Refusal(DEVICE_CYCLE),
        _ => Error::NoDevice.into(),
    })
}

/// Whether this process has joined its job, or is a child of one that has: the descriptor of the
/// job is its parent's.
static HAS_JOINED: AtomicBool = AtomicBool::new(false);

/// The job of this process, joined now if it names one. `None`: there is none.
fn job(membership: &mut Membership) -> Result<Option<Arc<Job>>, Refusal> {
    // Publishes nothing: the membership is locked.
    if membership.job.is_none() && Job::is_named() && !HAS_JOINED.load(Ordering::Relaxed) {
        membership.job = Some(Arc::new(Job::join().map_err(|_| Error::Failure)?));
        HAS_JOINED.store(true, Ordering::Relaxed);
    }
    Ok(membership.job.clone())
}

/// Opens an endpoint at its place. The first one of a process in a job is that of its rank.
fn open_at_place(
    id: Option<u32>,
    key: u32,
    options: &Options,
    may_be_rank: bool,
) -> Result<Endpoint<CSegment>, Refusal> {
    // Before the other ranks find an endpoint that does not come about.
    options.check()?;
    let (_context, device) = device()?;
    let open = |place| Endpoint::open(place, key, options).map_err(|why| Refusal::from(why.code()));
    let by_rule = || open(Place::by_rule(&device, id).map_err(|why| why.code())?);
    if !may_be_rank {
        return by_rule();
    }
    let mut membership = lock(&registry()?.membership);
    if membership.has_failed {
        return Err(Error::Failure.into());
    }
    let job = if membership.ranks.is_empty() { job(&mut membership)? } else { None };
    let Some(job) = job else { return by_rule() };
    let place = Place::of_job(job, &device, id).map_err(|why| {
        // The ranks have begun the exchange that each makes once.
        membership.has_failed = matches!(why, NotOpened::Job(_) | NotOpened::Refused(Error::Busy));
        why.code()
    })?;
    let ranks = place.ranks().collect();
    match open(place) {
        Ok(endpoint) => {
            membership.ranks = ranks;
            Ok(endpoint)
        }
        Err(why) => {
            membership.has_failed = true;
            Err(why)
        }
    }
}

/// The NIC of this host: that of an endpoint which is opened for this.
pub(crate) fn found_nic() -> Result<u64, Refusal> {
    let (_context, device) = device()?;
    // Ranks of other hosts are met on another address.
    let device = job(&mut lock(&registry()?.membership))?.map_or(device.clone(), |job| job.device_like(&device));
    Ok(Place::by_rule(&device, None).map_err(|why| why.code())?.nic())
}

/// Opens an endpoint.
///
/// # Safety
///
/// As for [`options`].
pub(crate) unsafe fn open(
    (board, id, key): (u32, u32, u32),
    (list, count): (*const CParameter, u32),
    to: Out<'_, Handle>,
) -> Answer {
    let registry = registry()?;
    registry.check()?;
    let to = to.variable(NULL)?;
    if board != 0 && board != ANY {
        return Err(Error::BoardUnknown.into());
    }
    // SAFETY: as for this function.
    let (options, handler, may_be_rank) = unsafe { options(list, count) }?;
    let endpoint = open_at_place((id != ANY).then_some(id), key, &options, may_be_rank)?;
    *lock(&registry.nic) = Some(endpoint.address().nic());
    let handle = registry.enter(End::new(endpoint, handler)).ok_or(Error::NoResources)?;
    to.put(handle);
    Ok(())
}

pub(crate) fn close(handle: Handle) -> Answer {
    registry()?.check()?;
    registry()?.close(handle)
}

/// Gives a new request to the program.
fn begun(end: &Arc<End>, request: Request, to: Variable<'_, Handle>, is_timed: bool) -> Answer {
    // Publishes nothing.
    let timeout = if is_timed { end.timeout.load(Ordering::Relaxed) } else { 0 };
    if timeout > 0 {
        end.endpoint.set_timeout(request, limit(timeout))?;
    }
    to.put(end.name(request));
    Ok(())
}

/// Starts a send.
///
/// # Safety
///
/// As for [`segments`].
#[inline]
pub(crate) unsafe fn send(
    end: &Arc<End>,
    (list, count): (*const CSegment, u32),
    to: CAddress,
    (bits, context): (u64, *mut c_void),
    is_sync: bool,
    request: Out<'_, Handle>,
) -> Answer {
    let request = request.variable(NULL)?;
    // SAFETY: as for this function.
    let segments = unsafe { segments(list, count) }?;
    let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
    let begin = start(&end.endpoint, segments, to.into(), bits, word(context))?;
    begun(end, begin, request, true)
}

/// Starts a receive.
///
/// # Safety
///
/// As for [`segments`].
#[inline]
pub(crate) unsafe fn receive(
    end: &Arc<End>,
    (list, count): (*const CSegment, u32),
    wanted: Match,
    context: *mut c_void,
    request: Out<'_, Handle>,
) -> Answer {
    let request = request.variable(NULL)?;
    // SAFETY: as for this function.
    let segments = unsafe { segments(list, count) }?;
    let begin = end.endpoint.receive(segments, wanted, word(context))?;
    begun(end, begin, request, false)
}

/// The request to which a pointer leads.
#[inline]
fn named(end: &End, request: In<'_, Handle>) -> Result<Request, Refusal> {
    end.request(request.get().ok_or(NULL)?)
}

/// Gives a status and whether there is one.
#[inline]
fn hand_over(found: Option<Status>, status: Out<'_, CStatus>, result: Out<'_, u32>) -> Answer {
    result.offer(u32::from(found.is_some()));
    if let Some(found) = found {
        status.offer(found.into());
    }
    Ok(())
}

/// A test: no time; a wait: so many ms, or 0 for ever.
#[inline]
pub(crate) fn wait(
    end: &Arc<End>,
    request: In<'_, Handle>,
    limit: Option<Duration>,
    status: Out<'_, CStatus>,
    result: Out<'_, u32>,
) -> Answer {
    let found = end.endpoint.wait(named(end, request)?, limit)?;
    hand_over(found, status, result)
}

pub(crate) fn wait_any(
    end: &Arc<End>,
    wanted: Match,
    limit: Option<Duration>,
    status: Out<'_, CStatus>,
    result: Out<'_, u32>,
) -> Answer {
    let found = end.endpoint.wait_any(wanted, limit)?;
    hand_over(found, status, result)
}

pub(crate) fn probe(
    end: &Arc<End>,
    wanted: Match,
    limit: Option<Duration>,
    status: Out<'_, CStatus>,
    result: Out<'_, u32>,
) -> Answer {
    let found = end.endpoint.probe(wanted, limit)?;
    hand_over(found, status, result)
}

pub(crate) fn peek(end: &Arc<End>, limit: Option<Duration>, request: Out<'_, Handle>, result: Out<'_, u32>) -> Answer {
    let request = request.variable(NULL)?;
    let found = end.endpoint.peek(limit)?;
    result.offer(u32::from(found.is_some()));
    if let Some(found) = found {
        request.put(end.name(found));
    }
    Ok(())
}

pub(crate) fn buffered(
    end: &Arc<End>,
    request: In<'_, Handle>,
    limit: Option<Duration>,
    result: Out<'_, u32>,
) -> Answer {
    let is_buffered = end.endpoint.buffered(named(end, request)?, limit)?;
    result.give(u32::from(is_buffered), NULL)
}

pub(crate) fn cancel(end: &Arc<End>, request: In<'_, Handle>, result: Out<'_, u32>) -> Answer {
    let result = result.variable(NULL)?;
    result.put(u32::from(end.endpoint.cancel(named(end, request)?)?));
    Ok(())
}

pub(crate) fn forget(end: &Arc<End>, request: In<'_, Handle>) -> Answer {
    Ok(end.endpoint.forget(named(end, request)?)?)
}

pub(crate) fn context(request: In<'_, Handle>, to: Out<'_, *mut c_void>) -> Answer {
    let handle = request.get().ok_or(NULL)?;
    let end = registry()?.end_of(handle)?;
    let context = end.endpoint.context(end.request(handle)?)?;
    to.give(std::ptr::with_exposed_provenance_mut(context as usize), NULL)
}

pub(crate) fn set_timeout(end: &Arc<End>, request: Handle, ms: u32) -> Answer {
    if request.is_null() {
        // Publishes nothing.
        end.timeout.store(ms, Ordering::Relaxed);
        return Ok(());
    }
    Ok(end.endpoint.set_timeout(end.request(request)?, limit(ms))?)
}

pub(crate) fn connect(end: &Arc<End>, at: (u64, u32), key: u32, ms: u32, to: Out<'_, CAddress>) -> Answer {
    let to = to.variable(NULL)?;
    to.put(end.endpoint.connect(at, key, limit(ms))?.into());
    Ok(())
}

pub(crate) fn iconnect(
    end: &Arc<End>,
    at: (u64, u32),
    key: u32,
    (bits, context): (u64, *mut c_void),
    request: Out<'_, Handle>,
) -> Answer {
    let request = request.variable(NULL)?;
    let begin = end.endpoint.start_connect(at, key, bits, word(context))?;
    begun(end, begin, request, true)
}

/// The unexpected handler of C.
pub(crate) type UnexpectedHandler = unsafe extern "C" fn(*mut c_void, CAddress, u64, u32, *mut c_void) -> c_uint;

pub(crate) fn on_unexpected(end: &Arc<End>, handler: Option<UnexpectedHandler>, context: *mut c_void) -> Answer {
    let context = context.expose_provenance();
    let new = handler.map(|handler| {
        move |message: &Unexpected<'_>| {
            let data = message.data.map_or(std::ptr::null_mut(), |data| data.as_ptr().cast_mut().cast());
            let context = std::ptr::with_exposed_provenance_mut(context);
            // A thread that is cancelled there would unwind through the library.
            let answer = uncancelled(|| {
                // SAFETY: the program's function, called without any lock; the bytes stay until it
                // returns.
                unsafe { handler(context, message.source.into(), message.bits, message.length, data) }
            });
            if answer == 1 { cci_mx::Answer::Finished } else { cci_mx::Answer::Continue }
        }
    });
    Ok(end.endpoint.on_unexpected(new)?)
}
