//! Messages that a program writes straight into a payload slot of the lane.
//!
//! A room is a granted slot that this side has taken. It is published by its entry, in the order of
//! all that is sent, or put back. What the lane cannot take at once is copied out of the slot and
//! waits as any other message does, so that no queued message keeps a slot from those before it.

use crate::format::layout::{kind, pair};
use crate::lane::state::EndpointState;
use crate::lane::wire::Wire;
use crate::lane::{Lane, Phase};
use cci_mem::memory::Memory;
use cci_mem::ring::{BODY, Header, Violation};
use cci_mem::sync::Ordering;
use cci_proto::SendError;
use cci_transport::{Connection, Core, Message, Posted, Slot};

impl Lane {
    /// Takes a slot for a message of so many bytes. None: it is short enough for an entry, or slots
    /// are short.
    pub(crate) fn reserve(&mut self, state: &mut EndpointState, len: usize) -> Option<(u32, Memory)> {
        if len <= BODY || self.phase != Phase::Ready {
            return None;
        }
        match self.wire.as_mut()?.take_room() {
            Ok(room) => {
                if room.is_some() {
                    self.held.add_room();
                }
                room
            }
            Err(Violation) => {
                state.protocol_errors.push(self.number);
                None
            }
        }
    }

    /// Sends the message in such a slot.
    pub(crate) fn commit(
        &mut self,
        state: &mut EndpointState,
        core: &mut Core,
        cell: &'static Connection,
        (room, len): (u32, usize),
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let is_free = self.is_free_for(state, core, cell);
        let Some(wire) = self.ready_wire() else { return Err(SendError::Disconnected) };
        if !is_free || wire.producer.has_room(wire.outbound.head) != Ok(true) {
            let message = wire.filled(room, len).ok_or(SendError::TooLong)?;
            let bytes = message.source(len).ok_or(SendError::TooLong)?;
            let sent = self.send(state, core, cell, Message::One(bytes), posted)?;
            self.cancel(state, core, room);
            return Ok(sent);
        }
        let slot = match posted {
            Posted::Event(_) => Some(core.take_send().ok_or(SendError::NoBuffers)?),
            Posted::Silent(_) | Posted::Waited => None,
        };
        wire.publish_filled(core, cell.remote.load(Ordering::Relaxed), room, len);
        self.held.release_room();
        cell.counters.on_sent();
        self.wake_consumer();
        if let (Some(slot), Posted::Event(context)) = (slot, posted) {
            core.finish(slot, cell, context, Ok(()));
        }
        Ok(None)
    }

    /// Puts such a slot back. What waits for one goes now.
    pub(crate) fn cancel(&mut self, state: &mut EndpointState, core: &mut Core, room: u32) {
        self.held.release_room();
        if let Some(wire) = self.ready_wire() {
            wire.put_back(room);
            self.flush(state, core);
        }
    }
}

