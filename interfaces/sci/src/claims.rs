//! Names of segments and interrupts: sockets in the abstract name space, which end with their
//! process (`docs/design/sci.md`, Names).

use crate::errors::Error;
use cci_mem::inherited::close_in_children;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, send, sendmsg,
    socket_with,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"ccisci01";
/// What the introduction of a member of a group begins with.
const MEMBER: &[u8; 8] = b"ccisci0g";
/// Bytes of an introduction, at most.
const LONGEST: usize = 4096;
/// Connects that wait until the owner takes them.
const BACKLOG: i32 = 128;
/// Members of a group on one host, at most.
pub(crate) const MOST_MEMBERS: u32 = 64;
/// The pause while the owner has no room for another connect.
const PAUSE: Duration = Duration::from_millis(1);

/// What is named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    Segment(u32),
    Interrupt(u32),
    /// An entry of the memory of a device: its device and number.
    Room((u64, u64), usize),
    /// A member of a broadcast group on this host: the number of the group, and the member's place.
    Member(u32, u32),
    /// The right to join a group on this host.
    Joining(u32),
}

/// Who has claimed a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The number of its host.
    pub(crate) number: u64,
    pub(crate) uri: String,
}

impl Owner {
    pub(crate) fn emit(&self) -> Vec<u8> {
        [&MAGIC[..], &self.number.to_le_bytes(), self.uri.as_bytes()].concat()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, uri) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
        let uri = String::from_utf8(uri.to_vec()).ok().filter(|uri| !uri.is_empty())?;
        Some(Self { number: u64::from_le_bytes(*number), uri })
    }
}

/// A member of a broadcast group, as its name introduces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The memory that the members of one host share.
    pub(crate) memory: u64,
    pub(crate) len: u64,
    /// Whether the member has a segment that is available.
    pub(crate) is_published: bool,
    /// Its place on its host.
    pub(crate) place: u32,
    pub(crate) owner: Owner,
}

/// The introduction of a member whose host introduces itself so.
pub(crate) fn introduction_of_member(
    (memory, len): (u64, u64),
    (is_published, place): (bool, u32),
    host: &[u8],
) -> Vec<u8> {
    let words = [memory, len, u64::from(is_published) | u64::from(place) << 1].map(u64::to_le_bytes);
    [&MEMBER[..], words.as_flattened(), host].concat()
}

impl Membership {
    pub(crate) fn emit(&self) -> Vec<u8> {
        introduction_of_member((self.memory, self.len), (self.is_published, self.place), &self.owner.emit())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (words, owner) = bytes.strip_prefix(MEMBER)?.split_first_chunk::<24>()?;
        let word = |at: usize| words[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let (memory, len, flags) = (word(0)?, word(8)?, word(16)?);
        let (is_published, place) = (flags & 1 == 1, u32::try_from(flags >> 1).ok()?);
        (len > 0).then_some(Self { memory, len, is_published, place, owner: Owner::parse(owner)? })
    }
}

fn address(node: u32, what: Named) -> Result<SocketAddrUnix, Error> {
    let user = rustix::process::geteuid().as_raw();
    let name = match what {
        Named::Segment(id) => format!("cci-sci/{user}/{node}/s/{id}"),
        Named::Interrupt(number) => format!("cci-sci/{user}/{node}/i/{number}"),
        Named::Room((device, file), entry) => format!("cci-sci/{user}/{node}/m/{device}/{file}/{entry}"),
        Named::Member(group, place) => format!("cci-sci/{user}/g/{group}/{place}"),
        Named::Joining(group) => format!("cci-sci/{user}/g/{group}/join"),
    };
    SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(|_| Error::System)
}

fn stream() -> Result<OwnedFd, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(|_| Error::NoSpace)?;
    close_in_children(&socket);
    Ok(socket)
}

/// Whether the other end of a socket is of this user.
fn is_own_user(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Claims a name as long as the socket is open.
pub(crate) fn claim(node: u32, what: Named) -> Result<OwnedFd, Error> {
    let socket = stream()?;
    match bind(&socket, &address(node, what)?) {
        Ok(()) => {}
        Err(Errno::ADDRINUSE) => return Err(Error::SegmentIdUsed),
        Err(_) => return Err(Error::System),
    }
    listen(&socket, BACKLOG).map_err(|_| Error::System)?;
    Ok(socket)
}

/// Answers all who ask for a claimed name.
pub(crate) fn introduce(claim: &OwnedFd, introduction: &[u8]) {
    while let Ok(asking) = accept_with(claim, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        if is_own_user(&asking) {
            // So few bytes fit an empty socket; who is gone asks no more.
            let _ = send(&asking, introduction, SendFlags::NOSIGNAL);
        }
    }
}

/// Answers all who ask for the name of a member of a group, with the memory of the group.
pub(crate) fn introduce_member(claim: &OwnedFd, introduction: &[u8], memory: BorrowedFd<'_>) {
    while let Ok(asking) = accept_with(claim, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [memory];
        if is_own_user(&asking) && control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            // As in `introduce`.
            let _ = sendmsg(&asking, &[IoSlice::new(introduction)], &mut control, SendFlags::NOSIGNAL);
        }
    }
}

