//! The system calls of this transport that need `unsafe`: batches of datagrams with ancillary
//! bytes, single ones, the error queue, and the MTU of an interface.
//!
//! All pointers that the kernel sees are made in the call that passes them, from borrows that
//! outlive it.

#![allow(clippy::unnecessary_cast, reason = "C libraries do not agree on the types of lengths")]

use crate::address::{Name, is_v4, way};
use cci_mem::pages::Pages;
use cci_proto::{Address, wire};
use cci_reliable::Outgoing;
use cci_transport::LocalAddress;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::mem::zeroed;
use std::net::IpAddr;

/// Datagrams in one system call that sends.
pub(crate) const RUNS: usize = 64;
/// Pieces of memory in one system call that sends: the kernel takes 1,024 of them for one datagram,
/// and so do we for all.
pub(crate) const VECTORS: usize = 1024;
/// Room for ancillary bytes of a datagram: at most segment size, interface and TTL on the way out,
/// and class and segment size on the way in.
const CONTROL: usize = 128;
/// `IPV6_MULTICAST_ALL`, since Linux 4.20.
const IPV6_MULTICAST_ALL: i32 = 29;
/// `SO_NETNS_COOKIE`, since Linux 5.14.
const SO_NETNS_COOKIE: i32 = 71;

/// Frames that leave in one datagram of the system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first of them.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// Bytes of each but the last, when there are several.
    pub(crate) segment: u16,
}

/// Ancillary bytes, aligned as their headers are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control<const N: usize>([u8; N]);

/// A word of the ancillary bytes that the kernel wrote.
struct Word<'a> {
    level: i32,
    kind: i32,
    bytes: &'a [u8],
}

impl<const N: usize> Control<N> {
    const EMPTY: Self = Self([0; N]);

    /// Appends a word of this level and kind; returns how much is used then.
    fn put(&mut self, used: usize, level: i32, kind: i32, bytes: &[u8]) -> usize {
        let len = u32::try_from(bytes.len()).unwrap_or(0);
        // SAFETY: arithmetic only.
        let (space, whole, start) =
            unsafe { (libc::CMSG_SPACE(len) as usize, libc::CMSG_LEN(len) as usize, libc::CMSG_LEN(0) as usize) };
        let Some(header_bytes) = self.0.get_mut(used..used + space) else { return used };
        // SAFETY: all zeroes is a valid header.
        let mut header: libc::cmsghdr = unsafe { zeroed() };
        header.cmsg_len = whole as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        // SAFETY: `header_bytes` has room for a header and more; unaligned writes need no
        // alignment.
        unsafe { header_bytes.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header) };
        header_bytes[start..start + bytes.len()].copy_from_slice(bytes);
        used + space
    }

    /// The words in the first `used` bytes.
    fn words(&self, used: usize) -> impl Iterator<Item = Word<'_>> {
        let mut rest = &self.0[..used.min(N)];
        std::iter::from_fn(move || {
            // SAFETY: arithmetic only.
            let start = unsafe { libc::CMSG_LEN(0) as usize };
            if rest.len() < start {
                return None;
            }
            // SAFETY: there are bytes enough for a header, of which any are valid; unaligned reads
            // need no alignment.
            let header = unsafe { rest.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
            let whole = header.cmsg_len as usize;
            let bytes = rest.get(start..whole)?;
            // SAFETY: arithmetic only.
            let space = unsafe { libc::CMSG_SPACE(u32::try_from(bytes.len()).unwrap_or(0)) as usize };
            rest = rest.get(space..).unwrap_or(&[]);
            Some(Word { level: header.cmsg_level, kind: header.cmsg_type, bytes })
        })
    }
}

fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// The number of datagrams or bytes that a call returned, or its error. The calls of the fast path
/// go straight to the system: the C library's are cancellation points, which costs a program with
/// threads two locked instructions each time.
fn counted(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| last_error())
}

/// An endpoint's own IPv4 address, and the interface that it is on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Home {
    pub(crate) interface: u32,
    pub(crate) ip: [u8; 4],
}

/// Whether datagrams carry a destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Each says it.
    Each,
    /// None does: all go to where the socket is connected. The kernel would look up the way for
    /// each that says it.
    Connected,
}

/// What a batch of datagrams to be sent is described in. Its pointers mean nothing between calls.
pub(crate) struct SendBatch {
    home: Home,
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    names: Box<[Name]>,
    controls: Box<[Control<CONTROL>]>,
}

