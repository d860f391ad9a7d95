//! The addresses of this host's interfaces.

#![allow(clippy::unnecessary_cast, reason = "C libraries do not agree on the types of flags")]

use rustix::io::Errno;
use std::net::IpAddr;

/// A line of the system's list of interfaces: an interface and one of its addresses, or none.
///
/// # Example
///
/// ```
/// use cci_mem::interfaces::{InterfaceAddress, interface_addresses};
///
/// fn is_reached(line: &InterfaceAddress) -> bool {
///     line.up && line.ip.is_some()
/// }
/// assert!(interface_addresses()?.iter().any(|line| line.loopback && is_reached(line)));
/// # Ok::<(), rustix::io::Errno>(())
/// ```
#[derive(Clone, Debug)]
pub struct InterfaceAddress {
    /// The interface.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// Whether it is the loop-back interface.
    pub loopback: bool,
    /// The address.
    pub ip: Option<IpAddr>,
}

/// Lists the system's interfaces with their addresses.
///
/// # Errors
///
/// Those of `getifaddrs`.
pub fn interface_addresses() -> Result<Vec<InterfaceAddress>, Errno> {
    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is valid for the call.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        let error = std::io::Error::last_os_error().raw_os_error();
        return Err(error.map_or(Errno::IO, Errno::from_raw_os_error));
    }
    let mut lines = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: the list is the C library's, unchanged until it is freed below; names are
        // NUL-terminated.
        let (entry, name) = unsafe { (&*at, std::ffi::CStr::from_ptr((*at).ifa_name)) };
        let flags = entry.ifa_flags;
        lines.push(InterfaceAddress {
            name: name.to_string_lossy().into_owned(),
            up: flags & libc::IFF_UP as u32 != 0,
            loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
            ip: ip_of(entry.ifa_addr),
        });
        at = entry.ifa_next;
    }
    // SAFETY: what `getifaddrs` gave, once; nothing of it is kept.
    unsafe { libc::freeifaddrs(list) };
    Ok(lines)
}

/// The IP in a socket address of the C library's list.
fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: an entry of the list of `getifaddrs`, as long as its family says.
    let (family, bytes) = unsafe {
        let family = i32::from((*address).sa_family);
        let len = match family {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            _ => return None,
        };
        (family, std::slice::from_raw_parts(address.cast::<u8>(), len))
    };
    if family == libc::AF_INET {
        let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
        Some(octets.into())
    } else {
        let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
        Some(octets.into())
    }
}
