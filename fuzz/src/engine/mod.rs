//! The engine, fed with any frames and any sequence of calls. Bytes decide what happens; [`Books`]
//! and the end of the world check what the engine promises: no panic, every operation ends once and
//! while its memory lives, every message is delivered or abandoned, nothing is delivered to what is
//! not open, no more is sent to an address that proved nothing than three times what came from it,
//! it comes to rest, and memory does not grow with what peers send.

mod host;
mod peer;

use crate::bytes::Bytes;
use crate::config::{MAX_SEND, MOST_FRAMES, OPERATIONS, config};
use cci_proto::engine::{Config, Engine, Index, Op, Open, Post, Rma, Target, Transmit};
use cci_proto::wire::{HEADER, seal, verify};
use cci_proto::{Access, Atomic, Attribute, Time};
use host::{Books, HANDLE, Running, Standing};
use peer::{PEERS, Peer, address};
use std::time::Duration;

/// Largest frame, bytes.
const MTU: u16 = 2048;
/// Timeouts until an engine whose connections are closed is at rest.
const MOST_TIMEOUTS: usize = 2_000;

/// One engine and what is around it.
struct World {
    engine: Engine,
    books: Books,
    peers: [Peer; PEERS],
    now: Time,
    next_user: u32,
    /// The last frame that left, and where to.
    left: (usize, Vec<u8>),
    /// The last frame that came, and where from.
    came: (usize, Vec<u8>),
}

/// Any bytes: calls, frames and time, as they decide.
///
/// # Panics
///
/// When the engine breaks a promise.
pub fn engine(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(bytes.byte());
    while !bytes.is_empty() {
        world.step(&mut bytes);
    }
    world.end();
}

