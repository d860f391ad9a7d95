//! DMA queues.

use crate::answer::{Answer, TRANSFER_FAILED, answer, check};
use crate::callbacks::{DmaCallback, callback, pointer, then};
use crate::flags::{self, has};
use crate::objects::{end, make};
use crate::registry::{Handle, limit, registry};
use cci_sci::{Direction, DmaQueue, Error, Host, MOST_PARTS, Part, QueueState};
use std::ffi::{c_uint, c_void};

/// The ends of a transfer: a segment and an offset each.
type Ends = ((Handle, usize), (Handle, usize));

pub(crate) unsafe fn create(
    sd: Handle,
    to: *mut Handle,
    (adapter, most): (c_uint, c_uint),
    given: c_uint,
    error: *mut c_uint,
) {
    // Programs that start transfers one at a time ask for none.
    let queue = |host: &Host| host.dma_queue(most.max(1) as usize);
    // SAFETY: by the contract of the header.
    unsafe { make(|all| &all.queues, (sd, adapter), to, given, error, queue) }
}

unsafe fn with<R>(handle: Handle, error: *mut c_uint, otherwise: R, act: impl FnOnce(&DmaQueue) -> Answer<R>) -> R {
    // SAFETY: by the contract of the header.
    unsafe { answer(error, otherwise, || act(&registry()?.queues.find(handle)?.object)) }
}

pub(crate) unsafe fn remove(handle: Handle, given: c_uint, error: *mut c_uint) {
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.queues, handle, given, error, DmaQueue::remove) }
}

fn add(queue: &DmaQueue, ((local, from), (remote, to)): Ends, size: usize, given: c_uint) -> Answer<()> {
    let registry = registry()?;
    let (local, remote) = (registry.segments.find(local)?, registry.remotes.find(remote)?.object.segment()?);
    Ok(queue.enqueue((&local.object, from), (&remote, to), size, direction(given))?)
}

fn start(
    queue: &DmaQueue,
    handle: Handle,
    (function, arg): (Option<DmaCallback>, *mut c_void),
    given: c_uint,
) -> Answer<()> {
    let Some((function, arg)) = callback(given, function, arg)? else { return Ok(queue.post()?) };
    let name = handle.addr();
    Ok(queue.post_with(move |state| {
        let code = match state {
            QueueState::Done => 0,
            QueueState::Aborted => Error::Cancelled.code(),
            _ => TRANSFER_FAILED.0,
        };
        // SAFETY: the program's function, called without any lock, as long as the queue lives.
        then(unsafe { function(pointer(arg), std::ptr::without_provenance_mut(name), code) })
    })?)
}

pub(crate) unsafe fn enqueue(handle: Handle, ends: Ends, size: usize, given: c_uint, error: *mut c_uint) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[&flags::DMA_READ, &flags::DMA_GLOBAL, &flags::BROADCAST], &[])?;
        add(queue, ends, size, given)
    };
    // SAFETY: by the contract of the header.
    unsafe { with(handle, error, (), act) }
}

pub(crate) unsafe fn post(handle: Handle, told: (Option<DmaCallback>, *mut c_void), given: c_uint, error: *mut c_uint) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[&flags::USE_CALLBACK], &[])?;
        start(queue, handle, told, given)
    };
    // SAFETY: by the contract of the header.
    unsafe { with(handle, error, (), act) }
}

pub(crate) unsafe fn start_transfer(
    handle: Handle,
    ends: Ends,
    size: usize,
    told: (Option<DmaCallback>, *mut c_void),
    given: c_uint,
    error: *mut c_uint,
) {
    let act = |queue: &DmaQueue| add(queue, ends, size, given);
    // SAFETY: by the contract of the header.
    unsafe { start_with(handle, told, given, error, act) }
}

/// `dis_dma_vec_t`. Its flags are not read.
#[repr(C)]
pub(crate) struct CPart {
    size: usize,
    local_offset: usize,
    remote_offset: usize,
    _flags: c_uint,
}

pub(crate) unsafe fn start_vector(
    handle: Handle,
    (local, remote): (Handle, Handle),
    (parts, count): (*const CPart, usize),
    told: (Option<DmaCallback>, *mut c_void),
    given: c_uint,
    error: *mut c_uint,
) {
    let act = |queue: &DmaQueue| {
        check(parts.cast_mut())?;
        if count > MOST_PARTS {
            return Err(Error::MaxEntries.into());
        }
        let part = |at| {
            // SAFETY: so many parts by the contract of the header.
            let part = unsafe { parts.add(at).read_unaligned() };
            Part { local_offset: part.local_offset, remote_offset: part.remote_offset, len: part.size }
        };
        let parts: Vec<_> = (0..count).map(part).collect();
        let registry = registry()?;
        let (local, remote) = (registry.segments.find(local)?, registry.remotes.find(remote)?.object.segment()?);
        Ok(queue.enqueue_vector(&local.object, &remote, &parts, direction(given))?)
    };
    // SAFETY: by the contract of the header.
    unsafe { start_with(handle, told, given, error, act) }
}

/// Resets a queue, has its transfers entered, and starts it.
unsafe fn start_with(
    handle: Handle,
    told: (Option<DmaCallback>, *mut c_void),
    given: c_uint,
    error: *mut c_uint,
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
    // SAFETY: by the contract of the header.
    unsafe { with(handle, error, (), act) }
}

fn direction(given: c_uint) -> Direction {
    if has(given, &flags::DMA_READ) { Direction::Read } else { Direction::Write }
}

pub(crate) unsafe fn abort(handle: Handle, given: c_uint, error: *mut c_uint) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[], &[])?;
        Ok(queue.abort()?)
    };
    // SAFETY: by the contract of the header.
    unsafe { with(handle, error, (), act) }
}

pub(crate) unsafe fn reset(handle: Handle, given: c_uint, error: *mut c_uint) {
    let act = |queue: &DmaQueue| {
        flags::check(given, &[], &[])?;
        Ok(queue.reset()?)
    };
    // SAFETY: by the contract of the header.
    unsafe { with(handle, error, (), act) }
}

pub(crate) unsafe fn state(handle: Handle) -> c_uint {
    let act = |queue: &DmaQueue| Ok(queue.state()? as c_uint);
    // SAFETY: nothing is written.
    unsafe { with(handle, std::ptr::null_mut(), QueueState::Error as c_uint, act) }
}

pub(crate) unsafe fn wait(handle: Handle, ms: c_uint, given: c_uint, error: *mut c_uint) -> c_uint {
    // SAFETY: by the contract of the header.
    unsafe {
        answer(error, state(handle), || {
            flags::check(given, &[], &[])?;
            Ok(registry()?.queues.find(handle)?.object.wait(limit(ms))? as c_uint)
        })
    }
}
