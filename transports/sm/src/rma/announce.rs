//! Sends a peer the segments of library memory.
//!
//! Only numbers wait, never descriptors: what is sent is decided when the socket has room. A
//! segment that came and went meanwhile is never sent.

use crate::format::packet::{self, Kind, Packet};
use crate::lane::Lane;
use crate::lane::state::EndpointState;
use crate::memory::announced::Blocked;
use rustix::io::Errno;

impl Lane {
    /// Sends what the peer is to know of this endpoint's segments, as far as the socket has room.
    pub(crate) fn announce(&mut self, state: &mut EndpointState) {
        let Some(socket) = self.peer.socket() else { return };
        let mut blocked = None;
        while let Some((kind, number)) = self.announced.next(&state.registry) {
            let mut packet = Packet::new(kind, "");
            packet.number = number;
            let segment = state.registry.segment_of(number).filter(|_| kind == Kind::Segment);
            let sent = match segment {
                Some(segment) => {
                    packet.memory_len = segment.len() as u64;
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
        if self.announced.set_blocked(blocked) {
            state.control.watch_room(self.number(), socket, blocked == Some(Blocked::Full));
            state.deadlines_moved = true;
        }
    }
}
