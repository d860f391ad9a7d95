//! Error reports: ICMP messages and local errors of frames that did not arrive.

use crate::address;
use crate::socket::{How, MAX_FRAME, overhead};
use crate::sys::{Report, is_same_network, take_report};
use cci_mem::descriptors;
use cci_mem::memory::Span;
use cci_proto::Address;
use cci_reliable::{Incoming, Outgoing};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{AddressFamily, SocketType, bind, getsockname};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// Bytes that are kept of a frame that was too long: a frame header and more.
const QUOTED: usize = 64;
/// Frames that were too long, and frames that were refused, which are remembered until the next
/// look.
const REMEMBERED: usize = 8;
/// Pieces of unreadable memory that are remembered until the next look. What is not remembered
/// fails again.
const FAULTS: usize = 16;
/// Room for what the network quotes; Linux and most routers quote no more than 576 bytes, some a
/// whole packet.
const ROOM: usize = 2048;
/// Entries of the error queue taken at a time.
const AT_ONCE: usize = 16;

/// The beginning of a frame that this host itself does not take.
#[derive(Clone, Copy, Debug)]
struct Quote {
    to: Address,
    quoted: [u8; QUOTED],
    len: usize,
}

impl Quote {
    fn of(frame: &Outgoing<'_>) -> Self {
        let len = frame.head.len().min(QUOTED);
        let mut quoted = [0; QUOTED];
        quoted[..len].copy_from_slice(&frame.head[..len]);
        Self { to: frame.to, quoted, len }
    }

    fn bytes(&self) -> &[u8] {
        &self.quoted[..self.len]
    }
}

/// Reads the error queue.
pub(super) struct Reports {
    /// The queue may hold something.
    pub(super) pending: bool,
    /// The system refuses all frames for good.
    pub(super) is_down: bool,
    oversized: Vec<Quote>,
    unreachable: Vec<Quote>,
    faults: Vec<Span>,
    room: Box<[u8]>,
    /// Largest frame that the interface takes: what is said when the system does not say.
    mtu: u16,
    /// Bytes of IP and UDP headers.
    overhead: u32,
    /// The peers are behind the outward socket.
    is_outward: bool,
    own: Own,
}

/// The host that last refused frames, and whether it is this one: the system is asked once for each
/// in a row.
#[derive(Default)]
struct Own(Option<(IpAddr, bool)>);

impl Own {
    fn is(&mut self, by: &Address, socket: BorrowedFd<'_>) -> bool {
        let ip = address::ip(by);
        match self.0 {
            Some((known, is_own)) if known == ip => is_own,
            _ => {
                let is_own = is_local(by, socket);
                self.0 = Some((ip, is_own));
                is_own
            }
        }
    }
}

/// Whether an address is one of the host of this socket: another can be bound to it. The thread may
/// have gone to another network name space, which says nothing about the socket's.
#[cold]
fn is_local(address: &Address, socket: BorrowedFd<'_>) -> bool {
    let (family, name) = match address::ip(address) {
        IpAddr::V4(ip) => (AddressFamily::INET, SocketAddr::from((ip, 0))),
        IpAddr::V6(ip) => (AddressFamily::INET6, SocketAddrV6::new(ip, 0, 0, address::scope(address)).into()),
    };
    let own = getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
    if name.ip().is_loopback() || own.is_some_and(|own| own.ip() == name.ip()) {
        return true;
    }
    let other = descriptors::socket(family, SocketType::DGRAM);
    other.is_ok_and(|other| is_same_network(socket, other.as_fd()) && bind(&other, &name).is_ok())
}

/// That no frame leaves or arrives any more by a bound socket: which peers are behind it.
#[cold]
pub(super) fn down(is_outward: bool) -> Incoming<'static> {
    let concerns = if is_outward { address::is_outward } else { address::is_by_own };
    Incoming::Down { concerns }
}

impl Reports {
    pub(super) fn new(mtu: u16, how: How) -> Self {
        Self {
            pending: false,
            is_down: false,
            oversized: Vec::with_capacity(REMEMBERED),
            unreachable: Vec::with_capacity(REMEMBERED),
            faults: Vec::with_capacity(FAULTS),
            room: vec![0; ROOM].into_boxed_slice(),
            mtu,
            overhead: overhead(how.is_v4),
            is_outward: how.is_outward,
            own: Own::default(),
        }
    }

