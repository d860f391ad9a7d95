//! Many endpoints of one process that send in turn to one endpoint, each polled once a message,
//! beside bare UDP sockets in the same pattern: each datagram has an answer.

use super::beside::beside;
use crate::measure::driver::{Completion, Driver, DriverEvent, DriverOptions, PostError};
use crate::measure::facade::Facade;
use crate::methods::middle;
use cci::{Attribute, Connection};
use cci_report::{UserError, while_doing};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Messages of a block, and blocks of each kind.
const MESSAGES: u64 = 20_000;
const BLOCKS: usize = 7;
/// Datagrams that the bare pattern has under way at most: nothing repeats what is lost.
const UNDER_WAY: u64 = 64;
/// How long a block, or connecting all, may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What the receiving thread is to do, and how many messages have arrived.
#[derive(Default)]
struct Shared {
    arrived: AtomicU64,
    is_bare: AtomicBool,
}

impl Shared {
    fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
    }
}

/// Messages of the library in turn by so many endpoints, over those of bare sockets: blocks of both
/// kinds in turn.
///
/// # Errors
///
/// An endpoint or a socket fails, or nothing arrives.
pub fn measure(transport: &str, count: usize) -> Result<f64, UserError> {
    let opening = DriverOptions::on_loopback(transport);
    let (receiver, echo) = (Facade::open(&opening)?, bare_socket()?);
    let (shared, uri) = (Shared::default(), receiver.uri());
    beside(|is_over| receive(&receiver, &echo, &shared, is_over), || blocks(&opening, count, &uri, &echo, &shared))
}

/// Takes messages, or answers datagrams, until all is over.
fn receive(receiver: &Facade, echo: &UdpSocket, shared: &Shared, is_over: &AtomicBool) {
    let (mut message, mut datagram) = (Vec::new(), [0; 8]);
    while !is_over.load(Ordering::Relaxed) {
        if shared.is_bare.load(Ordering::Relaxed) {
            if let Ok((_, from)) = echo.recv_from(&mut datagram) {
                let _ = echo.send_to(&datagram, from);
                shared.count();
            }
        } else if let Ok(DriverEvent::Received(..)) = receiver.poll_event(&mut message, |_| 0) {
            shared.count();
        }
    }
}

fn bare_socket() -> Result<UdpSocket, UserError> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(while_doing("cannot open a socket"))?;
    socket.set_nonblocking(true).map_err(while_doing("cannot use a socket"))?;
    Ok(socket)
}

fn blocks(
    opening: &DriverOptions,
    count: usize,
    uri: &str,
    echo: &UdpSocket,
    shared: &Shared,
) -> Result<f64, UserError> {
    let ends = connect(opening, count, uri)?;
    let to = echo.local_addr().map_err(while_doing("cannot use a socket"))?;
    let socket = || {
        let socket = bare_socket()?;
        socket.connect(to).map_err(while_doing("cannot connect a socket"))?;
        Ok::<_, UserError>(socket)
    };
    let sockets = (0..count).map(|_| socket()).collect::<Result<Vec<_>, _>>()?;
    let mut ratios = Vec::new();
    for _ in 0..BLOCKS {
        shared.is_bare.store(false, Ordering::Relaxed);
        let library = library_block(&ends, shared)?;
        shared.is_bare.store(true, Ordering::Relaxed);
        ratios.push(bare_block(&sockets, shared)? / library);
    }
    Ok(middle(ratios))
}

fn connect(opening: &DriverOptions, count: usize, uri: &str) -> Result<Vec<(Facade, Connection)>, UserError> {
    let (mut ends, mut bytes, begin) = (Vec::new(), Vec::new(), Instant::now());
    for _ in 0..count {
        let end = Facade::open(opening)?;
        end.connect(uri, &[], Attribute::ReliableOrdered, 0, LIMIT)?;
        let connection = loop {
            match end.poll_event(&mut bytes, |_| 0)? {
                DriverEvent::Open(connection, _) => break connection,
                DriverEvent::NotOpen(status, _) => return Err(UserError(format!("a connection failed: {status}"))),
                _ if begin.elapsed() > LIMIT => return Err(UserError::new("no peer answers")),
                _ => {}
            }
        };
        ends.push((end, connection));
    }
    Ok(ends)
}

/// The time of a block.
fn library_block(ends: &[(Facade, Connection)], shared: &Shared) -> Result<f64, UserError> {
    let (before, begin) = (shared.arrived(), Instant::now());
    let mut turns = ends.iter().cycle();
    for (message, (end, connection)) in (0..MESSAGES).zip(&mut turns) {
        loop {
            match end.send(*connection, &message.to_ne_bytes(), true) {
                Ok(()) => break,
                Err(PostError::Full) => drop(end.poll::<false>()?),
                Err(PostError::Driver(error)) => return Err(error.into()),
            }
        }
        end.poll::<false>()?;
    }
    for (end, _) in turns {
        if shared.arrived() - before >= MESSAGES {
            break;
        }
        if let Completion::Received(_) = end.poll::<false>()? {
            return Err(UserError::new("no peer sends to these endpoints"));
        }
        if begin.elapsed() > LIMIT {
            return Err(UserError::new("messages do not arrive"));
        }
    }
    Ok(begin.elapsed().as_secs_f64())
}

fn bare_block(sockets: &[UdpSocket], shared: &Shared) -> Result<f64, UserError> {
    let (before, begin, mut bytes) = (shared.arrived(), Instant::now(), [0; 8]);
    for (message, socket) in (0..MESSAGES).zip(sockets.iter().cycle()) {
        while message - (shared.arrived() - before).min(message) >= UNDER_WAY {
            if begin.elapsed() > LIMIT {
                return Err(UserError::new("datagrams do not arrive"));
            }
        }
        socket.send(&message.to_ne_bytes()).map_err(while_doing("cannot send a datagram"))?;
        match socket.recv(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                return Err(while_doing("cannot receive a datagram")(error));
            }
            _ => {}
        }
    }
    while shared.arrived() - before < MESSAGES && begin.elapsed() < LIMIT {}
    Ok(begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_endpoints_in_turn_are_measured() {
        let ratio = measure("sock", 3).expect("a figure");
        assert!(ratio > 0.0 && ratio.is_finite(), "{ratio}");
    }
}
