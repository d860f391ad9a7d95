//! Maps, sequences and copies.

use crate::answer::{Answer, Code, ILLEGAL_FLAG, TRANSFER_FAILED, WRONG, answer};
use crate::flags::{self, has};
use crate::registry::{Handle, Map, MapSequence, registry};
use cci_mem::arguments::Out;
use cci_mem::sync::{AtomicUsize, Ordering, fence};
use cci_sci::{Access, EVERY_NODE, Error, Sequence, SequenceStatus, Window};
use std::ffi::{c_uint, c_void};
use std::ops::Range;
use std::sync::Arc;

fn range(offset: usize, size: usize) -> Answer<Range<usize>> {
    Ok(offset..offset.checked_add(size).ok_or(Error::OutOfRange)?)
}

fn access(given: c_uint) -> Access {
    if has(given, &flags::READONLY_MAP) { Access::Read } else { Access::ReadWrite }
}

/// Enters a map; its address.
fn enter(to: Out<'_, Handle>, window: Window) -> Answer<*mut c_void> {
    let registry = registry()?;
    let (handle, address) = (registry.next(), window.as_ptr());
    registry.maps.enter(handle, Map { window, sequences: AtomicUsize::new(0) });
    to.offer(handle);
    Ok(address.cast())
}

pub(crate) fn map_local(
    segment: Handle,
    to: Out<'_, Handle>,
    (offset, size): (usize, usize),
    given: c_uint,
    error: Code<'_>,
) -> *mut c_void {
    let act = || {
        flags::check(given, &[&flags::READONLY_MAP, &flags::IO_MAP_IOSPACE], &[&flags::FIXED_MAP_ADDR])?;
        to.check(WRONG)?;
        let segment = registry()?.segments.find(segment)?;
        let window = segment.object.map(range(offset, size)?, access(given))?;
        enter(to, window)
    };
    answer(error, std::ptr::null_mut(), act)
}

pub(crate) fn map_remote(
    segment: Handle,
    to: Out<'_, Handle>,
    (offset, size): (usize, usize),
    given: c_uint,
    error: Code<'_>,
) -> *mut c_void {
    let act = || {
        let later = [&flags::FIXED_MAP_ADDR, &flags::LOCK_OPERATION];
        flags::check(given, &[&flags::READONLY_MAP, &flags::BROADCAST, &flags::IO_MAP_IOSPACE], &later)?;
        to.check(WRONG)?;
        let segment = registry()?.remotes.find(segment)?.object.segment()?;
        if has(given, &flags::BROADCAST) && segment.node() != EVERY_NODE {
            return Err(ILLEGAL_FLAG);
        }
        let window = segment.map(range(offset, size)?, access(given))?;
        enter(to, window)
    };
    answer(error, std::ptr::null_mut(), act)
}

