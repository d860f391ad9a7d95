//! Bare TCP sockets, as a program uses them that has a buffer to send from and one to receive into
//! for each peer.

use super::measured::{CurveTask, OtherEnd};
use super::population::{Population, SILENCE};
use crate::interrupt;
use crate::methods::other_process::{OtherProcess, obey};
use crate::task;
use cci_report::{UserError, while_doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a buffer: a page, as in the CCI paper.
const BUFFER: usize = 4096;
/// Sockets that are connected at once.
const CHUNK: u32 = 500;
/// How often a wait looks whether a signal has come.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A peer of the program.
struct Peer {
    _socket: TcpStream,
    _buffers: [Box<[u8]>; 2],
}

/// The sockets of one end.
pub(super) struct Sockets {
    listener: TcpListener,
    peers: Vec<Peer>,
    other: OtherProcess,
}

impl Sockets {
    pub(super) fn open(task: &CurveTask) -> Result<Self, UserError> {
        let failed = while_doing("cannot listen on the loop-back address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&failed)?;
        let port = listener.local_addr().map_err(&failed)?.port().to_string();
        let task = task.of_other(0, [port.clone(), port]);
        let other = OtherProcess::start(task::command(&task)?)?;
        let mut sockets = Self { listener, peers: Vec::new(), other };
        // Nothing is done for the first time any more.
        sockets.add(1)?;
        Ok(sockets)
    }

    fn accept(&mut self) -> Result<(), UserError> {
        let since = Instant::now();
        while poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&LOOK)) != Ok(1) {
            if interrupt::is_asked() {
                return Err(UserError::new(interrupt::ENDED));
            }
            if since.elapsed() > SILENCE || self.other.has_ended() {
                return Err(UserError::new("the process of the peers ended early"));
            }
        }
        let (socket, _) = self.listener.accept().map_err(while_doing("cannot accept a bare connection"))?;
        // Written, so that the pages are there.
        let buffers = [(); 2].map(|()| vec![1; BUFFER].into_boxed_slice());
        self.peers.push(Peer { _socket: socket, _buffers: buffers });
        Ok(())
    }
}

impl Population for Sockets {
    fn chunk(&self) -> u32 {
        CHUNK
    }

    fn prepare(&mut self, _: u32) -> Result<(), UserError> {
        Ok(())
    }

    fn add(&mut self, more: u32) -> Result<(), UserError> {
        self.other.tell(&format!("connect {more}"))?;
        (0..more).try_for_each(|_| self.accept())?;
        self.other.answer()
    }
}

/// The other end of bare sockets.
pub(super) fn obey_as_sockets(other: &OtherEnd) -> Result<(), UserError> {
    let port: u16 = other.to[0].parse().map_err(while_doing("cannot parse an order"))?;
    let mut sockets = Vec::new();
    obey(|order, numbers| match (order, numbers) {
        ("connect", [count]) => (0..*count).try_for_each(|_| {
            let failed = while_doing("cannot make a bare connection");
            let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(&failed)?;
            // Its end resets the connection, so that its port does not wait for late packets.
            set_socket_linger(&socket, Some(Duration::ZERO)).map_err(|error| failed(error.into()))?;
            sockets.push(socket);
            Ok(())
        }),
        _ => Err(UserError(format!("there is no order {order}"))),
    })
}
