//! Memory for large messages that arrive (`docs/design/extensions.md`).

use crate::endpoint::Core;
use crate::{Connection, Endpoint, Slot, tag_event};
use cci_mem::landed::Landed;
use cci_mem::memory::{HeapBytes, Memory};
use cci_proto::engine::MAX_LARGE;
use cci_proto::{EventKind, Failure, RmaHandle};
use std::collections::VecDeque;
use std::sync::Arc;

/// Freed memory that is kept for the next messages, at most so many pieces.
const SPARE: usize = 4;

/// A large message for which a peer wants memory.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Its connection.
    pub connection: &'static Connection,
    /// The peer's number of the operation.
    pub operation: u32,
    /// Bytes.
    pub len: u64,
}

/// Memory that a peer writes a large message to.
pub struct Landing {
    /// The message.
    pub asked: Asked,
    /// The slot of its event.
    pub slot: &'static Slot,
    /// What the peer writes by.
    pub handle: RmaHandle,
    bytes: Arc<HeapBytes>,
}

/// The large messages of an endpoint: those that wait for memory, those that are being written, and those that the program has.
#[derive(Default)]
pub struct Landings {
    /// Bytes for all of them together, and so of the longest; 0: none is allowed.
    limit: u64,
    used: u64,
    waiting: VecDeque<Asked>,
    open: Vec<Landing>,
    landed: Landed<Connection, Endpoint>,
    spare: Vec<Vec<u8>>,
    /// By the place of the connection.
    counts: Vec<Counts>,
}

/// Large messages of one connection.
#[derive(Clone, Copy, Default)]
struct Counts {
    waiting: u8,
    open: u8,
}

const _: () = assert!(MAX_LARGE <= u8::MAX as usize);

impl Landings {
    /// Allows large messages of so many bytes, all together. Those that have their memory keep it.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.trim();
    }

    /// A peer wants memory for a large message. [`Core::place_landings`] follows.
    ///
    /// # Errors
    ///
    /// It is too long, or the peer asks for more at a time than one of ours does.
    pub fn ask(&mut self, asked: Asked) -> Result<(), Failure> {
        let is_allowed = asked.len > 0 && asked.len <= self.limit && asked.len < u64::from(u32::MAX);
        let counts = self.counts(asked.connection);
        if !is_allowed || usize::from(counts.waiting) + usize::from(counts.open) >= MAX_LARGE {
            return Err(Failure::TooLong);
        }
        counts.waiting += 1;
        self.waiting.push_back(asked);
        Ok(())
    }

    fn counts(&mut self, connection: &'static Connection) -> &mut Counts {
        let place = connection.place() as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, Counts::default());
        }
        &mut self.counts[place]
    }

    /// Whether a peer waits for memory.
    #[inline]
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a peer has memory to write to.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes back the memory of the messages that the program has returned.
    fn take_back(&mut self) {
        let Self { used, landed, spare, .. } = self;
        landed.take_back(|bytes| {
            *used -= len_of(&bytes);
            spare.extend(Arc::into_inner(bytes).map(HeapBytes::into_vec));
        });
        self.trim();
    }

    /// Frees what is kept beyond the limit.
    fn trim(&mut self) {
        let kept = |spare: &[Vec<u8>]| spare.iter().map(|bytes| bytes.capacity().saturating_sub(1) as u64).sum::<u64>();
        while self.spare.len() > SPARE || !self.spare.is_empty() && self.used + kept(&self.spare) > self.limit {
            self.spare.remove(0);
        }
    }

    /// Takes the oldest message for which there is room. A connection that has room for one gets more only within half of the limit,
    /// so that a peer that is stopped meanwhile leaves the other half.
    fn next(&mut self) -> Option<Asked> {
        self.take_back();
        let Self { limit, used, counts, .. } = self;
        let is_open = |asked: &Asked| counts[asked.connection.place() as usize].open > 0;
        let may_have = |asked: &Asked| !is_open(asked) || *used + asked.len <= *limit / 2;
        let at = self.waiting.iter().position(may_have)?;
        let len = self.waiting[at].len;
        // One that is too long since the limit was lowered is refused.
        let asked = if *used + len <= *limit || len > *limit { self.waiting.remove(at) } else { None }?;
        self.counts(asked.connection).waiting -= 1;
        Some(asked)
    }

    /// Puts one back that [`Landings::next`] has given.
    fn put_back(&mut self, asked: Asked) {
        self.counts(asked.connection).waiting += 1;
        self.waiting.push_front(asked);
    }

    /// Memory for a message of `len` bytes, and one more; none where the system has none, or where it is too long by now. All zero: a
    /// peer may say that it has written, and an earlier message is not to be taken for its own.
    fn memory(&mut self, len: u64) -> Option<Arc<HeapBytes>> {
        let needed = usize::try_from(len + 1).ok().filter(|_| len <= self.limit)?;
        let fits = |spare: &Vec<u8>| spare.capacity() >= needed && spare.capacity() / 4 <= needed;
        let mut bytes = match self.spare.iter().position(fits) {
            Some(at) => self.spare.swap_remove(at),
            None => Vec::new(),
        };
        bytes.clear();
        bytes.try_reserve_exact(needed).ok()?;
        bytes.resize(needed, 0);
        Some(Arc::new(HeapBytes::new(bytes)))
    }

    /// Takes the landing of an operation of a peer.
    pub fn take(&mut self, connection: &'static Connection, operation: u32) -> Option<Landing> {
        let is_it = |landing: &Landing| {
            std::ptr::eq(landing.asked.connection, connection) && landing.asked.operation == operation
        };
        let at = self.open.iter().position(is_it)?;
        self.counts(connection).open -= 1;
        Some(self.open.swap_remove(at))
    }

    /// Forgets what a connection has asked for, and takes one of its landings, if there is one: to be called until there is none.
    /// Each slot goes back, each registration ends, and then its memory is [given up](Landings::give_up).
    pub fn forget(&mut self, connection: &'static Connection) -> Option<Landing> {
        let counts = self.counts.get_mut(connection.place() as usize)?;
        if std::mem::take(&mut counts.waiting) > 0 {
            self.waiting.retain(|asked| !std::ptr::eq(asked.connection, connection));
        }
        counts.open = counts.open.checked_sub(1)?;
        let at = self.open.iter().position(|landing| std::ptr::eq(landing.asked.connection, connection))?;
        Some(self.open.swap_remove(at))
    }

    /// Frees the memory of a message that does not come.
    pub fn give_up(&mut self, landing: Landing) {
        self.used -= landing.asked.len;
    }
}

