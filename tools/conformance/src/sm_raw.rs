//! The protocol of the transport `sm` spoken byte by byte (`docs/design/sm.md`), so that tests can
//! speak it wrongly.
//!
//! Nothing here is shared with the library: a peer is a Unix socket, three memfds, and what is
//! written into them. Where the document leaves sizes to the library they are learnt from a HELLO
//! of the library itself ([`learn`]).

use crate::world::{LIMIT, drain};
use cci::{Connect, Endpoint};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::io::{Errno, pread, pwrite};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, sendmsg,
    socket_with,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// Bytes of a packet of the handshake.
pub const PACKET: usize = 160;
/// Layout version of lanes.
pub const VERSION: u32 = 3;
/// Where the words of the direction from the endpoint begin; those to it begin at 0.
pub const BACK: u64 = 2048;
/// Where the rings of entries begin: to the endpoint, and from it.
pub const RINGS: [u64; 2] = [4096, 20480];
/// Offset of the word that announces a copy, in a direction.
pub const ANNOUNCE: u64 = 128;
/// Offset of the words that grant payload slots, in a direction.
pub const GRANTS: u64 = 256;
/// Where the payload slots to the endpoint begin.
pub const SLOTS: u64 = 36864;
/// Bytes of an endpoint's ready bitmap.
pub const READY_LEN: u64 = 4096;
/// Entries of a ring.
pub const ENTRIES: u64 = 256;

/// Kinds of packets.
pub mod packet_kind {
    /// From who connects.
    pub const HELLO: u32 = 1;
    /// The answer.
    pub const WELCOME: u32 = 2;
    /// The other answer, with a sentence.
    pub const REFUSE: u32 = 3;
    /// A segment of library memory.
    pub const SEGMENT: u32 = 4;
    /// It is not in use any more.
    pub const SEGMENT_GONE: u32 = 5;
    /// A further chunk of published registrations.
    pub const REGISTRY: u32 = 6;
}

/// Kinds of frames.
pub mod frame_kind {
    /// A message in its entry.
    pub const MESSAGE: u8 = 1;
    /// A message in a slot.
    pub const MESSAGE_SLOT: u8 = 2;
    /// A connection request.
    pub const CONNECT: u8 = 3;
    /// Its acceptance.
    pub const ACCEPT: u8 = 4;
    /// How a relayed RMA ended.
    pub const RESULT: u8 = 13;
    /// A word is to be changed by the owner.
    pub const FETCH_ADD: u8 = 16;
    /// As above.
    pub const COMPARE_SWAP: u8 = 17;
    /// What the word was.
    pub const VALUE: u8 = 18;
    /// The peer is asked whether it lives.
    pub const PING: u8 = 7;
    /// It does.
    pub const PONG: u8 = 8;
    /// Memory is asked for, for a large message.
    pub const LARGE: u8 = 19;
    /// The memory.
    pub const LANDING: u8 = 20;
    /// It is written.
    pub const LANDED: u8 = 21;
}

/// A packet of the handshake, as bytes.
#[derive(Clone, Debug)]
pub struct Packet(pub [u8; PACKET]);

/// Offsets of a packet's fields.
#[allow(missing_docs, reason = "as in the table of docs/design/sm.md")]
pub mod field {
    pub const MAGIC: usize = 0;
    pub const KIND: usize = 8;
    pub const VERSION: usize = 12;
    pub const FEATURES: usize = 16;
    pub const MAX_SEND_SIZE: usize = 20;
    pub const RING_SHIFT: usize = 24;
    pub const SLOT_COUNT: usize = 28;
    pub const SLOT_STRIDE: usize = 32;
    pub const PID: usize = 36;
    pub const LANE_LEN: usize = 40;
    pub const REGISTRY_LEN: usize = 48;
    pub const ENDPOINT: usize = 56;
    pub const SEGMENT: usize = 88;
    pub const TEXT: usize = 96;
}

