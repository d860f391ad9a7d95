//! Bare TCP sockets, as a program uses them that has a buffer to send from and one to receive into
//! for each peer.
//!
//! ```text
//! this end                                    the other one
//! "bind N" ---------------------------------> N sockets with ports of their own
//! <--------------------------- the N ports
//! "connect N" ------------------------------> connects them
//! accepts these ports, and closes others
//! ```

use super::population::{Population, SILENCE};
use super::subject::{CurveTask, OtherEnd};
use crate::interrupt;
use crate::meeting::{Caller, accept_from};
use crate::methods::other_process::{OtherProcess, add_to_answer, obey};
use crate::task;
use cci_report::{UserError, while_doing};
use rustix::net::sockopt::set_socket_linger;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// Bytes of a buffer: a page, as in the CCI paper.
const BUFFER: usize = 4096;
/// Sockets that are connected at once.
const CHUNK: u32 = 500;
/// Letters of the answer that names the ports of so many sockets, at most.
const ANSWER: usize = 6 * CHUNK as usize + 8;

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
    /// The ports of sockets that are about to connect, and the answer that names them.
    callers: Vec<u16>,
    answer: String,
}

impl Sockets {
    pub(super) fn open(task: &CurveTask) -> Result<Self, UserError> {
        let failed = while_doing("cannot listen on the loop-back address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&failed)?;
        let port = listener.local_addr().map_err(&failed)?.port().to_string();
        let task = task.of_other(0, [port.clone(), port]);
        let other = OtherProcess::start(task::command(&task)?)?;
        // Sockets are measured, and not what this end needs to know them.
        let (callers, answer) = (Vec::with_capacity(CHUNK as usize), String::with_capacity(ANSWER));
        let mut sockets = Self { listener, peers: Vec::new(), other, callers, answer };
        // Nothing is done for the first time any more.
        sockets.add(1)?;
        Ok(sockets)
    }

    fn accept(&mut self) -> Result<(), UserError> {
        let Self { listener, other, callers, .. } = self;
        let accepted = accept_from(
            listener,
            |from| callers.contains(&from),
            SILENCE,
            || match interrupt::is_asked() || other.has_ended() {
                true => Err(io::ErrorKind::Interrupted.into()),
                false => Ok(()),
            },
        );
        let socket = accepted.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted if interrupt::is_asked() => UserError::new(interrupt::ENDED),
            io::ErrorKind::Interrupted => UserError::new("the process of the peers ended early"),
            _ => while_doing("cannot accept a bare connection")(error),
        })?;
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
        self.other.tell(&format!("bind {more}"))?;
        self.other.answer_into(&mut self.answer)?;
        self.callers.clear();
        self.callers.extend(self.answer.split(' ').map_while(|word| word.parse::<u16>().ok()));
        self.other.tell(&format!("connect {more}"))?;
        (0..more).try_for_each(|_| self.accept())?;
        self.other.answer()
    }
}

/// The other end of bare sockets.
pub(super) fn obey_as_sockets(other: &OtherEnd) -> Result<(), UserError> {
    let port: u16 = other.to[0].parse().map_err(while_doing("cannot parse an order"))?;
    let (mut sockets, mut callers) = (Vec::new(), Vec::new());
    let failed = while_doing("cannot make a bare connection");
    obey(|order, numbers| match (order, numbers) {
        ("bind", [count]) => (0..*count).try_for_each(|_| {
            let caller = Caller::new().map_err(&failed)?;
            add_to_answer(caller.port())?;
            callers.push(caller);
            Ok(())
        }),
        ("connect", _) => callers.drain(..).try_for_each(|caller| {
            let socket = caller.call(port).and_then(|calling| calling.finish(SILENCE)).map_err(&failed)?;
            // Its end resets the connection, so that its port does not wait for late packets.
            set_socket_linger(&socket, Some(Duration::ZERO)).map_err(|error| failed(error.into()))?;
            sockets.push(socket);
            Ok(())
        }),
        _ => Err(UserError(format!("there is no order {order}"))),
    })
}
