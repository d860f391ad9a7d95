//! Connections between the two ends of a measurement on this host. Anybody on the host may connect
//! to a port that is listened at: a stranger's connection is closed, and keeps nobody waiting.
//!
//! ```text
//! caller: bind 127.0.0.1:0 --- own port, by memory or a pipe of both ---> accepting end
//!         connect -------------------------------------------------------> accept_from:
//!                                               its port: returned; another one: closed
//! ```

use cci_admission::{Admission, Failed, Limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// How often a wait asks whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// Nobody is a stranger for a while: a port tells at once.
const NO_STRANGERS: Limits = Limits { places: 0, patience: Duration::ZERO, bytes: 0 };

/// The end of a stream that connects, from a port that it has already.
pub(crate) struct Caller {
    stream: TcpStream,
    port: u16,
}

impl Caller {
    /// Takes a free port of the loop-back interface.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let stream = TcpStream::from(socket);
        let port = stream.local_addr()?.port();
        Ok(Self { stream, port })
    }

    /// Its port, by which the other end knows it.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Begins to connect to a port of this host.
    pub(crate) fn call(self, port: u16) -> io::Result<Calling> {
        match connect(&self.stream, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Calling(self.stream)),
            Err(why) => Err(why.into()),
        }
    }
}

/// A connection that is being made.
pub(crate) struct Calling(TcpStream);

impl Calling {
    /// Waits until it is there, at most for so long: strangers may have filled the other end's
    /// backlog.
    pub(crate) fn finish(self, limit: Duration) -> io::Result<TcpStream> {
        let begin = Instant::now();
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let timeout = Timespec::try_from(left).map_err(|_| ErrorKind::InvalidInput)?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], Some(&timeout)) {
                Ok(0) if left.is_zero() => return Err(late(limit)),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => break,
                Err(why) => return Err(why.into()),
            }
        }
        if let Some(why) = self.0.take_error()? {
            return Err(why);
        }
        self.0.set_nonblocking(false)?;
        Ok(self.0)
    }
}

fn late(limit: Duration) -> io::Error {
    let what = format!("the other end did not connect within {limit:?}; see whether it still runs");
    io::Error::new(ErrorKind::TimedOut, what)
}

