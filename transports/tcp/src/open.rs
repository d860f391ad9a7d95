//! Opening an endpoint: its listening socket.

use crate::driver::DRIVER;
use crate::endpoint::Tcp;
use crate::lane::shared::Shared;
use crate::settings::{MSS, SCHEME, Settings};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_proto::Status;
use cci_transport::{
    Arguments, CallError, Condition, Core, LocalAddress, NameCall, OpenError, Transport, TransportOptions,
    child_holds_port, interface_index, random, retry_in_use, room_for,
};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen};
use std::net::{IpAddr, SocketAddr};

/// Streams that wait to be accepted.
const BACKLOG: i32 = 4096;
/// More than the buffers and tables of an endpoint take, bytes.
const BUFFERS: usize = 1 << 20;

/// Opens the transport of an endpoint. The service is the port.
pub(crate) fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    Ok(Box::new(open_tcp(core, options)?))
}

pub(crate) fn open_tcp(core: &Core, options: &TransportOptions<'_>) -> Result<Tcp, OpenError> {
    let settings = settings(options.arguments, options.service)?;
    let system = |refused| OpenError::call("cannot open a tcp endpoint", refused);
    let (listener, uri) = listen_at(&settings)?;
    room_for(BUFFERS)?;
    let words = random().by("getrandom").map_err(system)?;
    let max_send_size = settings.mss.unwrap_or(options.max_send_size);
    let shared = Shared::new(core, settings, max_send_size, words).map_err(system)?;
    Tcp::new(core, shared, listener, uri, options.threading).map_err(system)
}

/// The settings of a device with these keys, and with those that only the environment has.
pub(crate) fn settings(arguments: &[(String, String)], service: Option<&str>) -> Result<Settings, OpenError> {
    let all = DRIVER.with_environment(arguments);
    Settings::read(&Arguments::check(&DRIVER, &all)?, service)
}

/// Up if an endpoint with these keys can be opened.
pub(crate) fn inspect(arguments: &[(String, String)]) -> Condition {
    // The port may be in use by the endpoint that it is meant for.
    let others: Vec<_> = arguments.iter().filter(|(key, _)| key != "port").cloned().collect();
    let settings = settings(&others, None);
    let max_send_size = settings.as_ref().ok().and_then(|settings| settings.mss).unwrap_or(MSS);
    let opened = settings.and_then(|settings| listen_at(&settings).map(|_| settings.local.ip));
    let (up, reason) = match opened {
        Ok(ip) => (true, format!("TCP from {ip}")),
        // A shortage that may pass is no refusal: opening an endpoint says so itself.
        Err(error) if error.status == Status::NoMem => (true, "TCP".into()),
        Err(error) => (false, error.to_string()),
    };
    Condition { up, reason, max_send_size }
}

/// Listens at the first free port of the settings. Returns the URI too.
fn listen_at(settings: &Settings) -> Result<(OwnedFd, String), OpenError> {
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
