//! The structures of `cci.h` and `ccix.h` that this crate fills in, and what the header and the
//! cells must agree on.

use cci::__binding::Text;
use cci::__binding::{ConnectionCell, EndpointCell, EventCell};
use std::ffi::{c_char, c_uint};
use std::mem::offset_of;

/// `struct cci_device`.
#[repr(C)]
pub(crate) struct Device {
    pub(crate) name: *const c_char,
    pub(crate) transport: *const c_char,
    pub(crate) up: c_uint,
    pub(crate) info: *const c_char,
    pub(crate) conf_argv: *const *const c_char,
    pub(crate) max_send_size: u32,
    pub(crate) rate: u64,
    pub(crate) pci: Pci,
}

/// `cci_device::pci`.
#[repr(C)]
pub(crate) struct Pci {
    pub(crate) domain: u32,
    pub(crate) bus: u32,
    pub(crate) dev: u32,
    pub(crate) func: u32,
}

/// `struct ccix_endpoint_options`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct EndpointOptions<'call> {
    pub(crate) size: u32,
    pub(crate) flags: u32,
    pub(crate) recv_buffers: u32,
    pub(crate) send_buffers: u32,
    pub(crate) service: Text<'call>,
}

/// `struct ccix_peer`.
#[repr(C)]
pub(crate) struct Peer {
    pub(crate) size: u32,
    pub(crate) known: u32,
    pub(crate) user: u32,
    pub(crate) process: u32,
    pub(crate) address: [u8; 128],
    pub(crate) key: [u8; 32],
}

/// `struct ccix_connection_report`.
#[repr(C)]
pub(crate) struct ConnectionInfo {
    pub(crate) size: u32,
    pub(crate) mtu: u32,
    pub(crate) window: u32,
    pub(crate) open: u32,
    pub(crate) rtt_ns: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) rma_bytes: u64,
    pub(crate) rnr: u64,
    pub(crate) dropped: u64,
    pub(crate) transport: [u8; 16],
    pub(crate) path: [u8; 64],
    pub(crate) rma_path: [u8; 64],
    pub(crate) why: [u8; 256],
    pub(crate) strays: u64,
    pub(crate) path_text: [u8; 256],
    pub(crate) rma_path_text: [u8; 256],
    pub(crate) why_text: [u8; 1024],
}

/// `struct ccix_job_report`.
#[repr(C)]
pub(crate) struct JobInfo {
    pub(crate) size: u32,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) local_rank: u32,
    pub(crate) local_ranks: u32,
    pub(crate) processors: u32,
    pub(crate) ranks_per_core: f64,
    pub(crate) authenticated: u32,
    pub(crate) source: [u8; 60],
}

// The same numbers stand in tests/c/layout.c, which holds them against the headers.
const _: () = {
    assert!(size_of::<Device>() == 72 && offset_of!(Device, name) == 0 && offset_of!(Device, transport) == 8);
    assert!(offset_of!(Device, up) == 16 && offset_of!(Device, info) == 24 && offset_of!(Device, conf_argv) == 32);
    assert!(offset_of!(Device, max_send_size) == 40 && offset_of!(Device, rate) == 48 && offset_of!(Device, pci) == 56);
    assert!(size_of::<Pci>() == 16 && offset_of!(Pci, bus) == 4 && offset_of!(Pci, dev) == 8);
    assert!(offset_of!(EndpointCell, device) == 0);
    assert!(offset_of!(ConnectionCell, max_send_size) == 0 && offset_of!(ConnectionCell, endpoint) == 8);
    assert!(offset_of!(ConnectionCell, context) == 24);
    assert!(size_of::<EventCell>() >= 24 && align_of::<EventCell>() >= 8);
    assert!(size_of::<cci::RmaHandle>() == 32);
    assert!(size_of::<cci::Alignment>() == 24 && offset_of!(cci::Alignment, read_local_addr) == 12);
    assert!(size_of::<EndpointOptions<'_>>() == 24 && offset_of!(EndpointOptions<'_>, service) == 16);
    assert!(size_of::<Peer>() == 176 && offset_of!(Peer, address) == 16 && offset_of!(Peer, key) == 144);
    assert!(size_of::<JobInfo>() == 96 && offset_of!(JobInfo, ranks_per_core) == 24);
    assert!(offset_of!(JobInfo, authenticated) == 32 && offset_of!(JobInfo, source) == 36);
    assert!(size_of::<ConnectionInfo>() == 2008 && offset_of!(ConnectionInfo, rtt_ns) == 16);
    assert!(offset_of!(ConnectionInfo, transport) == 64 && offset_of!(ConnectionInfo, why) == 208);
    assert!(offset_of!(ConnectionInfo, strays) == 464);
    assert!(offset_of!(ConnectionInfo, path_text) == 472 && offset_of!(ConnectionInfo, rma_path_text) == 728);
    assert!(offset_of!(ConnectionInfo, why_text) == 984);
};