/// Bytes of the message that this memory is for.
fn len_of(bytes: &Arc<HeapBytes>) -> u64 {
    Memory::of_bytes(bytes).len().saturating_sub(1)
}

/// What a transport has done for a large message.
pub enum Placed {
    /// The peer writes to the memory, by this handle; the slot is that of its event.
    Open(&'static Slot, RmaHandle),
    /// Nothing: no slot is free, or the peer cannot be told now.
    Later,
    /// The peer was told that there is no memory.
    Refused,
}

impl Core {
    /// Passes the large messages for which there is room to `place`, with their memory; without memory, one is to be refused. Called
    /// while some wait, in each call that makes progress and in [`Transport::refill`](crate::Transport::refill).
    #[cold]
    pub fn place_landings(&mut self, mut place: impl FnMut(&mut Self, &Asked, Option<Memory>) -> Placed) {
        loop {
            self.place_as_far_as_it_goes(&mut place);
            let is_short = self.landings().is_waiting();
            if !self.set_landings_short(is_short) {
                return;
            }
            // Against the light fence in giving an event back: either it calls, or the next look finds its memory and its slot.
            self.endpoint().pairing.heavy_here();
        }
    }

    fn place_as_far_as_it_goes(&mut self, place: &mut impl FnMut(&mut Self, &Asked, Option<Memory>) -> Placed) {
        while let Some(asked) = self.landings().next() {
            let bytes = self.landings().memory(asked.len);
            let placed = place(self, &asked, bytes.as_ref().map(Memory::of_bytes));
            let landings = self.landings();
            match (placed, bytes) {
                (Placed::Open(slot, handle), Some(bytes)) => {
                    landings.used += asked.len;
                    landings.counts(asked.connection).open += 1;
                    landings.open.push(Landing { asked, slot, handle, bytes });
                    landings.trim();
                }
                (Placed::Later, bytes) => {
                    landings.spare.extend(bytes.and_then(Arc::into_inner).map(HeapBytes::into_vec));
                    landings.put_back(asked);
                    return;
                }
                _ => {}
            }
        }
    }

    /// Delivers a large message that is written.
    pub fn deliver_landing(&mut self, landing: Landing) {
        let Landing { asked: Asked { connection, len, .. }, slot, bytes, .. } = landing;
        if !self.landings().landed.show(slot, EventKind::Recv as u32, bytes, connection.address()) {
            return self.release(slot);
        }
        tag_event(slot, connection);
        connection.counters.on_received();
        self.counters().on_received(usize::try_from(len).unwrap_or(usize::MAX));
        self.push(slot);
    }
}
