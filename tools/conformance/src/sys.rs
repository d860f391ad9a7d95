//! All unsafe code of the testkit: a fork, raw memory for RMA, and a look at payloads as C programs
//! have it.

#![allow(unsafe_code)]

use cci::__binding::{self, EndpointCell, EventCell};
use cci::{Endpoint, Event, EventKind, Memory, RequestError, SharedMemory};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::NonNull;
use std::time::Duration;

/// Gives this thread name spaces of its own. With users among them the process has one thread only.
///
/// # Errors
///
/// The system does not let us.
pub fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    assert!(!flags.contains(UnshareFlags::FILES), "descriptors are shared by all threads");
    // SAFETY: descriptors are not unshared, so that none is closed or taken under somebody who owns
    // it.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Has what this command starts be killed when the thread that starts it ends, however that comes.
pub fn ends_with_its_parent(command: &mut Command) {
    let parent = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have ended before.
        if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec it makes two system calls and touches no memory but its own.
    unsafe { command.pre_exec(prepare) };
}

/// Forks this process; `None` in the child.
///
/// # Panics
///
/// The process has more than one thread, or cannot fork.
pub fn fork() -> Option<Pid> {
    assert_eq!(crate::process::threads(), 1, "only a process with one thread can fork safely");
    // SAFETY: there is no other thread, so no lock is held by a thread that the child lacks.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "cannot fork: {}", std::io::Error::last_os_error());
    Pid::from_raw(pid)
}

/// Ends this process after so many seconds, so that no test waits for it for ever.
pub fn alarm(seconds: u32) {
    // SAFETY: sets a timer of the process; the default action of its signal ends the process.
    unsafe { libc::alarm(seconds) };
}

/// Ends this thread and nothing else, behind the back of Rust and the C library.
pub fn end_thread() -> ! {
    loop {
        // SAFETY: the thread runs no further; what it has borrowed stays borrowed for ever.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Makes this process another user's, for good.
///
/// # Panics
///
/// It may not.
pub fn become_user(user: u32) {
    // SAFETY: changes the credentials of this process and touches no memory.
    let done = unsafe { libc::setresgid(user, user, user) == 0 && libc::setresuid(user, user, user) == 0 };
    assert!(done, "cannot become user {user}: {}", std::io::Error::last_os_error());
}

/// An event as a binding for C holds it: a pointer that says nothing about who returns it, and
/// when.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent(NonNull<EventCell>);

impl RawEvent {
    /// Takes an event out of Rust's care.
    pub fn of(event: Event<'_>) -> Self {
        Self(__binding::into_raw(event))
    }

    /// The slot.
    pub fn cell(self) -> &'static EventCell {
        // SAFETY: slots stay mapped and typed for ever, and consist of atomics.
        unsafe { self.0.as_ref() }
    }

    /// Gives the event back.
    ///
    /// # Errors
    ///
    /// As [`cci::__binding::return_event`].
    pub fn give_back(self) -> Result<(), RequestError> {
        // SAFETY: tests read payloads by copies, and before they return their event.
        unsafe { __binding::return_event(self.cell()) }
    }

    /// Accepts the request in this event.
    ///
    /// # Errors
    ///
    /// As [`cci::__binding::accept`].
    pub fn accept(self, context: u64) -> Result<(), RequestError> {
        __binding::accept(self.cell(), context)
    }

    /// Rejects the request in this event.
    ///
    /// # Errors
    ///
    /// As [`cci::__binding::reject`].
    pub fn reject(self) -> Result<(), RequestError> {
        __binding::reject(self.cell())
    }

    /// A copy of the payload of a request.
    pub fn request_payload(self) -> Vec<u8> {
        cci_instruments::payload(self.cell())
    }

    /// Address and length of the payload of a borrowed RECV.
    fn payload(self) -> (usize, usize) {
        assert_eq!(self.cell().kind(), EventKind::Recv as u32);
        (usize::try_from(self.cell().words()[0]).expect("an address"), self.cell().detail() as usize)
    }

    /// Reads a RECV event as a C program does, and returns it.
    ///
    /// # Panics
    ///
    /// It is another event, or not borrowed.
    pub fn take_apart(self) -> RawPayload {
        let (address, len) = self.payload();
        let mut bytes = vec![0; len + 1];
        let source = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: a RECV event has `len` readable bytes and one zero byte after them until it is
        // returned, which it is below only: the library refuses what was returned before, and the
        // tests hand no copy of this pointer on.
        unsafe { std::ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), len + 1) };
        let after = bytes.pop().expect("the byte after");
        self.give_back().expect("borrowed");
        RawPayload { address, bytes, after }
    }

    /// Overwrites the whole payload of a RECV event in place, as programs do, and returns the
    /// event. What stood there.
    ///
    /// # Panics
    ///
    /// It is another event, or not borrowed.
    pub fn overwrite(self, value: u8) -> Vec<u8> {
        let (address, len) = self.payload();
        let mut bytes = vec![0; len];
        let target = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: as in `take_apart`; the payload is the program's to write, `len` bytes of it.
        unsafe {
            std::ptr::copy_nonoverlapping(target, bytes.as_mut_ptr(), len);
            std::ptr::write_bytes(target, value, len);
        }
        self.give_back().expect("borrowed");
        bytes
    }
}