impl Packet {
    /// A field of four bytes.
    pub fn word32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("4 bytes"))
    }

    /// A field of eight bytes.
    pub fn word64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("8 bytes"))
    }

    /// The same packet with another field of four bytes.
    #[must_use]
    pub fn with32(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// The same packet with another field of eight bytes.
    #[must_use]
    pub fn with64(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// The same packet with another text.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        self.0[field::TEXT..].fill(0);
        self.0[field::TEXT..field::TEXT + text.len()].copy_from_slice(text.as_bytes());
        self
    }

    /// The text.
    pub fn text(&self) -> String {
        let bytes = &self.0[field::TEXT..];
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)).into_owned()
    }
}

/// The abstract name of the endpoint at this URI.
///
/// # Panics
///
/// Not a URI of `sm`.
pub fn name_of(uri: &str) -> String {
    format!("cci-sm/{}", uri.strip_prefix("sm://").expect("a URI of sm"))
}

fn address(name: &str) -> SocketAddrUnix {
    SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a short name")
}

fn unix_socket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
        .expect("a socket")
}

/// Sends a packet with descriptors, without waiting.
///
/// # Errors
///
/// The other side has closed, or is full.
pub fn send_packet(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "room for all descriptors");
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(|_| ())
}

/// What came from a socket.
#[derive(Debug)]
pub enum Arrived {
    /// Nothing yet.
    Nothing,
    /// The other side has closed.
    Closed,
    /// A packet of the handshake.
    Packet(Box<Packet>, Vec<OwnedFd>),
    /// A packet of another length: a wake-up.
    Other(usize),
}

/// Receives one packet, without waiting.
///
/// # Panics
///
/// The socket fails in an unexpected way.
pub fn receive_packet(socket: BorrowedFd<'_>) -> Arrived {
    let mut bytes = [0; PACKET + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let len = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Ok(message) => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Arrived::Nothing,
        Err(Errno::CONNRESET | Errno::PIPE) => return Arrived::Closed,
        Err(error) => panic!("cannot receive: {error}"),
    };
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let descriptors = descriptors.collect();
    match len {
        0 => Arrived::Closed,
        PACKET => Arrived::Packet(Box::new(Packet(bytes[..PACKET].try_into().expect("its length"))), descriptors),
        other => Arrived::Other(other),
    }
}

/// A listener that takes the name of an endpoint.
pub struct RawListener {
    socket: OwnedFd,
    uri: String,
}

impl RawListener {
    /// Listens as endpoint `id` of this process; `backlog` connections may wait.
    ///
    /// # Panics
    ///
    /// The name is taken.
    pub fn bind(id: u32, backlog: i32) -> Self {
        let uri = format!("sm://{}/{id}", std::process::id());
        let socket = unix_socket();
        bind(&socket, &address(&name_of(&uri))).expect("a free name");
        listen(&socket, backlog).expect("a listener");
        Self { socket, uri }
    }

    /// What others connect to.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Accepts a connection, if one waits.
    pub fn accept(&self) -> Option<OwnedFd> {
        accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()
    }

    /// Accepts a connection, while `meanwhile` is called again and again.
    ///
    /// # Panics
    ///
    /// None comes.
    pub fn accept_while(&self, mut meanwhile: impl FnMut()) -> OwnedFd {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(socket) = self.accept() {
                return socket;
            }
            assert!(Instant::now() < deadline, "nobody connects");
            meanwhile();
        }
    }
}

/// Connects to an endpoint's socket and says nothing.
///
/// # Errors
///
/// Nobody listens, or the backlog is full.
pub fn raw_connect(uri: &str) -> Result<OwnedFd, Errno> {
    let socket = unix_socket();
    connect(&socket, &address(&name_of(uri)))?;
    Ok(socket)
}

/// Waits for a packet of the handshake, while `meanwhile` is called again and again; `None` when
/// the other side has closed.
///
/// # Panics
///
/// It stays silent.
pub fn await_packet(socket: BorrowedFd<'_>, mut meanwhile: impl FnMut()) -> Option<(Packet, Vec<OwnedFd>)> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match receive_packet(socket) {
            Arrived::Packet(packet, descriptors) => return Some((*packet, descriptors)),
            Arrived::Closed => return None,
            Arrived::Nothing | Arrived::Other(_) => meanwhile(),
        }
        assert!(Instant::now() < deadline, "the endpoint stays silent");
    }
}

