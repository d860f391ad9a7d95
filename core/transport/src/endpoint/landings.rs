//! Memory for large messages that arrive (`docs/design/extensions.md`).

mod core;

use crate::{Connection, Endpoint, Slot};
use cci_mem::landed::{Landed, Message};
use cci_mem::pages::SharedPages;
use cci_proto::engine::MAX_LARGE;
use cci_proto::{Failure, RmaHandle};
use std::collections::VecDeque;
use std::sync::Arc;

/// Memory of delivered messages that is kept for the next ones of their connections, bytes: fresh
/// pages cost four times the copy.
const SPARE: u64 = 32 << 20;
/// Messages of all connections that are being written, at most. Each takes a registration, of which
/// `sm` has 65,536.
const MOST: usize = 1024;

/// A connection in one of its lives. Nobody but its peer has written the memory that is kept for
/// it.
type Writer = (&'static Connection, u32);

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
    /// The slot of its event, where that is taken before the message is there.
    pub slot: Option<&'static Slot>,
    /// What the peer writes by.
    pub handle: RmaHandle,
    pages: Arc<SharedPages>,
}

/// The large messages of an endpoint: those that wait for memory, those that are being written, and
/// those that the program has.
#[derive(Default)]
pub struct Landings {
    /// Bytes for all of them together, and so of the longest; 0: none is allowed.
    limit: u64,
    used: u64,
    /// Of the same limits, what the other ways had in use when they were last looked at.
    elsewhere: InUse,
    waiting: VecDeque<Asked>,
    /// Paused connections, and what they want.
    paused: Vec<(&'static Connection, VecDeque<Asked>)>,
    open: Vec<Landing>,
    landed: Landed<Connection, Endpoint, Writer>,
    /// Memory for further messages of its writer, the oldest first.
    spare: VecDeque<(Writer, Arc<SharedPages>)>,
    /// By the place of the connection.
    counts: Vec<Counts>,
}

/// What large messages have in use: bytes, and messages that are being written.
#[derive(Clone, Copy, Default)]
struct InUse {
    bytes: u64,
    open: usize,
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

    /// A peer wants memory for a large message.
    /// [`Core::place_landings`](crate::Core::place_landings) follows.
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
        match self.paused.iter_mut().find(|(paused, _)| std::ptr::eq(*paused, asked.connection)) {
            Some((_, wanted)) => wanted.push_back(asked),
            None => self.waiting.push_back(asked),
        }
        Ok(())
    }

    /// Gives no more memory for large messages of a connection.
    pub fn pause(&mut self, connection: &'static Connection) {
        if self.paused.iter().any(|(paused, _)| std::ptr::eq(*paused, connection)) {
            return;
        }
        let (wanted, others) = self.waiting.drain(..).partition(|asked| std::ptr::eq(asked.connection, connection));
        self.waiting = others;
        self.paused.push((connection, wanted));
    }

    /// Gives memory again.
    /// [`Core::place_landings`](crate::Core::place_landings) follows.
    pub fn resume(&mut self, connection: &'static Connection) {
        if let Some(at) = self.paused.iter().position(|(paused, _)| std::ptr::eq(*paused, connection)) {
            let (_, wanted) = self.paused.swap_remove(at);
            self.waiting.extend(wanted);
        }
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
        let before = spare.len();
        landed.take_back(|Message { pages, len, writer }| {
            *used -= u64::from(len);
            if writer.0.generation() == writer.1 {
                spare.push_back((writer, pages));
            }
        });
        if self.spare.len() > before {
            self.trim();
        }
    }

    /// Frees the oldest of what is kept beyond the limits.
    fn trim(&mut self) {
        let (mut kept, used) = (self.kept(), self.used + self.elsewhere.bytes);
        while kept > SPARE || used + kept > self.limit || self.spare.len() > MOST {
            let Some((_, pages)) = self.spare.pop_front() else { break };
            kept -= pages.len() as u64 - 1;
        }
    }

    /// Bytes that are kept for further messages.
    fn kept(&self) -> u64 {
        self.spare.iter().map(|(_, pages)| pages.len() as u64 - 1).sum()
    }

    /// What it has in use of the limits, and the bytes that are kept.
    fn share(&mut self) -> (InUse, u64) {
        self.take_back();
        (InUse { bytes: self.used, open: self.open.len() }, self.kept())
    }

