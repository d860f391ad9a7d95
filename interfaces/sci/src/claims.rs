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
/// How long is waited before the end of the wait itself is noticed.
const SLICE: Duration = Duration::from_millis(50);

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
fn reach(node: u32, what: Named, until: Until<'_>) -> Result<Option<OwnedFd>, Error> {
    let (socket, address) = (stream()?, address(node, what)?);
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::CONNREFUSED) => return Ok(None),
            Err(Errno::AGAIN) => wait(&[], until, Some(PAUSE))?,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Error::System),
        }
    }
    if is_own_user(&socket) { Ok(Some(socket)) } else { Err(Error::Access) }
}

/// What the members of a group on this host have answered, from a place on.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// In the order of their places.
    pub(crate) found: Vec<(Membership, OwnedFd)>,
    /// Places whose members have not answered: they are stopped, or slow.
    pub(crate) mute: Vec<u32>,
    /// The first place that nobody has.
    pub(crate) free: Option<u32>,
}

/// Asks all members of a group from a place on at once, so that one that is stopped hides no other.
/// Waits until `deadline` for those that do not answer.
pub(crate) fn members(group: u32, from: u32, deadline: Option<Instant>) -> Result<Members, Error> {
    let mut members = Members::default();
    let mut asked = Vec::new();
    for place in from..MOST_MEMBERS {
        // One whose backlog is full is as mute as one that does not answer.
        match reach(0, Named::Member(group, place), &Instant::now().into()) {
            Ok(Some(socket)) => asked.push((place, socket)),
            Ok(None) => members.free = members.free.or(Some(place)),
            Err(Error::Timeout) => members.mute.push(place),
            Err(why) => return Err(why),
        }
    }
    while !asked.is_empty() {
        let mut waiting = Vec::new();
        for (place, socket) in asked {
            match membership(&socket) {
                Ok(Some(member)) => members.found.push(member),
                Ok(None) => members.free = Some(members.free.map_or(place, |free| free.min(place))),
                Err(Error::Timeout) => waiting.push((place, socket)),
                Err(why) => return Err(why),
            }
        }
        asked = waiting;
        let sockets: Vec<_> = asked.iter().map(|(_, socket)| socket).collect();
        if !sockets.is_empty() && wait(&sockets, &deadline.into(), None).is_err() {
            break;
        }
    }
    members.mute.extend(asked.iter().map(|(place, _)| *place));
    members.found.sort_by_key(|(member, _)| member.place);
    Ok(members)
}

/// What a member has sent: its introduction, and the memory of the group. `None`: it has left;
/// [`Error::Timeout`]: nothing yet.
fn membership(socket: &OwnedFd) -> Result<Option<(Membership, OwnedFd)>, Error> {
    loop {
        let mut bytes = [0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC);
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
            Err(Errno::AGAIN) => return Err(Error::Timeout),
            Err(Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
    }
}

/// Asks who has claimed a name. `None`: nobody. All tries use one place in the backlog of a stopped
/// owner.
pub(crate) fn find(node: u32, what: Named, until: Until<'_>) -> Result<Option<Owner>, Error> {
    let Some(socket) = reach(node, what, until)? else { return Ok(None) };
    let (mut bytes, mut part) = (Vec::new(), [0; LONGEST]);
    loop {
        match rustix::io::read(&socket, &mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend(&part[..count]),
            Err(Errno::AGAIN) => wait(&[&socket], until, None)?,
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

/// How long something is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Limit<'a> {
    pub(crate) deadline: Option<Instant>,
    /// Whether nobody waits any more.
    pub(crate) is_over: Option<&'a dyn Fn() -> bool>,
}

/// A limit that is handed on.
pub(crate) type Until<'a> = &'a Limit<'a>;

impl Limit<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.is_some_and(|is_over| is_over())
    }
}

impl From<Option<Instant>> for Limit<'_> {
    fn from(deadline: Option<Instant>) -> Self {
        Self { deadline, is_over: None }
    }
}

impl From<Instant> for Limit<'_> {
    fn from(deadline: Instant) -> Self {
        Some(deadline).into()
    }
}

/// Waits for bytes of one of the sockets, for a while that ends with the limit at the latest. The
/// caller looks again.
fn wait(sockets: &[&OwnedFd], until: Until<'_>, pause: Option<Duration>) -> Result<(), Error> {
    if until.is_over() {
        return Err(Error::Cancelled);
    }
    let left = until.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Err(Error::Timeout);
    }
    let slice = until.is_over.map(|_| SLICE);
    let limit = [left, pause, slice].into_iter().flatten().min().and_then(|limit| Timespec::try_from(limit).ok());
    let mut sockets: Vec<_> = sockets.iter().map(|socket| PollFd::new(*socket, PollFlags::IN)).collect();
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
        let limit = || Limit::from(Instant::now() + Duration::from_secs(20));
        assert_eq!(find(node, what, &limit()), Ok(None));
        let socket = claim(node, what).expect("free");
        assert_eq!(claim(node, what).err(), Some(Error::SegmentIdUsed));
        claim(node, Named::Interrupt(1)).expect("another name");
        assert_eq!(find(node, what, &Instant::now().into()), Err(Error::Timeout), "nobody answers");
        let owner = Owner { number: 77, uri: "x://y".into() };
        let found = std::thread::scope(|scope| {
            let finding = scope.spawn(|| find(node, what, &limit()));
            while !finding.is_finished() {
                introduce(&socket, &owner.emit());
            }
            finding.join().expect("no panic")
        });
        assert_eq!(found, Ok(Some(owner)));
        drop(socket);
        assert_eq!(find(node, what, &limit()), Ok(None));
    }

    #[test]
    fn what_is_no_introduction_is_refused() {
        for bytes in [&b""[..], b"ccisci01", b"ccisci0112345678", b"ccisci0212345678x://y", b"ccisci0112345678\xff"] {
            assert_eq!(Owner::parse(bytes), None, "{bytes:?}");
        }
    }
}