const _: () = {
    use cci::__binding::Flags;
    use cci::{Attribute, CONN_REQ_LEN, ConnectionOption, EndpointOption, EventKind, Rights};
    assert!(Attribute::ReliableOrdered as u32 == 0 && Attribute::ReliableUnordered as u32 == 1);
    assert!(Attribute::Unreliable as u32 == 2 && Attribute::MulticastSend as u32 == 3);
    assert!(Attribute::MulticastReceive as u32 == 4);
    assert!(EventKind::Send as u32 == 1 && EventKind::Recv as u32 == 2 && EventKind::Connect as u32 == 3);
    assert!(EventKind::ConnectRequest as u32 == 4 && EventKind::Accept as u32 == 5);
    assert!(EventKind::KeepaliveTimedOut as u32 == 6 && EventKind::DeviceFailed as u32 == 7);
    assert!(EventKind::Disconnect as u32 == 0x100 && EventKind::ImportEnded as u32 == 0x101);
    assert!(EndpointOption::SendTimeout as u32 == 0 && EndpointOption::RecvBufCount as u32 == 1);
    assert!(EndpointOption::SendBufCount as u32 == 2 && EndpointOption::KeepaliveTimeout as u32 == 3);
    assert!(EndpointOption::Uri as u32 == 4 && EndpointOption::RmaAlign as u32 == 5);
    assert!(ConnectionOption::SendTimeout as u32 == 6 && ConnectionOption::KeepaliveTimeout as u32 == 7);
    assert!(Flags::BLOCKING.bits() == 1 && Flags::NO_COPY.bits() == 2 && Flags::SILENT.bits() == 8);
    assert!(Flags::READ.bits() == 16 && Flags::WRITE.bits() == 32 && Flags::FENCE.bits() == 64);
    assert!(Rights::READ.bits() == 16 && Rights::WRITE.bits() == 32);
    assert!(CONN_REQ_LEN == 1024);
};

const _: () = {
    use cci::Status;
    assert!(Status::Success as u32 == 0 && Status::Error as u32 == 1 && Status::Disconnected as u32 == 2);
    assert!(Status::Rnr as u32 == 3 && Status::DeviceDead as u32 == 4 && Status::RmaHandle as u32 == 5);
    assert!(Status::RmaOp as u32 == 6 && Status::NotImplemented as u32 == 7 && Status::NotFound as u32 == 8);
    assert!(Status::Inval as i32 == libc::EINVAL && Status::TimedOut as i32 == libc::ETIMEDOUT);
    assert!(Status::NoMem as i32 == libc::ENOMEM && Status::NoDev as i32 == libc::ENODEV);
    assert!(Status::NetDown as i32 == libc::ENETDOWN && Status::Busy as i32 == libc::EBUSY);
    assert!(Status::Range as i32 == libc::ERANGE && Status::Again as i32 == libc::EAGAIN);
    assert!(Status::NoBufs as i32 == libc::ENOBUFS && Status::MsgSize as i32 == libc::EMSGSIZE);
    assert!(Status::NoMsg as i32 == libc::ENOMSG && Status::AddrNotAvail as i32 == libc::EADDRNOTAVAIL);
    assert!(Status::ConnRefused as i32 == libc::ECONNREFUSED);
};
