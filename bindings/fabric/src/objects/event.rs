//! Queues of events (fi_eq(3)): insertions into address vectors, and what the program writes.

use super::arguments::milliseconds;
use super::kinds::{Event, EventQueue, Events, Fabric, OfFabric, Shared};
use super::object::{answered, counted, front, operations, table};
use cci_fabric::Code;
use cci_fabric_sys::*;
use cci_mem::arguments::Out;
use cci_mem::mutex::lock;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

static OPERATIONS: fi_ops = operations(close);
static TABLE: fi_ops_eq = fi_ops_eq {
    size: size_of::<fi_ops_eq>(),
    read: Some(read),
    readerr: Some(read_failed),
    write: Some(write),
    sread: Some(wait),
    strerror: Some(text),
};

/// # Safety
///
/// As fi_eq(3) states.
pub(super) unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    attr: *mut fi_eq_attr,
    eq: *mut *mut fid_eq,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let (own, eq) = unsafe { (Fabric::own(fabric) as &OfFabric, Out::new(eq)) };
        let eq = eq.variable(Code::Invalid)?;
        // SAFETY: the caller's promise; the structure has never grown.
        let wait = if attr.is_null() { FI_WAIT_UNSPEC } else { unsafe { (*attr).wait_obj } };
        if !matches!(wait, FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD) {
            return Err(Code::NoSystemCall);
        }
        let events = Mutex::new(VecDeque::new());
        let (comes, waits) = (Condvar::new(), wait != FI_WAIT_NONE);
        let queue = EventQueue(Arc::new(Shared { events, comes, waits, _open: Arc::clone(&own.open) }));
        let c = fid_eq { fid: front(FI_CLASS_EQ, context, &OPERATIONS), ops: table(&TABLE) };
        eq.put(Events::give(c, queue));
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for queues of events alone.
        let queue: &EventQueue = unsafe { Events::own(fid) };
        if Arc::strong_count(&queue.0) > 1 {
            return Err(Code::Busy);
        }
        // SAFETY: likewise, and the program lets go of it.
        unsafe { Events::take(fid) };
        Ok(())
    })
}

/// # Safety
///
/// As fi_eq_read(3) states: `kind` leads to a number, `to` to `len` bytes.
unsafe extern "C" fn read(eq: *mut fid_eq, kind: *mut u32, to: *mut c_void, len: usize, flags: u64) -> isize {
    // SAFETY: the caller's promise.
    counted(|| unsafe { take(eq, kind, to, len, flags, Some(Instant::now())) })
}

/// # Safety
///
/// As fi_eq_sread(3) states.
unsafe extern "C" fn wait(
    eq: *mut fid_eq,
    kind: *mut u32,
    to: *mut c_void,
    len: usize,
    limit: c_int,
    flags: u64,
) -> isize {
    counted(|| {
        // SAFETY: the caller's promise.
        if !unsafe { Events::own(eq) as &EventQueue }.0.waits {
            return Err(Code::NoSystemCall);
        }
        let until = milliseconds(limit).and_then(|limit| Instant::now().checked_add(limit));
        // SAFETY: the caller's promise.
        unsafe { take(eq, kind, to, len, flags, until) }
    })
}

/// # Safety
///
/// As [`read`].
unsafe fn take(
    eq: *mut fid_eq,
    kind: *mut u32,
    to: *mut c_void,
    len: usize,
    flags: u64,
    until: Option<Instant>,
) -> Result<usize, Code> {
    // SAFETY: the caller's promise.
    let shared = &unsafe { Events::own(eq) as &EventQueue }.0;
    let size = size_of::<fi_eq_entry>();
    if len < size {
        return Err(Code::TooSmall);
    }
    let mut events = lock(&shared.events);
    let event = loop {
        if let Some(event) = events.front().copied() {
            break event;
        }
        events = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(left) if left.is_zero() => return Err(Code::Again),
            Some(left) => shared.comes.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0,
            None => shared.comes.wait(events).unwrap_or_else(PoisonError::into_inner),
        };
    };
    if flags & FI_PEEK == 0 {
        events.pop_front();
    }
    // SAFETY: the caller's promise.
    unsafe {
        kind.write(event.kind);
        to.cast::<fi_eq_entry>().write_unaligned(event.entry);
    }
    Ok(size)
}

/// # Safety
///
/// As fi_eq_write(3) states: `from` leads to `len` bytes.
unsafe extern "C" fn write(eq: *mut fid_eq, kind: u32, from: *const c_void, len: usize, _: u64) -> isize {
    counted(|| {
        let size = size_of::<fi_eq_entry>();
        if len != size || from.is_null() {
            return Err(Code::Invalid);
        }
        // SAFETY: the caller's promise.
        let (queue, entry): (&EventQueue, _) =
            unsafe { (Events::own(eq), from.cast::<fi_eq_entry>().read_unaligned()) };
        queue.push(Event { kind, entry });
        Ok(size)
    })
}

/// Nothing of it fails later.
unsafe extern "C" fn read_failed(_: *mut fid_eq, _: *mut fi_eq_err_entry, _: u64) -> isize {
    -(FI_EAGAIN as isize)
}

unsafe extern "C" fn text(_: *mut fid_eq, _: c_int, _: *const c_void, _: *mut c_char, _: usize) -> *const c_char {
    c"nothing fails here".as_ptr()
}
