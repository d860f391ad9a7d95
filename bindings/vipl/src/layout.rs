//! Structures as `vipl.h` has them.

use crate::handles::{Handle, Kind, make, of_nic};
use cci_via::{Access, Address, Error, MAX_DISCRIMINATOR, Reliability, Tag, ViAttributes};
use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::marker::PhantomData;
use std::net::IpAddr;

#[repr(C)]
pub(crate) struct NicAttributes {
    pub(crate) name: [c_char; 64],
    pub(crate) hardware_version: c_ulong,
    pub(crate) provider_version: c_ulong,
    pub(crate) nic_address_len: u16,
    pub(crate) local_nic_address: *const u8,
    pub(crate) thread_safe: c_int,
    pub(crate) max_discriminator_len: u16,
    pub(crate) max_register_bytes: c_ulong,
    pub(crate) max_register_regions: c_ulong,
    pub(crate) max_register_block_bytes: c_ulong,
    pub(crate) max_vi: c_ulong,
    pub(crate) max_descriptors_per_queue: c_ulong,
    pub(crate) max_segments_per_desc: c_ulong,
    pub(crate) max_cq: c_ulong,
    pub(crate) max_cq_entries: c_ulong,
    pub(crate) max_transfer_size: c_ulong,
    pub(crate) native_mtu: c_ulong,
    pub(crate) max_ptags: c_ulong,
    pub(crate) reliability_level_support: u16,
    pub(crate) rdma_read_support: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CViAttributes {
    reliability_level: u16,
    max_transfer_size: c_ulong,
    qos: *mut c_void,
    ptag: Handle,
    enable_rdma_write: c_int,
    enable_rdma_read: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemAttributes {
    ptag: Handle,
    enable_rdma_write: c_int,
    enable_rdma_read: c_int,
}

#[repr(C)]
pub(crate) struct ErrorDescriptor {
    pub(crate) nic: Handle,
    pub(crate) vi: Handle,
    pub(crate) queue: Handle,
    pub(crate) descriptor: *mut c_void,
    pub(crate) op_code: c_ulong,
    pub(crate) resource: c_int,
    pub(crate) error: c_int,
}

const _: () = assert!(size_of::<NicAttributes>() == 200 && size_of::<CViAttributes>() == 40);
const _: () = assert!(size_of::<MemAttributes>() == 16 && size_of::<ErrorDescriptor>() == 48);

/// The tag of a handle; one of another NIC names none.
fn tag(nic: u32, handle: Handle) -> Tag {
    Tag::of_number(of_nic(Kind::Tag, nic, handle).unwrap_or(0))
}

impl CViAttributes {
    pub(crate) fn read(&self, nic: u32) -> Result<ViAttributes, Error> {
        Ok(ViAttributes {
            reliability: Reliability::from_bits(self.reliability_level).ok_or(Error::Reliability)?,
            max_transfer: self.max_transfer_size,
            qos: self.qos.addr() as u64,
            tag: tag(nic, self.ptag),
            access: Access { write: self.enable_rdma_write != 0, read: self.enable_rdma_read != 0 },
        })
    }

    /// With the tag of a NIC's own VI; a peer's is nobody else's business.
    pub(crate) fn of(attributes: &ViAttributes, nic: Option<u32>) -> Self {
        Self {
            reliability_level: attributes.reliability.bits(),
            max_transfer_size: attributes.max_transfer,
            qos: std::ptr::without_provenance_mut(attributes.qos as usize),
            ptag: nic.map_or(std::ptr::null_mut(), |nic| make(Kind::Tag, nic, attributes.tag.number())),
            enable_rdma_write: attributes.access.write.into(),
            enable_rdma_read: attributes.access.read.into(),
        }
    }
}

impl MemAttributes {
    pub(crate) fn read(&self, nic: u32) -> (Tag, Access) {
        let access = Access { write: self.enable_rdma_write != 0, read: self.enable_rdma_read != 0 };
        (tag(nic, self.ptag), access)
    }

    pub(crate) fn of(nic: u32, tag: Tag, access: Access) -> Self {
        Self {
            ptag: make(Kind::Tag, nic, tag.number()),
            enable_rdma_write: access.write.into(),
            enable_rdma_read: access.read.into(),
        }
    }
}

/// The bytes of a host in a net address.
pub(crate) fn host_bytes(host: IpAddr) -> Vec<u8> {
    match host {
        IpAddr::V4(host) => host.octets().to_vec(),
        IpAddr::V6(host) => host.octets().to_vec(),
    }
}

/// A net address: NULL, or leads to a structure with as many bytes behind it as it names.
#[repr(transparent)]
pub(crate) struct NetAddress<'call>(*const u8, PhantomData<&'call u8>);

/// Where a net address is written: NULL, or leads to room for 4 bytes, the host and the
/// discriminator.
#[repr(transparent)]
pub(crate) struct NetRoom<'call>(*mut u8, PhantomData<&'call mut u8>);

impl NetAddress<'_> {
    pub(crate) fn read(self) -> Result<Address, Error> {
        const REASON: Error =
            Error::Parameter("a net address has 4 or 16 bytes of host, as the NIC's, and 1 to 64 of discriminator");
        let Self(address, _) = self;
        if address.is_null() {
            return Err(REASON);
        }
        // SAFETY: not NULL, so that it leads to a structure, which begins with its two lengths; of
        // any alignment.
        let [length, discriminator] = unsafe { address.cast::<[u16; 2]>().read_unaligned() }.map(usize::from);
        if !matches!(length, 4 | 16) || discriminator > MAX_DISCRIMINATOR {
            return Err(REASON);
        }
        // A thread of the program may write them meanwhile: no reference leads to its bytes.
        let mut bytes = [0; 16 + MAX_DISCRIMINATOR];
        // SAFETY: as many bytes as the lengths say stand behind them, by the contract of the type.
        // The array is the library's own, and has room for the longest of both, as just checked.
        unsafe { address.add(4).copy_to_nonoverlapping(bytes.as_mut_ptr(), length + discriminator) };
        let (host, discriminator) = bytes[..length + discriminator].split_at(length);
        let host =
            <[u8; 4]>::try_from(host).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(host).map(IpAddr::from));
        let host = host.map_err(|_| REASON)?;
        Ok(Address::new(host, discriminator))
    }
}

impl NetRoom<'_> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn write(self, host: IpAddr, discriminator: &[u8]) {
        let Self(target, _) = self;
        if target.is_null() {
            return;
        }
        let host = host_bytes(host);
        let lengths = [host.len(), discriminator.len()].map(|len| (len as u16).to_ne_bytes());
        let bytes = [lengths.as_flattened(), &host, discriminator].concat();
        // SAFETY: not NULL, so that it leads to room for the lengths, the host and the
        // discriminator; what is copied is the library's own.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}