// SAFETY: the pointers in the headers and vectors are written before each system call and not
// looked at after it.
unsafe impl Send for SendBatch {}

impl Home {
    /// Where frames to a group come from, on IPv4.
    pub(crate) fn of(local: &LocalAddress) -> Self {
        match local.ip {
            IpAddr::V4(ip) => Self { interface: local.index, ip: ip.octets() },
            IpAddr::V6(_) => Self::default(),
        }
    }
}

impl SendBatch {
    pub(crate) fn new(home: Home) -> Self {
        // SAFETY: all zeroes is a valid header.
        let header: libc::mmsghdr = unsafe { zeroed() };
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            home,
            headers: vec![header; RUNS].into_boxed_slice(),
            vectors: vec![vector; VECTORS].into_boxed_slice(),
            names: vec![Name::EMPTY; RUNS].into_boxed_slice(),
            controls: vec![Control::EMPTY; RUNS].into_boxed_slice(),
        }
    }

    /// Sends runs of frames: one datagram each, or one for the kernel to cut. Says how many runs it
    /// took.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: &[Outgoing<'_>],
        runs: &[Run],
        naming: Naming,
    ) -> Result<usize, Errno> {
        let runs = &runs[..runs.len().min(RUNS)];
        if let [run] = runs
            && naming == Naming::Each
            && let Some(sent) = Self::send_single(socket, &frames[run.first..run.first + run.count])
        {
            return sent.map(|_| 1);
        }
        let mut used = 0;
        for (at, run) in runs.iter().enumerate() {
            used = self.describe(at, used, &frames[run.first..run.first + run.count], run.segment, naming);
        }
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        // SAFETY: the first `runs.len()` headers were just written; they point to names, controls
        // and vectors of this batch, and those to the frames that the caller lends. The kernel only
        // reads, and checks the addresses of registered memory.
        let taken = unsafe {
            match runs.len() {
                0 => 0,
                1 => libc::syscall(libc::SYS_sendmsg, fd, &raw const (*headers).msg_hdr, libc::MSG_DONTWAIT).min(1),
                count => libc::syscall(libc::SYS_sendmmsg, fd, headers, count as libc::c_uint, libc::MSG_DONTWAIT),
            }
        };
        // An empty datagram counts as one too.
        counted(taken).map(|taken| if runs.len() == 1 { 1 } else { taken })
    }

    /// The call by which [`SendBatch::send`] sends these runs.
    pub(crate) fn call(frames: &[Outgoing<'_>], runs: &[Run]) -> &'static str {
        match (runs, frames) {
            ([Run { count: 1, .. }], [frame, ..]) if frame.piece.is_none() && way(&frame.to).is_none() => "sendto",
            ([_], _) => "sendmsg",
            _ => "sendmmsg",
        }
    }

    /// Sends a datagram that needs no header: one frame, in one piece, that goes where routes lead.
    /// The kernel would copy and check such a header, a twentieth of a datagram's way.
    fn send_single(socket: BorrowedFd<'_>, frames: &[Outgoing<'_>]) -> Option<Result<usize, Errno>> {
        let [frame] = frames else { return None };
        if frame.piece.is_some() || way(&frame.to).is_some() {
            return None;
        }
        let (fd, head, name) = (socket.as_raw_fd(), frame.head, Name::of(&frame.to));
        let (name, len) = (&raw const name.bytes, libc::c_long::from(name.len));
        // SAFETY: the kernel reads `head` and the name, which outlive the call, as long as it is
        // told.
        Some(counted(unsafe {
            libc::syscall(libc::SYS_sendto, fd, head.as_ptr(), head.len(), libc::MSG_DONTWAIT, name, len)
        }))
    }

    /// Writes the header of one datagram; returns how many vectors are used then.
    fn describe(&mut self, at: usize, first: usize, frames: &[Outgoing<'_>], segment: u16, naming: Naming) -> usize {
        let mut used = first;
        for frame in frames {
            self.vectors[used] =
                libc::iovec { iov_base: frame.head.as_ptr().cast_mut().cast(), iov_len: frame.head.len() };
            used += 1;
            if let Some(piece) = frame.piece.filter(|piece| !piece.is_empty()) {
                let iov_base = std::ptr::with_exposed_provenance_mut(piece.start());
                self.vectors[used] = libc::iovec { iov_base, iov_len: piece.len() };
                used += 1;
            }
        }
        let to = frames.first().map_or_else(Address::default, |frame| frame.to);
        let control = ancillary(&mut self.controls[at], segment, &to, self.home);
        let header = &mut self.headers[at].msg_hdr;
        (header.msg_name, header.msg_namelen) = (std::ptr::null_mut(), 0);
        if naming == Naming::Each {
            self.names[at] = Name::of(&to);
            header.msg_name = self.names[at].bytes.as_mut_ptr().cast();
            header.msg_namelen = self.names[at].len.into();
        }
        header.msg_iov = self.vectors[first..used].as_mut_ptr();
        header.msg_iovlen = (used - first) as _;
        header.msg_control = if control == 0 { std::ptr::null_mut() } else { self.controls[at].0.as_mut_ptr().cast() };
        header.msg_controllen = control as _;
        used
    }
}

/// Sends a datagram to where the socket is connected.
#[inline]
pub(crate) fn send_connected(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    let (fd, nowhere) = (socket.as_raw_fd(), std::ptr::null::<u8>());
    // SAFETY: the kernel reads `bytes`, which outlives the call, as long as it is told, and no
    // name.
    let taken =
        unsafe { libc::syscall(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), libc::MSG_DONTWAIT, nowhere, 0) };
    counted(taken).map(|_| ())
}

