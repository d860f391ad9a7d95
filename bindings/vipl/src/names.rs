//! The name service: the system's names of hosts.

use crate::answer::{Answer, PARAMETER, RESOURCE, code};
use crate::handles::Handle;
use crate::layout::{NetAddress, NetRoom};
use crate::table::nic;
use cci_mem::arguments::{Out, Text};
use cci_mem::lookup::Wait;
use cci_mem::mutex::lock;
use cci_via::Error;
use std::ffi::{CStr, CString, c_char, c_ulong};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) fn start(handle: Handle, is_started: bool) -> Answer {
    let nic = nic(handle)?;
    let mut has_names = lock(&nic.has_names);
    if !is_started && !*has_names {
        return Err(code(Error::NameService));
    }
    *has_names = is_started;
    Ok(())
}

pub(crate) fn by_name(handle: Handle, name: Text<'_>, address: NetRoom<'_>, index: c_ulong) -> Answer {
    let nic = nic(handle)?;
    name.check(PARAMETER)?;
    if address.is_null() {
        return Err(PARAMETER);
    }
    if !*lock(&nic.has_names) {
        return Err(code(Error::NameService));
    }
    let name = name.get().ok_or(PARAMETER)?.to_str().map_err(|_| code(Error::NameService))?;
    let found = Wait::default().addresses(name, 0).map_err(|_| code(Error::NameService))?;
    let mut hosts: Vec<IpAddr> = Vec::new();
    for address in found {
        // Every address of the loop-back network is this host, by one address.
        let host = match address.ip() {
            IpAddr::V4(host) if host.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            host => host,
        };
        // The program has room for addresses as long as the NIC's.
        if host.is_ipv4() == nic.core.host().is_ipv4() && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let host = usize::try_from(index).ok().and_then(|index| hosts.get(index)).ok_or(code(Error::NameService))?;
    address.write(*host, &[]);
    Ok(())
}

/// Gives the name of a host.
///
/// # Safety
///
/// `length` is NULL, or the program has put the size of a room there; `name` is NULL or leads to
/// that room.
pub(crate) unsafe fn by_address(
    handle: Handle,
    address: NetAddress<'_>,
    name: *mut c_char,
    length: Out<'_, c_ulong>,
) -> Answer {
    let nic = nic(handle)?;
    if name.is_null() {
        return Err(PARAMETER);
    }
    let length = length.variable(PARAMETER)?;
    let address = address.read().map_err(code)?;
    if !*lock(&nic.has_names) {
        return Err(code(Error::NameService));
    }
    let found = Wait::default().run(move || name_of(address.host)).ok().flatten().ok_or(code(Error::NameService))?;
    let bytes = found.count_bytes();
    // SAFETY: not NULL, so that the program has put a size there.
    let room = unsafe { length.get() };
    length.put(bytes as c_ulong);
    if room <= bytes as c_ulong {
        return Err(RESOURCE);
    }
    // SAFETY: neither is NULL, and the room is for more bytes than the name has, as just checked:
    // the name and its end.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), name, bytes + 1) };
    Ok(())
}

/// The system's name of a host. Blocks, for as long as a silent name server lets it.
fn name_of(host: IpAddr) -> Option<CString> {
    let mut found: [c_char; 256] = [0; 256];
    let mut look_up = |place: *const libc::sockaddr, size: usize| {
        // SAFETY: an address of that size, and room of that size.
        unsafe {
            libc::getnameinfo(
                place,
                size as libc::socklen_t,
                found.as_mut_ptr(),
                found.len() as libc::socklen_t,
                std::ptr::null_mut(),
                0,
                libc::NI_NAMEREQD,
            )
        }
    };
    let code_of_lookup = match host {
        IpAddr::V4(host) => {
            let place = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(host.octets()) },
                sin_zero: [0; 8],
            };
            look_up((&raw const place).cast(), size_of_val(&place))
        }
        IpAddr::V6(host) => {
            let place = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: host.octets() },
                sin6_scope_id: 0,
            };
            look_up((&raw const place).cast(), size_of_val(&place))
        }
    };
    let bytes = found.map(|byte| byte as u8);
    CStr::from_bytes_until_nul(&bytes).ok().filter(|_| code_of_lookup == 0).map(CStr::to_owned)
}
