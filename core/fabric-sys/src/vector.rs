//! Address vectors (fi_av(3)).

use crate::{fi_addr_t, fi_av_type, fid, fid_av_set, fid_xpu_ctx};
use std::ffi::{c_char, c_int, c_void};

structures! {
    /// An address vector.
    struct fid_av {
        fid: fid,
        ops: *mut fi_ops_av,
    }

    /// How one is opened.
    struct fi_av_attr {
        r#type: fi_av_type,
        rx_ctx_bits: c_int,
        count: usize,
        ep_per_node: usize,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }

    /// How a set of addresses is made.
    #[since(1, 9)]
    struct fi_av_set_attr {
        count: usize,
        start_addr: fi_addr_t,
        end_addr: fi_addr_t,
        stride: u64,
        comm_key_size: usize,
        comm_key: *mut u8,
        flags: u64,
    }
}

tables! {
    /// Calls of an address vector.
    struct fi_ops_av {
        insert: fn(*mut fid_av, *const c_void, usize, *mut fi_addr_t, u64, *mut c_void) -> c_int,
        insertsvc: fn(
            *mut fid_av, *const c_char, *const c_char, *mut fi_addr_t, u64, *mut c_void,
        ) -> c_int,
        insertsym: fn(
            *mut fid_av, *const c_char, usize, *const c_char, usize, *mut fi_addr_t, u64,
            *mut c_void,
        ) -> c_int,
        remove: fn(*mut fid_av, *mut fi_addr_t, usize, u64) -> c_int,
        lookup: fn(*mut fid_av, fi_addr_t, *mut c_void, *mut usize) -> c_int,
        straddr: fn(*mut fid_av, *const c_void, *mut c_char, *mut usize) -> *const c_char,
        #[since(1, 9)]
        av_set: fn(*mut fid_av, *mut fi_av_set_attr, *mut *mut fid_av_set, *mut c_void) -> c_int,
        #[since(1, 20)]
        insert_auth_key: fn(*mut fid_av, *const c_void, usize, *mut fi_addr_t, u64) -> c_int,
        #[since(1, 20)]
        lookup_auth_key: fn(*mut fid_av, fi_addr_t, *mut c_void, *mut usize) -> c_int,
        #[since(1, 20)]
        set_user_id: fn(*mut fid_av, fi_addr_t, fi_addr_t, u64) -> c_int,
        #[since(2, 7)]
        lookup2: fn(
            *mut fid_av, fi_addr_t, *mut c_void, *mut usize, u64, *mut fid_xpu_ctx,
        ) -> c_int,
    }
}
