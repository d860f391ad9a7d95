//! How two VIs find each other: the frames of questions over TCP, and who listens for them.

use crate::attributes::{Access, MAX_DISCRIMINATOR, Reliability, Tag, ViAttributes};
use crate::errors::Error;
use cci_admission::{Admission, Arrival, BURST, Failed, Limits, Origin};
use cci_ground::{readable, sleep_until_ready};
use cci_mem::descriptors;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Where a VI is found: a host, and what its program chose.
///
/// # Example
///
/// ```
/// let address = cci_via::Address::new(std::net::Ipv4Addr::LOCALHOST, b"service");
/// assert_eq!(address.discriminator, b"service");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a net address of VIPL")]
pub struct Address {
    /// The host.
    pub host: IpAddr,
    /// At most 64 bytes that both sides have chosen.
    pub discriminator: Vec<u8>,
}

impl Address {
    /// The address of a discriminator at a host.
    #[must_use]
    pub fn new(host: impl Into<IpAddr>, discriminator: &[u8]) -> Self {
        Self { host: host.into(), discriminator: discriminator.to_vec() }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.discriminator.len() {
            0 => Err(Error::Parameter("the discriminator is empty; choose 1 to 64 bytes")),
            length if length > MAX_DISCRIMINATOR => {
                Err(Error::Parameter("the discriminator has more than 64 bytes; choose a shorter one"))
            }
            _ => Ok(()),
        }
    }
}

/// Ports that a discriminator leads to, of this range, which no system gives out by itself.
pub(crate) const PORTS: usize = 8;
const FIRST_PORT: u64 = 16_384;
const PORT_COUNT: u64 = 16_384;
/// For how long clients may be connected that have not asked yet.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Clients that have connected and not asked yet.
const CALLERS: Limits = Limits { places: 64, patience: PATIENCE, bytes: 2 * LONGEST };
/// The longest frame, bytes.
const LONGEST: usize = 2_048;
/// What a question begins with, in each version of it.
const FAMILY: &[u8] = b"VIAq";
/// The same, and the version: the client keeps the stream until it is connected.
const MAGIC: &[u8] = b"VIAq\x03";

pub(crate) fn ports(discriminator: &[u8]) -> [u16; PORTS] {
    // FNV-1a: the same on every host.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let mut hash = discriminator.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    std::array::from_fn(|_| {
        hash = mix(hash, &0x5a);
        (FIRST_PORT + (hash >> 32) % PORT_COUNT) as u16
    })
}

fn emit_attributes(bytes: &mut Vec<u8>, attributes: &ViAttributes) {
    bytes.push(attributes.reliability.bits() as u8);
    bytes.push(u8::from(attributes.access.write) | u8::from(attributes.access.read) << 1);
    bytes.extend(attributes.max_transfer.to_le_bytes());
    bytes.extend(attributes.qos.to_le_bytes());
}

/// Reads a frame from its front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn attributes(&mut self) -> Option<ViAttributes> {
        let [level, access] = self.array()?;
        let reliability = Reliability::from_bits(level.into())?;
        let access = Access { write: access & 1 != 0, read: access & 2 != 0 };
        let max_transfer = u64::from_le_bytes(self.array()?);
        let qos = u64::from_le_bytes(self.array()?);
        Some(ViAttributes { reliability, max_transfer, qos, tag: Tag(0), access })
    }
}

pub(crate) fn write_frame(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    let mut frame = (body.len() as u16).to_le_bytes().to_vec();
    frame.extend_from_slice(body);
    // It fits the empty buffer of the socket.
    stream.write_all(&frame)
}

/// Bytes that the frame at the front of a buffer still lacks. `None`: it is empty, or too long.
fn missing(buffer: &[u8]) -> Option<usize> {
    let whole = match buffer.first_chunk::<2>() {
        None => 2,
        Some(length) => match usize::from(u16::from_le_bytes(*length)) {
            0 => return None,
            length => length + 2,
        },
    };
    (whole <= LONGEST).then(|| whole.saturating_sub(buffer.len()))
}

