//! Hints of each kind and their answers, in programs of several versions.

use crate::library::{Infos, getinfo};
use crate::memory::Hints;
use cci_fabric_sys::*;
use std::ffi::c_int;
use std::ptr::null;

const VERSIONS: [u32; 6] =
    [fi_version(1, 5), fi_version(1, 11), fi_version(1, 17), fi_version(2, 0), fi_version(2, 5), NEWEST];

/// A change of the hints, which are structures of version 1.5 at least, and the code of the answer.
type Case = (&'static str, unsafe fn(&fi_info), c_int);

/// `$hints.$path = $value`.
macro_rules! cases {
    ($($attributes:ident . $field:ident = $value:expr => $code:expr;)*) => {
        &[$((
            stringify!($attributes.$field = $value),
            |hints: &fi_info| {
                // SAFETY: a field that every version has.
                unsafe { (&raw mut (*hints.$attributes).$field).write($value) }
            },
            $code,
        )),*]
    };
}

const REFUSED: c_int = FI_ENODATA;

const CASES: &[Case] = cases! {
    tx_attr.caps = FI_MSG | FI_SEND => 0;
    tx_attr.caps = FI_ATOMIC => REFUSED;
    tx_attr.mode = u64::MAX => 0;
    tx_attr.op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE => 0;
    tx_attr.op_flags = FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE => 0;
    tx_attr.op_flags = FI_MATCH_COMPLETE => REFUSED;
    tx_attr.op_flags = FI_COMMIT_COMPLETE => REFUSED;
    tx_attr.msg_order = FI_ORDER_SAS => 0;
    tx_attr.msg_order = FI_ORDER_SAS | FI_ORDER_WAW => REFUSED;
    tx_attr.comp_order = FI_ORDER_STRICT => REFUSED;
    tx_attr.inject_size = 32 => 0;
    tx_attr.inject_size = 33 => REFUSED;
    tx_attr.size = 1_000_000 => 0;
    tx_attr.iov_limit = 4 => 0;
    tx_attr.iov_limit = 5 => REFUSED;
    tx_attr.rma_iov_limit = 4 => 0;
    tx_attr.rma_iov_limit = 5 => REFUSED;
    rx_attr.caps = FI_MSG | FI_RECV | FI_MULTI_RECV => 0;
    rx_attr.caps = FI_VARIABLE_MESSAGES => REFUSED;
    rx_attr.op_flags = FI_MULTI_RECV => 0;
    rx_attr.op_flags = FI_PEEK => REFUSED;
    rx_attr.msg_order = FI_ORDER_SAS => 0;
    rx_attr.msg_order = FI_ORDER_RAS => REFUSED;
    rx_attr.comp_order = FI_ORDER_DATA => REFUSED;
    rx_attr.total_buffered_recv = 1 << 30 => 0;
    rx_attr.total_buffered_recv = (1 << 30) + 1 => REFUSED;
    rx_attr.iov_limit = 5 => REFUSED;
    ep_attr.r#type = FI_EP_RDM => 0;
    ep_attr.r#type = FI_EP_MSG => REFUSED;
    ep_attr.r#type = FI_EP_DGRAM => REFUSED;
    ep_attr.protocol = FI_PROTO_SHM => REFUSED;
    ep_attr.protocol_version = 1 => 0;
    ep_attr.protocol_version = 2 => REFUSED;
    ep_attr.max_msg_size = (1 << 63) - 1 => 0;
    ep_attr.max_msg_size = 1 << 63 => REFUSED;
    ep_attr.msg_prefix_size = 8 => REFUSED;
    ep_attr.max_order_raw_size = 1 => REFUSED;
    ep_attr.max_order_war_size = 1 => REFUSED;
    ep_attr.max_order_waw_size = 1 => REFUSED;
    ep_attr.mem_tag_format = u64::MAX => 0;
    ep_attr.tx_ctx_cnt = 1 => 0;
    ep_attr.tx_ctx_cnt = 2 => REFUSED;
    ep_attr.tx_ctx_cnt = FI_SHARED_CONTEXT => REFUSED;
    ep_attr.rx_ctx_cnt = FI_SHARED_CONTEXT => REFUSED;
    ep_attr.auth_key_size = 8 => REFUSED;
    domain_attr.name = c"cci".as_ptr().cast_mut() => 0;
    domain_attr.name = c"eth0".as_ptr().cast_mut() => REFUSED;
    domain_attr.threading = FI_THREAD_ENDPOINT => 0;
    domain_attr.threading = FI_THREAD_ENDPOINT + 1 => REFUSED;
    domain_attr.control_progress = FI_PROGRESS_CONTROL_UNIFIED + 1 => REFUSED;
    domain_attr.data_progress = FI_PROGRESS_CONTROL_UNIFIED + 1 => REFUSED;
    domain_attr.resource_mgmt = FI_RM_DISABLED => 0;
    domain_attr.resource_mgmt = FI_RM_ENABLED + 1 => REFUSED;
    domain_attr.av_type = FI_AV_MAP => 0;
    domain_attr.av_type = FI_AV_TABLE + 1 => REFUSED;
    domain_attr.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY => 0;
    domain_attr.mr_mode = FI_MR_SCALABLE => 0;
    domain_attr.mr_mode = FI_MR_BASIC => REFUSED;
    domain_attr.mr_key_size = 8 => 0;
    domain_attr.mr_key_size = 16 => REFUSED;
    domain_attr.cq_data_size = 8 => 0;
    domain_attr.cq_data_size = 16 => REFUSED;
    domain_attr.ep_cnt = 1_000_000 => 0;
    domain_attr.max_ep_tx_ctx = 1 => 0;
    domain_attr.max_ep_tx_ctx = 2 => REFUSED;
    domain_attr.max_ep_rx_ctx = 2 => REFUSED;
    domain_attr.max_ep_stx_ctx = 1 => REFUSED;
    domain_attr.max_ep_srx_ctx = 1 => REFUSED;
    domain_attr.mr_iov_limit = 2 => REFUSED;
    domain_attr.caps = FI_LOCAL_COMM | FI_REMOTE_COMM => 0;
    domain_attr.caps = FI_SHARED_AV => REFUSED;
    domain_attr.mode = u64::MAX => 0;
    domain_attr.auth_key_size = 8 => REFUSED;
    fabric_attr.name = c"cci".as_ptr().cast_mut() => 0;
    fabric_attr.name = c"192.0.2.0/24".as_ptr().cast_mut() => REFUSED;
};

/// A bit that older headers call `FI_VARIABLE_MSG`.
const FI_VARIABLE_MESSAGES: u64 = 1 << 48;

fn ask(hints: &Hints) -> Result<Infos, c_int> {
    getinfo(hints.version, (None, None), 0, hints.info)
}

/// The answer to capabilities.
fn caps_for(caps: u64) -> Result<u64, c_int> {
    let hints = Hints::new(fi_version(1, 17));
    // SAFETY: hints of this test, and an answer.
    unsafe {
        (&raw mut (*hints.info).caps).write(caps);
        ask(&hints).map(|infos| (*infos.0).caps)
    }
}

#[test]
fn each_hint_is_met_or_refused_in_each_version() {
    for version in VERSIONS {
        for (what, change, code) in CASES {
            let hints = Hints::new(version);
            // SAFETY: hints that nobody else has; fields at the end of `fi_info` are not touched.
            let attributes = unsafe {
                fi_info {
                    tx_attr: (*hints.info).tx_attr,
                    rx_attr: (*hints.info).rx_attr,
                    ep_attr: (*hints.info).ep_attr,
                    domain_attr: (*hints.info).domain_attr,
                    fabric_attr: (*hints.info).fabric_attr,
                    ..std::mem::zeroed()
                }
            };
            // SAFETY: as above.
            unsafe { change(&attributes) };
            assert_eq!(ask(&hints).err().unwrap_or(0), *code, "{what}, version {version:#x}");
        }
    }
}

/// Structures before 1.9 have none.
#[test]
fn a_class_of_traffic_is_a_wish() {
    for (class, code) in [(FI_TC_LOW_LATENCY, 0), (FI_TC_BULK_DATA, 0), (FI_TC_NETWORK_CTRL + 1, FI_ENODATA)] {
        let hints = Hints::new(NEWEST);
        // SAFETY: hints of this test, and an answer.
        let answer = unsafe {
            ((*(*hints.info).tx_attr).tclass, (*(*hints.info).domain_attr).tclass) = (class, class);
            ask(&hints).map(|infos| ((*(*infos.0).tx_attr).tclass, (*(*infos.0).domain_attr).tclass))
        };
        assert_eq!(answer, if code == 0 { Ok((class, class)) } else { Err(code) });
    }
}

#[test]
fn hints_end_with_the_structures_of_their_version() {
    for version in VERSIONS {
        let hints = Hints::new(version);
        let infos = ask(&hints).expect("hints that ask for nothing");
        // SAFETY: an answer.
        let (info, domain) = unsafe { (&*infos.0, &*(*infos.0).domain_attr) };
        assert_eq!((info.caps & FI_MSG, info.mode, domain.mr_mode), (FI_MSG, 0, 0));
        assert_eq!((domain.threading, domain.av_type), (FI_THREAD_SAFE, FI_AV_TABLE));
    }
}

#[test]
fn an_answer_is_met_when_it_is_asked_for() {
    for version in VERSIONS {
        let first = getinfo(version, (None, None), 0, null()).expect("all that there is");
        let second = getinfo(version, (None, None), 0, first.0).expect("its own answer");
        // SAFETY: two answers.
        let (first, second) = unsafe { (&*first.0, &*second.0) };
        assert_eq!((first.caps, first.addr_format), (second.caps, second.addr_format));
        assert!(first.addr_format >> 31 == 1 && first.src_addr.is_null() && first.dest_addr.is_null());
    }
}

#[test]
fn values_that_need_nothing_of_the_provider_are_answered_as_asked() {
    for threading in FI_THREAD_SAFE..=FI_THREAD_ENDPOINT {
        for (av, progress) in [(FI_AV_MAP, FI_PROGRESS_MANUAL), (FI_AV_TABLE, FI_PROGRESS_AUTO)] {
            let hints = Hints::new(NEWEST);
            // SAFETY: hints of this test, and an answer.
            let answer = unsafe {
                let domain = (*hints.info).domain_attr;
                ((*domain).threading, (*domain).av_type) = (threading, av);
                ((*domain).data_progress, (*domain).control_progress) = (progress, progress);
                let infos = ask(&hints).expect("an answer");
                *(*infos.0).domain_attr
            };
            assert_eq!((answer.threading, answer.av_type), (threading, av));
            assert_eq!((answer.data_progress, answer.control_progress), (progress, progress));
            assert_eq!(answer.resource_mgmt, FI_RM_ENABLED);
        }
    }
}

#[test]
fn capabilities_are_those_that_are_asked_for_with_their_sides() {
    let (reach, sides) = (FI_LOCAL_COMM | FI_REMOTE_COMM, FI_SEND | FI_RECV);
    assert_eq!(caps_for(FI_MSG), Ok(FI_MSG | sides | FI_MULTI_RECV | reach));
    assert_eq!(caps_for(FI_TAGGED | FI_SEND), Ok(FI_TAGGED | FI_SEND | reach));
    let all_of_rma = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    assert_eq!(caps_for(FI_RMA), Ok(FI_RMA | all_of_rma | reach));
    assert_eq!(caps_for(FI_RMA | FI_WRITE), Ok(FI_RMA | FI_WRITE | reach));
    let directed = FI_MSG | FI_DIRECTED_RECV | FI_SOURCE;
    assert_eq!(caps_for(directed), Ok(directed | sides | FI_MULTI_RECV | reach));
    assert_eq!(caps_for(0).map(|caps| caps & directed), Ok(directed));
    let infos = getinfo(NEWEST, (None, None), 0, null()).expect("an answer");
    // SAFETY: an answer.
    let (sending, receiving) = unsafe { ((*(*infos.0).tx_attr).caps, (*(*infos.0).rx_attr).caps) };
    assert_eq!((sending | receiving) & reach, 0, "where peers are is no capability of a side");
    for missing in
        [FI_ATOMIC, FI_COLLECTIVE, FI_HMEM, FI_FENCE, FI_TRIGGER, FI_NAMED_RX_CTX, FI_RMA_EVENT, FI_MULTICAST]
    {
        assert_eq!(caps_for(FI_MSG | missing), Err(FI_ENODATA), "{missing:#x}");
    }
}

#[test]
fn what_is_of_other_layers_or_other_addresses_is_refused() {
    let asked = |node, service, flags| getinfo(NEWEST, (node, service), flags, null()).err().unwrap_or(0);
    assert_eq!(asked(None, None, 1 << 59), FI_ENODATA, "the core alone");
    assert_eq!(asked(None, None, FI_SOURCE), FI_ENODATA, "a source without a name");
    assert_eq!(asked(None, None, FI_PROV_ATTR_ONLY), 0);
    let hints = Hints::new(NEWEST);
    // SAFETY: hints of this test.
    unsafe { (*hints.info).addr_format = FI_SOCKADDR_IN };
    assert_eq!(ask(&hints).err(), Some(FI_ENODATA));
    let mut address = [1_u8; 64];
    // SAFETY: likewise, and the address lives as long.
    unsafe {
        (*hints.info).addr_format = 0;
        ((*hints.info).dest_addr, (*hints.info).dest_addrlen) = (address.as_mut_ptr().cast(), 64);
    }
    let infos = ask(&hints).expect("an address that fi_getname gave");
    // SAFETY: an answer.
    unsafe { assert_eq!(((*infos.0).dest_addrlen, *(*infos.0).dest_addr.cast::<[u8; 64]>()), (64, address)) };
    // SAFETY: as above.
    unsafe { (*hints.info).dest_addrlen = 16 };
    assert_eq!(ask(&hints).err(), Some(FI_ENODATA));
}

#[test]
fn programs_before_bits_of_memory_modes_get_the_name_of_ours() {
    let infos = getinfo(fi_version(1, 4), (None, None), 0, null()).expect("an answer");
    // SAFETY: an answer.
    assert_eq!(unsafe { (*(*infos.0).domain_attr).mr_mode }, FI_MR_SCALABLE);
}
