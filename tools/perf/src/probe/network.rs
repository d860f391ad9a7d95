//! Probes over the loop-back interface: UDP and TCP with nothing on top, between the two processes
//! of a run.
//!
//! Each side makes its sockets when it prepares for its first block, leaves its port in the shared
//! memory, and meets the other side there. What strangers send or connect to is closed and dropped
//! by its port. Streams are kept from overflowing the receiver by a
//! count of taken bytes in the shared memory: the cheapest acknowledgement that there is.

use super::buffer::Buffer;
use super::shared::{PORTS, Shared, TAKEN};
use super::side::Side;
use crate::meeting::{Caller, accept_from, receive_only_from};
use cci_report::names::ProbeKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a segment of the stream. By trial: of 1,472 to 65,000 bytes, 7 segments of 8,952 were
/// the fastest (8.3 GB/s, where 44 of 1,472 gave 6.3 and one of 65,000 gave 6.4), and the probe has
/// to be the best that the machine does.
const SEGMENT: usize = 8952;
/// Segments of a datagram that the kernel cuts: its limit before Linux 6.9.
const SEGMENTS: usize = 64;
/// Bytes of a datagram that the kernel cuts: an IPv4 packet less its headers.
const LARGEST_DATAGRAM: usize = 65_507;
/// Bytes of the sockets' buffers that are asked for.
const BUFFER: usize = 4 << 20;
/// Bytes of a stream on their way, at most. By trial: 2 MiB are no faster.
const WINDOW: usize = 1 << 20;
/// What a small datagram takes up of a receive buffer, bytes, at most.
const SMALL: usize = 4096;
/// Bytes of a write to TCP, and of a read. By trial: of 64 KiB to 1 MiB each the fastest, with
/// buffers of 4 MiB rather than those that the kernel chooses.
const TCP_WRITE: usize = 1 << 20;
const TCP_READ: usize = 256 << 10;
/// Memory of a side, bytes, at least: a datagram, or what TCP takes at once.
pub(super) const LEAST_MEMORY: usize = TCP_WRITE;
/// How long a side waits for the other: something was lost, or it is gone.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Places of the ports, for both sides: of sockets for exchanges, for streams, for TCP, and for TCP
/// without sleep.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Place {
    Exchange = 0,
    Stream = 2,
    Tcp = 4,
    TcpPolled = 6,
}

pub(super) fn port(shared: &Shared, place: Place, side: Side) -> &AtomicU64 {
    shared.word(PORTS + 8 * (place as usize + usize::from(side == Side::Server)))
}

/// Beside the port of a UDP socket: it receives from the other side alone.
const IS_CONNECTED: u64 = 1 << 16;

/// The sockets of one side.
#[derive(Default)]
pub(super) struct Network {
    exchange: Option<Udp>,
    stream: Option<Udp>,
    listener: Option<TcpListener>,
    tcp: Option<TcpStream>,
    /// Bytes of both streams so far.
    moved: u64,
}

struct Udp {
    socket: UdpSocket,
    is_connected: bool,
    /// Bytes of receive buffer for datagrams.
    room: usize,
}

impl Udp {
    /// A socket of the loop-back interface, whose port is left for the other side.
    fn open(shared: &Shared, place: Place, side: Side) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        port(shared, place, side).store(socket.local_addr()?.port().into(), Ordering::Release);
        Ok(Self { socket, is_connected: false, room: 0 })
    }

    /// Makes room for a stream, and has datagrams put together.
    fn for_streams(mut self) -> io::Result<Self> {
        enlarge(self.socket.as_fd())?;
        // The kernel keeps the double for its own overhead.
        self.room = sockopt::socket_recv_buffer_size(&self.socket)? / 2;
        set(&self.socket, libc::UDP_GRO, 1)?;
        Ok(self)
    }

    /// Connects to the other side, which leaves its port about now. Neither side sends before both
    /// have connected.
    fn exchange_addresses(&mut self, shared: &Shared, place: Place, side: Side) -> io::Result<()> {
        if self.is_connected {
            return Ok(());
        }
        receive_only_from(&self.socket, await_port(shared, place, side.other())?)?;
        port(shared, place, side).fetch_or(IS_CONNECTED, Ordering::Release);
        let mut limit = WaitLimit::default();
        while port(shared, place, side.other()).load(Ordering::Acquire) & IS_CONNECTED == 0 {
            limit.tick()?;
        }
        self.is_connected = true;
        Ok(())
    }
}

/// Asks for large buffers.
fn enlarge(socket: BorrowedFd<'_>) -> io::Result<()> {
    // The first of each needs a privilege; the second is cut by the system's limit.
    if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, BUFFER)?;
    }
    if sockopt::set_socket_send_buffer_size_force(socket, BUFFER).is_err() {
        sockopt::set_socket_send_buffer_size(socket, BUFFER)?;
    }
    Ok(())
}