    /// The system has refused a frame as too long. Beyond a few of them nothing new can be learned.
    pub(super) fn add_oversized(&mut self, frame: &Outgoing<'_>) {
        if self.oversized.len() < REMEMBERED {
            self.oversized.push(Quote::of(frame));
        }
    }

    /// The system does not let a frame leave for its address. What is not remembered is refused
    /// again.
    pub(super) fn add_unreachable(&mut self, frame: &Outgoing<'_>) {
        if self.unreachable.len() < REMEMBERED {
            self.unreachable.push(Quote::of(frame));
        }
    }

    /// The system cannot read this memory.
    pub(super) fn add_fault(&mut self, span: Span) {
        if self.faults.len() < FAULTS {
            self.faults.push(span);
        }
    }

    /// Shows what the queue holds, a few entries at a time; returns how many were shown.
    #[cold]
    pub(super) fn show(&mut self, socket: BorrowedFd<'_>, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let mut shown = self.faults.len();
        for span in self.faults.drain(..) {
            sink(Incoming::Faulted { span });
        }
        for frame in self.unreachable.drain(..) {
            shown += 1;
            // The route may change, so it is not final.
            sink(Incoming::Refused { to: frame.to, quoted: frame.bytes(), is_own: false });
        }
        if std::mem::take(&mut self.is_down) {
            shown += 1;
            sink(down(self.is_outward));
        }
        for _ in 0..AT_ONCE {
            let Ok(report) = take_report(socket, &mut self.room) else {
                self.pending = false;
                break;
            };
            shown += self.show_one(&report, socket, sink);
        }
        if !self.pending {
            let mtu = self.mtu;
            for frame in self.oversized.drain(..) {
                shown += 1;
                sink(Incoming::TooBig { to: frame.to, quoted: frame.bytes(), mtu });
            }
        }
        shown
    }

    /// As [`Reports::show`], of another socket's queue.
    #[cold]
    pub(super) fn show_beside(&mut self, socket: BorrowedFd<'_>, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let pending = std::mem::replace(&mut self.pending, true);
        let shown = self.show(socket, sink);
        self.pending = pending;
        shown
    }

    fn show_one(&mut self, report: &Report, socket: BorrowedFd<'_>, sink: &mut dyn FnMut(Incoming<'_>)) -> usize {
        let to = if self.is_outward { address::outward(report.to) } else { report.to };
        let quoted = &self.room[..report.quoted];
        let mtu = report.mtu.checked_sub(self.overhead).filter(|mtu| *mtu > 0);
        let mtu = mtu.map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX).min(MAX_FRAME));
        match (report.origin, report.kind, report.code) {
            // Port unreachable: RFC 792, RFC 4443 section 3.1.
            (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => {
                let is_own = report.by.is_some_and(|by| self.own.is(&by, socket));
                sink(Incoming::Refused { to, quoted: &self.room[..report.quoted], is_own });
                1
            }
            // Fragmentation needed: RFC 1191; packet too big: RFC 4443 section 3.2.
            (libc::SO_EE_ORIGIN_ICMP, 3, 4) | (libc::SO_EE_ORIGIN_ICMP6, 2, _) => {
                let Some(mtu) = mtu else { return 0 };
                sink(Incoming::TooBig { to, quoted, mtu });
                1
            }
            // This host's own word about a frame that it did not take: it quotes nothing, and names
            // the host only.
            (libc::SO_EE_ORIGIN_LOCAL, ..) if report.errno == libc::EMSGSIZE => {
                let Some(mtu) = mtu else { return 0 };
                let ip = address::ip(&to);
                let Some(at) = self.oversized.iter().position(|frame| address::ip(&frame.to) == ip) else { return 0 };
                let frame = self.oversized.remove(at);
                sink(Incoming::TooBig { to: frame.to, quoted: frame.bytes(), mtu });
                1
            }
            _ => 0,
        }
    }
}
