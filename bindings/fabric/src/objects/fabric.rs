//! Fabrics (fi_fabric(3)).

use super::kinds::{Fabric, OfFabric, Queue};
use super::object::{answered, front, operations, table};
use super::refused::refused;
use super::{domain, event};
use cci_fabric::Code;
use cci_fabric_sys::{FI_CLASS_CQ, FI_CLASS_FABRIC, fi_fabric_attr, fi_ops, fi_ops_fabric, fid, fid_fabric};
use cci_mem::arguments::Out;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

static OPERATIONS: fi_ops = operations(close);
static TABLE: fi_ops_fabric = fi_ops_fabric {
    size: size_of::<fi_ops_fabric>(),
    domain: Some(domain::open),
    passive_ep: refused(),
    eq_open: Some(event::open),
    wait_open: refused(),
    trywait: Some(try_wait),
    domain2: Some(domain::open_with),
};

/// # Safety
///
/// As fi_fabric(3) states.
pub(crate) unsafe extern "C" fn open(
    attr: *mut fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        if attr.is_null() {
            return Err(Code::Invalid);
        }
        // SAFETY: the caller's promise.
        let (attr, fabric) = unsafe { (&*attr, Out::new(fabric)) };
        let fabric = fabric.variable(Code::Invalid)?;
        let c = fid_fabric {
            fid: front(FI_CLASS_FABRIC, context, &OPERATIONS),
            ops: table(&TABLE),
            api_version: attr.api_version,
        };
        fabric.put(Fabric::give(c, OfFabric { version: attr.api_version, open: Arc::new(()) }));
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for fabrics alone.
        if Arc::strong_count(&unsafe { Fabric::own(fid) }.open) > 1 {
            return Err(Code::Busy);
        }
        // SAFETY: likewise, and the program lets go of it.
        unsafe { Fabric::take(fid) };
        Ok(())
    })
}

/// # Safety
///
/// As fi_poll(3) states: `fids` leads to `count` objects.
unsafe extern "C" fn try_wait(_: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    answered(|| {
        for at in 0..usize::try_from(count).map_err(|_| Code::Invalid)? {
            // SAFETY: the caller's promise.
            let (fid, class) = unsafe {
                let fid = fids.add(at).read();
                (fid, (*fid).fclass)
            };
            if class != FI_CLASS_CQ {
                // What has no descriptor is nothing to sleep for.
                return Err(Code::NoSystemCall);
            }
            // SAFETY: its class is that of a queue.
            unsafe { Queue::own(fid) }.queue.try_wait()?;
        }
        Ok(())
    })
}