/// Sets an option of UDP whose value is a number.
fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is valid for the call, and `len` says how large it is.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits for the port of the other side.
fn await_port(shared: &Shared, place: Place, of: Side) -> io::Result<u16> {
    let word = port(shared, place, of);
    let mut limit = WaitLimit::default();
    loop {
        match u16::try_from(word.load(Ordering::Acquire) & !IS_CONNECTED) {
            Ok(0) => limit.tick()?,
            port => return port.map_err(|_| ErrorKind::InvalidData.into()),
        }
    }
}

/// Listens at a port of the loop-back interface, which is left for the other side.
pub(super) fn listen(shared: &Shared, place: Place, side: Side) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    port(shared, place, side).store(listener.local_addr()?.port().into(), Ordering::Release);
    Ok(listener)
}

/// A stream between both sides, of which one listens: it accepts the port of the other side alone.
pub(super) fn connect(
    shared: &Shared,
    place: Place,
    side: Side,
    listener: Option<&TcpListener>,
) -> io::Result<TcpStream> {
    if let Some(listener) = listener {
        let caller = await_port(shared, place, side.other())?;
        return accept_from(listener, |from| from == caller, LONGEST_WAIT, || Ok(()));
    }
    let caller = Caller::new()?;
    port(shared, place, side).store(caller.port().into(), Ordering::Release);
    caller.call(await_port(shared, place, side.other())?)?.finish(LONGEST_WAIT)
}

/// Bounds a wait without reading the clock at each look.
#[derive(Default)]
pub(super) struct WaitLimit {
    looks: u32,
    since: Option<Instant>,
}

impl WaitLimit {
    #[inline]
    pub(super) fn tick(&mut self) -> io::Result<()> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(1 << 12) {
            self.check()?;
        }
        Ok(())
    }

    #[cold]
    fn check(&mut self) -> io::Result<()> {
        if self.since.get_or_insert_with(Instant::now).elapsed() < LONGEST_WAIT {
            return Ok(());
        }
        Err(io::Error::new(
            ErrorKind::TimedOut,
            "nothing from the other side: a datagram was lost, or that process ended",
        ))
    }
}