/// Writes what a datagram needs beside its bytes; returns how long that is.
fn ancillary(control: &mut Control<CONTROL>, segment: u16, to: &Address, home: Home) -> usize {
    let mut used = 0;
    if segment > 0 {
        used = control.put(used, libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
    }
    let Some(way) = way(to) else { return used };
    if is_v4(to) {
        // in_pktinfo: interface, local address, destination.
        let mut chosen = [0; 12];
        chosen[..4].copy_from_slice(&way.interface.to_ne_bytes());
        if way.interface == home.interface {
            // Otherwise IPv4 takes any address of the interface, and IPv6 the socket's own.
            chosen[4..8].copy_from_slice(&home.ip);
        }
        used = control.put(used, libc::IPPROTO_IP, libc::IP_PKTINFO, &chosen);
        control.put(used, libc::IPPROTO_IP, libc::IP_TTL, &i32::from(way.ttl).to_ne_bytes())
    } else {
        // in6_pktinfo: local address, interface.
        let mut chosen = [0; 20];
        chosen[16..].copy_from_slice(&way.interface.to_ne_bytes());
        used = control.put(used, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &chosen);
        control.put(used, libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &i32::from(way.ttl).to_ne_bytes())
    }
}

/// A datagram that has arrived, maybe several of equal length from one sender that the kernel has
/// put together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    pub(crate) from: Address,
    /// Bytes, all together.
    pub(crate) len: usize,
    /// Bytes of each but the last, if there are several.
    pub(crate) segment: usize,
    /// Marked "congestion experienced".
    pub(crate) congested: bool,
    /// Longer than the buffer.
    pub(crate) truncated: bool,
}

/// Buffers that datagrams arrive in.
pub(crate) struct RecvBatch {
    stride: usize,
    /// The last call took one datagram without a header for it: how long that is.
    single: Option<usize>,
    /// Who sent the last of those, as the system names it and as an address: mostly it is the same
    /// again.
    sender: (Name, Address),
    scratch: Pages,
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    names: Box<[Name]>,
    controls: Box<[Control<CONTROL>]>,
}

// SAFETY: the pointers in the headers and vectors are written before each system call and not
// looked at after it.
unsafe impl Send for RecvBatch {}

impl RecvBatch {
    /// `count` buffers of `stride` bytes. Their pages become real when datagrams touch them.
    pub(crate) fn new(count: usize, stride: usize) -> Result<Self, Errno> {
        // SAFETY: all zeroes is a valid header.
        let header: libc::mmsghdr = unsafe { zeroed() };
        let vector = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(Self {
            stride,
            single: None,
            sender: (Name::EMPTY, Address::default()),
            scratch: Pages::new(count * stride)?,
            headers: vec![header; count].into_boxed_slice(),
            vectors: vec![vector; count].into_boxed_slice(),
            names: vec![Name::EMPTY; count].into_boxed_slice(),
            controls: vec![Control::EMPTY; count].into_boxed_slice(),
        })
    }