pub(crate) fn unmap(handle: Handle, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        let registry = registry()?;
        let map = registry.maps.find(handle)?;
        // Publishes nothing.
        if map.sequences.load(Ordering::Relaxed) > 0 {
            // Programs unmap first, and remove the sequence after that.
            registry.orphan_sequences(&map);
        }
        drop((registry.maps.remove(handle), map));
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn create_sequence(map: Handle, to: Out<'_, Handle>, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[&flags::FAST_BARRIER], &[])?;
        to.check(WRONG)?;
        let registry = registry()?;
        let map = registry.maps.find(map)?;
        // Publishes nothing.
        map.sequences.fetch_add(1, Ordering::Relaxed);
        let (handle, sequence) = (registry.next(), map.window.sequence());
        registry.sequences.enter(handle, MapSequence::Of(sequence, map));
        to.offer(handle);
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn remove_sequence(handle: Handle, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        registry()?.remove_sequence(handle)
    };
    answer(error, (), act)
}

#[inline]
pub(crate) fn start_sequence(handle: Handle, given: c_uint, error: Code<'_>) -> c_uint {
    let act = || {
        flags::check(given, &[], &[])?;
        registry()?.with_sequence(handle, |of| of.status(Sequence::start) as c_uint)
    };
    answer(error, SequenceStatus::NotRetriable as c_uint, act)
}

#[inline]
pub(crate) fn check_sequence(handle: Handle, given: c_uint, error: Code<'_>) -> c_uint {
    let act = || {
        flags::check(given, &[&flags::NO_FLUSH, &flags::NO_STORE_BARRIER], &[])?;
        registry()?.with_sequence(handle, |of| of.status(Sequence::check) as c_uint)
    };
    answer(error, SequenceStatus::NotRetriable as c_uint, act)
}

/// Runs something on a sequence, of a call that reports no error; without a sequence only orders.
fn with(handle: Handle, order: Ordering, act: impl FnOnce(&Sequence, &Map)) {
    let act = || {
        registry()?.with_sequence(handle, |of| match of {
            MapSequence::Of(sequence, map) => {
                act(sequence, map);
                true
            }
            MapSequence::Unmapped => false,
        })
    };
    if !answer(Out::NULL, false, act) {
        fence(order);
    }
}

/// Orders stores.
pub(crate) fn store_barrier(handle: Handle) {
    with(handle, Ordering::Release, |sequence, _| sequence.store_barrier());
}

/// Waits until all processors can see what was stored, or until it is on its way.
pub(crate) fn flush(handle: Handle) {
    with(handle, Ordering::SeqCst, |sequence, _| sequence.flush());
}

/// Orders loads; of a segment of another host, reads the map.
pub(crate) fn flush_read_buffers(handle: Handle) {
    // A sequence reports what a mirror cannot read.
    with(handle, Ordering::Acquire, |_, map| {
        let _ = map.window.flush_reads();
    });
}

pub(crate) fn cache_sync(map: Handle, address: *mut c_void, len: usize, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[&flags::CACHE_FLUSH, &flags::CACHE_INVALIDATE], &[])?;
        // Programs name no map for memory of this host, whose caches are coherent.
        if map.is_null() {
            fence(Ordering::SeqCst);
            return Ok(());
        }
        let map = registry()?.maps.find(map)?;
        let offset = address.addr().wrapping_sub(map.window.as_ptr().addr());
        if offset.checked_add(len).is_none_or(|end| end > map.window.len()) {
            return Err(Error::OutOfRange.into());
        }
        map.window.flush();
        if has(given, &flags::CACHE_INVALIDATE) {
            map.window.flush_reads()?;
        }
        Ok(())
    };
    answer(error, (), act)
}

/// Copies to a map, or from it. Without a sequence of the program an error is found by one of the
/// call.
///
/// # Safety
///
/// `memory` is NULL or leads to `size` bytes, which the call may read; with the flag for a read it
/// may write them.
pub(crate) unsafe fn copy(
    sequence: Option<Handle>,
    memory: *mut c_void,
    map: Handle,
    (offset, size): (usize, usize),
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        flags::check(given, &[&flags::ERROR_CHECK, &flags::BLOCK_READ], &[])?;
        let registry = registry()?;
        let map = registry.maps.find(map)?;
        if offset.checked_add(size).is_none_or(|end| end > map.window.len()) {
            return Err(Error::OutOfRange.into());
        }
        let is_read = has(given, &flags::BLOCK_READ);
        if !is_read && map.window.access() == Access::Read {
            return Err(Error::Access.into());
        }
        if size > 0 && memory.is_null() {
            return Err(WRONG);
        }
        if is_read {
            map.window.flush_reads()?;
        }
        if size > 0 {
            let far = map.window.as_ptr().wrapping_add(offset);
            let (from, to) = if is_read { (far, memory.cast()) } else { (memory.cast(), far) };
            // SAFETY: the one side is inside of the map, as just checked; the other one is not
            // NULL, so that it is of as many bytes. Both may be shared memory: who uses them
            // meanwhile knows by the contract of SISCI that they change.
            unsafe { std::ptr::copy(from.cast_const(), to, size) };
        }
        fence(Ordering::Release);
        if has(given, &flags::ERROR_CHECK) {
            let status = match sequence {
                Some(sequence) => registry.with_sequence(sequence, |of| of.status(Sequence::check))?,
                None => map.window.sequence().check(),
            };
            if status != SequenceStatus::Ok {
                return Err(TRANSFER_FAILED);
            }
        }
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn transfer(
    (source, from): (Handle, usize),
    (target, to): (Handle, usize),
    size: usize,
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        flags::check(given, &[&flags::ERROR_CHECK, &flags::BLOCK_READ], &[])?;
        let maps = &registry()?.maps;
        let (source, target): (Arc<Map>, Arc<Map>) = (maps.find(source)?, maps.find(target)?);
        source.window.flush_reads()?;
        source.window.transfer(from, &target.window, to, size)?;
        let is_arrived = [&source, &target].map(|map| map.window.sequence().check() == SequenceStatus::Ok);
        if has(given, &flags::ERROR_CHECK) && is_arrived != [true; 2] {
            return Err(TRANSFER_FAILED);
        }
        Ok(())
    };
    answer(error, (), act)
}
