//! Completion queues, event queues and counters (fi_cq(3), fi_eq(3), fi_cntr(3)).

use crate::{fi_addr_t, fi_cntr_events, fi_cq_format, fi_cq_wait_cond, fi_info, fi_wait_obj, fid};
use crate::{fid_wait, fid_xpu_cntr, fid_xpu_cq, fid_xpu_ctx};
use std::ffi::{c_char, c_int, c_void};

structures! {
    /// A completion queue.
    struct fid_cq {
        fid: fid,
        ops: *mut fi_ops_cq,
    }

    /// How one is opened.
    struct fi_cq_attr {
        size: usize,
        flags: u64,
        format: fi_cq_format,
        wait_obj: fi_wait_obj,
        signaling_vector: c_int,
        wait_cond: fi_cq_wait_cond,
        wait_set: *mut fid_wait,
        #[since(2, 7)]
        xpu_ctx: *mut fid_xpu_ctx,
    }

    /// An entry of `FI_CQ_FORMAT_CONTEXT`.
    struct fi_cq_entry {
        op_context: *mut c_void,
    }

    /// An entry of `FI_CQ_FORMAT_MSG`.
    struct fi_cq_msg_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
    }

    /// An entry of `FI_CQ_FORMAT_DATA`.
    struct fi_cq_data_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
    }

    /// An entry of `FI_CQ_FORMAT_TAGGED`.
    struct fi_cq_tagged_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
    }

    /// A failure.
    struct fi_cq_err_entry {
        op_context: *mut c_void,
        flags: u64,
        len: usize,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: usize,
        err: c_int,
        prov_errno: c_int,
        /// From API version 1.5 on it may lead to memory of the program, `err_data_size` bytes.
        err_data: *mut c_void,
        err_data_size: usize,
        #[since(1, 20)]
        src_addr: fi_addr_t,
    }

    /// An event queue.
    struct fid_eq {
        fid: fid,
        ops: *mut fi_ops_eq,
    }

    /// How one is opened.
    struct fi_eq_attr {
        size: usize,
        flags: u64,
        wait_obj: fi_wait_obj,
        signaling_vector: c_int,
        wait_set: *mut fid_wait,
    }

    /// An event that something has ended.
    struct fi_eq_entry {
        fid: *mut fid,
        context: *mut c_void,
        data: u64,
    }

    /// An event of a connection; data of the peer follow.
    struct fi_eq_cm_entry {
        fid: *mut fid,
        info: *mut fi_info,
        data: [u8; 0],
    }

    /// A failure.
    struct fi_eq_err_entry {
        fid: *mut fid,
        context: *mut c_void,
        data: u64,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: usize,
    }

    /// A counter.
    struct fid_cntr {
        fid: fid,
        ops: *mut fi_ops_cntr,
    }

    /// How one is opened.
    struct fi_cntr_attr {
        events: fi_cntr_events,
        wait_obj: fi_wait_obj,
        wait_set: *mut fid_wait,
        flags: u64,
        #[since(2, 7)]
        xpu_ctx: *mut fid_xpu_ctx,
    }

    /// How a wait set is opened.
    struct fi_wait_attr {
        wait_obj: fi_wait_obj,
        flags: u64,
    }

    /// How a poll set is opened.
    struct fi_poll_attr {
        flags: u64,
    }
}

tables! {
    /// Calls of a completion queue.
    struct fi_ops_cq {
        read: fn(*mut fid_cq, *mut c_void, usize) -> isize,
        readfrom: fn(*mut fid_cq, *mut c_void, usize, *mut fi_addr_t) -> isize,
        readerr: fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize,
        sread: fn(*mut fid_cq, *mut c_void, usize, *const c_void, c_int) -> isize,
        sreadfrom: fn(
            *mut fid_cq, *mut c_void, usize, *mut fi_addr_t, *const c_void, c_int,
        ) -> isize,
        signal: fn(*mut fid_cq) -> c_int,
        strerror: fn(*mut fid_cq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
        #[since(2, 7)]
        export_xpu: fn(*mut fid_cq, u64, *mut fid_xpu_cq) -> c_int,
    }

    /// Calls of an event queue.
    struct fi_ops_eq {
        read: fn(*mut fid_eq, *mut u32, *mut c_void, usize, u64) -> isize,
        readerr: fn(*mut fid_eq, *mut fi_eq_err_entry, u64) -> isize,
        write: fn(*mut fid_eq, u32, *const c_void, usize, u64) -> isize,
        sread: fn(*mut fid_eq, *mut u32, *mut c_void, usize, c_int, u64) -> isize,
        strerror: fn(*mut fid_eq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
    }

    /// Calls of a counter.
    struct fi_ops_cntr {
        read: fn(*mut fid_cntr) -> u64,
        readerr: fn(*mut fid_cntr) -> u64,
        add: fn(*mut fid_cntr, u64) -> c_int,
        set: fn(*mut fid_cntr, u64) -> c_int,
        wait: fn(*mut fid_cntr, u64, c_int) -> c_int,
        adderr: fn(*mut fid_cntr, u64) -> c_int,
        seterr: fn(*mut fid_cntr, u64) -> c_int,
        #[since(2, 7)]
        export_xpu: fn(*mut fid_cntr, u64, *mut fid_xpu_cntr) -> c_int,
    }
}
