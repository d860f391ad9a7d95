//! Counters (fi_cntr(3)).

use super::arguments::milliseconds;
use super::kinds::{Counter, Domain, OfDomain};
use super::object::{answered, front, operations, table};
use super::refused::refused;
use cci_fabric::Code;
use cci_fabric_sys::*;
use cci_mem::arguments::Out;
use cci_mem::boundary::caught;
use std::ffi::{c_int, c_void};

static OPERATIONS: fi_ops = operations(close);
static TABLE: fi_ops_cntr = fi_ops_cntr {
    size: size_of::<fi_ops_cntr>(),
    read: Some(read),
    readerr: Some(read_failed),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    adderr: Some(add_failed),
    seterr: Some(set_failed),
    export_xpu: refused(),
};

/// # Safety
///
/// As fi_cntr(3) states.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    counter: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let (domain, counter) = unsafe { (Domain::own(domain) as &OfDomain, Out::new(counter)) };
        let counter = counter.variable(Code::Invalid)?;
        // SAFETY: the caller's promise.
        let asked = unsafe { crate::hints::read(attr, domain.version) };
        let is_offered = matches!(asked.wait_obj, FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD);
        if asked.events != FI_CNTR_EVENTS_COMP || !is_offered || asked.flags != 0 {
            return Err(Code::NoSystemCall);
        }
        let c = fid_cntr { fid: front(FI_CLASS_CNTR, context, &OPERATIONS), ops: table(&TABLE) };
        counter.put(Counter::give(c, cci_fabric::Counter::open(&domain.domain)));
        Ok(())
    })
}

/// # Safety
///
/// libfabric calls it for counters alone.
unsafe fn own<'a>(counter: *mut fid_cntr) -> &'a cci_fabric::Counter {
    // SAFETY: the caller's promise.
    unsafe { Counter::own(counter) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for counters alone.
        if unsafe { own(fid.cast()) }.is_bound() {
            return Err(Code::Busy);
        }
        // SAFETY: likewise, and the program lets go of it.
        unsafe { Counter::take(fid) };
        Ok(())
    })
}

unsafe extern "C" fn read(counter: *mut fid_cntr) -> u64 {
    // SAFETY: libfabric calls it for counters alone.
    caught(|| unsafe { own(counter) }.read(), || 0)
}

unsafe extern "C" fn read_failed(counter: *mut fid_cntr) -> u64 {
    // SAFETY: libfabric calls it for counters alone.
    caught(|| unsafe { own(counter) }.read_failed(), || 0)
}

unsafe extern "C" fn add(counter: *mut fid_cntr, more: u64) -> c_int {
    // SAFETY: libfabric calls it for counters alone.
    changed(|| unsafe { own(counter) }.add(more))
}

unsafe extern "C" fn set(counter: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: libfabric calls it for counters alone.
    changed(|| unsafe { own(counter) }.set(value))
}

unsafe extern "C" fn add_failed(counter: *mut fid_cntr, more: u64) -> c_int {
    // SAFETY: libfabric calls it for counters alone.
    changed(|| unsafe { own(counter) }.add_failed(more))
}

unsafe extern "C" fn set_failed(counter: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: libfabric calls it for counters alone.
    changed(|| unsafe { own(counter) }.set_failed(value))
}

fn changed(act: impl FnOnce()) -> c_int {
    answered(|| {
        act();
        Ok(())
    })
}

unsafe extern "C" fn wait(counter: *mut fid_cntr, threshold: u64, limit: c_int) -> c_int {
    // SAFETY: libfabric calls it for counters alone.
    answered(|| unsafe { own(counter) }.wait(threshold, milliseconds(limit)))
}
