//! How the UDP sockets of an endpoint are made.

use crate::sys::{self, Choice};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};

/// Largest frame, bytes: fits into a datagram of either family.
pub const MAX_FRAME: u16 = 65_000;
/// ECN-capable transport, ECT(0): RFC 3168.
const ECT_0: u8 = 2;

/// Bytes of IP and UDP headers.
pub(crate) const fn overhead(is_v4: bool) -> u32 {
    if is_v4 { 28 } else { 48 }
}

/// How further sockets of an endpoint are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) is_v4: bool,
    /// Congestion is marked where the datagrams come from.
    pub(crate) wants_marks: bool,
    /// It is the outward socket, or one for a peer of that: nobody may ask there.
    pub(crate) is_outward: bool,
    pub(crate) coalesces: bool,
    /// Bytes of each of its buffers.
    pub(crate) buffer: usize,
}

/// Gives a socket its buffers, and has datagrams put together there.
pub(crate) fn prepare_to_receive(socket: &OwnedFd, how: How) -> Result<(), Errno> {
    set_buffers(socket, how.buffer);
    if how.coalesces {
        sys::choose(socket.as_fd(), how.is_v4, Choice::Coalesce, 1)?;
    }
    Ok(())
}

/// A UDP socket that never blocks.
pub(crate) fn datagram_socket(is_v4: bool) -> Result<OwnedFd, Errno> {
    let family = if is_v4 { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = descriptors::socket(family, SocketType::DGRAM)?;
    close_in_children(&socket);
    Ok(socket)
}

/// `wants_marks`: congestion is marked where the datagrams come from, and to be told with each.
pub(crate) fn configure(socket: &OwnedFd, is_v4: bool, wants_marks: bool) -> Result<(), Errno> {
    sys::choose(socket.as_fd(), is_v4, Choice::Reports, 1)?;
    sys::choose(socket.as_fd(), is_v4, Choice::Probe, libc::IP_PMTUDISC_PROBE)?;
    // A host that does not let frames be marked still carries them.
    let _ = if is_v4 {
        sockopt::set_ip_tos(socket, ECT_0).and_then(|()| sockopt::set_ip_recvtos(socket, wants_marks))
    } else {
        sockopt::set_ipv6_tclass(socket, ECT_0.into()).and_then(|()| sockopt::set_ipv6_recvtclass(socket, wants_marks))
    };
    Ok(())
}

/// Asks for buffers of so many bytes of frames each way, and returns how many the receive buffer
/// was given. The kernel keeps the double for its own overhead, which frames of 1,200 bytes use up
/// (2,304 bytes each on Linux 6); so half of what it says is for frames.
pub(crate) fn set_buffers(socket: &OwnedFd, bytes: usize) -> u32 {
    // The first needs a privilege; the second is cut by the system's limit.
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, bytes);
    }
    if sockopt::set_socket_send_buffer_size_force(socket, bytes).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, bytes);
    }
    let given = sockopt::socket_recv_buffer_size(socket).unwrap_or(bytes);
    u32::try_from(given / 2).unwrap_or(u32::MAX)
}
