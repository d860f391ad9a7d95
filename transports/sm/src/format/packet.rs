//! Packets on a lane's Unix socket.

use crate::format::layout::{Geometry, RING_SHIFT, SEND_SIZES, SLOTS, VERSION};
use cci_mem::address_space::Tag;
use cci_mem::barrier::Pairing;
use cci_mem::cancellation::Uncancelled;
use cci_mem::descriptors;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::mem::MaybeUninit;

/// Bytes of a packet.
pub(crate) const PACKET: usize = 160;
const MAGIC: u64 = 0x0031_6d73_2d69_6363;
const TEXT: usize = 64;
/// Descriptors that one packet may carry; more are closed by the kernel and the packet counts as
/// truncated.
const MAX_FDS: usize = 3;
/// Bytes that a peer may leave unread, as asked for: the kernel doubles them, and counts some 768
/// for a packet.
const UNREAD: usize = 8192;
const FEATURE_MEMBARRIER: u32 = 1;
const FEATURE_PRESENT: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Hello = 1,
    Welcome = 2,
    Refuse = 3,
    Segment = 4,
    SegmentGone = 5,
    Registry = 6,
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) kind: Kind,
    pub(crate) version: u32,
    features: u32,
    pub(crate) max_send_size: u32,
    ring_shift: u32,
    slot_count: u32,
    slot_stride: u32,
    /// Bytes of the memory whose descriptor comes first: HELLO: the lane, SEGMENT: the segment,
    /// REGISTRY: the chunk.
    pub(crate) memory_len: u64,
    pub(crate) registry_len: u64,
    pub(crate) endpoint: [u64; 2],
    tag: [u64; 2],
    /// SEGMENT, SEGMENT_GONE: of the segment. REGISTRY: of the chunk, from 1 on. HELLO, WELCOME: of
    /// the lane, in the ready bitmap of the side that sends.
    pub(crate) number: u64,
    pub(crate) text: String,
}

impl Packet {
    /// A packet of this side; fields that its kind does not use are zero.
    pub(crate) fn new(kind: Kind, text: &str) -> Self {
        Self {
            kind,
            version: VERSION,
            features: 0,
            max_send_size: 0,
            ring_shift: RING_SHIFT,
            slot_count: SLOTS,
            slot_stride: 0,
            memory_len: 0,
            registry_len: 0,
            endpoint: [0; 2],
            tag: [0; 2],
            number: 0,
            text: text.chars().take(TEXT - 1).collect(),
        }
    }

    /// Says how this process fences.
    pub(crate) fn set_pairing(&mut self, pairing: Pairing) {
        self.set_feature(FEATURE_MEMBARRIER, pairing == Pairing::Asymmetric);
    }

    /// Says whether this side is alive while its program makes no calls.
    pub(crate) fn set_present(&mut self, is_present: bool) {
        self.set_feature(FEATURE_PRESENT, is_present);
    }

    /// Whether the sender is alive while its program makes no calls.
    pub(crate) fn is_present(&self) -> bool {
        self.features & FEATURE_PRESENT != 0
    }

    fn set_feature(&mut self, feature: u32, has: bool) {
        self.features = self.features & !feature | if has { feature } else { 0 };
    }

    /// How a lane of this process (`own`) and the packet's sender fences.
    pub(crate) fn pairing_with(&self, own: Pairing) -> Pairing {
        if self.features & FEATURE_MEMBARRIER == 0 { Pairing::Symmetric } else { own }
    }

    /// Says by what peers know this address space; `None`: by nothing.
    pub(crate) fn set_tag(&mut self, tag: Option<Tag>) {
        self.tag = tag.map_or([0; 2], |tag| [tag.address as u64, tag.value]);
    }

    /// The tag of the sender's address space; at address 0, where nothing lies, when it has none.
    pub(crate) fn tag(&self) -> Tag {
        Tag { address: usize::try_from(self.tag[0]).unwrap_or(0), value: self.tag[1] }
    }

    /// Says how the lane is laid out.
    pub(crate) fn set_geometry(&mut self, geometry: Geometry) {
        self.slot_stride = u32::try_from(geometry.stride).unwrap_or(0);
        self.memory_len = geometry.lane() as u64;
    }

    /// The layout of the lane that a HELLO offers, if this side can use it.
    pub(crate) fn geometry(&self) -> Result<Geometry, String> {
        if self.version != VERSION {
            return Err(format!("this side speaks lane layout {VERSION}, not {}", self.version));
        }
        let geometry = Geometry::new(self.max_send_size);
        let fits = SEND_SIZES.contains(&self.max_send_size)
            && self.ring_shift == RING_SHIFT
            && self.slot_count == SLOTS
            && self.slot_stride as usize == geometry.stride
            && self.memory_len == geometry.lane() as u64;
        if fits { Ok(geometry) } else { Err("the sizes of the lane do not fit its layout version".into()) }
    }