    /// Buffers.
    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Takes up to `want` datagrams that have arrived; returns how many.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, want: usize) -> Result<usize, Errno> {
        let want = want.clamp(1, self.capacity());
        self.single = None;
        for (at, buffer) in self.scratch.chunks_exact_mut(self.stride).take(want).enumerate() {
            self.vectors[at] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: self.stride };
            let header = &mut self.headers[at].msg_hdr;
            header.msg_name = self.names[at].bytes.as_mut_ptr().cast();
            header.msg_namelen = Name::EMPTY.len.into();
            header.msg_iov = &raw mut self.vectors[at];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[at].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
        }
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        // SAFETY: the first `want` headers were just written; each points to a name, a vector, a
        // control and a buffer of its own, all of them of this batch, which is borrowed mutably.
        unsafe {
            if want == 1 {
                let len =
                    counted(libc::syscall(libc::SYS_recvmsg, fd, &raw mut (*headers).msg_hdr, libc::MSG_DONTWAIT))?;
                (*headers).msg_len = len as libc::c_uint;
                return Ok(1);
            }
            let (count, no_timeout) = (want as libc::c_uint, std::ptr::null_mut::<libc::timespec>());
            counted(libc::syscall(libc::SYS_recvmmsg, fd, headers, count, libc::MSG_DONTWAIT, no_timeout))
        }
    }

    /// Takes one datagram if it has arrived, into the first buffer, and does not ask how it was
    /// marked: cheaper than [`RecvBatch::receive`], whose headers the kernel copies and checks.
    /// Frames that were put together are told apart by their lengths. `only`: who alone can have
    /// sent it, so that the kernel is not asked that either.
    pub(crate) fn receive_single(&mut self, socket: BorrowedFd<'_>, only: Option<Address>) -> Result<usize, Errno> {
        self.single = None;
        if let Some(only) = only {
            self.single = Some(self.receive_unnamed(socket)?);
            self.sender = (Name::EMPTY, only);
            return Ok(1);
        }
        let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        let mut name_len = libc::socklen_t::from(Name::EMPTY.len);
        let (buffer, name) = (self.scratch.as_mut_ptr(), self.names[0].bytes.as_mut_ptr());
        // SAFETY: the kernel writes at most `stride` bytes to the first buffer, which is as long,
        // and at most `name_len` to the first name; both are of this batch, which is borrowed
        // mutably.
        let taken =
            unsafe { libc::syscall(libc::SYS_recvfrom, fd, buffer, self.stride, flags, name, &raw mut name_len) };
        self.single = Some(counted(taken)?);
        let name = Name { bytes: self.names[0].bytes, len: u8::try_from(name_len).unwrap_or(0) };
        if name != self.sender.0 {
            self.sender = (name, name.address(name.len.into()));
        }
        Ok(1)
    }

    fn receive_unnamed(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let (fd, flags, nowhere) =
            (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_TRUNC, std::ptr::null_mut::<u8>());
        let buffer = self.scratch.as_mut_ptr();
        // SAFETY: the kernel writes at most `stride` bytes to the first buffer, which is as long
        // and of this batch, which is borrowed mutably; and no name.
        let taken = unsafe { libc::syscall(libc::SYS_recvfrom, fd, buffer, self.stride, flags, nowhere, nowhere) };
        counted(taken)
    }

    /// The datagram that [`RecvBatch::receive_single`] took.
    fn lone_arrival(&self, len: usize) -> Arrival {
        let held = len.min(self.stride);
        let segment = wire::claimed_len(&self.scratch[..held]).filter(|frame| *frame < len).unwrap_or(0);
        Arrival { from: self.sender.1, len: held, segment, congested: false, truncated: len > self.stride }
    }

    /// What arrived in a buffer in the last call.
    pub(crate) fn arrival(&self, at: usize) -> Arrival {
        if let Some(len) = self.single {
            return self.lone_arrival(len);
        }
        let header = &self.headers[at];
        let mut arrival = Arrival {
            from: self.names[at].address(header.msg_hdr.msg_namelen as usize),
            len: (header.msg_len as usize).min(self.stride),
            segment: 0,
            congested: false,
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        };
        for word in self.controls[at].words(header.msg_hdr.msg_controllen as usize) {
            match (word.level, word.kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => arrival.segment = usize::try_from(number(word.bytes)).unwrap_or(0),
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    // RFC 3168: the two lowest bits, and both of them are "congestion experienced".
                    arrival.congested = number(word.bytes) & 3 == 3;
                }
                _ => {}
            }
        }
        arrival
    }

    /// Bytes of a buffer.
    pub(crate) fn bytes(&self, at: usize) -> &[u8] {
        &self.scratch[at * self.stride..(at + 1) * self.stride]
    }
}

