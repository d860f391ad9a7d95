//! Endpoints and messages (fi_endpoint(3), fi_cm(3), fi_msg(3)).

use crate::{fi_addr_t, fi_ops_atomic, fi_ops_collective, fi_ops_rma, fi_ops_tagged, fi_rx_attr};
use crate::{fi_tx_attr, fid, fid_mc, fid_pep, fid_xpu_ep};
use libc::iovec;
use std::ffi::{c_int, c_void};

structures! {
    /// An endpoint.
    struct fid_ep {
        fid: fid,
        ops: *mut fi_ops_ep,
        cm: *mut fi_ops_cm,
        msg: *mut fi_ops_msg,
        rma: *mut fi_ops_rma,
        tagged: *mut fi_ops_tagged,
        atomic: *mut fi_ops_atomic,
        #[since(1, 9)]
        collective: *mut fi_ops_collective,
    }

    /// A message, of `fi_sendmsg` and `fi_recvmsg`.
    struct fi_msg {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        context: *mut c_void,
        data: u64,
    }
}

tables! {
    /// What every endpoint can.
    struct fi_ops_ep {
        cancel: fn(*mut fid, *mut c_void) -> isize,
        getopt: fn(*mut fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
        setopt: fn(*mut fid, c_int, c_int, *const c_void, usize) -> c_int,
        tx_ctx: fn(*mut fid_ep, c_int, *mut fi_tx_attr, *mut *mut fid_ep, *mut c_void) -> c_int,
        rx_ctx: fn(*mut fid_ep, c_int, *mut fi_rx_attr, *mut *mut fid_ep, *mut c_void) -> c_int,
        rx_size_left: fn(*mut fid_ep) -> isize,
        tx_size_left: fn(*mut fid_ep) -> isize,
        #[since(2, 7)]
        export_xpu: fn(*mut fid_ep, u64, *mut fid_xpu_ep) -> c_int,
    }

    /// Names and connections.
    struct fi_ops_cm {
        setname: fn(*mut fid, *mut c_void, usize) -> c_int,
        getname: fn(*mut fid, *mut c_void, *mut usize) -> c_int,
        getpeer: fn(*mut fid_ep, *mut c_void, *mut usize) -> c_int,
        connect: fn(*mut fid_ep, *const c_void, *const c_void, usize) -> c_int,
        listen: fn(*mut fid_pep) -> c_int,
        accept: fn(*mut fid_ep, *const c_void, usize) -> c_int,
        reject: fn(*mut fid_pep, *mut fid, *const c_void, usize) -> c_int,
        shutdown: fn(*mut fid_ep, u64) -> c_int,
        join: fn(*mut fid_ep, *const c_void, u64, *mut *mut fid_mc, *mut c_void) -> c_int,
    }

    /// Messages.
    struct fi_ops_msg {
        recv: fn(*mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> isize,
        recvv: fn(
            *mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, *mut c_void,
        ) -> isize,
        recvmsg: fn(*mut fid_ep, *const fi_msg, u64) -> isize,
        send: fn(*mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> isize,
        sendv: fn(
            *mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, *mut c_void,
        ) -> isize,
        sendmsg: fn(*mut fid_ep, *const fi_msg, u64) -> isize,
        inject: fn(*mut fid_ep, *const c_void, usize, fi_addr_t) -> isize,
        senddata: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, u64, fi_addr_t, *mut c_void,
        ) -> isize,
        injectdata: fn(*mut fid_ep, *const c_void, usize, u64, fi_addr_t) -> isize,
    }
}