    pub(crate) fn to_bytes(&self) -> [u8; PACKET] {
        let mut bytes = [0; PACKET];
        put64(&mut bytes, 0, MAGIC);
        let words = [
            self.kind as u32,
            self.version,
            self.features,
            self.max_send_size,
            self.ring_shift,
            self.slot_count,
            self.slot_stride,
            std::process::id(),
        ];
        for (at, word) in words.into_iter().enumerate() {
            bytes[8 + 4 * at..12 + 4 * at].copy_from_slice(&word.to_ne_bytes());
        }
        let longs = [
            self.memory_len,
            self.registry_len,
            self.endpoint[0],
            self.endpoint[1],
            self.tag[0],
            self.tag[1],
            self.number,
        ];
        for (at, long) in longs.into_iter().enumerate() {
            put64(&mut bytes, 40 + 8 * at, long);
        }
        let text = self.text.as_bytes();
        let len = text.len().min(TEXT - 1);
        bytes[96..96 + len].copy_from_slice(&text[..len]);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PACKET] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if long(0) != MAGIC {
            return None;
        }
        let kind = match word(8) {
            1 => Kind::Hello,
            2 => Kind::Welcome,
            3 => Kind::Refuse,
            4 => Kind::Segment,
            5 => Kind::SegmentGone,
            6 => Kind::Registry,
            _ => return None,
        };
        let text = &bytes[96..96 + TEXT];
        let end = text.iter().position(|byte| *byte == 0)?;
        Some(Self {
            kind,
            version: word(12),
            features: word(16),
            max_send_size: word(20),
            ring_shift: word(24),
            slot_count: word(28),
            slot_stride: word(32),
            memory_len: long(40),
            registry_len: long(48),
            endpoint: [long(56), long(64)],
            tag: [long(72), long(80)],
            number: long(88),
            text: std::str::from_utf8(&text[..end]).ok()?.to_owned(),
        })
    }
}

fn put64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

/// Limits how much a peer can leave unread, to about 20 packets. Descriptors under way count for
/// the whole user, and the kernel sends no more when there are too many.
pub(crate) fn limit_unread(socket: impl AsFd) {
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(socket, UNREAD);
}

/// Sends a packet with descriptors, without blocking and without SIGPIPE.
pub(crate) fn send(socket: impl AsFd, packet: &Packet, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let bytes = packet.to_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
}

/// What came on a socket.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// Nothing now.
    Nothing,
    /// The other side has closed.
    Closed,
    /// The system refuses the call.
    Refused(Errno),
    /// A wake-up.
    Wake,
    /// A packet.
    Packet(Box<Packet>, Vec<OwnedFd>),
    /// Something that no peer of this library sends.
    Garbage,
}

/// Receives what is there, without blocking.
pub(crate) fn receive(socket: impl AsFd) -> Arrived {
    let mut bytes = [0; PACKET + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut take = || descriptors::receive(&socket, &mut bytes, &mut control, RecvFlags::DONTWAIT);
    // A peer that closes before it has read all gives this error once; what it has sent before
    // comes after it.
    let got = match take() {
        Err(Errno::CONNRESET) => take(),
        got => got,
    };
    let got = match got {
        Ok(got) => got,
        Err(Errno::AGAIN | Errno::INTR) => return Arrived::Nothing,
        Err(Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN) => return Arrived::Closed,
        Err(error) => return Arrived::Refused(error),
    };
    let fds: Vec<OwnedFd> = descriptors::received(&mut control).collect();
    match (got.bytes, Packet::parse(&bytes[..got.bytes])) {
        (1, _) if fds.is_empty() => Arrived::Wake,
        (_, Some(packet)) => Arrived::Packet(Box::new(packet), fds),
        (len, None) => {
            // Closing is a cancellation point.
            let _uncancelled = Uncancelled::new();
            drop(fds);
            if len == 0 { Arrived::Closed } else { Arrived::Garbage }
        }
    }
}

/// Sends a wake-up. A full buffer means that one is there already.
pub(crate) fn wake(socket: impl AsFd) {
    let _ = rustix::net::send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

#[cfg(test)]
mod tests {
    use super::{Geometry, Kind, PACKET, Packet, Pairing, VERSION};

    #[test]
    fn a_packet_survives_the_wire() {
        let mut packet = Packet::new(Kind::Hello, "sm://1/2");
        packet.max_send_size = 8192;
        packet.set_geometry(Geometry::new(8192));
        packet.endpoint = [1, 2];
        packet.number = u64::MAX;
        packet.set_present(true);
        packet.set_pairing(Pairing::Symmetric);
        assert!(packet.is_present());
        assert_eq!(Packet::parse(&packet.to_bytes()), Some(packet.clone()));
        assert_eq!(packet.geometry(), Ok(Geometry::new(8192)));
    }

    #[test]
    fn another_version_and_other_sizes_are_refused_with_a_sentence() {
        let mut packet = Packet::new(Kind::Hello, "");
        packet.max_send_size = 8192;
        packet.set_geometry(Geometry::new(8192));
        let good = packet.clone();
        packet.version = VERSION + 1;
        let expected = format!("layout {VERSION}, not {}", packet.version);
        assert!(packet.geometry().unwrap_err().contains(&expected));
        packet = Packet { slot_stride: good.slot_stride + 64, ..good.clone() };
        assert!(packet.geometry().is_err());
        packet = Packet { memory_len: good.memory_len - 4096, ..good.clone() };
        assert!(packet.geometry().is_err());
        packet = Packet { max_send_size: 1 << 30, ..good };
        assert!(packet.geometry().is_err());
    }

    #[test]
    fn no_bytes_make_parse_panic() {
        assert_eq!(Packet::parse(&[]), None);
        assert_eq!(Packet::parse(&[0xff; PACKET]), None);
        let mut bytes = Packet::new(Kind::Welcome, "x").to_bytes();
        bytes[96..].fill(b'a');
        assert_eq!(Packet::parse(&bytes), None, "text without end");
    }
}