/// A number of ancillary bytes: one byte, two, or four.
fn number(bytes: &[u8]) -> i32 {
    match *bytes {
        [a] => i32::from(a),
        [a, b] => i32::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d, ..] => i32::from_ne_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// An entry of a socket's error queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Where the datagram went that caused it.
    pub(crate) to: Address,
    /// Bytes of it that were quoted.
    pub(crate) quoted: usize,
    /// `SO_EE_ORIGIN_*`.
    pub(crate) origin: u8,
    /// Type and code of the ICMP message.
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// For "too big": the MTU.
    pub(crate) mtu: u32,
    pub(crate) errno: i32,
    /// Who sent the ICMP message; port 0.
    pub(crate) by: Option<Address>,
}

/// Takes the oldest entry of a socket's error queue, and the datagram's first bytes with it.
pub(crate) fn take_report(socket: BorrowedFd<'_>, quoted: &mut [u8]) -> Result<Report, Errno> {
    let mut name = Name::EMPTY;
    let mut control = Control::<512>::EMPTY;
    let mut vector = libc::iovec { iov_base: quoted.as_mut_ptr().cast(), iov_len: quoted.len() };
    // SAFETY: all zeroes is a valid header.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_name = name.bytes.as_mut_ptr().cast();
    header.msg_namelen = name.len.into();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: the header points to locals that outlive the call, with their lengths.
    let taken = unsafe {
        libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    let len = counted(taken)?;
    let to = name.address(header.msg_namelen as usize);
    let mut report =
        Report { to, quoted: len.min(quoted.len()), origin: 0, kind: 0, code: 0, mtu: 0, errno: 0, by: None };
    for word in control.words(header.msg_controllen as usize) {
        // sock_extended_err: errno u32, origin, type, code, padding, info u32.
        if let (
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
            [_, _, _, _, rest @ ..],
        ) = ((word.level, word.kind), word.bytes)
            && let [origin, kind, code, _, a, b, c, d, ..] = *rest
        {
            (report.origin, report.kind, report.code) = (origin, kind, code);
            report.mtu = u32::from_ne_bytes([a, b, c, d]);
            report.errno = number(word.bytes);
            report.by = offender(word.bytes);
        }
    }
    Ok(report)
}

/// The name that follows a `sock_extended_err` of 16 bytes; `None` when nobody is named.
fn offender(bytes: &[u8]) -> Option<Address> {
    let mut name = Name::EMPTY;
    let from = bytes.get(16..)?;
    let len = from.len().min(name.bytes.len());
    name.bytes[..len].copy_from_slice(&from[..len]);
    let address = name.address(len);
    (address != Address::default()).then_some(address)
}

/// Options of a UDP socket whose value is a number, where `rustix` has no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// ICMP errors are kept with what they quote.
    Reports,
    /// Do not fragment, and do not believe the kernel's idea of the path.
    Probe,
    /// Datagrams of one sender may arrive put together.
    Coalesce,
    /// Datagrams to groups that other sockets joined arrive too.
    AllGroups,
}

/// Sets an option.
pub(crate) fn choose(socket: BorrowedFd<'_>, is_v4: bool, choice: Choice, value: i32) -> Result<(), Errno> {
    let (level, name) = match (choice, is_v4) {
        (Choice::Reports, true) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        (Choice::Reports, false) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        (Choice::Probe, true) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
        (Choice::Probe, false) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
        (Choice::Coalesce, _) => (libc::SOL_UDP, libc::UDP_GRO),
        (Choice::AllGroups, true) => (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
        (Choice::AllGroups, false) => (libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL),
    };
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is valid for the call, and `len` is how large it is.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Whether two sockets are of one network name space. False where the system does not report it.
pub(crate) fn is_same_network(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    same_network(a, b) == Some(true)
}

/// Whether two sockets are of one network name space; `None`: the system does not report it.
pub(crate) fn same_network(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> Option<bool> {
    let cookie = |socket: BorrowedFd<'_>| {
        let (mut cookie, mut len) = (0_u64, size_of::<u64>() as libc::socklen_t);
        // SAFETY: `cookie` and `len` are valid for the call, and `len` is how large the first is.
        let done = unsafe {
            let value = (&raw mut cookie).cast();
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, value, &raw mut len)
        };
        (done == 0).then_some(cookie)
    };
    Some(cookie(a)? == cookie(b)?)
}

/// The MTU of an interface, bytes of an IP packet.
pub(crate) fn interface_mtu(socket: BorrowedFd<'_>, name: &str) -> Result<u32, Errno> {
    // SAFETY: all zeroes is a valid request.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request is valid for the call, and its name is NUL-terminated.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if done != 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just filled in this member of the union.
    Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}