impl Network {
    /// Makes the sockets of a probe of this kind, if it is one of these.
    pub(super) fn prepare(&mut self, shared: &Shared, side: Side, kind: ProbeKind, size: usize) -> io::Result<()> {
        let too_large = |most: usize| {
            io::Error::new(ErrorKind::InvalidInput, format!("a datagram has at most {most} bytes, not {size}"))
        };
        match kind {
            ProbeKind::Udp | ProbeKind::UdpWake | ProbeKind::UdpMessages if size > LARGEST_DATAGRAM => {
                return Err(too_large(LARGEST_DATAGRAM));
            }
            ProbeKind::Udp | ProbeKind::UdpWake if self.exchange.is_none() => {
                self.exchange = Some(Udp::open(shared, Place::Exchange, side)?);
            }
            ProbeKind::UdpStream | ProbeKind::UdpMessages if self.stream.is_none() => {
                self.stream = Some(Udp::open(shared, Place::Stream, side)?.for_streams()?);
            }
            ProbeKind::Tcp if side == Side::Server && self.listener.is_none() => {
                self.listener = Some(listen(shared, Place::Tcp, side)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Connects what is not yet connected: before the block, not in it.
    pub(super) fn exchange_addresses(&mut self, shared: &Shared, side: Side, kind: ProbeKind) -> io::Result<()> {
        match kind {
            ProbeKind::Udp | ProbeKind::UdpWake => {
                made(&mut self.exchange)?.exchange_addresses(shared, Place::Exchange, side)
            }
            ProbeKind::UdpStream | ProbeKind::UdpMessages => {
                made(&mut self.stream)?.exchange_addresses(shared, Place::Stream, side)
            }
            ProbeKind::Tcp if self.tcp.is_none() => self.connect_tcp(shared, side),
            _ => Ok(()),
        }
    }

    fn connect_tcp(&mut self, shared: &Shared, side: Side) -> io::Result<()> {
        let stream = connect(shared, Place::Tcp, side, self.listener.as_ref())?;
        stream.set_nodelay(true)?;
        enlarge(stream.as_fd())?;
        stream.set_read_timeout(Some(LONGEST_WAIT))?;
        stream.set_write_timeout(Some(LONGEST_WAIT))?;
        self.tcp = Some(stream);
        Ok(())
    }

    /// Half round trips: a datagram there, one back. `sleeps`: in `poll`, as an event loop does.
    pub(super) fn exchange(
        &mut self,
        side: Side,
        buffer: &mut Buffer,
        size: usize,
        count: u64,
        sleeps: bool,
    ) -> io::Result<()> {
        let socket = &made(&mut self.exchange)?.socket;
        let bytes = buffer.bytes_mut();
        for _ in 0..count {
            if side == Side::Client {
                socket.send(&bytes[..size])?;
            }
            receive(socket, bytes, sleeps)?;
            if side == Side::Server {
                socket.send(&bytes[..size])?;
            }
        }
        Ok(())
    }

    /// A stream of datagrams that the kernel cuts and puts together, none of which is lost.
    pub(super) fn stream(
        &mut self,
        shared: &Shared,
        side: Side,
        buffer: &mut Buffer,
        kind: ProbeKind,
        amount: Amount,
    ) -> io::Result<()> {
        let segment = if kind == ProbeKind::UdpMessages { amount.size.max(1) } else { SEGMENT };
        let batch = segment * (LARGEST_DATAGRAM / segment).clamp(1, SEGMENTS);
        let udp = made(&mut self.stream)?;
        let taken = shared.word(TAKEN);
        let end = self.moved + amount.bytes();
        match side {
            Side::Client => {
                let option = libc::c_int::try_from(segment).map_err(|_| ErrorKind::InvalidInput)?;
                set(&udp.socket, libc::UDP_SEGMENT, option)?;
                let most = udp.room / batch.max(SMALL) * batch;
                let window = most.clamp(batch, WINDOW.max(batch)) as u64;
                send_all(&udp.socket, taken, buffer.bytes_mut(), batch, window, self.moved..end)?;
            }
            Side::Server => take_all(&udp.socket, taken, buffer.bytes_mut(), self.moved..end)?,
        }
        self.moved = end;
        Ok(())
    }

    /// A stream over TCP. Ends when the last byte has been read.
    pub(super) fn tcp(&mut self, shared: &Shared, side: Side, buffer: &mut Buffer, amount: Amount) -> io::Result<()> {
        let stream = made(&mut self.tcp)?;
        let taken = shared.word(TAKEN);
        let bytes = buffer.bytes_mut();
        let most = if side == Side::Client { TCP_WRITE } else { TCP_READ };
        let (mut left, mut at) = (amount.bytes(), 0);
        let end = self.moved + left;
        while left > 0 {
            let len = most.min(usize::try_from(left).unwrap_or(most));
            if at + len > bytes.len() {
                at = 0;
            }
            let moved = match side {
                Side::Client => stream.write(&bytes[at..at + len])?,
                Side::Server => stream.read(&mut bytes[at..at + len])?,
            };
            if moved == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            left -= moved as u64;
            at += moved;
        }
        self.moved = end;
        match side {
            Side::Client => await_taken(taken, end),
            Side::Server => {
                taken.store(end, Ordering::Release);
                Ok(())
            }
        }
    }
}

/// What a block of a stream moves.
#[derive(Clone, Copy)]
pub(super) struct Amount {
    /// Bytes of a message.
    pub(super) size: usize,
    /// Messages.
    pub(super) count: u64,
}

impl Amount {
    pub(super) fn bytes(self) -> u64 {
        self.size.max(1) as u64 * self.count
    }
}

/// What `prepare` or `exchange_addresses` has made.
pub(super) fn made<T>(socket: &mut Option<T>) -> io::Result<&mut T> {
    socket.as_mut().ok_or_else(|| ErrorKind::NotConnected.into())
}

#[inline]
fn receive(socket: &UdpSocket, bytes: &mut [u8], sleeps: bool) -> io::Result<()> {
    let mut limit = WaitLimit::default();
    loop {
        if sleeps {
            let limit = Timespec { tv_sec: LONGEST_WAIT.as_secs().cast_signed(), tv_nsec: 0 };
            if poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)) == Ok(0) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        match socket.recv(bytes) {
            Ok(_) => return Ok(()),
            Err(error) if is_again(&error) => limit.tick()?,
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Sends these bytes of the stream, never more than `window` ahead of what was taken, and waits
/// until all were.
fn send_all(
    socket: &UdpSocket,
    taken: &AtomicU64,
    bytes: &[u8],
    batch: usize,
    window: u64,
    range: std::ops::Range<u64>,
) -> io::Result<()> {
    let (mut sent, mut at) = (range.start, 0);
    while sent < range.end {
        let len = batch.min(usize::try_from(range.end - sent).unwrap_or(batch));
        let mut limit = WaitLimit::default();
        while sent + len as u64 > taken.load(Ordering::Acquire) + window {
            limit.tick()?;
        }
        if at + len > bytes.len() {
            at = 0;
        }
        match socket.send(&bytes[at..at + len]) {
            Ok(_) => {
                sent += len as u64;
                at += len;
            }
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    await_taken(taken, range.end)
}

pub(super) fn await_taken(taken: &AtomicU64, end: u64) -> io::Result<()> {
    let mut limit = WaitLimit::default();
    while taken.load(Ordering::Acquire) != end {
        limit.tick()?;
    }
    Ok(())
}

/// Receives these bytes of the stream, and says of each datagram that it was taken.
fn take_all(socket: &UdpSocket, taken: &AtomicU64, bytes: &mut [u8], range: std::ops::Range<u64>) -> io::Result<()> {
    let (mut received, mut at) = (range.start, 0);
    let mut limit = WaitLimit::default();
    while received < range.end {
        if at + LARGEST_DATAGRAM > bytes.len() {
            at = 0;
        }
        match socket.recv(&mut bytes[at..at + LARGEST_DATAGRAM]) {
            Ok(len) => {
                received += len as u64;
                at += len;
                limit = WaitLimit::default();
                taken.store(received, Ordering::Release);
            }
            Err(error) if is_again(&error) => limit.tick()?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
