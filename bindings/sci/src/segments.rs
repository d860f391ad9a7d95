//! Segments of this process and of others.

use crate::answer::{Answer, Code, FLAG_NOT_IMPLEMENTED, NOT_IMPLEMENTED, Refusal, WRONG, answer};
use crate::callbacks::{Callback, Function, LocalCallback, RemoteCallback, callback};
use crate::devices::device;
use crate::far::Far;
use crate::flags::{self, has};
use crate::objects::{end, keep};
use crate::registry::{Handle, Owned, check_adapter, limit, registry};
use cci_mem::arguments::Out;
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

pub(crate) fn create(
    sd: Handle,
    to: Out<'_, Handle>,
    (id, size): (c_uint, usize),
    (function, arg): (Function<LocalCallback>, *mut c_void),
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        // Hints: any segment can do what these ask for.
        let hints = [&flags::PRIVATE, &flags::DMA_SOURCE_ONLY, &flags::DMA_GLOBAL];
        let has_flags = [&[&flags::USE_CALLBACK, &flags::BROADCAST, &flags::AUTO_ID], &hints[..]].concat();
        flags::check(given, &has_flags, &[&flags::EMPTY])?;
        let (is_broadcast, is_any) = (has(given, &flags::BROADCAST), has(given, &flags::AUTO_ID));
        to.check(WRONG)?;
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
        if let Some(function) = function {
            let name = handle.addr();
            let set = segment.object.on_event(move |event| function.call(name, event));
            keep(&registry.segments, handle, set.map_err(Refusal::from))?;
        }
        to.offer(handle);
        Ok(())
    };
    answer(error, (), act)
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

fn with_local<R>(handle: Handle, error: Code<'_>, otherwise: R, act: impl FnOnce(&LocalSegment) -> Answer<R>) -> R {
    answer(error, otherwise, || act(&registry()?.segments.find(handle)?.object))
}

pub(crate) fn prepare(handle: Handle, adapter: c_uint, given: c_uint, error: Code<'_>) {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[&flags::BROADCAST, &flags::DMA_SOURCE_ONLY], &[])?;
        check_adapter(adapter)?;
        Ok(segment.prepare()?)
    };
    with_local(handle, error, (), act)
}

pub(crate) fn publish(handle: Handle, adapter: c_uint, given: c_uint, error: Code<'_>) {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[&flags::BROADCAST], &[])?;
        check_adapter(adapter)?;
        Ok(segment.publish()?)
    };
    with_local(handle, error, (), act)
}

pub(crate) fn withdraw(handle: Handle, adapter: c_uint, given: c_uint, error: Code<'_>) {
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
    with_local(handle, error, (), act)
}

/// Refused: other processes can map memory of the library alone, and each segment has its own.
pub(crate) fn register(address: *mut c_void, size: usize, handle: Handle, given: c_uint, error: Code<'_>) {
    let act = |_: &LocalSegment| {
        flags::check(given, &[], &[])?;
        if address.is_null() || size == 0 {
            return Err(WRONG);
        }
        Err(NOT_IMPLEMENTED)
    };
    with_local(handle, error, (), act)
}

/// Refused, as [`register`]: memory of a device cannot be handed to others.
pub(crate) fn attach_physical(size: usize, handle: Handle, error: Code<'_>) {
    let act = |_: &LocalSegment| Err(if size == 0 { WRONG } else { NOT_IMPLEMENTED });
    with_local(handle, error, (), act)
}

pub(crate) fn remove(handle: Handle, given: c_uint, error: Code<'_>) {
    end(|all| &all.segments, handle, given, error, LocalSegment::release)
}

pub(crate) fn local_size(handle: Handle) -> usize {
    with_local(handle, Out::NULL, 0, |segment| Ok(segment.len()))
}

pub(crate) fn local_id(handle: Handle) -> c_uint {
    with_local(handle, Out::NULL, 0, |segment| Ok(segment.id()))
}

