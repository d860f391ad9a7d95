//! The system calls of this transport that need `unsafe`: those that gather from and scatter to
//! registered memory, and what the kernel knows of a stream.
//!
//! The calls of the fast path go straight to the system: the C library's are cancellation points,
//! which costs a program with threads two locked instructions each time.

use cci_mem::memory::Piece;
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::{Errno, Result};
use std::mem::zeroed;
use std::time::Duration;

/// System calls of this thread that send, and bytes that it has received into a buffer instead of
/// registered memory.
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local! {
        static SENDS: Cell<usize> = const { Cell::new(0) };
        static RECEIVES: Cell<usize> = const { Cell::new(0) };
        static BUFFERED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn on_send() {
        SENDS.set(SENDS.get() + 1);
    }

    pub(super) fn on_received(buffered: rustix::io::Result<usize>) {
        if let Ok(bytes @ 1..) = buffered {
            RECEIVES.set(RECEIVES.get() + 1);
            BUFFERED.set(BUFFERED.get() + bytes);
        }
    }

    /// Calls that sent, calls that found bytes for a buffer, and these bytes, since the last look.
    pub(crate) fn take() -> [usize; 3] {
        [SENDS.take(), RECEIVES.take(), BUFFERED.take()]
    }
}

fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

fn counted(result: libc::c_long) -> Result<usize> {
    usize::try_from(result).map_err(|_| last_error())
}

/// Whether an error of a stream says that its peer or the way there is gone. Any other means that
/// the system refuses the call.
pub(crate) fn is_end_of_stream(error: Errno) -> bool {
    matches!(
        error,
        Errno::PIPE
            | Errno::CONNRESET
            | Errno::CONNABORTED
            | Errno::CONNREFUSED
            | Errno::TIMEDOUT
            | Errno::HOSTUNREACH
            | Errno::HOSTDOWN
            | Errno::NETUNREACH
            | Errno::NETDOWN
            | Errno::NETRESET
            | Errno::NOTCONN
            | Errno::PROTO
    )
}

/// Sends bytes, as many as the kernel takes.
#[inline]
pub(crate) fn send(socket: impl AsFd, bytes: &[u8]) -> Result<usize> {
    let (fd, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    let nowhere = std::ptr::null::<u8>();
    #[cfg(test)]
    counted::on_send();
    // SAFETY: the kernel reads `bytes`, which outlives the call, and no name.
    counted(unsafe { libc::syscall(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), flags, nowhere, 0) })
}

/// Sends bytes, registered memory from its byte `from` on, and bytes behind it, as many as the
/// kernel takes.
pub(crate) fn send_with(socket: impl AsFd, head: &[u8], (memory, from): (&Piece, usize), tail: &[u8]) -> Result<usize> {
    let (fd, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(memory.start() + from);
    let mut vectors = [
        libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: head.len() },
        libc::iovec { iov_base: start, iov_len: memory.len().saturating_sub(from) },
        libc::iovec { iov_base: tail.as_ptr().cast_mut().cast(), iov_len: tail.len() },
    ];
    // SAFETY: all zeroes is a valid header.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = vectors.as_mut_ptr();
    header.msg_iovlen = vectors.len() as _;
    #[cfg(test)]
    counted::on_send();
    // SAFETY: the header and the vectors are this function's; the kernel only reads what they name,
    // `head`, `tail` and registered memory, whose addresses it checks.
    counted(unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const header, flags) })
}

/// Receives bytes. 0: the stream has ended.
#[inline]
pub(crate) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> Result<usize> {
    let (fd, nowhere) = (socket.as_fd().as_raw_fd(), std::ptr::null_mut::<u8>());
    // SAFETY: the kernel writes at most `bytes.len()` bytes to `bytes`, and no name.
    let received = counted(unsafe {
        libc::syscall(libc::SYS_recvfrom, fd, bytes.as_mut_ptr(), bytes.len(), libc::MSG_DONTWAIT, nowhere, nowhere)
    });
    #[cfg(test)]
    counted::on_received(received);
    received
}

