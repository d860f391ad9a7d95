//! What large messages need beside their requests.

mod large;

use crate::errors::Code;
use cci::{Memory, Registration};
use cci_rendezvous::Remote;

/// What a large message needs beside its request.
#[derive(Default)]
pub(crate) struct Bulk {
    /// The index of the request; and whether it reads.
    request: u32,
    is_reading: bool,
    peer: u32,
    link: u32,
    session: u32,
    /// The partner's request.
    sender: u64,
    /// Bytes of the message, of what is to be read, and of reads that have begun.
    length: u32,
    wanted: u64,
    begun: u64,
    /// Reads that have not ended.
    open: u32,
    failed: Option<Code>,
    memory: Vec<Memory>,
    registered: Vec<Registration<Memory>>,
    remote: Vec<Remote>,
}

/// Bulks are used again with their lists.
#[derive(Default)]
pub(crate) struct Bulks {
    all: Vec<Bulk>,
    free: Vec<u32>,
}

impl Bulks {
    fn insert(&mut self) -> (u32, &mut Bulk) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(Bulk::default());
            self.all.len() as u32 - 1
        });
        (number, &mut self.all[number as usize])
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Bulk> {
        self.all.get_mut(number as usize)
    }

    /// Lets go of memory, and of the place.
    pub(crate) fn free(&mut self, number: u32) {
        if let Some(bulk) = self.all.get_mut(number as usize) {
            bulk.registered.clear();
            bulk.memory.clear();
            bulk.is_reading = false;
            self.free.push(number);
        }
    }
}