pub(crate) fn wait_local(
    handle: Handle,
    (node, adapter): (Out<'_, c_uint>, Out<'_, c_uint>),
    ms: c_uint,
    given: c_uint,
    error: Code<'_>,
) -> c_uint {
    let act = |segment: &LocalSegment| {
        flags::check(given, &[], &[])?;
        let event = segment.wait(limit(ms))?;
        node.offer(event.node);
        adapter.offer(0);
        Ok(event.reason as c_uint)
    };
    with_local(handle, error, 0, act)
}

#[expect(clippy::too_many_arguments, reason = "those of SISCI")]
pub(crate) fn connect(
    sd: Handle,
    to: Out<'_, Handle>,
    (node, id): (c_uint, c_uint),
    adapter: c_uint,
    (function, arg): (Function<RemoteCallback>, *mut c_void),
    ms: c_uint,
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        let (is_later, is_broadcast) = (has(given, &flags::ASYNCHRONOUS_CONNECT), has(given, &flags::BROADCAST));
        flags::check(given, &[&flags::USE_CALLBACK, &flags::ASYNCHRONOUS_CONNECT, &flags::BROADCAST], &[])?;
        if is_later && is_broadcast {
            return Err(FLAG_NOT_IMPLEMENTED);
        }
        check_adapter(adapter)?;
        to.check(WRONG)?;
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
        to.offer(handle);
        let far = registry.remotes.enter(handle, Owned::new(&device, far));
        let set = match (function, far.object.segment()) {
            (None, _) => Ok(()),
            (Some(function), Ok(segment)) => call_back(&segment, handle.addr(), function).map_err(Refusal::from),
            (Some(function), Err(_)) => call_back_later(&far, handle.addr(), function),
        };
        keep(&registry.remotes, handle, set)
    };
    answer(error, (), act)
}

pub(crate) fn disconnect(handle: Handle, given: c_uint, error: Code<'_>) {
    let disconnect = |far: &Far| {
        far.disconnect()?;
        if let Ok(registry) = registry() {
            registry.note_ended(handle, far.id());
        }
        Ok(())
    };
    end(|all| &all.remotes, handle, given, error, disconnect)
}

pub(crate) fn remote_size(handle: Handle) -> usize {
    answer(Out::NULL, 0, || Ok(registry()?.remotes.find(handle)?.object.segment()?.len()))
}

pub(crate) fn remote_id(handle: Handle) -> c_uint {
    answer(Out::NULL, 0, || {
        let registry = registry()?;
        registry.remotes.find(handle).map(|far| far.object.id()).or_else(|_| registry.id_of_ended(handle))
    })
}

pub(crate) fn wait_remote(
    handle: Handle,
    status: Out<'_, c_uint>,
    ms: c_uint,
    given: c_uint,
    error: Code<'_>,
) -> c_uint {
    let act = || {
        flags::check(given, &[], &[])?;
        let (reason, code) = registry()?.remotes.find(handle)?.object.wait(limit(ms))?;
        status.offer(code);
        Ok(reason as c_uint)
    };
    answer(error, 0, act)
}

/// Has a function called for each event of a connection.
fn call_back(segment: &RemoteSegment, name: usize, function: Callback<RemoteCallback>) -> Result<(), Error> {
    segment.on_event(move |reason| {
        let code = if reason == Reason::Lost { Error::SegmentNotConnected.code() } else { 0 };
        function.call(name, reason, code)
    })
}

/// Has a function called with the end of a connect, and then for each event of the connection.
fn call_back_later(far: &Arc<Owned<Far>>, name: usize, function: Callback<RemoteCallback>) -> Answer<()> {
    let Some(connecting) = far.object.unfinished() else { return Ok(()) };
    let ended = move |outcome| {
        // Removed meanwhile: then nobody waits for it.
        let Ok(far) = registry().and_then(|all| all.remotes.find(std::ptr::without_provenance_mut(name))) else {
            return;
        };
        let events = far.object.settle(outcome);
        let goes_on = events.into_iter().all(|(reason, code)| function.call(name, reason, code) == Then::Continue);
        if goes_on && let Ok(segment) = far.object.segment() {
            // Refused where the program has disconnected in its callback.
            let _ = call_back(&segment, name, function);
        }
    };
    connecting.on_end(ended).map_err(Refusal::from)
}
