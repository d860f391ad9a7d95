//! What every object begins with, and contexts (fabric(7), fi_control(3)).

use libc::pollfd;
use std::ffi::{c_char, c_int, c_void};

structures! {
    /// The beginning of every object. `context` is the program's.
    struct fid {
        fclass: usize,
        context: *mut c_void,
        ops: *mut fi_ops,
    }

    /// Room of the provider in a context of the program, where it asks for `FI_CONTEXT`.
    struct fi_context {
        internal: [*mut c_void; 4],
    }

    /// The same for `FI_CONTEXT2`.
    struct fi_context2 {
        internal: [*mut c_void; 8],
    }

    /// The argument of `FI_ALIAS`.
    struct fi_alias {
        fid: *mut *mut fid,
        flags: u64,
    }

    /// The argument of `FI_GET_VAL` and `FI_SET_VAL`.
    #[since(1, 12)]
    struct fi_fid_var {
        name: c_int,
        val: *mut c_void,
    }

    /// The argument of `FI_GET_RAW_MR`.
    struct fi_mr_raw_attr {
        flags: u64,
        base_addr: *mut u64,
        raw_key: *mut u8,
        key_size: *mut usize,
    }

    /// The argument of `FI_MAP_RAW_MR`.
    struct fi_mr_map_raw {
        flags: u64,
        base_addr: u64,
        raw_key: *mut u8,
        key_size: usize,
        key: *mut u64,
    }

    /// What `FI_GETWAIT` writes for `FI_WAIT_POLLFD`.
    #[since(1, 10)]
    struct fi_wait_pollfd {
        change_index: u64,
        nfds: usize,
        fd: *mut pollfd,
    }
}

tables! {
    /// What every object can: `fi_close`, `fi_*_bind`, `fi_control` and extensions.
    struct fi_ops {
        close: fn(*mut fid) -> c_int,
        bind: fn(*mut fid, *mut fid, u64) -> c_int,
        control: fn(*mut fid, c_int, *mut c_void) -> c_int,
        ops_open: fn(*mut fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
        #[since(1, 7)]
        tostr: fn(*const fid, *mut c_char, usize) -> c_int,
        #[since(1, 11)]
        ops_set: fn(*mut fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int,
    }
}
