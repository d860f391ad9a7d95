//! The socket between a program and the engine: how they meet, wake-ups, and the death of either.

use crate::errors::Error;
use crate::types::ProcessId;
use cci_mem::barrier::Pairing;
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketType, bind, connect, listen, recv, send, sendmsg,
};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// `portals1`.
const MAGIC: u64 = 0x316c_6174_726f_7071;
const HELLO: usize = 32;
const WELCOME: usize = 32;
const CAN_FENCE: u64 = 1;
/// The pause before an engine that has no place, or no room in its backlog, is asked again.
const AGAIN: Duration = Duration::from_millis(20);
/// Packets that are read in one go.
const MOST_WAKES: usize = 64;

/// What a program says first; the descriptor of its segment goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) pairing: Pairing,
    /// The number that its process is to have.
    pub(super) pid: Option<u32>,
    /// Bytes of the segment.
    pub(super) len: u64,
}

/// What the engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    pub(super) pairing: Pairing,
    pub(super) answer: Result<ProcessId, Error>,
}

fn flag(pairing: Pairing) -> u64 {
    if pairing == Pairing::Asymmetric { CAN_FENCE } else { 0 }
}

fn pairing(flags: u64) -> Pairing {
    if flags & CAN_FENCE == 0 { Pairing::Symmetric } else { Pairing::Asymmetric }
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)))
}

fn bytes(words: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
    bytes
}

fn address(name: &str) -> Result<SocketAddrUnix, Errno> {
    let user = rustix::process::getuid().as_raw();
    SocketAddrUnix::new_abstract_name(format!("cci-portals/{user}/{name}").as_bytes())
}

fn socket() -> Result<OwnedFd, Errno> {
    descriptors::socket(AddressFamily::UNIX, SocketType::SEQPACKET)
}

/// Whether the other side is of this user: anybody may take a name, and connect to one.
fn is_of_this_user(socket: &OwnedFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::getuid())
}

pub(super) fn listen_at(name: &str) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    bind(&socket, &address(name)?)?;
    listen(&socket, 16)?;
    Ok(socket)
}

/// The next program that has come, if it is of this user.
pub(super) fn accept(listener: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let socket = descriptors::accept(listener)?;
    Ok(is_of_this_user(&socket).then_some(socket))
}

pub(super) fn connect_to(name: &str) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    connect(&socket, &address(name)?)?;
    if is_of_this_user(&socket) { Ok(socket) } else { Err(Errno::PERM) }
}

pub(super) fn send_hello(socket: &OwnedFd, hello: &Hello, segment: BorrowedFd<'_>) -> Result<(), Errno> {
    let bytes = bytes([MAGIC, flag(hello.pairing), hello.pid.map_or(u64::MAX, u64::from), hello.len]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let segments = [segment];
    if !control.push(SendAncillaryMessage::ScmRights(&segments)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// What a program has said; `None`: nothing yet.
///
/// # Errors
///
/// [`Errno::PROTO`]: it is no hello of this version. The program has gone, or no descriptor is left
/// for its segment.
pub(super) fn take_hello(socket: &OwnedFd) -> Option<Result<(Hello, OwnedFd), Errno>> {
    let mut bytes = [0; HELLO];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = descriptors::receive(socket, &mut bytes, &mut control, RecvFlags::empty());
    let received = match received {
        Err(Errno::AGAIN | Errno::INTR) => return None,
        Err(why) => return Some(Err(why)),
        Ok(received) => received,
    };
    let segment = descriptors::received(&mut control).last();
    let [magic, flags, pid, len] = words(&bytes);
    let is_gone = received.bytes == 0;
    let is_right = received.bytes == HELLO && magic == MAGIC;
    Some(match segment {
        _ if is_gone => Err(Errno::CONNRESET),
        _ if !is_right => Err(Errno::PROTO),
        Some(segment) => Ok((Hello { pairing: pairing(flags), pid: u32::try_from(pid).ok(), len }, segment)),
        None => Err(Errno::MFILE),
    })
}

pub(super) fn send_welcome(socket: &OwnedFd, welcome: &Welcome) {
    let (code, word) = match welcome.answer {
        Ok(own) => (0, own.word()),
        Err(why) => (why.code().unsigned_abs().into(), 0),
    };
    // Its socket is empty; a program that has gone needs none.
    let _ = send(socket, &bytes([MAGIC, flag(welcome.pairing), code, word]), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Waits for the engine's answer.
pub(super) fn take_welcome(socket: &OwnedFd, limit: Duration) -> Result<Welcome, Errno> {
    let deadline = Instant::now() + limit;
    // A signal ends a sleep too.
    while !sleep(&[socket.as_fd()], Some(deadline.saturating_duration_since(Instant::now()))) {
        if Instant::now() >= deadline {
            return Err(Errno::TIMEDOUT);
        }
    }
    let mut bytes = [0; WELCOME];
    let (len, _) = recv(socket, &mut bytes[..], RecvFlags::DONTWAIT)?;
    let [magic, flags, code, word] = words(&bytes);
    if len != WELCOME || magic != MAGIC {
        return Err(if len == 0 { Errno::CONNRESET } else { Errno::PROTO });
    }
    let answer = if code == 0 { Ok(ProcessId::of_word(word)) } else { Err(Error::of_code(code)) };
    Ok(Welcome { pairing: pairing(flags), answer })
}

/// Connects to an engine, and asks for a place. One that closes the connection without an answer
/// has no place just now, or has ended; it is asked until it answers or the time is over.
pub(super) fn ask(
    name: &str,
    hello: &Hello,
    segment: BorrowedFd<'_>,
    limit: Duration,
) -> Result<(OwnedFd, Welcome), Errno> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let once = || {
            let socket = connect_to(name)?;
            close_in_children(&socket);
            send_hello(&socket, hello, segment)?;
            let welcome = take_welcome(&socket, left)?;
            Ok((socket, welcome))
        };
        match once() {
            Err(Errno::AGAIN | Errno::CONNRESET | Errno::PIPE | Errno::INTR) if left > AGAIN => {
                std::thread::sleep(AGAIN);
            }
            answer => return answer,
        }
    }
}

/// Wakes the other side. Where its socket is full, it has been woken already.
#[cold]
pub(super) fn wake(socket: &OwnedFd) {
    let _ = send(socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Takes wake-ups. False: the other side has gone.
pub(super) fn take_wakes(socket: &OwnedFd) -> bool {
    for _ in 0..MOST_WAKES {
        match recv(socket, &mut [0_u8; 8][..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return why == Errno::AGAIN,
        }
    }
    true
}

/// Sleeps until one of these can be read, at most for so long. False: the time is over, or a signal
/// has come.
pub(super) fn sleep(on: &[BorrowedFd<'_>], limit: Option<Duration>) -> bool {
    let mut descriptors: Vec<_> = on.iter().map(|on| PollFd::new(on, PollFlags::IN)).collect();
    let limit = limit.and_then(|limit| rustix::event::Timespec::try_from(limit).ok());
    poll(&mut descriptors, limit.as_ref()).is_ok_and(|ready| ready > 0)
}
