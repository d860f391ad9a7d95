//! Names of segments and interrupts: sockets in the abstract name space, which end with their
//! process (`docs/design/sci.md`, Names).

use crate::errors::Error;
use cci_admission::BURST;
use cci_ground::{readable, sleep_until_ready};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketType, bind, connect, listen, send, sendmsg,
};
use std::io::IoSlice;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    let socket = descriptors::socket(AddressFamily::UNIX, SocketType::STREAM).map_err(|_| Error::NoSpace)?;
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

/// Takes those who ask for a claimed name, and answers those of this user.
///
/// # Errors
///
/// The system has no descriptor. They wait in the backlog, and the name stays readable.
fn answer_all(claim: &OwnedFd, mut answer: impl FnMut(&OwnedFd)) -> Result<(), Errno> {
    for _ in 0..BURST {
        match descriptors::accept(claim) {
            Ok(asking) if is_own_user(&asking) => answer(&asking),
            Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::AGAIN) => break,
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Answers those who ask for a claimed name.
///
/// # Errors
///
/// Those of `answer_all`.
pub(crate) fn introduce(claim: &OwnedFd, introduction: &[u8]) -> Result<(), Errno> {
    // So few bytes fit an empty socket; who is gone asks no more.
    answer_all(claim, |asking| {
        let _ = send(asking, introduction, SendFlags::NOSIGNAL);
    })
}

/// Answers those who ask for the name of a member of a group, with the memory of the group.
///
/// # Errors
///
/// Those of `answer_all`.
pub(crate) fn introduce_member(claim: &OwnedFd, introduction: &[u8], memory: BorrowedFd<'_>) -> Result<(), Errno> {
    answer_all(claim, |asking| {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [memory];
        if control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            // As in `introduce`.
            let _ = sendmsg(asking, &[IoSlice::new(introduction)], &mut control, SendFlags::NOSIGNAL);
        }
    })
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

/// A question to all members of a group from a place on, at once, so that one that is stopped hides
/// no other.
pub(crate) struct AskedMembers {
    waiting: Vec<(u32, OwnedFd)>,
    members: Members,
}

impl AskedMembers {
    /// A question to nobody.
    pub(crate) fn none() -> Self {
        Self { waiting: Vec::new(), members: Members::default() }
    }

    pub(crate) fn begin(group: u32, from: u32) -> Result<Self, Error> {
        let mut of = Self::none();
        for place in from..MOST_MEMBERS {
            // One whose backlog is full is as mute as one that does not answer.
            match reach(0, Named::Member(group, place), &Instant::now().into()) {
                Ok(Some(socket)) => of.waiting.push((place, socket)),
                Ok(None) => of.members.free = of.members.free.or(Some(place)),
                Err(Error::Timeout) => of.members.mute.push(place),
                // Another user has the place.
                Err(Error::Access) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(of)
    }

    /// Takes what has come.
    pub(crate) fn take(&mut self) {
        for (place, socket) in std::mem::take(&mut self.waiting) {
            match membership(&socket) {
                Ok(Some(member)) => self.members.found.push(member),
                Ok(None) => self.members.free = Some(self.members.free.map_or(place, |free| free.min(place))),
                Err(Error::Timeout) => self.waiting.push((place, socket)),
                // Who answers nonsense keeps the place, and is no member.
                Err(_) => {}
            }
        }
    }

    /// Those that have not answered.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &OwnedFd> {
        self.waiting.iter().map(|(_, socket)| socket)
    }

    /// Whether nobody is waited for before the first one that has answered.
    pub(crate) fn has_first(&self) -> bool {
        let first = self.members.found.iter().map(|(member, _)| member.place).min();
        self.waiting.iter().all(|(place, _)| first.is_some_and(|first| first < *place))
    }

    /// What is known by now.
    pub(crate) fn end(self) -> Members {
        let Self { waiting, mut members } = self;
        members.mute.extend(waiting.iter().map(|(place, _)| *place));
        members.found.sort_by_key(|(member, _)| member.place);
        members
    }
}

/// Asks all members of a group from a place on. Waits so long for those that do not answer, while
/// this process runs, and not beyond `deadline`.
pub(crate) fn members(group: u32, from: u32, lasts: Duration, deadline: Option<Instant>) -> Result<Members, Error> {
    let mut asked = AskedMembers::begin(group, from)?;
    let mut waited = Duration::ZERO;
    loop {
        asked.take();
        let sockets: Vec<_> = asked.waiting().collect();
        let begun = Instant::now();
        let pause = SLICE.min(lasts.saturating_sub(waited));
        if sockets.is_empty() || pause.is_zero() || wait(&sockets, &deadline.into(), Some(pause)).is_err() {
            return Ok(asked.end());
        }
        waited += begun.elapsed().min(2 * SLICE);
    }
}

/// What a member has sent: its introduction, and the memory of the group. `None`: it has left;
/// [`Error::Timeout`]: nothing yet.
fn membership(socket: &OwnedFd) -> Result<Option<(Membership, OwnedFd)>, Error> {
    loop {
        let mut bytes = [0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = descriptors::receive(socket, &mut bytes, &mut control, RecvFlags::empty());
        let memory: Option<OwnedFd> = descriptors::received(&mut control).next();
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

/// A question to who has claimed a name. It uses one place in the backlog of a stopped owner.
pub(crate) struct AskedOwner {
    pub(crate) socket: OwnedFd,
    bytes: Vec<u8>,
}

impl AskedOwner {
    /// `None`: nobody has the name. [`Error::Timeout`]: the owner has no room for a question.
    pub(crate) fn begin(node: u32, what: Named, until: Until<'_>) -> Result<Option<Self>, Error> {
        Ok(reach(node, what, until)?.map(|socket| Self { socket, bytes: Vec::new() }))
    }

    /// Takes what has come. [`Error::Timeout`]: not all of the answer.
    pub(crate) fn take(&mut self) -> Result<Option<Owner>, Error> {
        let mut part = [0; LONGEST];
        loop {
            match rustix::io::read(&self.socket, &mut part) {
                Ok(0) => break,
                Ok(count) => self.bytes.extend(&part[..count]),
                Err(Errno::AGAIN) => return Err(Error::Timeout),
                Err(Errno::INTR) => {}
                // The owner has closed the name, or has ended.
                Err(_) => return Ok(None),
            }
            if self.bytes.len() > LONGEST {
                return Err(Error::System);
            }
        }
        if self.bytes.is_empty() {
            return Ok(None);
        }
        Owner::parse(&self.bytes).map(Some).ok_or(Error::System)
    }
}

/// Asks who has claimed a name. `None`: nobody.
pub(crate) fn find(node: u32, what: Named, until: Until<'_>) -> Result<Option<Owner>, Error> {
    let Some(mut asked) = AskedOwner::begin(node, what, until)? else { return Ok(None) };
    loop {
        match asked.take() {
            Err(Error::Timeout) => wait(&[&asked.socket], until, None)?,
            found => return found,
        }
    }
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
    let mut sockets: Vec<_> = sockets.iter().map(|socket| readable(socket.as_fd())).collect();
    sleep_until_ready(&mut sockets, [left, pause, slice].into_iter().flatten().min());
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
                let _ = introduce(&socket, &owner.emit());
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

    /// A member that answers nonsense, one of another user, and one that is right.
    #[test]
    #[expect(unsafe_code, reason = "a thread takes another user")]
    fn a_place_of_another_user_or_of_nonsense_is_passed_over() {
        let group = fastrand::u32(..);
        let nonsense = claim(0, Named::Member(group, 0)).expect("free");
        let right = claim(0, Named::Member(group, 1)).expect("free");
        let strange = address(0, Named::Member(group, 2)).expect("a name");
        let others = std::thread::spawn(move || {
            // SAFETY: of this thread alone, which ends with it.
            let is_other = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) } == 0;
            let socket = stream().expect("a socket");
            bind(&socket, &strange).expect("free");
            listen(&socket, BACKLOG).expect("bound");
            (is_other, socket)
        });
        let (is_other, _strange) = others.join().expect("no panic");
        let memory = cci_mem::segment::Segment::create("test", 4096).expect("memory");
        let owner = Owner { number: 7, uri: "x://y".into() };
        let told = introduction_of_member((3, 4096), (true, 1), &owner.emit());
        let found = std::thread::scope(|scope| {
            let asking = scope.spawn(|| members(group, 0, Duration::from_secs(2), None));
            while !asking.is_finished() {
                let _ = introduce(&nonsense, b"nonsense");
                let _ = introduce_member(&right, &told, memory.file_of().expect("a file"));
                std::thread::yield_now();
            }
            asking.join().expect("no panic").expect("passed over")
        });
        assert_eq!(found.found.iter().map(|(member, _)| member.place).collect::<Vec<_>>(), [1]);
        // Without the right to be another user, it is one of this user that does not answer.
        assert_eq!((found.mute, found.free), (if is_other { vec![] } else { vec![2] }, Some(3)));
    }
}