/// The cell of an endpoint, for what only bindings can do.
pub fn cell(endpoint: &Endpoint) -> &'static EndpointCell {
    // SAFETY: tests read payloads by copies, and take no slot through the cell that an event holds.
    unsafe { __binding::cell(endpoint) }
}

/// Closes an endpoint through its cell, as a binding does.
///
/// # Errors
///
/// As [`cci::__binding::close`].
pub fn close(cell: &'static EndpointCell) -> Result<(), cci::CloseError> {
    // SAFETY: the tests that do so hold no event.
    unsafe { __binding::close(cell) }
}

/// A received message as a C program sees it.
#[derive(Debug)]
pub struct RawPayload {
    /// Address of the first byte.
    pub address: usize,
    /// The message.
    pub bytes: Vec<u8>,
    /// The byte that follows it.
    pub after: u8,
}

/// A range without an address, which no endpoint may register.
pub fn null_memory(len: u64) -> Memory {
    // SAFETY: names no memory.
    unsafe { Memory::new(std::ptr::null_mut(), len) }
}

/// Private memory of this process, of no special origin. Its address stays reserved when it is
/// dropped, so that a late write by a peer could never hit anything else.
#[derive(Debug)]
pub struct PrivateMemory {
    base: NonNull<u8>,
    len: usize,
    mapped: usize,
}

// SAFETY: a mapping is not bound to a thread, and its bytes move through raw pointers only.
unsafe impl Send for PrivateMemory {}
// SAFETY: as above; races between copies spoil bytes, as peers with rights may at any time.
unsafe impl Sync for PrivateMemory {}

impl PrivateMemory {
    /// `len` bytes of zeroes.
    ///
    /// # Panics
    ///
    /// No memory.
    pub fn new(len: usize) -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
        let base = NonNull::new(base.expect("memory").cast()).expect("a mapping is not null");
        Self { base, len, mapped: len }
    }

    /// The same at an address of the caller's choice, where nothing is.
    ///
    /// # Panics
    ///
    /// Something is there, or no memory.
    pub fn at(address: usize, len: usize) -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: a fresh mapping, which replaces none.
        let base = unsafe { mmap_anonymous(std::ptr::without_provenance_mut(address), len, protection, flags) };
        let base = NonNull::new(base.expect("memory").cast::<u8>()).expect("a mapping is not null");
        assert_eq!(base.as_ptr().addr(), address);
        Self { base, len, mapped: len }
    }

    /// The range, to be registered.
    pub fn memory(&self) -> Memory {
        // SAFETY: this type gives no reference into it, and the address is never used for anything
        // else but by `unmap_from`, whose caller accepts that transfers fail.
        unsafe { Memory::new(self.base.as_ptr(), self.len as u64) }
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes everything from `offset` on (a multiple of the page) inaccessible, so that copies
    /// across it are cut.
    pub fn unmap_from(&mut self, offset: usize) {
        assert!(offset.is_multiple_of(rustix::param::page_size()) && offset < self.len);
        self.mapped = offset;
        // SAFETY: the end of this mapping, which nobody refers to; it is replaced in one step by an
        // inaccessible one.
        unsafe {
            let tail = self.base.as_ptr().add(offset).cast();
            let fixed = MapFlags::PRIVATE | MapFlags::FIXED;
            mmap_anonymous(tail, self.len - offset, ProtFlags::empty(), fixed).expect("own mapping");
        }
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.mapped), "outside the memory");
        // SAFETY: inside the mapping; a program's slice is no part of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(offset), bytes.len()) };
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, target: &mut [u8]) {
        assert!(offset.checked_add(target.len()).is_some_and(|end| end <= self.mapped), "outside the memory");
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), target.as_mut_ptr(), target.len()) };
    }
}

