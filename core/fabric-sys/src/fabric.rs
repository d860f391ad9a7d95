//! Fabrics and domains (fi_fabric(3), fi_domain(3)).

use crate::{fi_atomic_attr, fi_av_attr, fi_cntr_attr, fi_collective_attr, fi_cq_attr, fi_eq_attr};
use crate::{fi_collective_op, fi_datatype, fi_info, fi_op, fi_ops_mr, fi_rx_attr, fi_tx_attr};
use crate::{fi_poll_attr, fi_wait_attr, fi_xpu_attr};
use crate::{fid, fid_av, fid_cntr, fid_cq, fid_ep, fid_eq, fid_pep, fid_poll, fid_stx};
use crate::{fid_wait, fid_xpu_ctx};
use std::ffi::{c_int, c_void};

structures! {
    /// A fabric. libfabric writes `api_version`: what the program was built for.
    struct fid_fabric {
        fid: fid,
        ops: *mut fi_ops_fabric,
        api_version: u32,
    }

    /// A domain.
    struct fid_domain {
        fid: fid,
        ops: *mut fi_ops_domain,
        mr: *mut fi_ops_mr,
    }
}

tables! {
    /// Calls of a fabric.
    struct fi_ops_fabric {
        domain: fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_domain, *mut c_void) -> c_int,
        passive_ep: fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_pep, *mut c_void) -> c_int,
        eq_open: fn(*mut fid_fabric, *mut fi_eq_attr, *mut *mut fid_eq, *mut c_void) -> c_int,
        wait_open: fn(*mut fid_fabric, *mut fi_wait_attr, *mut *mut fid_wait) -> c_int,
        trywait: fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int,
        #[since(1, 17)]
        domain2: fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_domain, u64, *mut c_void) -> c_int,
    }

    /// Calls of a domain.
    struct fi_ops_domain {
        av_open: fn(*mut fid_domain, *mut fi_av_attr, *mut *mut fid_av, *mut c_void) -> c_int,
        cq_open: fn(*mut fid_domain, *mut fi_cq_attr, *mut *mut fid_cq, *mut c_void) -> c_int,
        endpoint: fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int,
        scalable_ep: fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int,
        cntr_open: fn(*mut fid_domain, *mut fi_cntr_attr, *mut *mut fid_cntr, *mut c_void) -> c_int,
        poll_open: fn(*mut fid_domain, *mut fi_poll_attr, *mut *mut fid_poll) -> c_int,
        stx_ctx: fn(*mut fid_domain, *mut fi_tx_attr, *mut *mut fid_stx, *mut c_void) -> c_int,
        srx_ctx: fn(*mut fid_domain, *mut fi_rx_attr, *mut *mut fid_ep, *mut c_void) -> c_int,
        query_atomic: fn(*mut fid_domain, fi_datatype, fi_op, *mut fi_atomic_attr, u64) -> c_int,
        #[since(1, 9)]
        query_collective: fn(
            *mut fid_domain, fi_collective_op, *mut fi_collective_attr, u64,
        ) -> c_int,
        #[since(1, 17)]
        endpoint2: fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, u64, *mut c_void) -> c_int,
        #[since(2, 7)]
        xpu_ctx: fn(*mut fid_domain, *mut fi_xpu_attr, *mut *mut fid_xpu_ctx, *mut c_void) -> c_int,
    }
}