/// Connects to the socket of a name. `None`: nobody has it.
fn reach(node: u32, what: Named, deadline: Option<Instant>) -> Result<Option<OwnedFd>, Error> {
    let (socket, address) = (stream()?, address(node, what)?);
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::CONNREFUSED) => return Ok(None),
            Err(Errno::AGAIN) => wait(None, deadline, Some(PAUSE))?,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Error::System),
        }
    }
    if is_own_user(&socket) { Ok(Some(socket)) } else { Err(Error::Access) }
}

/// Asks the member at a place of a group, which hands over the memory of the group. `None`: nobody
/// has the place.
pub(crate) fn find_member(
    group: u32,
    place: u32,
    deadline: Option<Instant>,
) -> Result<Option<(Membership, OwnedFd)>, Error> {
    let Some(socket) = reach(0, Named::Member(group, place), deadline)? else { return Ok(None) };
    loop {
        let mut bytes = [0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC);
        let descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let memory: Option<OwnedFd> = descriptors.flatten().next();
        match got.map(|got| got.bytes) {
            // The member has left, or has ended.
            Ok(0) => return Ok(None),
            // The introduction was sent at once, and comes so.
            Ok(count) => {
                return Membership::parse(&bytes[..count]).zip(memory).map(Some).ok_or(Error::System);
            }
            Err(Errno::AGAIN) => wait(Some(&socket), deadline, None)?,
            Err(Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
    }
}

/// Asks the first member of a group from a place on. `None`: there is none.
pub(crate) fn next_member(group: u32, from: u32, deadline: Option<Instant>) -> Result<Option<Membership>, Error> {
    for place in from..MOST_MEMBERS {
        match find_member(group, place, deadline) {
            Ok(None) => {}
            found => return found.map(|found| found.map(|(member, _)| member)),
        }
    }
    Ok(None)
}

/// Asks who has claimed a name. `None`: nobody.
pub(crate) fn find(node: u32, what: Named, deadline: Option<Instant>) -> Result<Option<Owner>, Error> {
    let Some(socket) = reach(node, what, deadline)? else { return Ok(None) };
    let (mut bytes, mut part) = (Vec::new(), [0; LONGEST]);
    loop {
        match rustix::io::read(&socket, &mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend(&part[..count]),
            Err(Errno::AGAIN) => wait(Some(&socket), deadline, None)?,
            Err(Errno::INTR) => {}
            // The owner has closed the name, or has ended.
            Err(_) => return Ok(None),
        }
        if bytes.len() > LONGEST {
            return Err(Error::System);
        }
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    Owner::parse(&bytes).map(Some).ok_or(Error::System)
}

/// Waits for bytes of a socket, at most until the deadline or for `pause`.
fn wait(socket: Option<&OwnedFd>, deadline: Option<Instant>, pause: Option<Duration>) -> Result<(), Error> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Err(Error::Timeout);
    }
    let limit = [left, pause].into_iter().flatten().min().and_then(|limit| Timespec::try_from(limit).ok());
    let mut sockets: Vec<_> = socket.iter().map(|socket| PollFd::new(*socket, PollFlags::IN)).collect();
    // A signal ends it early, and its caller looks again.
    let _ = poll(&mut sockets, limit.as_ref());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_owner_and_is_free_again() {
        let node = 0x7000_0000 | std::process::id();
        let what = Named::Segment(1);
        let limit = || Some(Instant::now() + Duration::from_secs(20));
        assert_eq!(find(node, what, limit()), Ok(None));
        let socket = claim(node, what).expect("free");
        assert_eq!(claim(node, what).err(), Some(Error::SegmentIdUsed));
        claim(node, Named::Interrupt(1)).expect("another name");
        assert_eq!(find(node, what, Some(Instant::now())), Err(Error::Timeout), "nobody answers");
        let owner = Owner { number: 77, uri: "x://y".into() };
        let found = std::thread::scope(|scope| {
            let finding = scope.spawn(|| find(node, what, limit()));
            while !finding.is_finished() {
                introduce(&socket, &owner.emit());
            }
            finding.join().expect("no panic")
        });
        assert_eq!(found, Ok(Some(owner)));
        drop(socket);
        assert_eq!(find(node, what, limit()), Ok(None));
    }

    #[test]
    fn what_is_no_introduction_is_refused() {
        for bytes in [&b""[..], b"ccisci01", b"ccisci0112345678", b"ccisci0212345678x://y", b"ccisci0112345678\xff"] {
            assert_eq!(Owner::parse(bytes), None, "{bytes:?}");
        }
    }
}