/// Waits until the other side has closed, while `meanwhile` is called again and again.
///
/// # Panics
///
/// It does not close.
pub fn await_close(socket: BorrowedFd<'_>, mut meanwhile: impl FnMut()) {
    let deadline = Instant::now() + LIMIT;
    while !matches!(receive_packet(socket), Arrived::Closed) {
        assert!(Instant::now() < deadline, "the endpoint does not close the lane");
        meanwhile();
    }
}

/// The HELLO that an endpoint of this process sends: every field as the library fills it in. `id`
/// is any number that no endpoint of this process has.
///
/// # Panics
///
/// The endpoint does not connect.
pub fn learn(endpoint: &Endpoint, id: u32) -> Packet {
    let listener = RawListener::bind(id, 1);
    endpoint.connect(&Connect::to(listener.uri()).timeout(LIMIT)).expect("a connect");
    let poll = || {
        drain(endpoint);
    };
    let socket = listener.accept_while(poll);
    let (hello, descriptors) = await_packet(socket.as_fd(), poll).expect("a HELLO");
    assert_eq!((hello.word32(field::KIND), descriptors.len()), (packet_kind::HELLO, 3));
    let seals = fcntl_get_seals(&descriptors[0]).expect("a memfd");
    assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL), "the lane is not sealed");
    drop((socket, listener));
    let deadline = Instant::now() + LIMIT;
    while drain(endpoint) == 0 {
        assert!(Instant::now() < deadline, "the connect does not end");
    }
    hello
}

/// The seals that a lane must have.
pub const LANE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);
/// The seals of a registry.
pub const REGISTRY_SEALS: SealFlags = LANE_SEALS.union(SealFlags::FUTURE_WRITE);

