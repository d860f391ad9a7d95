//! Endpoints and requests.

use crate::answer::{ALREADY_INITIALIZED, Answer, DEVICE_CYCLE, ErrorHandler, NULL, Refusal, give, handler_of, offer};
use crate::layout::{CAddress, CParameter, CSegment, CStatus, segments};
use crate::registry::{End, Handle, Membership, lock, registry};
use cci::{Context, Device};
use cci_job::Job;
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
    registry()?.set_handler(handler_of(handler));
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

unsafe fn options(list: *const CParameter, count: u32) -> Result<Asked, Refusal> {
    let (mut options, mut handler, mut may_be_rank) = (Options::new(), None, true);
    if count > 0 && list.is_null() {
        return Err(Error::BadParameterList.into());
    }
    for at in 0..count as usize {
        // SAFETY: by the contract of the header.
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

pub(crate) unsafe fn open(
    (board, id, key): (u32, u32, u32),
    (list, count): (*const CParameter, u32),
    to: *mut Handle,
) -> Answer {
    let registry = registry()?;
    registry.check()?;
    if to.is_null() {
        return Err(NULL);
    }
    if board != 0 && board != ANY {
        return Err(Error::BoardUnknown.into());
    }
    // SAFETY: by the contract of the header.
    let (options, handler, may_be_rank) = unsafe { options(list, count) }?;
    let endpoint = open_at_place((id != ANY).then_some(id), key, &options, may_be_rank)?;
    *lock(&registry.nic) = Some(endpoint.address().nic());
    let handle = registry.enter(End::new(endpoint, handler)).ok_or(Error::NoResources)?;
    // SAFETY: by the contract of the header.
    unsafe { give(to, handle) }
}

pub(crate) fn close(handle: Handle) -> Answer {
    registry()?.check()?;
    registry()?.close(handle)
}

/// Gives a new request to the program.
unsafe fn begun(end: &Arc<End>, request: Request, to: *mut Handle, is_timed: bool) -> Answer {
    // Publishes nothing.
    let timeout = if is_timed { end.timeout.load(Ordering::Relaxed) } else { 0 };
    if timeout > 0 {
        end.endpoint.set_timeout(request, limit(timeout))?;
    }
    // SAFETY: by the contract of the header.
    unsafe { give(to, end.name(request)) }
}

#[inline]
pub(crate) unsafe fn send(
    end: &Arc<End>,
    (list, count): (*const CSegment, u32),
    to: CAddress,
    (bits, context): (u64, *mut c_void),
    is_sync: bool,
    request: *mut Handle,
) -> Answer {
    if request.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    let segments = unsafe { segments(list, count) }?;
    let start = if is_sync { Endpoint::send_sync } else { Endpoint::send };
    let begin = start(&end.endpoint, segments, to.into(), bits, word(context))?;
    // SAFETY: by the contract of the header.
    unsafe { begun(end, begin, request, true) }
}

#[inline]
pub(crate) unsafe fn receive(
    end: &Arc<End>,
    (list, count): (*const CSegment, u32),
    wanted: Match,
    context: *mut c_void,
    request: *mut Handle,
) -> Answer {
    if request.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    let segments = unsafe { segments(list, count) }?;
    let begin = end.endpoint.receive(segments, wanted, word(context))?;
    // SAFETY: by the contract of the header.
    unsafe { begun(end, begin, request, false) }
}

/// The request to which a pointer leads.
#[inline]
unsafe fn named(end: &End, request: *const Handle) -> Result<Request, Refusal> {
    if request.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    end.request(unsafe { request.read_unaligned() })
}

/// Gives a status and whether there is one.
#[inline]
unsafe fn hand_over(found: Option<Status>, status: *mut CStatus, result: *mut u32) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { offer(result, u32::from(found.is_some())) };
    if let Some(found) = found {
        // SAFETY: by the contract of the header.
        unsafe { offer(status, found.into()) };
    }
    Ok(())
}

/// A test: no time; a wait: so many ms, or 0 for ever.
#[inline]
pub(crate) unsafe fn wait(
    end: &Arc<End>,
    request: *const Handle,
    limit: Option<Duration>,
    status: *mut CStatus,
    result: *mut u32,
) -> Answer {
    // SAFETY: by the contract of the header.
    let found = unsafe { named(end, request) }.and_then(|request| Ok(end.endpoint.wait(request, limit)?))?;
    // SAFETY: by the contract of the header.
    unsafe { hand_over(found, status, result) }
}

pub(crate) unsafe fn wait_any(
    end: &Arc<End>,
    wanted: Match,
    limit: Option<Duration>,
    status: *mut CStatus,
    result: *mut u32,
) -> Answer {
    let found = end.endpoint.wait_any(wanted, limit)?;
    // SAFETY: by the contract of the header.
    unsafe { hand_over(found, status, result) }
}

pub(crate) unsafe fn probe(
    end: &Arc<End>,
    wanted: Match,
    limit: Option<Duration>,
    status: *mut CStatus,
    result: *mut u32,
) -> Answer {
    let found = end.endpoint.probe(wanted, limit)?;
    // SAFETY: by the contract of the header.
    unsafe { hand_over(found, status, result) }
}

pub(crate) unsafe fn peek(end: &Arc<End>, limit: Option<Duration>, request: *mut Handle, result: *mut u32) -> Answer {
    if request.is_null() {
        return Err(NULL);
    }
    let found = end.endpoint.peek(limit)?;
    // SAFETY: by the contract of the header.
    unsafe { offer(result, u32::from(found.is_some())) };
    match found {
        // SAFETY: by the contract of the header.
        Some(found) => unsafe { give(request, end.name(found)) },
        None => Ok(()),
    }
}

pub(crate) unsafe fn buffered(
    end: &Arc<End>,
    request: *const Handle,
    limit: Option<Duration>,
    result: *mut u32,
) -> Answer {
    // SAFETY: by the contract of the header.
    let is_buffered =
        unsafe { named(end, request) }.and_then(|request| Ok(end.endpoint.buffered(request, limit)?))?;
    // SAFETY: by the contract of the header.
    unsafe { give(result, u32::from(is_buffered)) }
}

pub(crate) unsafe fn cancel(end: &Arc<End>, request: *const Handle, result: *mut u32) -> Answer {
    if result.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    let is_taken = unsafe { named(end, request) }.and_then(|request| Ok(end.endpoint.cancel(request)?))?;
    // SAFETY: by the contract of the header.
    unsafe { give(result, u32::from(is_taken)) }
}

pub(crate) unsafe fn forget(end: &Arc<End>, request: *const Handle) -> Answer {
    // SAFETY: by the contract of the header.
    Ok(end.endpoint.forget(unsafe { named(end, request) }?)?)
}

pub(crate) unsafe fn context(request: *const Handle, to: *mut *mut c_void) -> Answer {
    if request.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    let handle = unsafe { request.read_unaligned() };
    let end = registry()?.end_of(handle)?;
    let context = end.endpoint.context(end.request(handle)?)?;
    // SAFETY: by the contract of the header.
    unsafe { give(to, std::ptr::with_exposed_provenance_mut(context as usize)) }
}

pub(crate) fn set_timeout(end: &Arc<End>, request: Handle, ms: u32) -> Answer {
    if request.is_null() {
        // Publishes nothing.
        end.timeout.store(ms, Ordering::Relaxed);
        return Ok(());
    }
    Ok(end.endpoint.set_timeout(end.request(request)?, limit(ms))?)
}

pub(crate) unsafe fn connect(end: &Arc<End>, at: (u64, u32), key: u32, ms: u32, to: *mut CAddress) -> Answer {
    if to.is_null() {
        return Err(NULL);
    }
    let address = end.endpoint.connect(at, key, limit(ms))?;
    // SAFETY: by the contract of the header.
    unsafe { give(to, address.into()) }
}

pub(crate) unsafe fn iconnect(
    end: &Arc<End>,
    at: (u64, u32),
    key: u32,
    (bits, context): (u64, *mut c_void),
    request: *mut Handle,
) -> Answer {
    if request.is_null() {
        return Err(NULL);
    }
    let begin = end.endpoint.start_connect(at, key, bits, word(context))?;
    // SAFETY: by the contract of the header.
    unsafe { begun(end, begin, request, true) }
}

/// The unexpected handler of C.
pub(crate) type UnexpectedHandler = unsafe extern "C" fn(*mut c_void, CAddress, u64, u32, *mut c_void) -> c_uint;

pub(crate) fn on_unexpected(end: &Arc<End>, handler: Option<UnexpectedHandler>, context: *mut c_void) -> Answer {
    let context = context.expose_provenance();
    let new = handler.map(|handler| {
        move |message: &Unexpected<'_>| {
            let data = message.data.map_or(std::ptr::null_mut(), |data| data.as_ptr().cast_mut().cast());
            let context = std::ptr::with_exposed_provenance_mut(context);
            // SAFETY: the program's function, called without any lock; the bytes stay until it
            // returns.
            let answer = unsafe { handler(context, message.source.into(), message.bits, message.length, data) };
            if answer == 1 { cci_mx::Answer::Finished } else { cci_mx::Answer::Continue }
        }
    });
    Ok(end.endpoint.on_unexpected(new)?)
}