    /// Notes what the other ways have in use of the common limits, and has them keep nothing where
    /// messages that wait here may need it.
    pub(super) fn share_with(&mut self, mut others: impl FnMut(&mut dyn FnMut(&mut Self))) {
        let (mut elsewhere, mut kept) = (InUse::default(), self.kept());
        others(&mut |other| {
            let (in_use, own) = other.share();
            elsewhere.bytes += in_use.bytes;
            elsewhere.open += in_use.open;
            kept += own;
        });
        self.elsewhere = elsewhere;
        let wanted: u64 = self.waiting.iter().map(|asked| asked.len).sum();
        if kept > SPARE || self.used + elsewhere.bytes + wanted + kept > self.limit {
            others(&mut |other| other.spare.clear());
        }
    }

    /// Takes the oldest message for which there is room. A connection that has room for one gets
    /// more only within half of the limits, so that a peer that is stopped meanwhile leaves the
    /// other half.
    fn next(&mut self) -> Option<Asked> {
        self.take_back();
        let Self { limit, used, counts, open, elsewhere, .. } = self;
        let (used, all_open) = (*used + elsewhere.bytes, open.len() + elsewhere.open);
        if all_open >= MOST {
            return None;
        }
        let is_open = |asked: &Asked| counts[asked.connection.place() as usize].open > 0;
        let is_in_half = |asked: &Asked| used + asked.len <= *limit / 2 && all_open < MOST / 2;
        let may_have = |asked: &Asked| !is_open(asked) || is_in_half(asked);
        let at = self.waiting.iter().position(may_have)?;
        let len = self.waiting[at].len;
        // One that is too long since the limit was lowered is refused.
        let asked = if used + len <= *limit || len > *limit { self.waiting.remove(at) } else { None }?;
        self.counts(asked.connection).waiting -= 1;
        Some(asked)
    }

    /// Puts one back that [`Landings::next`] has given.
    fn put_back(&mut self, asked: Asked) {
        self.counts(asked.connection).waiting += 1;
        self.waiting.push_front(asked);
    }

    /// Memory for a message, and one byte more; none where the system has none, or where the
    /// message is too long by now.
    ///
    /// A peer may say that it has written what it has not. So the memory has nothing but zeroes, or
    /// what this connection's peer has sent before. Zeroes are fresh pages: clearing would cost
    /// this side time for messages that never come.
    fn memory(&mut self, asked: &Asked) -> Option<Arc<SharedPages>> {
        let needed = usize::try_from(asked.len + 1).ok().filter(|_| asked.len <= self.limit)?;
        let fits = |(writer, pages): &(Writer, Arc<SharedPages>)| {
            is(*writer, asked.connection) && pages.len() >= needed && pages.len() / 4 <= needed
        };
        match self.spare.iter().position(fits) {
            Some(at) => self.spare.remove(at).map(|(_, pages)| pages),
            None => SharedPages::new(needed).ok().map(Arc::new),
        }
    }

    /// Whether an operation of a peer has memory.
    #[must_use]
    pub fn has(&self, connection: &'static Connection, operation: u32) -> bool {
        self.find(connection, operation).is_some()
    }

    fn find(&self, connection: &'static Connection, operation: u32) -> Option<usize> {
        self.open.iter().position(|Landing { asked, .. }| {
            std::ptr::eq(asked.connection, connection) && asked.operation == operation
        })
    }

    /// Takes the landing of an operation of a peer.
    pub fn take(&mut self, connection: &'static Connection, operation: u32) -> Option<Landing> {
        let at = self.find(connection, operation)?;
        self.counts(connection).open -= 1;
        Some(self.open.swap_remove(at))
    }

    /// Forgets what a connection has asked for, and takes one of its landings, if there is one: to
    /// be called until there is none. Each slot goes back, each registration ends, and then its
    /// memory is [given up](Landings::give_up).
    pub fn forget(&mut self, connection: &'static Connection) -> Option<Landing> {
        self.paused.retain(|(paused, _)| !std::ptr::eq(*paused, connection));
        let counts = self.counts.get_mut(connection.place() as usize)?;
        self.spare.retain(|(writer, _)| !is(*writer, connection));
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

/// Whether it is this connection, in its present life.
fn is((connection, generation): Writer, other: &'static Connection) -> bool {
    std::ptr::eq(connection, other) && generation == other.generation()
}

/// What a transport has done for a large message.
pub enum Placed {
    /// The peer writes to the memory, by this handle; the slot is that of its event, if it is
    /// taken.
    Open(Option<&'static Slot>, RmaHandle),
    /// Nothing: no slot is free, or the peer cannot be told now.
    Later,
    /// The peer was told that there is no memory.
    Refused,
}
