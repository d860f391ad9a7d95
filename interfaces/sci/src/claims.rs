//! Names of segments and interrupts: sockets in the abstract name space, which end with their
//! process (`docs/design/sci.md`, Names).

use crate::errors::Error;
use cci_mem::inherited::close_in_children;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, send,
    socket_with,
};
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"ccisci01";
/// Bytes of an introduction, at most.
const LONGEST: usize = 4096;
/// Connects that wait until the owner takes them.
const BACKLOG: i32 = 128;
/// The pause while the owner has no room for another connect.
const PAUSE: Duration = Duration::from_millis(1);

/// What is named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    Segment(u32),
    Interrupt(u32),
    /// An entry of the memory of a device: its device and number.
    Room((u64, u64), usize),
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

fn address(node: u32, what: Named) -> Result<SocketAddrUnix, Error> {
    let user = rustix::process::geteuid().as_raw();
    let name = match what {
        Named::Segment(id) => format!("cci-sci/{user}/{node}/s/{id}"),
        Named::Interrupt(number) => format!("cci-sci/{user}/{node}/i/{number}"),
        Named::Room((device, file), entry) => format!("cci-sci/{user}/{node}/m/{device}/{file}/{entry}"),
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

/// Asks who has claimed a name. `None`: nobody.
pub(crate) fn find(node: u32, what: Named, deadline: Option<Instant>) -> Result<Option<Owner>, Error> {
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
    if !is_own_user(&socket) {
        return Err(Error::Access);
    }
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