impl Wire {
    /// Publishes the message in a slot that a program has filled, and counts it. There is room for
    /// an entry.
    fn publish_filled(&mut self, core: &Core, word: u32, slot: u32, len: usize) {
        self.end_message(slot, len);
        let header = Header { kind: kind::MESSAGE_SLOT, len: 0, word };
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        self.producer.push_words(self.outbound.ring, header, [pair(slot, len)]);
        core.counters().on_sent(len as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{End, LIMIT};
    use crate::format::layout::{FIRST_SLOTS, unpair};
    use crate::lane::state::PayloadToken;
    use cci_transport::Transport;
    use std::time::{Duration, Instant};

    /// Two endpoints with a connection, of which all is told.
    fn pair() -> (End, End, &'static Connection) {
        let (mut client, mut server) = (End::new(), End::new());
        let cell = client.connect(&mut server);
        while let Some(event) = server.call() {
            assert!(event.give_back());
        }
        (client, server, cell)
    }

    /// Takes a room for 500 bytes, and writes them.
    fn written(end: &mut End, cell: &'static Connection, byte: u8) -> Option<u64> {
        let (memory, room) = end.sm.reserve(&mut end.core, cell, 500)?;
        assert!(memory.copy_in(0, &[byte; 500]));
        Some(room)
    }

    #[test]
    fn the_peer_reads_what_was_written_where_it_was_written() {
        let (mut client, mut server, cell) = pair();
        assert!(client.sm.reserve(&mut client.core, cell, BODY).is_none(), "an entry takes it");
        for byte in 0..200 {
            let room = written(&mut client, cell, byte).expect("a slot");
            // The slot is the peer's memory too: nothing is copied from here on.
            let (slot, _) = unpair(room);
            let sent = client.sm.commit(&mut client.core, cell, (room, 400), Posted::Silent(0));
            assert_eq!(sent.map(|slot| slot.is_some()), Ok(false));
            let message = server.message();
            assert_eq!(message.detail(), 400);
            let token = PayloadToken::from_token(message.payload.load(Ordering::Relaxed));
            let is_there = matches!(token, Some(PayloadToken::Lane(_, Some(at))) if at == slot);
            assert!(is_there, "message {byte} lies in {token:?}");
            assert!(message.give_back());
        }
    }

    #[test]
    fn a_message_written_in_place_leaves_the_short_way_to_the_next_poll() {
        let (mut client, _server, cell) = pair();
        let begin = Instant::now();
        while client.sm.sole().is_none() {
            let _ = client.call();
            assert!(begin.elapsed() < LIMIT, "no short way is found");
        }
        let sole = client.sm.sole();
        assert!(client.sm.reserve(&mut client.core, cell, BODY).is_none());
        assert_eq!(client.sm.sole(), sole, "an entry takes it");
        let room = written(&mut client, cell, 1).expect("a slot");
        assert_eq!(client.sm.sole(), sole, "with a room");
        let sent = client.sm.commit(&mut client.core, cell, (room, 400), Posted::Silent(0));
        assert_eq!((sent.map(drop), client.sm.sole()), (Ok(()), sole), "with a message");
        let room = written(&mut client, cell, 1).expect("a slot");
        client.sm.cancel(&mut client.core, room);
        assert_eq!(client.sm.sole(), None, "what waits for a slot may have gone");
    }

    #[test]
    fn one_slot_stays_for_what_else_is_sent() {
        let (mut client, mut server, cell) = pair();
        let rooms: Vec<_> = std::iter::from_fn(|| written(&mut client, cell, 1)).collect();
        assert_eq!(rooms.len(), FIRST_SLOTS as usize - 1);
        for _ in 0..100 {
            client.send_bytes(cell, &[2; 500]);
            assert!(server.message().give_back());
            assert!(server.call().is_none());
        }
        for room in rooms {
            client.sm.cancel(&mut client.core, room);
        }
        assert!(client.sm.seen().lanes.iter().flatten().all(|lane| lane.held.rooms() == 0));
    }

    #[test]
    fn a_lane_whose_peer_is_gone_stays_until_its_rooms_are_given_back() {
        let (mut client, mut server, cell) = pair();
        let (memory, room) = client.sm.reserve(&mut client.core, cell, 500).expect("a slot");
        server.sm.close(&mut server.core, Duration::ZERO);
        drop(server);
        let lanes = |client: &End| client.sm.seen().lanes.iter().flatten().count();
        let begin = Instant::now();
        while client.sm.seen().lanes.iter().flatten().any(|lane| lane.phase != Phase::Dead) {
            let _ = client.call();
            assert!(begin.elapsed() < LIMIT, "the peer's end is not noticed");
        }
        assert_eq!(lanes(&client), 1);
        assert!(memory.copy_in(0, &[1; 500]), "what the program writes goes nowhere");
        let sent = client.sm.commit(&mut client.core, cell, (room, 500), Posted::Silent(0));
        assert_eq!(sent.map(drop), Err(SendError::Disconnected));
        client.sm.cancel(&mut client.core, room);
        assert_eq!(lanes(&client), 0);
    }
}
