//! What a provider offers and a program asks for (fi_getinfo(3), fi_provider(3)).

use crate::{fi_av_type, fi_context, fi_ep_type, fi_progress, fi_resource_mgmt, fi_threading};
use crate::{fid, fid_domain, fid_fabric, fid_nic, fid_xpu_ctx};
use std::ffi::{c_char, c_int, c_void};

/// `fi_getinfo` of a provider: version, node, service, flags, hints, and where the answer goes.
pub type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int;

/// `fi_fabric` of a provider.
pub type OpenFabric = unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;

structures! {
    /// A provider. Of a library that is loaded its `fi_prov_ini` gives it, and libfabric writes
    /// `context`.
    struct fi_provider {
        version: u32,
        fi_version: u32,
        context: fi_context,
        name: *const c_char,
        getinfo: Option<GetInfo>,
        fabric: Option<OpenFabric>,
        cleanup: Option<unsafe extern "C" fn()>,
    }

    /// An endpoint that is offered, or hints. `fi_freeinfo` frees all that it leads to.
    struct fi_info {
        next: *mut fi_info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: usize,
        dest_addrlen: usize,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut fid,
        tx_attr: *mut fi_tx_attr,
        rx_attr: *mut fi_rx_attr,
        ep_attr: *mut fi_ep_attr,
        domain_attr: *mut fi_domain_attr,
        fabric_attr: *mut fi_fabric_attr,
        #[since(1, 7)]
        nic: *mut fid_nic,
    }

    /// Of the sending side of an endpoint.
    struct fi_tx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: usize,
        size: usize,
        iov_limit: usize,
        rma_iov_limit: usize,
        #[since(1, 9)]
        tclass: u32,
    }

    /// Of the receiving side of an endpoint.
    struct fi_rx_attr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: usize,
        size: usize,
        iov_limit: usize,
    }

    /// Of an endpoint.
    struct fi_ep_attr {
        r#type: fi_ep_type,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
        mem_tag_format: u64,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        auth_key_size: usize,
        auth_key: *mut u8,
        #[since(2, 7)]
        xpu_ctx: *mut fid_xpu_ctx,
    }

    /// Of a domain.
    struct fi_domain_attr {
        domain: *mut fid_domain,
        name: *mut c_char,
        threading: fi_threading,
        control_progress: fi_progress,
        /// `progress` since 2.0.
        data_progress: fi_progress,
        resource_mgmt: fi_resource_mgmt,
        av_type: fi_av_type,
        mr_mode: c_int,
        mr_key_size: usize,
        cq_data_size: usize,
        cq_cnt: usize,
        ep_cnt: usize,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        max_ep_tx_ctx: usize,
        max_ep_rx_ctx: usize,
        max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize,
        cntr_cnt: usize,
        mr_iov_limit: usize,
        caps: u64,
        mode: u64,
        auth_key: *mut u8,
        auth_key_size: usize,
        max_err_data: usize,
        mr_cnt: usize,
        #[since(1, 9)]
        tclass: u32,
        #[since(1, 20)]
        max_ep_auth_key: usize,
        #[since(2, 0)]
        max_group_id: u32,
        #[since(2, 5)]
        max_cntr_value: u64,
        #[since(2, 5)]
        max_err_cntr_value: u64,
        #[since(2, 7)]
        max_xpu_ctx_cnt: usize,
    }

    /// Of a fabric. libfabric writes `prov_name` and `api_version`.
    struct fi_fabric_attr {
        fabric: *mut fid_fabric,
        name: *mut c_char,
        prov_name: *mut c_char,
        prov_version: u32,
        api_version: u32,
    }
}