/// The frame of a stream that does not block, once it is whole. Reads no byte behind it.
pub(crate) fn read_frame(stream: &mut impl Read, buffer: &mut Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
    let mut piece = [0; LONGEST];
    loop {
        let space = match missing(buffer) {
            None => return Err(ErrorKind::InvalidData.into()),
            Some(0) => return Ok(Some(buffer.split_off(2))),
            Some(space) => piece.get_mut(..space).ok_or(ErrorKind::InvalidData)?,
        };
        match stream.read(space) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer.extend_from_slice(space.get(..count).ok_or(ErrorKind::InvalidData)?),
            Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

/// What a listener answers.
pub(crate) enum Answer {
    Other,
    Reject,
    /// In the peer-to-peer model: the attributes do not agree.
    Mismatch(Error),
    Accept(Accept),
}

pub(crate) struct Accept {
    pub(crate) ticket: u64,
    pub(crate) attributes: ViAttributes,
    pub(crate) uri: String,
}

impl Answer {
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            Self::Other => vec![0],
            Self::Reject => vec![1],
            Self::Mismatch(Error::Reliability) => vec![3],
            Self::Mismatch(Error::TransferSize) => vec![4],
            Self::Mismatch(_) => vec![5],
            Self::Accept(accept) => {
                let mut bytes = vec![2];
                bytes.extend(accept.ticket.to_le_bytes());
                emit_attributes(&mut bytes, &accept.attributes);
                bytes.extend(accept.uri.as_bytes());
                bytes
            }
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let [kind] = reader.array()?;
        Some(match kind {
            0 => Self::Other,
            1 => Self::Reject,
            2 => {
                let ticket = u64::from_le_bytes(reader.array()?);
                let attributes = reader.attributes()?;
                Self::Accept(Accept { ticket, attributes, uri: String::from_utf8(reader.0.to_vec()).ok()? })
            }
            3 => Self::Mismatch(Error::Reliability),
            4 => Self::Mismatch(Error::TransferSize),
            5 => Self::Mismatch(Error::Qos),
            _ => return None,
        })
    }
}

/// A client that asks for a connection, and waits for the answer.
#[derive(Debug)]
pub struct Asking {
    stream: TcpStream,
    /// The client's VI.
    pub(crate) attributes: ViAttributes,
    /// The client's own address.
    pub(crate) address: Address,
    pub(crate) is_peer: bool,
}

impl Asking {
    /// Returns the attributes of the client's VI.
    #[must_use]
    pub fn attributes(&self) -> &ViAttributes {
        &self.attributes
    }

    /// Returns the client's own address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether the client has given up, or says more than its question: no client does.
    pub(crate) fn is_gone(&self) -> bool {
        self.stream.peek(&mut [0]).map_or_else(|why| why.kind() != ErrorKind::WouldBlock, |_| true)
    }

    pub(crate) fn answer(&mut self, answer: &Answer) -> std::io::Result<()> {
        write_frame(&mut self.stream, &answer.emit())
    }
}

struct Caller {
    name: u64,
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Waits for clients that ask for a discriminator.
pub(crate) struct Listener {
    socket: TcpListener,
    is_v4: bool,
    discriminator: Vec<u8>,
    callers: Vec<Caller>,
    admission: Admission<u64>,
    next: u64,
    begin: Instant,
    /// Whether the system has a descriptor for a client.
    may_accept: bool,
}

impl Listener {
    pub(crate) fn bind(on: IpAddr, discriminator: &[u8]) -> Result<Self, Error> {
        let bound = ports(discriminator).into_iter().find_map(|port| descriptors::listener((on, port)).ok());
        let socket = bound.ok_or(Error::Resource("all ports of this discriminator are taken; choose another one"))?;
        socket.set_nonblocking(true).map_err(|_| Error::Resource("a socket cannot be set up"))?;
        let (discriminator, callers, admission) = (discriminator.to_vec(), Vec::new(), Admission::new(CALLERS));
        let (is_v4, begin) = (on.is_ipv4(), Instant::now());
        Ok(Self { socket, is_v4, discriminator, callers, admission, next: 0, begin, may_accept: true })
    }

    /// A client that has asked; those for another discriminator, and those of another version, are
    /// told so.
    pub(crate) fn poll(&mut self) -> Option<Asking> {
        let now = self.begin.elapsed();
        self.may_accept = self.admission.may_accept(now);
        // Who has asked is served before newcomers need room.
        let names: Vec<u64> = self.callers.iter().map(|caller| caller.name).collect();
        if let Some(asking) = names.into_iter().find_map(|name| self.read(name)) {
            return Some(asking);
        }
        while let Some(late) = self.admission.poll_late(now) {
            self.end(late);
        }
        if !self.may_accept {
            return None;
        }
        (0..BURST).map_while(|_| self.accept(now)).flatten().next()
    }

    /// Takes one client in. It may have asked already, or one that makes room has. `None`: nobody
    /// is to be accepted now.
    fn accept(&mut self, now: Duration) -> Option<Option<Asking>> {
        let accepted = self.socket.accept().and_then(|(stream, from)| Ok((descriptors::above_standard(stream)?, from)));
        let (stream, origin) = match accepted {
            Ok((stream, from)) => (stream, Origin::of(from.ip())),
            Err(why) => {
                return match self.admission.handle_failed_accept(now, &why) {
                    Failed::Close(name) => Some(self.put_out(name)),
                    Failed::Again => Some(None),
                    Failed::Later => {
                        self.may_accept = self.admission.may_accept(now);
                        None
                    }
                };
            }
        };
        if stream.set_nonblocking(true).is_err() {
            return Some(None);
        }
        self.next += 1;
        let name = self.next;
        let out = match self.admission.handle_arrival(now, name, origin) {
            Arrival::Admitted => None,
            Arrival::Replaces(other) => self.put_out(other),
            Arrival::Refused => return Some(None),
        };
        self.callers.push(Caller { name, stream, buffer: Vec::new() });
        Some(out.or_else(|| self.read(name)))
    }

    /// Ends a client that makes room, unless its question has come.
    fn put_out(&mut self, name: u64) -> Option<Asking> {
        let asking = self.read(name);
        self.end(name);
        asking
    }

    fn end(&mut self, name: u64) -> Option<Caller> {
        self.admission.remove(&name);
        let at = self.callers.iter().position(|caller| caller.name == name)?;
        Some(self.callers.swap_remove(at))
    }

    /// Takes what a client has sent. A question for this discriminator is returned.
    fn read(&mut self, name: u64) -> Option<Asking> {
        let caller = self.callers.iter_mut().find(|caller| caller.name == name)?;
        let before = caller.buffer.len();
        let frame = match read_frame(&mut caller.stream, &mut caller.buffer) {
            Ok(None) => {
                let received = caller.buffer.len() - before;
                if !self.admission.handle_bytes(&name, received) {
                    self.end(name);
                }
                return None;
            }
            frame => frame,
        };
        let mut stream = self.end(name)?.stream;
        let frame = frame.ok().flatten()?;
        let Some((wanted, attributes, mut address, is_peer)) = parse_ask(&frame) else {
            if frame.starts_with(FAMILY) && !frame.starts_with(MAGIC) {
                // One of another version would ask again, were it cut off without a word.
                let _ = write_frame(&mut stream, &Answer::Other.emit());
            }
            return None;
        };
        if wanted == self.discriminator {
            if address.host.is_ipv6() && self.is_v4 {
                // Programs have room for a host of their NIC's family alone.
                address.host = stream.peer_addr().ok()?.ip();
            }
            let asking = Asking { stream, attributes, address, is_peer };
            // It may have found its server at another port.
            return (!asking.is_gone()).then_some(asking);
        }
        // Who does not take the answer learns nothing.
        let _ = write_frame(&mut stream, &Answer::Other.emit());
        None
    }

    /// For how long a sleep may last: then a client is late, or a descriptor may be free.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.admission.poll_timeout().map(|at| at.saturating_sub(self.begin.elapsed()))
    }

    /// What becomes readable when `poll` may have something.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = self.may_accept.then(|| self.socket.as_fd());
        listener.into_iter().chain(self.callers.iter().map(|caller| caller.stream.as_fd()))
    }
}

