//! What of this transport needs `unsafe` beside the lane's segment: copying to and from other
//! processes, and who is at the other end of a socket.

use cci_mem::address_space::Tag;
use cci_mem::descriptors;
use cci_mem::memory::Memory;
use cci_mem::segment::Segment;
use cci_mem::streaming;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::marker::PhantomData;

/// Linux's `SO_PEERPIDFD`, since 6.5.
const SO_PEERPIDFD: libc::c_int = 77;

/// Which way to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the other process to this one.
    Read,
    /// From this process to the other.
    Write,
}

/// Why a call copied nothing between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyError {
    /// The bytes cannot be copied; the tag was.
    Bytes,
    /// The tag says something else.
    OtherTag,
    /// The kernel refuses the call: what it says.
    Refused(Errno),
}

/// Bytes of registered memory of this process.
#[derive(Clone, Copy)]
pub(crate) struct Local<'m> {
    start: usize,
    len: usize,
    memory: PhantomData<&'m Memory>,
}

impl<'m> Local<'m> {
    /// `len` bytes from `offset` on; none when they do not lie inside as a whole.
    #[inline]
    pub(crate) fn of(memory: &'m Memory, offset: u64, len: usize) -> Option<Self> {
        let span = memory.span(offset, len)?;
        Some(Self { start: span.start(), len, memory: PhantomData })
    }

    /// Those after the first `count`.
    fn after(self, count: usize) -> Self {
        let count = count.min(self.len);
        Self { start: self.start + count, len: self.len - count, ..self }
    }
}

/// Bytes of a mapped segment, which peers read and write.
#[derive(Clone, Copy)]
pub(crate) struct Mapped<'s> {
    start: *mut u8,
    len: usize,
    segment: PhantomData<&'s Segment>,
}

impl<'s> Mapped<'s> {
    /// `len` bytes from `offset` on, which lie inside as a whole.
    #[inline]
    pub(crate) fn of(segment: &'s Segment, offset: usize, len: usize) -> Self {
        Self { start: segment.bytes(offset, len), len, segment: PhantomData }
    }
}