/// Accepts the connection of a caller, by its port, and closes those of strangers. Ends after
/// `limit`, or with the error of `go_on`, which is called ten times a second at least.
pub(crate) fn accept_from(
    listener: &TcpListener,
    is_caller: impl Fn(u16) -> bool,
    limit: Duration,
    mut go_on: impl FnMut() -> io::Result<()>,
) -> io::Result<TcpStream> {
    let begin = Instant::now();
    let mut admission = Admission::<()>::new(NO_STRANGERS);
    listener.set_nonblocking(true)?;
    loop {
        let now = begin.elapsed();
        let left = limit.saturating_sub(now);
        go_on()?;
        let may_accept = admission.may_accept(now);
        if may_accept {
            match listener.accept() {
                Ok((stream, from)) if from.ip() == Ipv4Addr::LOCALHOST && is_caller(from.port()) => {
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                // Those who do not stop to come are no reason to stay.
                Ok(_) if !left.is_zero() => continue,
                Ok(_) => {}
                Err(why) => match admission.handle_failed_accept(now, &why) {
                    Failed::Again => {}
                    Failed::Later | Failed::Close(()) => wait(listener, admission.may_accept(now), left.min(LOOK))?,
                },
            }
        } else {
            wait(listener, false, left.min(LOOK))?;
        }
        if left.is_zero() {
            return Err(late(limit));
        }
    }
}

/// Sleeps, until somebody connects if that matters.
fn wait(listener: &TcpListener, for_somebody: bool, left: Duration) -> io::Result<()> {
    let mut ready = [PollFd::new(listener, if for_somebody { PollFlags::IN } else { PollFlags::empty() })];
    let timeout = Timespec::try_from(left).map_err(|_| ErrorKind::InvalidInput)?;
    match poll(&mut ready, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Has a socket receive what comes from this port of this host alone. The other end must not send
/// before this returns: what came until then is dropped, since a stranger may have sent it.
pub(crate) fn receive_only_from(socket: &UdpSocket, port: u16) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.connect((Ipv4Addr::LOCALHOST, port))?;
    loop {
        match socket.recv(&mut [0]) {
            Ok(_) => {}
            Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
            // An earlier one of these has told of a port that is closed.
            Err(why) if matches!(why.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionRefused) => {}
            Err(why) => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::io::{Read, Write};

    /// Longer than anything takes on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        (listener, port)
    }

    /// Strangers that are silent, or send what nobody has asked for.
    pub(crate) fn strangers(port: u16, count: usize) -> Vec<TcpStream> {
        let stranger = |number| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a stranger");
            if number % 2 == 1 {
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("room");
            }
            stream
        };
        (0..count).map(stranger).collect()
    }

    #[test]
    fn the_caller_is_accepted_whoever_came_before() {
        let (listener, port) = listener();
        let mut kept = strangers(port, 100);
        let caller = Caller::new().expect("a port");
        let own = caller.port();
        let calling = caller.call(port).expect("a listener");
        let mut to = accept_from(&listener, |from| from == own, LONG, || Ok(())).expect("the caller");
        let mut from = calling.finish(LONG).expect("a connection");
        from.write_all(b"own").expect("room");
        let mut bytes = [0; 3];
        to.read_exact(&mut bytes).expect("bytes");
        assert_eq!(&bytes, b"own");
        // The strangers have been closed: each reads the end, or that what it sent was not read.
        for stranger in &mut kept {
            stranger.set_read_timeout(Some(LONG)).expect("a timeout");
            let ended = stranger.read(&mut bytes).map_err(|why| why.kind());
            assert!(matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
        }
    }

    #[test]
    fn strangers_that_come_without_end_do_not_keep_the_accepting_end() {
        let (listener, port) = listener();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
                }
            });
            let late = accept_from(&listener, |_| false, 2 * LOOK, || Ok(()));
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(late.expect_err("nobody").kind(), ErrorKind::TimedOut);
        });
        let asked = accept_from(&listener, |_| false, LONG, || Err(ErrorKind::Interrupted.into()));
        assert_eq!(asked.expect_err("it was asked to end").kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn datagrams_of_strangers_are_dropped() {
        let bound = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let (own, other, stranger) = (bound(), bound(), bound());
        let at = own.local_addr().expect("an address");
        stranger.send_to(b"before", at).expect("sent");
        receive_only_from(&own, other.local_addr().expect("an address").port()).expect("connected");
        stranger.send_to(b"after", at).expect("sent");
        other.send_to(b"own", at).expect("sent");
        let mut bytes = [0; 9];
        assert_eq!((own.recv(&mut bytes).expect("one"), &bytes[..3]), (3, &b"own"[..]));
        assert_eq!(own.recv(&mut bytes).expect_err("no more").kind(), ErrorKind::WouldBlock);
    }

    /// The variable of the process that has no free descriptor: its limit holds for all threads.
    const CHILD: &str = "TEST_MEETING_CHILD";

    #[test]
    fn a_process_without_a_free_descriptor_sleeps_until_its_limit() {
        let name = "meeting::tests::a_process_without_a_free_descriptor_sleeps_until_its_limit";
        if std::env::var_os(CHILD).is_none() {
            let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
            let ended = command.args(["--exact", name]).env(CHILD, "1").output().expect("a process");
            assert!(ended.status.success(), "{ended:?}");
            return;
        }
        let (listener, port) = listener();
        let _kept = strangers(port, 3);
        let limit = getrlimit(Resource::Nofile);
        let next_free = listener.try_clone().map(|next| std::os::fd::AsRawFd::as_raw_fd(&next)).expect("one");
        let none = Rlimit { current: Some(u64::try_from(next_free).expect("a number")), ..limit };
        setrlimit(Resource::Nofile, none).expect("a lower limit");
        let mut looks = 0;
        let late = accept_from(
            &listener,
            |_| true,
            5 * LOOK,
            || {
                looks += 1;
                Ok(())
            },
        );
        assert_eq!(late.expect_err("no descriptor").kind(), ErrorKind::TimedOut);
        assert!(looks <= 20, "{looks} looks in {:?}", 5 * LOOK);
        setrlimit(Resource::Nofile, limit).expect("the old limit");
        assert!(accept_from(&listener, |_| true, LONG, || Ok(())).is_ok());
    }
}
