//! Sends a peer the segments of library memory and the chunks of registrations.
//!
//! Only numbers wait, never descriptors: what is sent is decided when the socket has room. A
//! segment that came and went meanwhile is never sent.

use crate::format::packet::{self, Kind, Packet};
use crate::lane::state::EndpointState;
use crate::lane::{Lane, Phase};
use crate::memory::announced::Blocked;
use rustix::io::Errno;

impl Lane {
    /// Sends what the peer is to know of this endpoint's memory, as far as the socket has room.
    pub(crate) fn announce(&mut self, state: &mut EndpointState) {
        // The handshake goes first: its packets are the first on the socket.
        let Some(socket) = self.peer.socket().filter(|_| self.phase == Phase::Ready) else { return };
        let mut blocked = None;
        while let Some((kind, number)) = self.announced.next(&state.registry) {
            let mut packet = Packet::new(kind, "");
            packet.number = number;
            let segment = match kind {
                Kind::Segment => state.registry.segment_of(number),
                Kind::Registry => state.registry.chunks().further(self.announced.next_chunk()),
                _ => None,
            };
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
