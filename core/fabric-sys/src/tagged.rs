//! Tagged messages (fi_tagged(3)).

use crate::{fi_addr_t, fid_ep};
use libc::iovec;
use std::ffi::c_void;

structures! {
    /// A tagged message, of `fi_tsendmsg` and `fi_trecvmsg`.
    struct fi_msg_tagged {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        tag: u64,
        ignore: u64,
        context: *mut c_void,
        data: u64,
    }
}

tables! {
    /// Tagged messages.
    struct fi_ops_tagged {
        recv: fn(
            *mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, u64, u64, *mut c_void,
        ) -> isize,
        recvv: fn(
            *mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, u64, u64, *mut c_void,
        ) -> isize,
        recvmsg: fn(*mut fid_ep, *const fi_msg_tagged, u64) -> isize,
        send: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, u64, *mut c_void,
        ) -> isize,
        sendv: fn(
            *mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, u64, *mut c_void,
        ) -> isize,
        sendmsg: fn(*mut fid_ep, *const fi_msg_tagged, u64) -> isize,
        inject: fn(*mut fid_ep, *const c_void, usize, fi_addr_t, u64) -> isize,
        senddata: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, u64, fi_addr_t, u64, *mut c_void,
        ) -> isize,
        injectdata: fn(*mut fid_ep, *const c_void, usize, u64, fi_addr_t, u64) -> isize,
    }
}