impl Drop for PrivateMemory {
    fn drop(&mut self) {
        // SAFETY: this mapping; the pages go, the address stays.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.mapped, Advice::LinuxDontNeed) };
    }
}

/// Lets whatever program this process executes next have all its descriptors.
///
/// # Panics
///
/// The system does not list them.
pub fn inherit_descriptors() {
    for entry in std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).expect("a number");
        // SAFETY: flags only; of a number without a descriptor the call is an error, nothing more.
        unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
    }
}

/// Copies `bytes` by one call of `process_vm_writev` to another process, `times` times one behind
/// the other from `address` on. Returns how many bytes the kernel copied.
///
/// # Errors
///
/// The kernel refuses, or nothing is mapped at `address`.
pub fn process_write(pid: Pid, address: usize, bytes: &[u8], times: usize) -> std::io::Result<usize> {
    let piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let local = vec![piece; times];
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: bytes.len().saturating_mul(times) };
    let pid = pid.as_raw_nonzero().get();
    // SAFETY: the kernel only reads the local bytes, which are a slice; what lies at the remote
    // range is the kernel's to check.
    let copied =
        unsafe { libc::process_vm_writev(pid, local.as_ptr(), times as libc::c_ulong, &raw const remote, 1, 0) };
    usize::try_from(copied).map_err(|_| std::io::Error::last_os_error())
}

/// Names bytes of a library allocation as a C program does, by their address.
pub fn by_address(allocation: &SharedMemory) -> Memory {
    let range = allocation.memory();
    // SAFETY: nothing refers to the bytes but registrations, which keep the allocation mapped.
    unsafe { Memory::new(std::ptr::with_exposed_provenance_mut(range.start()), range.len()) }
}

/// Waits with `select` until a descriptor is readable; false when the time is over.
///
/// # Panics
///
/// The descriptor cannot be selected, or is too large for a set.
pub fn select_readable(fd: impl AsFd, limit: Duration) -> bool {
    use rustix::event::{FdSetElement, Timespec, fd_set_insert, fd_set_num_elements, select};
    let fd = fd.as_fd().as_raw_fd();
    let limit = Timespec::try_from(limit).expect("a time");
    loop {
        let mut set = vec![FdSetElement::default(); fd_set_num_elements(1, fd + 1)];
        fd_set_insert(&mut set, fd);
        // SAFETY: the set has room for this descriptor, which is borrowed and so open.
        match unsafe { select(fd + 1, Some(&mut set), None, None, Some(&limit)) } {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot select: {error}"),
        }
    }
}

/// Has the system refuse a call with EPERM from now on, to all threads of this process, for ever.
///
/// # Panics
///
/// The system takes no filter.
pub fn refuse_call(number: libc::c_long) {
    refuse_call_with(number, libc::EPERM);
}

/// The same with another error.
///
/// # Panics
///
/// The system takes no filter.
pub fn refuse_call_with(number: libc::c_long, error: i32) {
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0000;
    let (number, error) = (u32::try_from(number).expect("a number of a call"), error.cast_unsigned());
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    // Loads the number of the call; is it this one?
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, REFUSE | error),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter live until the call is over; no memory of ours is written.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                std::ptr::from_ref(&program),
            ) == 0
    };
    assert!(done, "no filter: {}", std::io::Error::last_os_error());
}