/// Copies between `local` and `remote` in the address space of process `pid` that has this tag,
/// going on where the kernel stops early.
///
/// A call takes hold of the peer's address space as it begins, and begins with the tag of the one
/// that has the registration. When the peer executes another program, a call that is under way goes
/// on in the old address space, and the next one fails.
pub(crate) fn process_copy(pid: i32, tag: Tag, way: Way, local: Local<'_>, remote: usize) -> Result<(), CopyError> {
    let mut done = 0;
    while done < local.len {
        let left = local.after(done);
        // SAFETY: registered memory of this process, which `local` borrows.
        match unsafe { copy_once(pid, tag, way, (left.start, left.len), remote.wrapping_add(done)) } {
            Ok(copied) => done += copied,
            Err(CopyError::Refused(Errno::INTR)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One call of the kernel; says how many bytes it has copied, which may be fewer than asked.
///
/// The tag is copied first, onto itself or to here. So a process that has another program by now,
/// or another process that has the number, fails the call before its first byte, however long ago
/// the caller looked.
///
/// # Safety
///
/// The `len` bytes at `local` are registered memory of this process, or memory that nobody else
/// uses. Unmapped addresses are an error, not a fault.
unsafe fn copy_once(
    pid: i32,
    tag: Tag,
    way: Way,
    (local, len): (usize, usize),
    remote: usize,
) -> Result<usize, CopyError> {
    let mut word = if way == Way::Write { tag.value } else { !tag.value };
    let tag_here = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: TAG_LEN };
    let here = [tag_here, libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(local), iov_len: len }];
    let [tag_there, remote] = [tag.address, remote].map(std::ptr::without_provenance_mut);
    let there = [libc::iovec { iov_base: tag_there, iov_len: TAG_LEN }, libc::iovec { iov_base: remote, iov_len: len }];
    // SAFETY: two vectors each way; the kernel checks the ranges, `word` is ours, and the caller
    // vouches for the other local one.
    let copied = unsafe {
        match way {
            Way::Read => libc::process_vm_readv(pid, here.as_ptr(), 2, there.as_ptr(), 2, 0),
            Way::Write => libc::process_vm_writev(pid, here.as_ptr(), 2, there.as_ptr(), 2, 0),
        }
    };
    let copied = usize::try_from(copied).map_err(|_| CopyError::Refused(last_error()))?;
    if copied < TAG_LEN || word != tag.value {
        return Err(CopyError::OtherTag);
    }
    match copied - TAG_LEN {
        0 if len > 0 => Err(CopyError::Bytes),
        bytes => Ok(bytes),
    }
}

/// Copies the tag alone: whether process `pid` has this address space, and may be copied to and
/// from.
pub(crate) fn copy_tag(pid: i32, tag: Tag, way: Way) -> Result<(), CopyError> {
    // SAFETY: no bytes but the tag.
    unsafe { copy_once(pid, tag, way, (0, 0), tag.address) }.map(drop)
}

const TAG_LEN: usize = size_of::<u64>();

fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Copies between registered memory and a mapped segment: as many bytes as both have.
#[inline]
pub(crate) fn direct_copy(way: Way, local: Local<'_>, remote: Mapped<'_>) {
    let (source, target, len) = ends(way, local, remote);
    // SAFETY: `local` borrows memory whose maker has promised that it is mapped and used knowing
    // that others write it, `remote` a mapping; both are checked to be inside. They may overlap
    // when an endpoint copies within one allocation.
    unsafe { std::ptr::copy(source, target, len) };
}

/// As [`direct_copy`], past the caches: for a piece of a transfer that is too large to stay in
/// them.
pub(crate) fn streaming_copy(way: Way, local: Local<'_>, remote: Mapped<'_>) {
    let (source, target, len) = ends(way, local, remote);
    let overlap = source.addr().abs_diff(target.addr()) < len;
    // SAFETY: as in `direct_copy`; without overlap, as just checked.
    unsafe { if overlap { std::ptr::copy(source, target, len) } else { streaming::copy(source, target, len) } };
}

/// Source, target and length of a copy.
#[inline]
fn ends(way: Way, local: Local<'_>, remote: Mapped<'_>) -> (*const u8, *mut u8, usize) {
    let start = std::ptr::with_exposed_provenance_mut::<u8>(local.start);
    let len = local.len.min(remote.len);
    match way {
        Way::Read => (remote.start, start, len),
        Way::Write => (start, remote.start, len),
    }
}

/// The process at the other end of a socket. All lanes to it share this.
#[derive(Debug)]
pub(crate) struct Peer {
    /// 0: it is in a pid name space that this process does not see, and has no number here.
    pub(crate) pid: i32,
    /// Its effective user when it connected.
    pub(crate) uid: u32,
    /// Readable when the process is dead.
    pub(crate) pidfd: OwnedFd,
}

impl Peer {
    /// Whether the process has ended.
    pub(crate) fn is_dead(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&now)), Ok(1..))
    }

    /// Whether the process has ended or, by its socket, has closed its endpoint or executed another
    /// program. It copies nothing then.
    pub(crate) fn is_gone(&self, socket: &OwnedFd) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut both = [PollFd::new(&self.pidfd, PollFlags::IN), PollFd::new(socket, PollFlags::RDHUP)];
        matches!(poll(&mut both, Some(&now)), Ok(1..))
    }
}

/// Number and user of the process at the other end, as the kernel noted them when the two
/// connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// As of [`Peer`].
    pub(crate) pid: i32,
    pub(crate) uid: u32,
}

/// Asks the kernel who is at the other end.
pub(crate) fn credentials(socket: impl AsFd) -> Result<Credentials, Errno> {
    let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `cred` and `size` are valid for the call, and `size` says how large `cred` is.
    let known = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut size,
        )
    };
    if known == 0 { Ok(Credentials { pid: cred.pid.max(0), uid: cred.uid }) } else { Err(Errno::NOTCONN) }
}

/// The process at the other end.
pub(crate) fn peer(socket: impl AsFd, about: Credentials) -> Result<Peer, Errno> {
    let mut fd: libc::c_int = -1;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `fd` and `len` are valid for the call, and `len` says how large `fd` is.
    let done = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, (&raw mut fd).cast(), &raw mut len)
    };
    let pidfd = if done == 0 && fd >= 0 {
        // SAFETY: a descriptor that the kernel has just made for us.
        descriptors::above_standard(unsafe { OwnedFd::from_raw_fd(fd) })?
    } else {
        let pid = rustix::process::Pid::from_raw(about.pid).ok_or(Errno::SRCH)?;
        descriptors::process(pid)?
    };
    Ok(Peer { pid: about.pid, uid: about.uid, pidfd })
}
