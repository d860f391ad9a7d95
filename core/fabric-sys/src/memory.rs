//! Memory regions (fi_mr(3)).

use crate::{fi_addr_t, fi_hmem_iface, fid, fid_av};
use libc::iovec;
use std::ffi::{c_int, c_void};

/// The number of a device, of the kind that `fi_mr_attr.iface` names.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "named by the kinds of devices")]
pub union fi_mr_device {
    pub reserved: u64,
    pub cuda: c_int,
    pub ze: c_int,
    pub neuron: c_int,
    pub synapseai: c_int,
    pub rocr: c_int,
}

structures! {
    /// A memory region.
    struct fid_mr {
        fid: fid,
        mem_desc: *mut c_void,
        key: u64,
    }

    /// What is registered, and how.
    struct fi_mr_attr {
        /// Leads to `fi_mr_dmabuf` under `FI_MR_DMABUF`.
        mr_iov: *const iovec,
        iov_count: usize,
        access: u64,
        offset: u64,
        requested_key: u64,
        context: *mut c_void,
        auth_key_size: usize,
        auth_key: *mut u8,
        #[since(1, 9)]
        iface: fi_hmem_iface,
        #[since(1, 9)]
        device: fi_mr_device,
        #[since(1, 19)]
        hmem_data: *mut c_void,
        #[since(1, 22)]
        page_size: usize,
        #[since(2, 0)]
        base_mr: *const fid_mr,
        #[since(2, 0)]
        sub_mr_cnt: usize,
    }

    /// Memory of a device, as a descriptor of dma-buf.
    #[since(1, 20)]
    struct fi_mr_dmabuf {
        fd: c_int,
        offset: u64,
        len: usize,
        base_addr: *mut c_void,
    }

    /// An authorization key of an address.
    #[since(1, 20)]
    struct fi_mr_auth_key {
        av: *mut fid_av,
        src_addr: fi_addr_t,
    }
}

tables! {
    /// Calls that make regions.
    struct fi_ops_mr {
        reg: fn(
            *mut fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut fid_mr, *mut c_void,
        ) -> c_int,
        regv: fn(
            *mut fid, *const iovec, usize, u64, u64, u64, u64, *mut *mut fid_mr, *mut c_void,
        ) -> c_int,
        regattr: fn(*mut fid, *const fi_mr_attr, u64, *mut *mut fid_mr) -> c_int,
    }
}