/// Reads a question: the discriminator that it is for, and the client's attributes and address. The
/// address is one that a program has room for ([`Address::check`]).
pub(crate) fn parse_ask(frame: &[u8]) -> Option<(&[u8], ViAttributes, Address, bool)> {
    let mut reader = Reader(frame.strip_prefix(MAGIC)?);
    let [model, family, own, wanted] = reader.array()?;
    let attributes = reader.attributes()?;
    let host: IpAddr = match family {
        4 => reader.array::<4>()?.into(),
        6 => reader.array::<16>()?.into(),
        _ => return None,
    };
    let address = Address::new(host, reader.bytes(own.into())?);
    address.check().ok()?;
    let wanted = reader.bytes(wanted.into())?;
    (reader.0.is_empty() && model < 2).then_some((wanted, attributes, address, model == 1))
}

/// The frame by which a client asks.
pub(crate) fn ask_frame(remote: &Address, own: &Address, attributes: &ViAttributes, is_peer: bool) -> Vec<u8> {
    let mut ask = MAGIC.to_vec();
    let family = if own.host.is_ipv4() { 4 } else { 6 };
    ask.extend([u8::from(is_peer), family, own.discriminator.len() as u8, remote.discriminator.len() as u8]);
    emit_attributes(&mut ask, attributes);
    match own.host {
        IpAddr::V4(host) => ask.extend(host.octets()),
        IpAddr::V6(host) => ask.extend(host.octets()),
    }
    ask.extend(&own.discriminator);
    ask.extend(&remote.discriminator);
    ask
}

/// Sleeps until one of these is readable, at most for `left`.
pub fn sleep_on<'a>(descriptors: impl Iterator<Item = BorrowedFd<'a>>, left: Option<Duration>) {
    sleep_until_ready(&mut descriptors.map(readable).collect::<Vec<_>>(), left);
}

/// A number that nobody guesses.
pub(crate) fn fresh_ticket() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
