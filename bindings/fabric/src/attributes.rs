//! What the provider offers, and what of it a program gets that asks for less: fi_getinfo(3),
//! fi_endpoint(3) and fi_domain(3) state what each attribute means.
//!
//! A hint of 0 asks for nothing. One of another value is a demand, which is met or refused by a
//! sentence that names it.

use crate::answer::{Answer, NAME};
use crate::hints::{Hints, zero};
use crate::words;
use cci_fabric_sys::*;
use std::ffi::CString;
use std::fmt::Display;

/// Of messages.
const MESSAGES: u64 = FI_MSG | FI_TAGGED;
const MESSAGE_SIDES: u64 = FI_SEND | FI_RECV;
const RMA_SIDES: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
/// Where peers are.
const REACH: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
/// What an endpoint has only where it is asked for, or where nothing is.
const IF_ASKED: u64 = FI_DIRECTED_RECV | FI_SOURCE;
const CAPS: u64 = MESSAGES | FI_RMA | MESSAGE_SIDES | RMA_SIDES | FI_MULTI_RECV | REACH | IF_ASKED;

/// Where peers are is no capability of a side.
const TRANSMIT_CAPS: u64 = MESSAGES | FI_RMA | FI_SEND | FI_READ | FI_WRITE;
const RECEIVE_CAPS: u64 = MESSAGES | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | IF_ASKED;
const LEVELS: u64 = FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
pub(crate) const TRANSMIT_FLAGS: u64 = LEVELS | FI_COMPLETION | FI_INJECT;
pub(crate) const RECEIVE_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// Values of ours alone have the upper bit: the letters "CCI".
const OURS: u32 = 1 << 31 | 0x0043_4349;
pub(crate) const ADDRESS_FORMAT: u32 = OURS;
const PROTOCOL: u32 = OURS;
const PROTOCOL_VERSION: u32 = 1;

const MAX_MESSAGE: usize = (1 << 63) - 1;
const INJECT: usize = 32;
const PIECES: usize = 4;
const WORD: usize = 8;
/// The last of the classes of traffic, which are wishes: all traffic is the same here.
const LAST_CLASS: u32 = FI_TC_NETWORK_CTRL;
/// The newest of those who may go on with operations.
const LAST_PROGRESS: fi_progress = FI_PROGRESS_CONTROL_UNIFIED;
/// Every bit of a tag is the program's (fi_endpoint(3)).
const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;
/// Bytes of unexpected messages that an endpoint keeps.
const UNEXPECTED: usize = 1 << 30;
/// What has no bound but memory and descriptors is offered so often, and as often as it is asked
/// for.
const MANY: usize = 65_536;
/// Operations of an endpoint, likewise.
const OPERATIONS: usize = 4_096;

type Checked = Result<(), String>;

/// All of `asked` is among `offered`.
fn bits(what: &str, asked: u64, offered: u64, name: fn(u64) -> String) -> Checked {
    let missing = asked & !offered;
    if missing == 0 {
        return Ok(());
    }
    Err(format!("{what} has {}, which cci does not offer; leave it out of the hints", name(missing)))
}

fn at_most<T: PartialOrd + Display>(what: &str, asked: T, offered: T) -> Checked {
    if asked <= offered {
        return Ok(());
    }
    Err(format!("{what} is {asked}, and cci offers {offered}; lower it in the hints"))
}

/// `asked` is 0 or what is offered.
fn only(what: &str, asked: u32, offered: u32) -> Checked {
    if asked == 0 || asked == offered {
        return Ok(());
    }
    Err(format!("{what} is {asked}, and cci offers {offered} alone; change it in the hints"))
}

fn named(what: &str, asked: Option<&CString>) -> Checked {
    match asked {
        Some(name) if name.as_c_str() != NAME => {
            let (name, ours) = (name.to_string_lossy(), NAME.to_string_lossy());
            Err(format!("{what} is '{name}', and that of cci is '{ours}'; leave it out of the hints"))
        }
        _ => Ok(()),
    }
}

/// The answer to hints of a version.
///
/// # Errors
///
/// A sentence that names the hint that is not met.
pub(crate) fn offer(version: u32, hints: Option<&Hints>) -> Result<Answer, String> {
    let nothing = Hints::default();
    let hints = hints.unwrap_or(&nothing);
    bits("caps", hints.info.caps, CAPS, words::capability)?;
    only("addr_format", hints.info.addr_format, ADDRESS_FORMAT)?;
    let caps = given(hints.info.caps);
    Ok(Answer {
        tx: transmit(hints, caps)?,
        rx: receive(hints, caps)?,
        ep: endpoint(hints)?,
        domain: domain(hints, version)?,
        fabric: fabric(hints)?,
        info: fi_info { caps, addr_format: ADDRESS_FORMAT, ..zero() },
        source: None,
        destination: None,
    })
}

