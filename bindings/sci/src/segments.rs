//! Segments of this process and of others.

use crate::answer::{Answer, FLAG_NOT_IMPLEMENTED, NOT_IMPLEMENTED, Refusal, WRONG, answer, check, offer};
use crate::callbacks::{LocalCallback, RemoteCallback, callback, pointer, then};
use crate::devices::device;
use crate::far::Far;
use crate::flags::{self, has};
use crate::objects::end;
use crate::registry::{Handle, Owned, check_adapter, limit, registry};
use cci_mem::sync::{AtomicU32, Ordering};
use cci_sci::{EVERY_NODE, Error, Host, LocalSegment, Reason, RemoteSegment, Then, Withdraw};
use std::ffi::{c_uint, c_void};
use std::sync::Arc;

/// `DIS_BROADCAST_NODEID_GROUP_ALL`, which stands for a group only where the flag does too.
const GROUP_ALL: c_uint = 252;
/// Where numbers begin that the library chooses, which is also how many there are; and how many are
/// tried.
const ANY: u32 = 0x2000_0000;
const ANY_TRIES: u32 = 256;

pub(crate) unsafe fn create(
    sd: Handle,
    to: *mut Handle,
    (id, size): (c_uint, usize),
    (function, arg): (Option<LocalCallback>, *mut c_void),
    given: c_uint,
    error: *mut c_uint,
) {
    let act = || {
        // Hints: any segment can do what these ask for.
        let hints = [&flags::PRIVATE, &flags::DMA_SOURCE_ONLY, &flags::DMA_GLOBAL];
        let has_flags = [&[&flags::USE_CALLBACK, &flags::BROADCAST, &flags::AUTO_ID], &hints[..]].concat();
        flags::check(given, &has_flags, &[&flags::EMPTY])?;
        let (is_broadcast, is_any) = (has(given, &flags::BROADCAST), has(given, &flags::AUTO_ID));
        check(to)?;
        let function = callback(given, function, arg)?;
        let (registry, device) = (registry()?, device(sd)?);
        let handle = registry.next();
        let segment = match (is_broadcast, is_any) {
            // The number is what its members agree on.
            (true, _) => device.host.create_broadcast(id, size)?,
            (false, true) => create_any(&device.host, size)?,
            (false, false) => device.host.create(id, size)?,
        };
        let segment = registry.segments.enter(handle, Owned::new(&device, segment));
        if let Some((function, arg)) = function {
            let name = handle.addr();
            segment.object.on_event(move |event| {
                let handle = std::ptr::without_provenance_mut(name);
                // SAFETY: the program's function, called without any lock, as long as the segment
                // lives.
                then(unsafe { function(pointer(arg), handle, event.reason as c_uint, event.node, 0, 0) })
            })?;
        }
        // SAFETY: by the contract of the header.
        unsafe { offer(to, handle) };
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

/// A segment with a number that is free. Those of a process begin at its own place, so that few
/// that it tries are taken.
fn create_any(host: &Host, size: usize) -> Answer<LocalSegment> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    for _ in 0..ANY_TRIES {
        // Publishes nothing.
        let count = LAST.fetch_add(1, Ordering::Relaxed);
        let number = (std::process::id() << 8).wrapping_add(count) & (ANY - 1) | ANY;
        match host.create(number, size) {
            Err(Error::SegmentIdUsed) => {}
            other => return Ok(other?),
        }
    }
    Err(Error::SegmentIdUsed.into())
}

unsafe fn with_local<R>(
    handle: Handle,
    error: *mut c_uint,
    otherwise: R,
    act: impl FnOnce(&LocalSegment) -> Answer<R>,
) -> R {
    // SAFETY: by the contract of the header.
    unsafe { answer(error, otherwise, || act(&registry()?.segments.find(handle)?.object)) }
}

pub(crate) unsafe fn prepare(handle: Handle, adapter: c_uint, given: c_uint, error: *mut c_uint) {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[&flags::BROADCAST, &flags::DMA_SOURCE_ONLY], &[])?;
        check_adapter(adapter)?;
        Ok(segment.prepare()?)
    };
    // SAFETY: by the contract of the header.
    unsafe { with_local(handle, error, (), act) }
}

