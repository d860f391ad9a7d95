//! The listening socket of an endpoint.

use crate::settings::{SCHEME, Settings};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_proto::Status;
use cci_transport::{CallError, LocalAddress, NameCall, OpenError, child_holds_port, interface_index, retry_in_use};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen};
use std::net::{IpAddr, SocketAddr};

/// Streams that wait to be accepted.
const BACKLOG: i32 = 4096;

/// Listens at the first free port of the settings. Returns the URI too.
pub(crate) fn listen_at(settings: &Settings) -> Result<(OwnedFd, String), OpenError> {
    let (first, last) = settings.ports;
    let mut refused = None;
    for port in first..=last {
        // Of a range the next port is tried instead.
        let opened = if first == last && port != 0 {
            retry_in_use(|| listen_on(&settings.local, port))
        } else {
            listen_on(&settings.local, port)
        };
        match opened {
            Ok((socket, port)) => return Ok((socket, format!("{SCHEME}{}", settings.local.host_and_port(port)))),
            Err(error) => refused = Some((port, error)),
        }
        if !refused.is_some_and(|(_, refused)| refused.error == Errno::ADDRINUSE) {
            break;
        }
    }
    let (port, refused) = refused.unwrap_or((first, CallError { call: "bind", error: Errno::ADDRINUSE }));
    Err(refusal(settings, port, refused))
}

fn listen_on(local: &LocalAddress, port: u16) -> Result<(OwnedFd, u16), CallError> {
    let family = if local.ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = descriptors::socket(family, SocketType::STREAM).by("socket")?;
    close_in_children(&socket);
    // A port whose last streams are still in TIME_WAIT can be used again at once.
    set_socket_reuseaddr(&socket, true).by("setsockopt")?;
    let index = interface_index(&socket, &local.interface).unwrap_or(0);
    bind(&socket, &LocalAddress { index, ..local.clone() }.socket(port)).by("bind")?;
    listen(&socket, BACKLOG).by("listen")?;
    let bound = SocketAddr::try_from(getsockname(&socket).by("getsockname")?)
        .map_err(|_| Errno::AFNOSUPPORT)
        .by("getsockname")?;
    Ok((socket, bound.port()))
}

fn refusal(settings: &Settings, port: u16, refused: CallError) -> OpenError {
    let (ip, CallError { call, error }) = (settings.local.ip, refused);
    let what = match error {
        Errno::ADDRINUSE if settings.ports.0 != settings.ports.1 => {
            let (first, last) = settings.ports;
            format!("ports {first} to {last} of {ip} are in use; choose other ports, or none to get a free one")
        }
        Errno::ADDRINUSE if is_held_by_child(ip, port) => {
            format!("a child process of this program still holds port {port}; end it, or choose another port")
        }
        Errno::ADDRINUSE => format!(
            "port {port} of {ip} is in use; choose another port, or none to get a free one; another process holds it, \
             maybe a forked child"
        ),
        Errno::ADDRNOTAVAIL => format!("this host has no address {ip}; write one of its own for the key ip"),
        Errno::ACCESS if call == "bind" => {
            let what = format!("port {port} is not for this user; choose one above 1023, or none to get a free one");
            return OpenError::system(what, error);
        }
        _ => return OpenError::system(format!("cannot listen at {ip}:{port}: {call}"), error),
    };
    OpenError::new(Status::AddrNotAvail, what)
}

/// Whether a child of this process has the port: it was made without the handlers of `fork`, and
/// keeps a copy of a socket.
fn is_held_by_child(ip: IpAddr, port: u16) -> bool {
    let table = if ip.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    child_holds_port(table, port)
}
