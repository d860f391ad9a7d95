//! Atomic operations (fi_atomic(3)) and collective ones (fi_collective(3)).

use crate::{fi_addr_t, fi_collective_op, fi_datatype, fi_op, fi_rma_ioc, fid_ep};
use std::ffi::{c_int, c_void};

structures! {
    /// A range of local memory, in elements of a datatype.
    struct fi_ioc {
        addr: *mut c_void,
        count: usize,
    }

    /// What `fi_query_atomic` answers.
    struct fi_atomic_attr {
        count: usize,
        size: usize,
    }

    /// An atomic operation, of `fi_atomicmsg` and the like.
    struct fi_msg_atomic {
        msg_iov: *const fi_ioc,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: fi_addr_t,
        rma_iov: *const fi_rma_ioc,
        rma_iov_count: usize,
        datatype: fi_datatype,
        op: fi_op,
        context: *mut c_void,
        data: u64,
    }

    /// What `fi_query_collective` answers.
    #[since(1, 9)]
    struct fi_collective_attr {
        op: fi_op,
        datatype: fi_datatype,
        datatype_attr: fi_atomic_attr,
        max_members: usize,
        mode: u64,
    }

    /// A collective operation.
    #[since(1, 9)]
    struct fi_msg_collective {
        msg_iov: *const fi_ioc,
        desc: *mut *mut c_void,
        iov_count: usize,
        coll_addr: fi_addr_t,
        root_addr: fi_addr_t,
        coll: fi_collective_op,
        datatype: fi_datatype,
        op: fi_op,
        context: *mut c_void,
    }
}

tables! {
    /// Atomic operations.
    struct fi_ops_atomic {
        write: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, u64, u64, fi_datatype,
            fi_op, *mut c_void,
        ) -> isize,
        writev: fn(
            *mut fid_ep, *const fi_ioc, *mut *mut c_void, usize, fi_addr_t, u64, u64,
            fi_datatype, fi_op, *mut c_void,
        ) -> isize,
        writemsg: fn(*mut fid_ep, *const fi_msg_atomic, u64) -> isize,
        inject: fn(
            *mut fid_ep, *const c_void, usize, fi_addr_t, u64, u64, fi_datatype, fi_op,
        ) -> isize,
        readwrite: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            u64, u64, fi_datatype, fi_op, *mut c_void,
        ) -> isize,
        readwritev: fn(
            *mut fid_ep, *const fi_ioc, *mut *mut c_void, usize, *mut fi_ioc, *mut *mut c_void,
            usize, fi_addr_t, u64, u64, fi_datatype, fi_op, *mut c_void,
        ) -> isize,
        readwritemsg: fn(
            *mut fid_ep, *const fi_msg_atomic, *mut fi_ioc, *mut *mut c_void, usize, u64,
        ) -> isize,
        compwrite: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *const c_void, *mut c_void,
            *mut c_void, *mut c_void, fi_addr_t, u64, u64, fi_datatype, fi_op, *mut c_void,
        ) -> isize,
        compwritev: fn(
            *mut fid_ep, *const fi_ioc, *mut *mut c_void, usize, *const fi_ioc, *mut *mut c_void,
            usize, *mut fi_ioc, *mut *mut c_void, usize, fi_addr_t, u64, u64, fi_datatype, fi_op,
            *mut c_void,
        ) -> isize,
        compwritemsg: fn(
            *mut fid_ep, *const fi_msg_atomic, *const fi_ioc, *mut *mut c_void, usize,
            *mut fi_ioc, *mut *mut c_void, usize, u64,
        ) -> isize,
        writevalid: fn(*mut fid_ep, fi_datatype, fi_op, *mut usize) -> c_int,
        readwritevalid: fn(*mut fid_ep, fi_datatype, fi_op, *mut usize) -> c_int,
        compwritevalid: fn(*mut fid_ep, fi_datatype, fi_op, *mut usize) -> c_int,
    }

    /// Collective operations.
    #[since(1, 9)]
    struct fi_ops_collective {
        barrier: fn(*mut fid_ep, fi_addr_t, *mut c_void) -> isize,
        broadcast: fn(
            *mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, fi_addr_t, fi_datatype, u64,
            *mut c_void,
        ) -> isize,
        alltoall: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_datatype, u64, *mut c_void,
        ) -> isize,
        allreduce: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_datatype, fi_op, u64, *mut c_void,
        ) -> isize,
        allgather: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_datatype, u64, *mut c_void,
        ) -> isize,
        reduce_scatter: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_datatype, fi_op, u64, *mut c_void,
        ) -> isize,
        reduce: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_addr_t, fi_datatype, fi_op, u64, *mut c_void,
        ) -> isize,
        scatter: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_addr_t, fi_datatype, u64, *mut c_void,
        ) -> isize,
        gather: fn(
            *mut fid_ep, *const c_void, usize, *mut c_void, *mut c_void, *mut c_void, fi_addr_t,
            fi_addr_t, fi_datatype, u64, *mut c_void,
        ) -> isize,
        msg: fn(
            *mut fid_ep, *const fi_msg_collective, *mut fi_ioc, *mut *mut c_void, usize, u64,
        ) -> isize,
        #[since(1, 17)]
        barrier2: fn(*mut fid_ep, fi_addr_t, u64, *mut c_void) -> isize,
    }
}