pub(crate) unsafe fn publish(handle: Handle, adapter: c_uint, given: c_uint, error: *mut c_uint) {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[&flags::BROADCAST], &[])?;
        check_adapter(adapter)?;
        Ok(segment.publish()?)
    };
    // SAFETY: by the contract of the header.
    unsafe { with_local(handle, error, (), act) }
}

pub(crate) unsafe fn withdraw(handle: Handle, adapter: c_uint, given: c_uint, error: *mut c_uint) {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[&flags::NOTIFY, &flags::FORCE_DISCONNECT, &flags::BROADCAST], &[])?;
        check_adapter(adapter)?;
        let how = match (has(given, &flags::FORCE_DISCONNECT), has(given, &flags::NOTIFY)) {
            (true, _) => Withdraw::Force,
            (false, true) => Withdraw::Notify,
            (false, false) => Withdraw::Quiet,
        };
        Ok(segment.withdraw(how)?)
    };
    // SAFETY: by the contract of the header.
    unsafe { with_local(handle, error, (), act) }
}

/// Refused: other processes can map memory of the library alone, and each segment has its own.
pub(crate) unsafe fn register(address: *mut c_void, size: usize, handle: Handle, given: c_uint, error: *mut c_uint) {
    let act = |_: &LocalSegment| {
        flags::check(given, &[], &[])?;
        if address.is_null() || size == 0 {
            return Err(WRONG);
        }
        Err(NOT_IMPLEMENTED)
    };
    // SAFETY: by the contract of the header.
    unsafe { with_local(handle, error, (), act) }
}

/// Refused, as [`register`]: memory of a device cannot be handed to others.
pub(crate) unsafe fn attach_physical(size: usize, handle: Handle, error: *mut c_uint) {
    let act = |_: &LocalSegment| Err(if size == 0 { WRONG } else { NOT_IMPLEMENTED });
    // SAFETY: by the contract of the header.
    unsafe { with_local(handle, error, (), act) }
}

pub(crate) unsafe fn remove(handle: Handle, given: c_uint, error: *mut c_uint) {
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.segments, handle, given, error, LocalSegment::release) }
}

pub(crate) unsafe fn local_size(handle: Handle) -> usize {
    // SAFETY: nothing is written.
    unsafe { with_local(handle, std::ptr::null_mut(), 0, |segment| Ok(segment.len())) }
}

pub(crate) unsafe fn local_id(handle: Handle) -> c_uint {
    // SAFETY: nothing is written.
    unsafe { with_local(handle, std::ptr::null_mut(), 0, |segment| Ok(segment.id())) }
}

pub(crate) unsafe fn wait_local(
    handle: Handle,
    (node, adapter): (*mut c_uint, *mut c_uint),
    ms: c_uint,
    given: c_uint,
    error: *mut c_uint,
) -> c_uint {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[], &[])?;
        let event = segment.wait(limit(ms))?;
        // SAFETY: by the contract of the header.
        unsafe {
            offer(node, event.node);
            offer(adapter, 0);
        }
        Ok(event.reason as c_uint)
    };
    // SAFETY: by the contract of the header.
    unsafe { with_local(handle, error, 0, act) }
}

#[expect(clippy::too_many_arguments, reason = "those of SISCI")]
pub(crate) unsafe fn connect(
    sd: Handle,
    to: *mut Handle,
    (node, id): (c_uint, c_uint),
    adapter: c_uint,
    (function, arg): (Option<RemoteCallback>, *mut c_void),
    ms: c_uint,
    given: c_uint,
    error: *mut c_uint,
) {
    let act = || {
        let (is_later, is_broadcast) = (has(given, &flags::ASYNCHRONOUS_CONNECT), has(given, &flags::BROADCAST));
        flags::check(given, &[&flags::USE_CALLBACK, &flags::ASYNCHRONOUS_CONNECT, &flags::BROADCAST], &[])?;
        if is_later && is_broadcast {
            return Err(FLAG_NOT_IMPLEMENTED);
        }
        check_adapter(adapter)?;
        check(to)?;
        if is_broadcast && node != EVERY_NODE && node != GROUP_ALL {
            return Err(Error::IllegalNode.into());
        }
        let function = callback(given, function, arg)?;
        let (registry, device) = (registry()?, device(sd)?);
        let handle = registry.next();
        let host = &device.host;
        let far = match (is_later, is_broadcast) {
            (true, _) => Far::connecting(host.begin_connect(node, id, limit(ms))?, id),
            (false, true) => Far::connected(host.connect_broadcast(id, limit(ms))?),
            (false, false) => Far::connected(host.connect(node, id, limit(ms))?),
        };
        // Before the callback, which may run at once.
        // SAFETY: by the contract of the header.
        unsafe { offer(to, handle) };
        let far = registry.remotes.enter(handle, Owned::new(&device, far));
        match (function, far.object.segment()) {
            (None, _) => {}
            (Some(function), Ok(segment)) => call_back(&segment, handle.addr(), function)?,
            (Some(function), Err(_)) => call_back_later(&far, handle.addr(), function)?,
        }
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, (), act) }
}