/// Receives bytes into registered memory. 0: the stream has ended.
pub(crate) fn receive_into(socket: impl AsFd, memory: &Piece) -> Result<usize> {
    let (fd, nowhere) = (socket.as_fd().as_raw_fd(), std::ptr::null_mut::<u8>());
    let start = std::ptr::with_exposed_provenance_mut::<u8>(memory.start());
    // SAFETY: the kernel writes at most `memory.len()` bytes to registered memory, whose addresses
    // it checks, and whose owner knows that peers with rights write there; and no name.
    counted(unsafe { libc::syscall(libc::SYS_recvfrom, fd, start, memory.len(), libc::MSG_DONTWAIT, nowhere, nowhere) })
}

/// Sets an option of TCP that is a number.
fn set_option(socket: impl AsFd, option: i32, value: i32) -> Result<()> {
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel reads the four bytes of `value`.
    let result = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, option, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Has the kernel drop what arrives on a stream before it acknowledges it, or stop doing so.
#[cfg(test)]
pub(crate) fn drop_arrivals(socket: impl AsFd, drops: bool) -> Result<()> {
    // A filter that keeps no byte of a segment: BPF_RET | BPF_K, 0.
    let mut keep_nothing = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut keep_nothing };
    let option = if drops { libc::SO_ATTACH_FILTER } else { libc::SO_DETACH_FILTER };
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>() as libc::socklen_t);
    // SAFETY: the kernel reads `program` and its one instruction.
    let result = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, (&raw const program).cast(), len) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Limits what the kernel queues of a stream that it could not send yet, bytes.
pub(crate) fn limit_unsent(socket: impl AsFd, bytes: i32) -> Result<()> {
    set_option(socket, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// What the kernel knows of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamInfo {
    /// Segments that the peer's kernel has not acknowledged.
    pub(crate) unacknowledged: u32,
    /// Since its last acknowledgement.
    pub(crate) last_acknowledged: Duration,
    /// Smoothed round-trip time.
    pub(crate) rtt: Duration,
}

/// Asks the kernel about a stream.
pub(crate) fn info(socket: impl AsFd) -> Option<StreamInfo> {
    // SAFETY: all zeroes is a valid value of these numbers.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes to `info`.
    let result =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut len) };
    (result == 0).then(|| StreamInfo {
        unacknowledged: info.tcpi_unacked,
        last_acknowledged: Duration::from_millis(info.tcpi_last_ack_recv.into()),
        rtt: Duration::from_micros(info.tcpi_rtt.into()),
    })
}

/// Bytes that the peer's kernel has not acknowledged.
pub(crate) fn unsent(socket: impl AsFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes a number to `bytes`. TIOCOUTQ is SIOCOUTQ of sockets.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_mem::memory::{HeapBytes, Memory};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    #[test]
    fn bytes_travel_between_buffers_and_registered_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("a stream");
        let (other, _) = listener.accept().expect("a stream");
        let bytes = Arc::new(HeapBytes::new((0..100).collect()));
        let memory = Memory::of_bytes(&bytes);
        let piece = memory.piece(10, 20).expect("inside");
        assert_eq!(send_with(&one, b"head", (&piece, 5), b"tail"), Ok(4 + 15 + 4));
        let mut head = [0; 4];
        assert_eq!((receive(&other, &mut head), &head), (Ok(4), b"head"));
        let target = Arc::new(HeapBytes::new(vec![0; 15]));
        let whole = Memory::of_bytes(&target).piece(0, 15).expect("inside");
        assert_eq!(receive_into(&other, &whole), Ok(15));
        assert_eq!((receive(&other, &mut head), &head), (Ok(4), b"tail"));
        assert_eq!(receive(&other, &mut head), Err(Errno::AGAIN));
        drop(whole);
        assert_eq!(Arc::into_inner(target).map(HeapBytes::into_vec), Some((15..30).collect()));
        let gone = Memory::none();
        assert!(gone.piece(0, 1).is_none());
        assert!(limit_unsent(&one, 1 << 18).is_ok());
        assert!(info(&one).is_some_and(|info| info.unacknowledged == 0) && unsent(&one) == 0);
        drop(other);
        assert_eq!(receive(&one, &mut head), Ok(0));
    }
}
