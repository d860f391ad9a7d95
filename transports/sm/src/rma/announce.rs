//! Which segments of library memory a peer was sent, and which it is still to be sent or told to be gone.
//!
//! Only numbers wait, never descriptors: what is sent is decided when the socket has room. A segment that came and went meanwhile is
//! never sent.

use crate::format::packet::{self, Kind, Packet};
use crate::lane::Lane;
use crate::lane::state::EndpointState;
use crate::memory::registry::Registry;
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};

/// Segments that wait by number. When more changed, all are compared.
const NUMBERS: usize = 64;

/// What one peer knows of this endpoint's segments.
#[derive(Default)]
pub(crate) struct Announced {
    /// Those that it was sent and was not told to be gone.
    sent: BTreeSet<u64>,
    /// Those that may have changed since, each once.
    changed: VecDeque<u64>,
    /// Others may have changed too.
    all: bool,
    /// Why what waits has not been sent.
    blocked: Option<Blocked>,
}

/// Why packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The socket has no room; it becomes writable.
    Full,
    /// The system has no memory, or too many descriptors are under way: tried again by timer.
    Short,
}

impl Announced {
    /// A segment has been registered for the first time, or is registered no more.
    pub(crate) fn on_change(&mut self, number: u64) {
        if self.all || self.changed.contains(&number) {
            return;
        }
        if self.changed.len() < NUMBERS {
            self.changed.push_back(number);
        } else {
            self.all = true;
        }
    }

    /// All segments are to be compared.
    pub(crate) fn on_change_of_all(&mut self) {
        self.all = true;
    }

    /// Why packets wait, if they do.
    pub(crate) fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    /// The next packet that the peer needs. It stays the next until [`Announced::on_sent`].
    fn next(&mut self, registry: &Registry) -> Option<(Kind, u64)> {
        loop {
            while let Some(number) = self.changed.front().copied() {
                match (registry.shares(number) > 0, self.sent.contains(&number)) {
                    (true, false) => return Some((Kind::Segment, number)),
                    (false, true) => return Some((Kind::SegmentGone, number)),
                    _ => drop(self.changed.pop_front()),
                }
            }
            if !std::mem::take(&mut self.all) {
                return None;
            }
            let gone = self.sent.iter().copied().filter(|number| registry.shares(*number) == 0);
            let new = registry.shared().map(|shared| shared.number).filter(|number| !self.sent.contains(number));
            self.changed = gone.chain(new).take(NUMBERS + 1).collect();
            self.all = self.changed.len() > NUMBERS;
            self.changed.truncate(NUMBERS);
        }
    }

    fn on_sent(&mut self, kind: Kind, number: u64) {
        self.changed.pop_front();
        if kind == Kind::Segment {
            self.sent.insert(number);
        } else {
            self.sent.remove(&number);
        }
    }
}

impl Lane {
    /// Sends what the peer is to know of this endpoint's segments, as far as the socket has room.
    pub(crate) fn announce(&mut self, state: &mut EndpointState) {
        let Some(socket) = &self.socket else { return };
        let mut blocked = None;
        while let Some((kind, number)) = self.announced.next(&state.registry) {
            let mut packet = Packet::new(kind, "");
            packet.segment = number;
            let segment = state.registry.segment_of(number).filter(|_| kind == Kind::Segment);
            let sent = match segment {
                Some(segment) => {
                    packet.lane_len = segment.len() as u64;
                    segment.file_of().and_then(|file| packet::send(socket, &packet, &[file]))
                }
                None => packet::send(socket, &packet, &[]),
            };
            match sent {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => blocked = Some(Blocked::Full),
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => blocked = Some(Blocked::Short),
                // A broken socket is noticed where it is read.
                _ => self.announced.on_sent(kind, number),
            }
            if blocked.is_some() {
                break;
            }
        }
        if blocked != self.announced.blocked {
            self.announced.blocked = blocked;
            state.control.watch_room(self.number, socket, blocked == Some(Blocked::Full));
            state.deadlines_moved = true;
        }
    }
}