/// A memfd of this size with these seals.
///
/// # Panics
///
/// No descriptor left.
pub fn memfd(len: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("cci-raw", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memfd");
    ftruncate(&fd, len).expect("its size");
    if !seals.is_empty() {
        fcntl_add_seals(&fd, seals).expect("its seals");
    }
    fd
}

/// A peer with a lane, which follows the protocol as far as its user lets it.
pub struct RawPeer {
    /// The socket.
    pub socket: OwnedFd,
    /// The lane.
    pub lane: OwnedFd,
    /// Bytes of the lane.
    pub len: u64,
    /// Payload slots of each direction.
    pub slot_count: u32,
    /// Bytes of a slot.
    pub slot_stride: u32,
    tail: u64,
    head: u64,
    /// This peer's bit in the endpoint's ready bitmap.
    pub bit: u64,
    /// This peer's own ready bitmap.
    pub ready: OwnedFd,
    /// The endpoint's registry and ready bitmap.
    pub theirs: Vec<OwnedFd>,
    _registry: OwnedFd,
}

impl RawPeer {
    /// Enters a lane with the endpoint at `uri`, with a HELLO as learnt, while `meanwhile` is
    /// called again and again.
    ///
    /// # Panics
    ///
    /// The endpoint does not welcome it.
    pub fn enter(uri: &str, hello: &Packet, mut meanwhile: impl FnMut()) -> Self {
        let socket = raw_connect(uri).expect("the endpoint listens");
        let len = hello.word64(field::LANE_LEN);
        let lane = memfd(len, LANE_SEALS);
        let registry = memfd(hello.word64(field::REGISTRY_LEN), REGISTRY_SEALS);
        let mut random = fastrand::Rng::new();
        let hello = hello
            .clone()
            .with32(field::PID, std::process::id())
            .with64(field::ENDPOINT, random.u64(..))
            .with64(field::ENDPOINT + 8, random.u64(..));
        let ready = memfd(READY_LEN, LANE_SEALS);
        let fds = [lane.as_fd(), registry.as_fd(), ready.as_fd()];
        send_packet(socket.as_fd(), &hello.0, &fds).expect("a fresh socket");
        let (answer, theirs) = await_packet(socket.as_fd(), &mut meanwhile).expect("an answer");
        assert_eq!(answer.word32(field::KIND), packet_kind::WELCOME, "refused: {}", answer.text());
        Self {
            socket,
            lane,
            len,
            slot_count: hello.word32(field::SLOT_COUNT),
            slot_stride: hello.word32(field::SLOT_STRIDE),
            tail: 0,
            head: 0,
            bit: answer.word64(field::SEGMENT),
            ready,
            theirs,
            _registry: registry,
        }
    }

    /// The endpoint's registry.
    ///
    /// # Panics
    ///
    /// Never: a WELCOME carries it.
    pub fn registry(&self) -> BorrowedFd<'_> {
        self.theirs.first().expect("of the WELCOME").as_fd()
    }

    /// Where the payload slots from the endpoint begin.
    pub fn back_slots(&self) -> u64 {
        SLOTS + (self.len - SLOTS) / 2
    }

    /// Writes into the lane.
    ///
    /// # Panics
    ///
    /// Outside of it.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        assert_eq!(pwrite(&self.lane, bytes, offset), Ok(bytes.len()));
    }

    /// Reads from the lane.
    ///
    /// # Panics
    ///
    /// Outside of it.
    pub fn read<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        assert_eq!(pread(&self.lane, &mut bytes, offset), Ok(N));
        bytes
    }

    /// Publishes a frame with this header and body, and wakes the endpoint.
    pub fn publish(&mut self, kind: u8, len: u8, word: u32, body: &[u8]) {
        self.publish_quietly(kind, len, word, body);
        self.wake();
    }

    /// Publishes a frame with this header and body.
    pub fn publish_quietly(&mut self, kind: u8, len: u8, word: u32, body: &[u8]) {
        let entry = RINGS[0] + (self.tail % ENTRIES) * 64;
        let lap = (self.tail / ENTRIES + 1) & 0xffff;
        let mut padded = [0; 56];
        padded[..body.len()].copy_from_slice(body);
        self.write(entry + 8, &padded);
        let header = lap << 48 | u64::from(kind) << 40 | u64::from(len) << 32 | u64::from(word);
        self.write(entry, &header.to_ne_bytes());
        self.tail += 1;
    }

    /// Sends a wake-up; a full or closed socket needs none.
    pub fn wake(&self) {
        let _ = send_packet(self.socket.as_fd(), &[1], &[]);
    }

    /// Whether another frame overwrites none that the endpoint may not have seen yet.
    pub fn has_room(&self) -> bool {
        let head = u32::from_ne_bytes(self.read(0));
        self.tail.wrapping_sub(u64::from(head)) & 0xffff_ffff < ENTRIES
    }

    /// Asks for a connection with this number of ours.
    pub fn request(&mut self, number: u32) {
        let body = words([0, 8192, u32::MAX, 0, 0, 0]);
        self.publish(frame_kind::CONNECT, 0, number, &body);
    }

    /// The next frame from the endpoint, if there is one: its kind, word and body.
    pub fn next_frame(&mut self) -> Option<(u8, u32, [u8; 56])> {
        let entry = RINGS[1] + (self.head % ENTRIES) * 64;
        let header = u64::from_ne_bytes(self.read(entry));
        if header >> 48 != (self.head / ENTRIES + 1) & 0xffff {
            return None;
        }
        let body = self.read(entry + 8);
        self.head += 1;
        if self.head.is_multiple_of(ENTRIES / 4) {
            let head = u32::try_from(self.head).expect("short tests");
            self.write(BACK, &head.to_ne_bytes());
        }
        Some((header.to_be_bytes()[2], u32::try_from(header & 0xffff_ffff).expect("cut"), body))
    }

    /// Asks for a connection and waits until it is accepted: the endpoint's number of it.
    ///
    /// # Panics
    ///
    /// It is not accepted.
    pub fn open_connection(&mut self, number: u32, mut meanwhile: impl FnMut()) -> u32 {
        self.request(number);
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some((frame_kind::ACCEPT, word, body)) = self.next_frame() {
                assert_eq!(word, number, "an ACCEPT for another connection");
                return u32::from_ne_bytes(body[..4].try_into().expect("4 bytes"));
            }
            assert!(Instant::now() < deadline, "no ACCEPT comes");
            meanwhile();
        }
    }

    /// Whether the endpoint has closed the lane.
    pub fn is_closed(&self) -> bool {
        loop {
            match receive_packet(self.socket.as_fd()) {
                Arrived::Nothing => return false,
                Arrived::Closed => return true,
                Arrived::Packet(..) | Arrived::Other(_) => {}
            }
        }
    }
}

/// Words as a frame's body has them.
pub fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
