//! Room for messages that a program writes before it sends them.

use crate::Connection;
use cci_mem::memory::{HeapBytes, Memory};
use cci_mem::sync::Ordering;
use cci_proto::SendError;
use std::sync::Arc;

/// Where a program writes a message.
#[derive(Debug)]
pub struct Room {
    /// At least as many bytes as were asked for. They stay writable until the room is given back.
    pub memory: Memory,
    /// Its number among those of the endpoint: never 0, and of no later room for a long time.
    pub number: u64,
}

/// Whose memory a room is.
pub enum Origin {
    /// The endpoint's own: the message is copied when it is sent.
    Endpoint(Memory),
    /// The transport's, by its name for it ([`Transport::reserve`](crate::Transport::reserve)).
    Transport(u64),
}

/// A room that a program has.
pub struct Held {
    /// Whose memory it is.
    pub origin: Origin,
    /// Bytes that were asked for.
    pub len: usize,
    connection: &'static Connection,
    life: u32,
}

impl Held {
    /// Whether it is for messages of this connection.
    #[must_use]
    pub fn is_for(&self, connection: &'static Connection) -> bool {
        std::ptr::eq(self.connection, connection) && self.life == connection.generation()
    }
}

#[derive(Default)]
struct Entry {
    /// Counts the rooms that this entry has stood for.
    lives: u32,
    room: Option<Held>,
}

/// The rooms of an endpoint.
#[derive(Default)]
pub struct Rooms {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Memory of earlier rooms.
    spare: Vec<Memory>,
}

/// How much memory of earlier rooms is kept for the next ones.
const SPARE_ROOMS: usize = 16;

impl Rooms {
    /// Rooms that the program has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Enters a room of `len` bytes in the transport's memory.
    pub fn enter(&mut self, connection: &'static Connection, len: usize, (memory, name): (Memory, u64)) -> Room {
        Room { memory, number: self.number(connection, len, Origin::Transport(name)) }
    }

    /// Makes a room of `len` bytes in the endpoint's own memory. It is as large as the largest
    /// message of the connection, so that the next room has it again.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn make(&mut self, connection: &'static Connection, len: usize) -> Result<Room, SendError> {
        let most = connection.max_send_size.load(Ordering::Relaxed) as usize;
        let spare = self.spare.iter().position(|memory| memory.len() >= len as u64);
        let memory = match spare {
            Some(at) => self.spare.swap_remove(at),
            None => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(most).map_err(|_| SendError::NoBuffers)?;
                bytes.resize(most, 0);
                Memory::of_bytes(&Arc::new(HeapBytes::new(bytes)))
            }
        };
        Ok(Room { memory: memory.clone(), number: self.number(connection, len, Origin::Endpoint(memory)) })
    }

    fn number(&mut self, connection: &'static Connection, len: usize, origin: Origin) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.entries[index as usize];
        entry.lives = entry.lives.wrapping_add(1).max(1);
        entry.room = Some(Held { origin, len, connection, life: connection.generation() });
        u64::from(entry.lives) << 32 | u64::from(index)
    }

    fn find(&mut self, number: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(usize::try_from(number & INDEX).ok()?)?;
        (u64::from(entry.lives) == number >> 32).then_some(entry)
    }

    /// Takes the room with this number out, unless it was given back. [`Rooms::free`] or
    /// [`Rooms::put_back`] is to follow.
    pub fn take(&mut self, number: u64) -> Option<Held> {
        self.find(number)?.room.take()
    }

    /// The program has the room on.
    pub fn put_back(&mut self, number: u64, room: Held) {
        if let Some(entry) = self.find(number) {
            entry.room = Some(room);
        }
    }

    /// The program has the room no more. The transport is told apart, if the memory is its own.
    pub fn free(&mut self, number: u64, room: Held) {
        self.free.push(u32::try_from(number & INDEX).unwrap_or(u32::MAX));
        if let Origin::Endpoint(memory) = room.origin
            && self.spare.len() < SPARE_ROOMS
        {
            self.spare.push(memory);
        }
    }
}

/// The half of a number that is the index of its entry.
const INDEX: u64 = 0xffff_ffff;
