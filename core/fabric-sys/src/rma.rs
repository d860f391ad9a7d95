//! Remote memory (fi_rma(3)).

use crate::{fi_addr_t, fid_ep};
use libc::iovec;
use std::ffi::c_void;

structures! {
    /// A range of remote memory: an address or an offset, bytes.
    struct fi_rma_iov {
        addr: u64,
        len: usize,
        key: u64,
    }

    /// The same, in elements of a datatype.
    struct fi_rma_ioc {
        addr: u64,
        count: usize,
        key: u64,
    }

    /// A read or a write, of `fi_readmsg` and `fi_writemsg`.
    struct fi_msg_rma {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        rma_iov: *const fi_rma_iov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }
}

tables! {
    /// Reads and writes.
    struct fi_ops_rma {
        read: fn(
            *mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, u64, u64, *mut c_void,
        ) -> isize,
        readv: fn(
            *mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, u64, u64, *mut c_void,
        ) -> isize,
        readmsg: fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
        write: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, u64, u64, *mut c_void,
        ) -> isize,
        writev: fn(
            *mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, u64, u64, *mut c_void,
        ) -> isize,
        writemsg: fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
        inject: fn(*mut fid_ep, *const c_void, usize, fi_addr_t, u64, u64) -> isize,
        writedata: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, u64, fi_addr_t, u64, u64,
            *mut c_void,
        ) -> isize,
        injectdata: fn(*mut fid_ep, *const c_void, usize, u64, fi_addr_t, u64, u64) -> isize,
    }
}