/// The capabilities of an endpoint for which these are asked: a kind of operation has all its
/// sides where none is named.
fn given(asked: u64) -> u64 {
    if asked == 0 {
        return CAPS;
    }
    let mut caps = asked | REACH;
    for (kinds, sides) in [(MESSAGES, MESSAGE_SIDES), (FI_RMA, RMA_SIDES)] {
        if asked & kinds != 0 && asked & sides == 0 {
            caps |= sides;
        }
    }
    // Costs nothing where it is not used.
    if caps & MESSAGES != 0 && caps & FI_RECV != 0 { caps | FI_MULTI_RECV } else { caps }
}

fn transmit(hints: &Hints, caps: u64) -> Result<fi_tx_attr, String> {
    let asked = &hints.tx;
    bits("tx_attr.caps", asked.caps, CAPS, words::capability)?;
    bits("tx_attr.op_flags", asked.op_flags, TRANSMIT_FLAGS, words::capability)?;
    bits("tx_attr.msg_order", asked.msg_order, FI_ORDER_SAS, words::order)?;
    bits("tx_attr.comp_order", asked.comp_order, 0, words::order)?;
    at_most("tx_attr.inject_size", asked.inject_size, INJECT)?;
    at_most("tx_attr.iov_limit", asked.iov_limit, PIECES)?;
    at_most("tx_attr.rma_iov_limit", asked.rma_iov_limit, PIECES)?;
    at_most("tx_attr.tclass", asked.tclass, LAST_CLASS)?;
    Ok(fi_tx_attr {
        caps: caps & TRANSMIT_CAPS,
        op_flags: asked.op_flags,
        msg_order: FI_ORDER_SAS,
        inject_size: INJECT,
        size: asked.size.max(OPERATIONS),
        iov_limit: PIECES,
        rma_iov_limit: if caps & FI_RMA != 0 { PIECES } else { 0 },
        tclass: asked.tclass,
        ..zero()
    })
}

fn receive(hints: &Hints, caps: u64) -> Result<fi_rx_attr, String> {
    let asked = &hints.rx;
    bits("rx_attr.caps", asked.caps, CAPS, words::capability)?;
    bits("rx_attr.op_flags", asked.op_flags, RECEIVE_FLAGS, words::capability)?;
    bits("rx_attr.msg_order", asked.msg_order, FI_ORDER_SAS, words::order)?;
    bits("rx_attr.comp_order", asked.comp_order, 0, words::order)?;
    at_most("rx_attr.total_buffered_recv", asked.total_buffered_recv, UNEXPECTED)?;
    at_most("rx_attr.iov_limit", asked.iov_limit, PIECES)?;
    Ok(fi_rx_attr {
        caps: caps & RECEIVE_CAPS,
        op_flags: asked.op_flags,
        msg_order: FI_ORDER_SAS,
        total_buffered_recv: UNEXPECTED,
        size: asked.size.max(OPERATIONS),
        iov_limit: PIECES,
        ..zero()
    })
}

