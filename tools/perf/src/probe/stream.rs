//! Probes over the loop-back interface through one bare TCP stream, set up as the transport `tcp`
//! sets up its own: without delay (`TCP_NODELAY`), with the same congestion control, and with
//! non-blocking calls. Nothing else is done: no headers, no grants, no registrations.
//!
//! The server listens when it prepares for its first block. Both leave their ports in the shared
//! memory: the server accepts that of the client alone, before the block. A block in one direction
//! ends when the receiver has written into the shared memory that it has read the last byte.

use super::buffer::Buffer;
use super::network::{Amount, LONGEST_WAIT, Place, WaitLimit, await_taken, connect, is_again, listen, made};
use super::shared::{STREAM_TAKEN, Shared};
use super::side::Side;
use cci_report::names::ProbeKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;

/// Bytes of a call that sends, and of one that receives, at most.
const PIECE: usize = 1 << 20;
/// That of the transport `tcp` on loop-back addresses.
const CONGESTION_CONTROL: &str = "cubic";

/// Whether this probe is one of these.
pub(super) fn is_stream(kind: ProbeKind) -> bool {
    matches!(kind, ProbeKind::TcpPing | ProbeKind::TcpWake | ProbeKind::TcpMessages | ProbeKind::TcpStream)
}

/// Sets up a stream as the transport `tcp` does.
pub(crate) fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Where the kernel refuses it, it refuses it to the transport too.
    let _ = set_tcp_congestion(stream, CONGESTION_CONTROL);
    stream.set_nonblocking(true)
}

/// The stream of one side.
#[derive(Default)]
pub(super) struct Stream {
    listener: Option<TcpListener>,
    stream: Option<TcpStream>,
    /// Bytes of all blocks in one direction so far.
    moved: u64,
}

impl Stream {
    /// Listens, at the server.
    pub(super) fn prepare(&mut self, shared: &Shared, side: Side) -> io::Result<()> {
        if side == Side::Server && self.listener.is_none() {
            self.listener = Some(listen(shared, Place::TcpPolled, side)?);
        }
        Ok(())
    }

    /// Connects, if that has not happened yet: before the block, not in it.
    pub(super) fn connect(&mut self, shared: &Shared, side: Side) -> io::Result<()> {
        if self.stream.is_some() {
            return Ok(());
        }
        let stream = connect(shared, Place::TcpPolled, side, self.listener.as_ref())?;
        set_up(&stream)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Half round trips: so many bytes there, as many back. `sleeps`: in `poll` before each call
    /// that receives, as an event loop does.
    pub(super) fn exchange(
        &mut self,
        side: Side,
        buffer: &mut Buffer,
        size: usize,
        count: u64,
        sleeps: bool,
    ) -> io::Result<()> {
        let stream = made(&mut self.stream)?;
        let bytes = &mut buffer.bytes_mut()[..size.max(1)];
        for _ in 0..count {
            if side == Side::Client {
                send(stream, bytes)?;
            }
            receive(stream, bytes, sleeps)?;
            if side == Side::Server {
                send(stream, bytes)?;
            }
        }
        Ok(())
    }

    /// One direction. The client calls `send` once for each message, or for each MiB of a longer
    /// one. The server receives as much as there is, up to 1 MiB a call, into all of its memory in
    /// turn: as much as a message has, or 1 MiB.
    pub(super) fn one_way(
        &mut self,
        shared: &Shared,
        side: Side,
        buffer: &mut Buffer,
        amount: Amount,
    ) -> io::Result<()> {
        let stream = made(&mut self.stream)?;
        let bytes = buffer.bytes_mut();
        let end = self.moved + amount.bytes();
        let taken = shared.word(STREAM_TAKEN);
        match side {
            Side::Client => {
                for _ in 0..amount.count {
                    bytes[..amount.size.max(1)].chunks(PIECE).try_for_each(|piece| send(stream, piece))?;
                }
                await_taken(taken, end)?;
            }
            Side::Server => {
                take(stream, bytes, amount.bytes())?;
                taken.store(end, Ordering::Release);
            }
        }
        self.moved = end;
        Ok(())
    }
}

/// Sends all of these bytes: one call, unless the kernel has no room for them.
#[inline]
fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let (mut sent, mut limit) = (0, WaitLimit::default());
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if is_again(&error) => limit.tick()?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives exactly so many bytes.
#[inline]
fn receive(stream: &mut TcpStream, bytes: &mut [u8], sleeps: bool) -> io::Result<()> {
    let (mut received, mut limit) = (0, WaitLimit::default());
    while received < bytes.len() {
        if sleeps {
            let longest = Timespec { tv_sec: LONGEST_WAIT.as_secs().cast_signed(), tv_nsec: 0 };
            if poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&longest)) == Ok(0) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        match stream.read(&mut bytes[received..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => received += count,
            Err(error) if is_again(&error) => limit.tick()?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives so many bytes of the stream, again and again into the same memory.
fn take(stream: &mut TcpStream, bytes: &mut [u8], mut left: u64) -> io::Result<()> {
    let (mut at, mut limit) = (0, WaitLimit::default());
    while left > 0 {
        let most = PIECE.min(bytes.len() - at).min(usize::try_from(left).unwrap_or(PIECE));
        match stream.read(&mut bytes[at..at + most]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                left -= count as u64;
                at = (at + count) % bytes.len();
                limit = WaitLimit::default();
            }
            Err(error) if is_again(&error) => limit.tick()?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