impl World {
    fn new(options: u8) -> Self {
        let config = Config { machine: u64::from(options & 1), unchecked_on_host: options & 2 != 0, ..config(MTU) };
        Self {
            engine: Engine::new(&config, [3, 1, 4, 1, 5, 9, 2, 6]),
            books: Books::new(u32::from(options >> 2)),
            peers: [Peer::default(); PEERS],
            now: Time(1 << 40),
            next_user: 1,
            left: (0, Vec::new()),
            came: (0, Vec::new()),
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 20 {
            0 => self.now = self.now.plus_micros(bytes.short().into()),
            1 => self.now = self.now.plus_micros(u64::from(bytes.short()) * 1000),
            2 => self.wait(),
            3 => self.connect(bytes),
            4 => self.send(bytes),
            5 => self.rma(bytes),
            6 => self.close(bytes),
            7 => self.answer(bytes),
            8 => self.follow(bytes),
            9 => self.set_timeouts(bytes),
            10 => {
                self.books.slots += u32::from(bytes.byte());
                self.engine.refill(&mut self.books);
            }
            11 => self.books.is_gone = bytes.flag(),
            12 => self.quote(bytes),
            13 => self.flood(bytes),
            14 => {
                let congested = bytes.flag();
                let (from, frame) = self.came.clone();
                self.arrive(from, &frame, congested);
            }
            15 => self.land(bytes),
            _ => self.frame(bytes),
        }
        if bytes.byte() & 7 != 7 {
            self.pump();
        }
    }

    /// Everything that wants to leave now leaves, and is sound.
    fn pump(&mut self) {
        let mut buffer = [0; MTU as usize];
        for count in 0.. {
            assert!(count < MOST_FRAMES, "it never stops sending");
            let idle = count % 2 == 1;
            let Some(out) = self.engine.poll_transmit(self.now, idle, &mut buffer, &mut self.books) else {
                if idle || count == 0 {
                    return;
                }
                continue;
            };
            self.seal_and_leave(&out, &buffer);
        }
    }

    /// A frame that was written to this buffer leaves, and is sound.
    fn seal_and_leave(&mut self, out: &Transmit<u32>, buffer: &[u8]) {
        let len = out.piece.map_or(0, |piece| piece as usize);
        assert_eq!(len, out.piece_len as usize, "the piece is as long as it is said to be");
        assert!(out.len >= HEADER && out.len + len <= usize::from(MTU), "{} and {len} bytes", out.len);
        let mut frame = buffer[..out.len].to_vec();
        let memory = vec![0x5A; len];
        seal(&mut frame, len, |crc| if out.checked { crc.update(&memory) } else { crc });
        frame.extend(memory);
        assert!(verify(&frame).is_ok(), "the engine sends what its peer drops");
        self.leave(&out.to, frame);
    }

    fn leave(&mut self, to: &cci_proto::Address, frame: Vec<u8>) {
        let place = (0..PEERS).find(|peer| address(*peer) == *to).expect("an address that was given");
        let peer = &mut self.peers[place];
        peer.received += frame.len() as u64;
        let is_proven = place + 1 < PEERS;
        assert!(is_proven || peer.received <= 3 * peer.sent, "{} bytes for {}", peer.received, peer.sent);
        peer.hear(&frame);
        self.left = (place, frame);
    }

    /// A frame comes: dropped if its check is wrong.
    fn arrive(&mut self, from: usize, frame: &[u8], congested: bool) {
        self.peers[from].sent += frame.len() as u64;
        let _ = self.engine.handle_frame(self.now, &address(from), frame, congested, &mut self.books);
        self.came = (from, frame.to_vec());
    }

    /// Until the engine wants to be called.
    fn wait(&mut self) {
        if let Some(at) = self.engine.poll_timeout() {
            self.now = self.now.max(at);
        }
        self.engine.handle_timeout(self.now, &mut self.books);
    }

    fn frame(&mut self, bytes: &mut Bytes<'_>) {
        let from = bytes.below(PEERS);
        let peer = &mut self.peers[from];
        let mut frame = vec![0; 8192];
        let time = self.now.micros();
        let len = match bytes.below(6) {
            0 => peer.connect(bytes, time, from + 1 < PEERS, &mut frame),
            1 => peer.control(bytes, time, &mut frame),
            2 => peer.anything(bytes, time, &mut frame),
            _ => peer.data(bytes, time, &mut frame),
        };
        frame.truncate(len);
        seal(&mut frame, 0, |crc| crc);
        self.arrive(from, &frame, bytes.flag());
    }

    /// The last frame again and again, each time with other numbers.
    fn flood(&mut self, bytes: &mut Bytes<'_>) {
        let count = u32::from(bytes.short()) >> 4;
        let (from, mut frame) = self.came.clone();
        let offsets = [24, 32, 8 * bytes.below(32), 8 * bytes.below(32) + 4];
        for round in 0..count {
            for at in offsets {
                if let Some(field) = frame.get_mut(at..at + 4) {
                    let old = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
                    field.copy_from_slice(&old.wrapping_add(1).to_be_bytes());
                }
            }
            if frame.len() >= HEADER {
                seal(&mut frame, 0, |crc| crc);
            }
            self.arrive(from, &frame, false);
            if round % 16 == 0 {
                self.pump();
            }
        }
    }

    /// The network quotes a frame of ours, or something like it.
    fn quote(&mut self, bytes: &mut Bytes<'_>) {
        let (place, frame) = self.left.clone();
        let quoted = &frame[..frame.len().min(bytes.byte().into())];
        if bytes.flag() {
            let is_own = quoted.len() % 2 == 0;
            self.engine.handle_unreachable(self.now, &address(place), quoted, is_own, &mut self.books);
        } else {
            self.engine.handle_too_big(&address(place), quoted, bytes.short());
        }
    }

    fn connect(&mut self, bytes: &mut Bytes<'_>) {
        let attribute = Attribute::from_u32(u32::from(bytes.byte()) % 5).unwrap_or(Attribute::ReliableOrdered);
        let user = self.next_user;
        self.next_user += 1;
        let open = Open {
            // Who never proves its address is never connected to either.
            to: address(bytes.below(PEERS - 1)),
            attribute,
            payload: bytes.some(),
            host_cookie: user,
            timeout: bytes.flag().then_some(Duration::from_millis(50)),
            token: bytes.byte().into(),
        };
        if let Ok(index) = self.engine.connect(self.now, &open) {
            let before = self.books.connections.insert(index.0, (user, Standing::Asked));
            assert_eq!(before, None, "an index that is taken");
        }
    }

    /// One of the connections that the host knows, even of those of which it may not ask anything
    /// any more.
    fn some_connection(&self, bytes: &mut Bytes<'_>) -> Index {
        let chosen = bytes.below(self.books.connections.len() + 1);
        Index(self.books.connections.keys().nth(chosen).copied().unwrap_or(9))
    }

    /// An operation that is not in progress.
    fn free_operation(&self, bytes: &mut Bytes<'_>) -> Option<Op> {
        let first = u32::from(bytes.byte()) % OPERATIONS;
        (first..OPERATIONS).chain(0..first).find(|op| !self.books.running.contains_key(op)).map(Op)
    }

    fn send(&mut self, bytes: &mut Bytes<'_>) {
        let (index, Some(op)) = (self.some_connection(bytes), self.free_operation(bytes)) else { return };
        let message = vec![1; usize::from(bytes.short()) % (MAX_SEND as usize + 2)];
        let (a, b) = message.split_at(message.len() / 3);
        let (parts, prompt) = (&[a, b], bytes.flag());
        let mut buffer = [0; MTU as usize];
        let sent = if bytes.flag() {
            let post = Post { parts, op, prompt };
            self.engine.send_now(self.now, index, &post, &mut buffer, &mut self.books, |_, _, _| {})
        } else {
            self.engine.send(self.now, index, parts, op, prompt).map(|()| None)
        };
        if let Ok(frame) = sent {
            self.books.running.insert(op.0, Running::Send);
            if let Some(out) = frame {
                self.seal_and_leave(&out, &buffer);
            }
        }
    }

    fn rma(&mut self, bytes: &mut Bytes<'_>) {
        let (index, Some(op)) = (self.some_connection(bytes), self.free_operation(bytes)) else { return };
        let options = bytes.byte();
        let len = u64::from(bytes.short());
        let (access, running) = match options & 9 {
            _ if options & 16 != 0 => (Access::Large, Running::Write(len)),
            0 => (Access::Write, Running::Write(len)),
            8 => (Access::Atomic(Atomic::FetchAdd(len)), Running::Read(len)),
            9 => (Access::Atomic(Atomic::CompareSwap { expected: 0, desired: len }), Running::Read(len)),
            _ => (Access::Read, Running::Read(len)),
        };
        let message = vec![2; usize::from(bytes.byte())];
        let rma = Rma {
            op,
            target: Target { handle: HANDLE, offset: bytes.short().into(), len },
            access,
            fence: options & 2 != 0,
            message: (options & 4 != 0).then_some(&message),
        };
        if self.engine.rma(self.now, index, &rma).is_ok() {
            self.books.running.insert(op.0, running);
        }
    }

    /// Memory for a large message of a peer, or none; in the wrong order, and for the wrong
    /// connection.
    fn land(&mut self, bytes: &mut Bytes<'_>) {
        if self.books.large.is_empty() {
            return;
        }
        let (user, op) = self.books.large.swap_remove(bytes.below(self.books.large.len()));
        let of_it = self.books.connections.iter().find(|(_, known)| known.0 == user).map(|(index, _)| Index(*index));
        let index = of_it.filter(|_| bytes.flag()).unwrap_or_else(|| self.some_connection(bytes));
        let landing = if bytes.flag() { Ok(HANDLE) } else { Err(cci_proto::Failure::TooLong) };
        let _ = self.engine.answer_large(index, op, landing);
    }

    fn close(&mut self, bytes: &mut Bytes<'_>) {
        let index = self.some_connection(bytes);
        self.engine.close(self.now, index, &mut self.books);
        self.books.connections.remove(&index.0);
    }

    fn answer(&mut self, bytes: &mut Bytes<'_>) {
        let index = self.some_connection(bytes);
        let user = self.next_user;
        self.next_user += 1;
        let was_asked = matches!(self.books.connections.get(&index.0), Some((_, Standing::Requested)));
        let (is_done, standing) = match bytes.below(4) {
            0 => (self.engine.reject(self.now, index, &mut self.books), None),
            1 => (self.engine.redirect(self.now, index, b"sim://elsewhere", 3, &mut self.books), None),
            _ => (self.engine.accept(self.now, index, user), Some((user, Standing::Accepted))),
        };
        assert_eq!(is_done.is_ok(), was_asked, "exactly what asks can be answered");
        match standing {
            _ if !was_asked => None,
            Some(standing) => self.books.connections.insert(index.0, standing),
            None => self.books.connections.remove(&index.0),
        };
    }

    fn follow(&mut self, bytes: &mut Bytes<'_>) {
        let token = u64::from(bytes.byte());
        match bytes.below(3) {
            0 => self.engine.expect(token),
            1 => self.engine.forget(token),
            _ => {
                let index = self.some_connection(bytes);
                if matches!(self.books.connections.get(&index.0), Some((_, Standing::Redirected))) {
                    self.engine.follow(self.now, index, address(bytes.below(PEERS - 1)), token);
                }
            }
        }
    }

    fn set_timeouts(&mut self, bytes: &mut Bytes<'_>) {
        let index = self.some_connection(bytes);
        let (send, keepalive) = (u32::from(bytes.short()) * 10, u32::from(bytes.short()) * 10);
        self.engine.set_timeouts(self.now, index, send, keepalive);
        let _ = self.engine.report(index);
    }

    /// All connections are closed: everything has ended, and the engine comes to rest by itself.
    fn end(&mut self) {
        while let Some((index, _)) = self.books.connections.pop_first() {
            self.engine.close(self.now, Index(index), &mut self.books);
        }
        self.books.assert_closed();
        for _ in 0..MOST_TIMEOUTS {
            self.pump();
            if self.engine.is_quiet() {
                return;
            }
            self.wait();
        }
        panic!("an engine without connections does not come to rest");
    }
}

#[cfg(test)]
mod tests {
    use super::World;

    #[test]
    fn nothing_leaves_an_engine_that_nobody_asked() {
        let mut world = World::new(0xFF);
        world.pump();
        assert!(world.left.1.is_empty() && world.engine.is_quiet());
        world.end();
    }
}