pub(crate) unsafe fn disconnect(handle: Handle, given: c_uint, error: *mut c_uint) {
    let disconnect = |far: &Far| {
        far.disconnect()?;
        if let Ok(registry) = registry() {
            registry.note_ended(handle, far.id());
        }
        Ok(())
    };
    // SAFETY: by the contract of the header.
    unsafe { end(|all| &all.remotes, handle, given, error, disconnect) }
}

pub(crate) unsafe fn remote_size(handle: Handle) -> usize {
    // SAFETY: nothing is written.
    unsafe { answer(std::ptr::null_mut(), 0, || Ok(registry()?.remotes.find(handle)?.object.segment()?.len())) }
}

pub(crate) unsafe fn remote_id(handle: Handle) -> c_uint {
    // SAFETY: nothing is written.
    unsafe {
        answer(std::ptr::null_mut(), 0, || {
            let registry = registry()?;
            registry.remotes.find(handle).map(|far| far.object.id()).or_else(|_| registry.id_of_ended(handle))
        })
    }
}

pub(crate) unsafe fn wait_remote(
    handle: Handle,
    status: *mut c_uint,
    ms: c_uint,
    given: c_uint,
    error: *mut c_uint,
) -> c_uint {
    let act = || {
        flags::check(given, &[], &[])?;
        let (reason, code) = registry()?.remotes.find(handle)?.object.wait(limit(ms))?;
        // SAFETY: by the contract of the header.
        unsafe { offer(status, code) };
        Ok(reason as c_uint)
    };
    // SAFETY: by the contract of the header.
    unsafe { answer(error, 0, act) }
}

/// Has a function called for each event of a connection.
fn call_back(segment: &RemoteSegment, handle: usize, (function, arg): (RemoteCallback, usize)) -> Result<(), Error> {
    segment.on_event(move |reason| {
        let handle: Handle = std::ptr::without_provenance_mut(handle);
        let code = if reason == Reason::Lost { Error::SegmentNotConnected.code() } else { 0 };
        // SAFETY: the program's function, called without any lock, as long as the connection lives.
        then(unsafe { function(pointer(arg), handle, reason as c_uint, code) })
    })
}

/// Has a function called with the end of a connect, and then for each event of the connection.
fn call_back_later(far: &Arc<Owned<Far>>, handle: usize, function: (RemoteCallback, usize)) -> Answer<()> {
    let Some(connecting) = far.object.unfinished() else { return Ok(()) };
    let ended = move |outcome| {
        // Removed meanwhile: then nobody waits for it.
        let Ok(far) = registry().and_then(|all| all.remotes.find(std::ptr::without_provenance_mut(handle))) else {
            return;
        };
        let events = far.object.settle(outcome);
        let goes_on = events.into_iter().all(|(reason, code)| {
            let handle: Handle = std::ptr::without_provenance_mut(handle);
            // SAFETY: as in `call_back`.
            then(unsafe { (function.0)(pointer(function.1), handle, reason as c_uint, code) }) == Then::Continue
        });
        if goes_on && let Ok(segment) = far.object.segment() {
            // Refused where the program has disconnected in its callback.
            let _ = call_back(&segment, handle, function);
        }
    };
    connecting.on_end(ended).map_err(Refusal::from)
}
