//! Domains (fi_domain(3)).

use super::kinds::{Domain, Fabric, OfDomain};
use super::object::{answered, front, operations, table};
use super::refused::refused;
use super::{address, counter, endpoint, memory, queue};
use crate::hints::Hints;
use cci_fabric::Code;
use cci_fabric_sys::{FI_CLASS_DOMAIN, FI_PROGRESS_AUTO, fi_info, fi_ops, fi_ops_domain, fid, fid_domain, fid_fabric};
use cci_mem::arguments::Out;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

static OPERATIONS: fi_ops = operations(close);
static TABLE: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open: Some(address::open),
    cq_open: Some(queue::open),
    endpoint: Some(endpoint::open),
    scalable_ep: refused(),
    cntr_open: Some(counter::open),
    poll_open: refused(),
    stx_ctx: refused(),
    srx_ctx: refused(),
    query_atomic: refused(),
    query_collective: refused(),
    endpoint2: Some(endpoint::open_with),
    xpu_ctx: refused(),
};

/// # Safety
///
/// As fi_domain(3) states.
pub(super) unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_with(fabric, info, domain, 0, context) }
}

/// # Safety
///
/// As fi_domain(3) states.
pub(super) unsafe extern "C" fn open_with(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        if flags != 0 {
            return Err(Code::NoSystemCall);
        }
        // SAFETY: the caller's promise.
        let (own, domain) = unsafe { (Fabric::own(fabric), Out::new(domain)) };
        let domain = domain.variable(Code::Invalid)?;
        // SAFETY: likewise; it is of the version that the fabric was opened with.
        let asked = unsafe { Hints::read(info, own.version) }.unwrap_or_default().domain;
        let c = fid_domain {
            fid: front(FI_CLASS_DOMAIN, context, &OPERATIONS),
            ops: table(&TABLE),
            mr: table(&memory::TABLE),
        };
        let opened = crate::job::domain()?;
        if [asked.data_progress, asked.control_progress].contains(&FI_PROGRESS_AUTO) {
            opened.drive()?;
        }
        domain.put(Domain::give(c, OfDomain { domain: opened, version: own.version, _open: Arc::clone(&own.open) }));
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for domains alone.
        if unsafe { Domain::own(fid) }.domain.is_busy() {
            return Err(Code::Busy);
        }
        // SAFETY: likewise, and the program lets go of it.
        unsafe { Domain::take(fid) };
        Ok(())
    })
}
