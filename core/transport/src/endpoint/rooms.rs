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
#[derive(Clone)]
pub enum Origin {
    /// The endpoint's own: the message is copied when it is sent.
    Endpoint(Arc<HeapBytes>),
    /// The transport's, by its name for it ([`Transport::reserve`](crate::Transport::reserve)).
    Transport(u64),
}

/// A room that a program has.
#[derive(Clone)]
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
    spare: Vec<Arc<HeapBytes>>,
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
        let spare = self.spare.iter().position(|bytes| Memory::of_bytes(bytes).len() >= len as u64);
        let bytes = match spare {
            Some(at) => self.spare.swap_remove(at),
            None => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(most).map_err(|_| SendError::NoBuffers)?;
                bytes.resize(most, 0);
                Arc::new(HeapBytes::new(bytes))
            }
        };
        let memory = Memory::of_bytes(&bytes);
        Ok(Room { memory, number: self.number(connection, len, Origin::Endpoint(bytes)) })
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

    /// The room with this number, unless it was given back.
    pub fn get(&mut self, number: u64) -> Option<Held> {
        self.find(number)?.room.clone()
    }

    /// Takes a room back, which the transport is told if it is its own.
    pub fn remove(&mut self, number: u64) -> Option<Held> {
        let room = self.find(number)?.room.take()?;
        self.free.push(u32::try_from(number & INDEX).unwrap_or(u32::MAX));
        if let Origin::Endpoint(bytes) = &room.origin
            && self.spare.len() < SPARE_ROOMS
        {
            self.spare.push(Arc::clone(bytes));
        }
        Some(room)
    }
}

/// The half of a number that is the index of its entry.
const INDEX: u64 = 0xffff_ffff;