fn endpoint(hints: &Hints) -> Result<fi_ep_attr, String> {
    let asked = &hints.ep;
    // libfabric layers its utilities over other types.
    only("ep_attr.type", asked.r#type, FI_EP_RDM)?;
    only("ep_attr.protocol", asked.protocol, PROTOCOL)?;
    only("ep_attr.protocol_version", asked.protocol_version, PROTOCOL_VERSION)?;
    at_most("ep_attr.max_msg_size", asked.max_msg_size, MAX_MESSAGE)?;
    at_most("ep_attr.msg_prefix_size", asked.msg_prefix_size, 0)?;
    at_most("ep_attr.max_order_raw_size", asked.max_order_raw_size, 0)?;
    at_most("ep_attr.max_order_war_size", asked.max_order_war_size, 0)?;
    at_most("ep_attr.max_order_waw_size", asked.max_order_waw_size, 0)?;
    at_most("ep_attr.tx_ctx_cnt", asked.tx_ctx_cnt, 1)?;
    at_most("ep_attr.rx_ctx_cnt", asked.rx_ctx_cnt, 1)?;
    at_most("ep_attr.auth_key_size", asked.auth_key_size, 0)?;
    at_most("ep_attr.xpu_ctx", usize::from(!asked.xpu_ctx.is_null()), 0)?;
    Ok(fi_ep_attr {
        r#type: FI_EP_RDM,
        protocol: PROTOCOL,
        protocol_version: PROTOCOL_VERSION,
        max_msg_size: MAX_MESSAGE,
        mem_tag_format: if asked.mem_tag_format == 0 { TAG_FORMAT } else { asked.mem_tag_format },
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        ..zero()
    })
}

/// A value that is answered as it was asked for, if the newest version has it.
fn as_asked(what: &str, asked: u32, default: u32, last: u32) -> Result<u32, String> {
    at_most(what, asked, last)?;
    Ok(if asked == 0 { default } else { asked })
}

fn domain(hints: &Hints, version: u32) -> Result<fi_domain_attr, String> {
    let asked = &hints.domain;
    named("domain_attr.name", hints.domain_name.as_ref())?;
    bits("domain_attr.caps", asked.caps, REACH, words::capability)?;
    at_most("domain_attr.tclass", asked.tclass, LAST_CLASS)?;
    for (what, asked, offered) in [
        ("domain_attr.mr_key_size", asked.mr_key_size, WORD),
        ("domain_attr.cq_data_size", asked.cq_data_size, WORD),
        ("domain_attr.max_ep_tx_ctx", asked.max_ep_tx_ctx, 1),
        ("domain_attr.max_ep_rx_ctx", asked.max_ep_rx_ctx, 1),
        ("domain_attr.max_ep_stx_ctx", asked.max_ep_stx_ctx, 0),
        ("domain_attr.max_ep_srx_ctx", asked.max_ep_srx_ctx, 0),
        ("domain_attr.mr_iov_limit", asked.mr_iov_limit, 1),
        ("domain_attr.auth_key_size", asked.auth_key_size, 0),
        ("domain_attr.max_ep_auth_key", asked.max_ep_auth_key, 0),
        ("domain_attr.max_group_id", asked.max_group_id as usize, 0),
        ("domain_attr.max_xpu_ctx_cnt", asked.max_xpu_ctx_cnt, 0),
    ] {
        at_most(what, asked, offered)?;
    }
    at_most("domain_attr.resource_mgmt", asked.resource_mgmt, FI_RM_ENABLED)?;
    Ok(fi_domain_attr {
        threading: as_asked("domain_attr.threading", asked.threading, FI_THREAD_SAFE, FI_THREAD_ENDPOINT)?,
        control_progress: as_asked(
            "domain_attr.control_progress",
            asked.control_progress,
            FI_PROGRESS_MANUAL,
            LAST_PROGRESS,
        )?,
        data_progress: as_asked("domain_attr.data_progress", asked.data_progress, FI_PROGRESS_MANUAL, LAST_PROGRESS)?,
        resource_mgmt: FI_RM_ENABLED,
        av_type: as_asked("domain_attr.av_type", asked.av_type, FI_AV_TABLE, FI_AV_TABLE)?,
        mr_mode: memory_mode(asked.mr_mode, version)?,
        mr_key_size: WORD,
        cq_data_size: WORD,
        cq_cnt: asked.cq_cnt.max(MANY),
        ep_cnt: asked.ep_cnt.max(MANY),
        tx_ctx_cnt: asked.tx_ctx_cnt.max(MANY),
        rx_ctx_cnt: asked.rx_ctx_cnt.max(MANY),
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        cntr_cnt: asked.cntr_cnt.max(MANY),
        mr_iov_limit: 1,
        caps: REACH,
        mr_cnt: asked.mr_cnt.max(MANY),
        tclass: asked.tclass,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
        ..zero()
    })
}

/// The mode of memory: keys are the program's and addresses are offsets, which had a name of its
/// own before bits of modes came (fi_mr(3)).
fn memory_mode(asked: i32, version: u32) -> Result<i32, String> {
    if asked & FI_MR_BASIC != 0 && asked & FI_MR_SCALABLE == 0 {
        return Err("domain_attr.mr_mode is FI_MR_BASIC, and cci needs no bit; leave it out of the hints".into());
    }
    let is_old = asked & FI_MR_SCALABLE != 0 || version < fi_version(1, 5);
    Ok(if is_old { FI_MR_SCALABLE } else { 0 })
}

fn fabric(hints: &Hints) -> Result<fi_fabric_attr, String> {
    named("fabric_attr.name", hints.fabric_name.as_ref())?;
    let number = |text: &str| text.parse().unwrap_or_default();
    let version = fi_version(number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR")));
    // libfabric fills in the provider's name and the version of the API.
    Ok(fi_fabric_attr { prov_version: version, ..zero() })
}
