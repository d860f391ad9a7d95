//! DMA queues.

use crate::answer::{Answer, Code, TRANSFER_FAILED, answer, check};
use crate::callbacks::{CodeCallback, Function, callback};
use crate::flags::{self, has};
use crate::objects::{end, make};
use crate::registry::{Handle, limit, registry};
use cci_mem::arguments::Out;
use cci_sci::{Direction, DmaQueue, Error, Host, MOST_PARTS, Part, QueueState};
use std::ffi::{c_uint, c_void};

/// The ends of a transfer: a segment and an offset each.
type Ends = ((Handle, usize), (Handle, usize));

pub(crate) fn create(
    sd: Handle,
    to: Out<'_, Handle>,
    (adapter, most): (c_uint, c_uint),
    given: c_uint,
    error: Code<'_>,
) {
    // Programs that start transfers one at a time ask for none.
    let queue = |host: &Host| host.dma_queue(most.max(1) as usize);
    make(|all| &all.queues, (sd, adapter), to, given, error, queue)
}

fn with<R>(handle: Handle, error: Code<'_>, otherwise: R, act: impl FnOnce(&DmaQueue) -> Answer<R>) -> R {
    answer(error, otherwise, || act(&registry()?.queues.find(handle)?.object))
}

pub(crate) fn remove(handle: Handle, given: c_uint, error: Code<'_>) {
    end(|all| &all.queues, handle, given, error, DmaQueue::remove)
}

fn add(queue: &DmaQueue, ((local, from), (remote, to)): Ends, size: usize, given: c_uint) -> Answer<()> {
    let registry = registry()?;
    let (local, remote) = (registry.segments.find(local)?, registry.remotes.find(remote)?.object.segment()?);
    Ok(queue.enqueue((&local.object, from), (&remote, to), size, direction(given))?)
}

fn start(
    queue: &DmaQueue,
    handle: Handle,
    (function, arg): (Function<CodeCallback>, *mut c_void),
    given: c_uint,
) -> Answer<()> {
    let Some(function) = callback(given, function, arg)? else { return Ok(queue.post()?) };
    let name = handle.addr();
    Ok(queue.post_with(move |state| {
        let code = match state {
            QueueState::Done => 0,
            QueueState::Aborted => Error::Cancelled.code(),
            _ => TRANSFER_FAILED.0,
        };
        function.call(name, code)
    })?)
}

pub(crate) fn enqueue(handle: Handle, ends: Ends, size: usize, given: c_uint, error: Code<'_>) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[&flags::DMA_READ, &flags::DMA_GLOBAL, &flags::BROADCAST], &[])?;
        add(queue, ends, size, given)
    };
    with(handle, error, (), act)
}

pub(crate) fn post(handle: Handle, told: (Function<CodeCallback>, *mut c_void), given: c_uint, error: Code<'_>) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[&flags::USE_CALLBACK], &[])?;
        start(queue, handle, told, given)
    };
    with(handle, error, (), act)
}

pub(crate) fn start_transfer(
    handle: Handle,
    ends: Ends,
    size: usize,
    told: (Function<CodeCallback>, *mut c_void),
    given: c_uint,
    error: Code<'_>,
) {
    let act = |queue: &DmaQueue| add(queue, ends, size, given);
    start_with(handle, told, given, error, act)
}

/// `dis_dma_vec_t`. Its flags are not read.
#[repr(C)]
pub(crate) struct CPart {
    size: usize,
    local_offset: usize,
    remote_offset: usize,
    _flags: c_uint,
}

/// Starts a transfer of several parts.
///
/// # Safety
///
/// `parts` is NULL or leads to `count` parts.
pub(crate) unsafe fn start_vector(
    handle: Handle,
    (local, remote): (Handle, Handle),
    (parts, count): (*const CPart, usize),
    told: (Function<CodeCallback>, *mut c_void),
    given: c_uint,
    error: Code<'_>,
) {
    let act = |queue: &DmaQueue| {
        check(parts.cast_mut())?;
        if count > MOST_PARTS {
            return Err(Error::MaxEntries.into());
        }
        let part = |at| {
            // SAFETY: not NULL, and one of as many parts; of any alignment.
            let part = unsafe { parts.add(at).read_unaligned() };
            Part { local_offset: part.local_offset, remote_offset: part.remote_offset, len: part.size }
        };
        let parts: Vec<_> = (0..count).map(part).collect();
        let registry = registry()?;
        let (local, remote) = (registry.segments.find(local)?, registry.remotes.find(remote)?.object.segment()?);
        Ok(queue.enqueue_vector(&local.object, &remote, &parts, direction(given))?)
    };
    start_with(handle, told, given, error, act)
}

/// Resets a queue, has its transfers entered, and starts it.
fn start_with(
    handle: Handle,
    told: (Function<CodeCallback>, *mut c_void),
    given: c_uint,
    error: Code<'_>,
    enter: impl FnOnce(&DmaQueue) -> Answer<()>,
) {
    let act = |queue: &DmaQueue| {
        // The last two are hints: the connection says whether it is of a group.
        let has_flags =
            [&flags::DMA_READ, &flags::USE_CALLBACK, &flags::DMA_WAIT, &flags::DMA_GLOBAL, &flags::BROADCAST];
        flags::check(given, &has_flags, &[])?;
        queue.reset()?;
        enter(queue)?;
        start(queue, handle, told, given)?;
        if has(given, &flags::DMA_WAIT) && queue.wait(None)? != QueueState::Done {
            return Err(TRANSFER_FAILED);
        }
        Ok(())
    };
    with(handle, error, (), act)
}

fn direction(given: c_uint) -> Direction {
    if has(given, &flags::DMA_READ) { Direction::Read } else { Direction::Write }
}

pub(crate) fn abort(handle: Handle, given: c_uint, error: Code<'_>) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[], &[])?;
        Ok(queue.abort()?)
    };
    with(handle, error, (), act)
}

pub(crate) fn reset(handle: Handle, given: c_uint, error: Code<'_>) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[], &[])?;
        Ok(queue.reset()?)
    };
    with(handle, error, (), act)
}

pub(crate) fn state(handle: Handle) -> c_uint {
    let act = |queue: &DmaQueue| Ok(queue.state()? as c_uint);
    with(handle, Out::NULL, QueueState::Error as c_uint, act)
}

pub(crate) fn wait(handle: Handle, ms: c_uint, given: c_uint, error: Code<'_>) -> c_uint {
    answer(error, state(handle), || {
        flags::check(given, &[], &[])?;
        Ok(registry()?.queues.find(handle)?.object.wait(limit(ms))? as c_uint)
    })
}
