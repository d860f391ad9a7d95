//! Makes every descriptor that the library keeps: closed in programs that this process executes,
//! from the call that makes it, and never standard input, output or error.
//!
//! The system gives the lowest free number. In a program that has closed its standard input, output
//! or error that is 0, 1 or 2, and then whatever the program prints goes to the peer, or ends the
//! program by SIGPIPE. So a descriptor below 3 moves up before anything else is done with it.
//! Where it is 3 or more, and it nearly always is, this costs one comparison.
//!
//! `ci/descriptors` refuses these system calls elsewhere in the library.

use crate::cancellation::Uncancelled;
use rustix::event::{EventfdFlags, epoll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, RecvMsg, SocketFlags, SocketType,
};
use rustix::process::{Pid, PidfdFlags};
use rustix::time::{TimerfdClockId, TimerfdFlags};
use std::io::IoSliceMut;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The lowest number that is not of standard input, output or error.
const LOWEST: i32 = 3;

/// Moves a descriptor that was just made to 3 or above, if it is below.
///
/// Nothing may have been done with it yet: an epoll set would go on watching the number that it
/// had.
///
/// # Errors
///
/// No descriptor left. The one that was made is closed.
#[inline]
pub fn above_standard<D: AsFd + From<OwnedFd>>(made: D) -> Result<D> {
    if made.as_fd().as_raw_fd() >= LOWEST { Ok(made) } else { moved(made) }
}

#[cold]
fn moved<D: AsFd + From<OwnedFd>>(made: D) -> Result<D> {
    // Closing is a cancellation point.
    let _uncancelled = Uncancelled::new();
    let moved = duplicate(&made);
    drop(made);
    moved.map(D::from)
}

/// Duplicates a descriptor.
///
/// # Errors
///
/// No descriptor left.
pub fn duplicate(descriptor: impl AsFd) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, LOWEST)
}

/// Makes a socket that does not block.
///
/// # Errors
///
/// Those of `socket`.
pub fn socket(family: AddressFamily, of: SocketType) -> Result<OwnedFd> {
    above_standard(rustix::net::socket_with(family, of, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?)
}

/// Accepts a connection, as a socket that does not block.
///
/// # Errors
///
/// Those of `accept4`.
#[inline]
pub fn accept(listener: impl AsFd) -> Result<OwnedFd> {
    above_standard(rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?)
}

/// Receives bytes, and descriptors that [`received`] then takes out of `control`.
///
/// # Errors
///
/// Those of `recvmsg`.
pub fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    control: &mut RecvAncillaryBuffer<'_>,
    flags: RecvFlags,
) -> Result<RecvMsg> {
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], control, flags | RecvFlags::CMSG_CLOEXEC)
}

/// The descriptors that [`receive`] has got, in their order. Where no number is left for one, it
/// and those after it are closed: the system does the same.
pub fn received(control: &mut RecvAncillaryBuffer<'_>) -> impl Iterator<Item = OwnedFd> {
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    descriptors.flatten().map_while(|descriptor| above_standard(descriptor).ok())
}

/// Makes an eventfd that does not block.
///
/// # Errors
///
/// Those of `eventfd`.
pub fn eventfd(count: u32) -> Result<OwnedFd> {
    above_standard(rustix::event::eventfd(count, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes an epoll set.
///
/// # Errors
///
/// Those of `epoll_create1`.
pub fn epoll() -> Result<OwnedFd> {
    above_standard(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

/// Makes a timer of the monotonic clock that does not block.
///
/// # Errors
///
/// Those of `timerfd_create`.
pub fn timer() -> Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    above_standard(rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Makes a memory file that can be sealed.
///
/// # Errors
///
/// Those of `memfd_create`.
pub fn memory_file(name: &str) -> Result<OwnedFd> {
    above_standard(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?)
}

/// Opens a descriptor of a process, which the system always closes in programs that are executed.
///
/// # Errors
///
/// Those of `pidfd_open`.
pub fn process(pid: Pid) -> Result<OwnedFd> {
    above_standard(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Takes a descriptor over that the program was given open, as a new one. The old one stays, and
/// programs that this process executes inherit neither.
///
/// # Errors
///
/// It is not open, or no descriptor is left.
pub fn take_over(given: BorrowedFd<'_>) -> Result<OwnedFd> {
    let own = duplicate(given)?;
    rustix::io::fcntl_setfd(given, rustix::io::FdFlags::CLOEXEC)?;
    Ok(own)
}

/// Has a number name another open file, which programs that this process executes do not inherit.
/// What it named before is closed, unless another number names it too.
///
/// # Errors
///
/// Those of `dup3`.
pub fn put(open: impl AsFd, number: &mut OwnedFd) -> Result<()> {
    rustix::io::dup3(open, number, rustix::io::DupFlags::CLOEXEC)
}

/// Makes a pair of connected sockets, which block.
///
/// # Errors
///
/// Those of `socketpair`.
pub fn stream_pair() -> std::io::Result<(UnixStream, UnixStream)> {
    let (one, other) = UnixStream::pair()?;
    Ok((above_standard(one)?, above_standard(other)?))
}

/// Makes a UDP socket bound to an address, which blocks.
///
/// # Errors
///
/// Those of [`UdpSocket::bind`].
pub fn udp(address: impl ToSocketAddrs) -> std::io::Result<UdpSocket> {
    Ok(above_standard(UdpSocket::bind(address)?)?)
}

/// Makes a TCP socket that listens at an address. It blocks.
///
/// # Errors
///
/// Those of [`TcpListener::bind`].
pub fn listener(address: impl ToSocketAddrs) -> std::io::Result<TcpListener> {
    Ok(above_standard(TcpListener::bind(address)?)?)
}

/// Connects a TCP socket, which blocks, to the first of these addresses that answers.
///
/// # Errors
///
/// Those of [`TcpStream::connect`].
pub fn stream(addresses: impl ToSocketAddrs) -> std::io::Result<TcpStream> {
    Ok(above_standard(TcpStream::connect(addresses)?)?)
}

/// Connects a TCP socket, which blocks, within a time limit.
///
/// # Errors
///
/// Those of [`TcpStream::connect_timeout`].
pub fn stream_within(address: &SocketAddr, limit: Duration) -> std::io::Result<TcpStream> {
    Ok(above_standard(TcpStream::connect_timeout(address, limit)?)?)
}

/// Begins to connect a TCP socket, as a stream that does not block. It is writable once it is
/// connected, or has failed: [`TcpStream::take_error`] has the reason.
///
/// # Errors
///
/// Those of `socket`, and of `connect` where the system has refused it at once.
pub fn begin_stream(address: &SocketAddr) -> Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = TcpStream::from(socket(family, SocketType::STREAM)?);
    match rustix::net::connect(&stream, address) {
        // A signal does not end a connect that has been begun.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(stream),
        Err(why) => Err(why),
    }
}

/// Accepts a connection, as a stream that does not block.
///
/// # Errors
///
/// [`Errno::AGAIN`]: none is there, if the listener does not block. Those of `accept4`.
pub fn accept_stream(listener: &TcpListener) -> Result<TcpStream> {
    loop {
        match accept(listener) {
            Err(Errno::INTR) => {}
            accepted => return accepted.map(TcpStream::from),
        }
    }
}
