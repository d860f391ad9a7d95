//! What the tests need `unsafe` for: a name space of their own, and reading
//! what a datagram's header said.

use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Takes this thread into a network name space of its own; false: this user may not.
pub(crate) fn own_network() -> bool {
    // SAFETY: concerns descriptors that this thread opens from now on.
    unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
}

/// Between fork and exec a child holds all descriptors of this process. Who starts one writes here,
/// and who needs its sockets closed when it drops them reads.
static CHILDREN: RwLock<()> = RwLock::new(());

/// Runs a command, when nobody minds; whether it ended well.
pub(crate) fn run(command: &mut Command) -> bool {
    let _nobody = CHILDREN.write().unwrap_or_else(PoisonError::into_inner);
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// As long as this lives, no child is started.
pub(crate) fn no_children() -> RwLockReadGuard<'static, ()> {
    CHILDREN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Another descriptor of this process's socket with these names, as a forked child has one.
pub(crate) fn duplicate(own: &str, peer: &str) -> Option<UdpSocket> {
    let numbers = std::fs::read_dir("/proc/self/fd").ok()?;
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.into_iter().find_map(|number: i32| {
        // SAFETY: never closed here; and only asked for its names, whatever it is. A copy of each
        // would keep sockets of other tests open.
        let socket = ManuallyDrop::new(unsafe { UdpSocket::from_raw_fd(number) });
        let is_it = socket.local_addr().is_ok_and(|name| name.to_string() == own)
            && socket.peer_addr().is_ok_and(|name| name.to_string() == peer);
        is_it.then(|| socket.try_clone().expect("a descriptor"))
    })
}

fn set(socket: &UdpSocket, name: i32) {
    let on: libc::c_int = 1;
    // SAFETY: `on` is valid for the call, and its length is right.
    let done = unsafe {
        let len = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, name, (&raw const on).cast(), len)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A plain socket that is in a group on the loop-back, and its port.
pub(crate) fn member(group: &str) -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let group: Ipv4Addr = group.parse().expect("an IP");
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).expect("a group");
    set(&socket, libc::IP_RECVTTL);
    let port = socket.local_addr().expect("a name").port();
    (socket, port)
}

/// The TTL of the next datagram.
pub(crate) fn receive_ttl(socket: &UdpSocket) -> Option<i32> {
    receive(socket, libc::IP_TTL)
}

/// The traffic class of the next datagram, whose option is set too late for the first.
pub(crate) fn receive_class(socket: &UdpSocket) -> Option<i32> {
    receive(socket, libc::IP_TOS)
}

fn receive(socket: &UdpSocket, kind: i32) -> Option<i32> {
    set(socket, libc::IP_RECVTOS);
    socket.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a limit");
    let (mut bytes, mut control) = ([0_u8; 2048], [0_u64; 32]);
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all zeroes is a valid header; it points to locals that outlive the call, with their
    // lengths. What the kernel wrote is walked by its own macros.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        assert!(libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) >= 0, "{}", std::io::Error::last_os_error());
        let mut word = libc::CMSG_FIRSTHDR(&raw const header);
        while !word.is_null() {
            if (*word).cmsg_level == libc::IPPROTO_IP && (*word).cmsg_type == kind {
                let place = libc::CMSG_DATA(word);
                let is_byte = (*word).cmsg_len as usize == libc::CMSG_LEN(1) as usize;
                return Some(if is_byte { i32::from(*place) } else { place.cast::<i32>().read_unaligned() });
            }
            word = libc::CMSG_NXTHDR(&raw const header, word);
        }
    }
    None
}

/// Puts `/dev/null` in the place of the IPv4 socket at this port, as a program might that closes a
/// descriptor which is not its own. Whether there is such a socket.
pub(crate) fn replace_socket(port: u16) -> bool {
    let nothing = std::fs::File::open("/dev/null").expect("it is there");
    (3..1024).any(|number| {
        let mut name =
            libc::sockaddr_in { sin_family: 0, sin_port: 0, sin_addr: libc::in_addr { s_addr: 0 }, sin_zero: [0; 8] };
        let mut len = size_of_val(&name) as libc::socklen_t;
        // SAFETY: the call writes no more than the place has; another descriptor is left alone.
        let is_known = unsafe { libc::getsockname(number, (&raw mut name).cast(), &raw mut len) } == 0;
        let is_it = is_known
            && i32::from(name.sin_family) == libc::AF_INET
            && name.sin_port == port.to_be()
            && name.sin_addr.s_addr == 0;
        // SAFETY: the number stays open, so that its owner closes what is there.
        is_it && unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&nothing), number) } == number
    })
}
