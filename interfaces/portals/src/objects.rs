//! The objects of an interface: portal table, match entries, memory descriptors, event queues,
//! access control. Nothing here sends.

mod requests;

use crate::access::Access;
use crate::changes::Changes;
use crate::errors::Error;
use crate::handles::{Handle, Kind, Table, table};
use crate::memory::Region;
use crate::operations::Own;
use crate::options;
use crate::queue::Queue;
use crate::types::{Described, Descriptor, Event, EventKind, Limits, ProcessId};
use crate::wanted::Wanted;
use cci_matching::{Offer, Ordered, Pattern, Ticket};
use std::collections::VecDeque;

/// Whether an object goes by itself.
///
/// # Example
///
/// ```
/// assert_eq!(cci_portals::Unlink::default(), cci_portals::Unlink::Retain);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it does, or not")]
pub enum Unlink {
    /// It stays until the program unlinks it.
    #[default]
    Retain,
    /// A memory descriptor goes once it is inactive and nothing is pending; an entry with its
    /// memory descriptor.
    Unlink,
}

/// Where a match entry goes in a list, or beside another entry.
///
/// # Example
///
/// ```
/// assert_ne!(cci_portals::Position::Before, cci_portals::Position::After);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two sides")]
pub enum Position {
    /// Before all others, or before the other entry.
    Before,
    /// Behind all others, or behind the other entry.
    After,
}

/// What a match entry asks for.
///
/// # Example
///
/// ```
/// use cci_portals::{Match, ProcessId};
///
/// let from_anybody = Match { source: ProcessId::ANY, bits: 7, ignore: 0 };
/// assert_ne!(from_anybody, Match { ignore: !0, ..from_anybody });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct Match {
    /// From whom; each half may be [`crate::ANY`].
    pub source: ProcessId,
    /// The match bits.
    pub bits: u64,
    /// The bits that are not compared.
    pub ignore: u64,
}

impl Match {
    fn pattern(&self) -> Pattern {
        Pattern::new(self.source.word(), self.source.mask(), self.bits, !self.ignore)
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    portal: usize,
    /// None while it is being entered.
    ticket: Option<Ticket>,
    unlink: Unlink,
    memory: Option<Handle>,
}

/// A memory descriptor.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) region: Region,
    /// Its parts as this side's reads write them, once there was one.
    pub(crate) own: Option<Own>,
    pub(crate) described: Described,
    /// The kinds of events that it leaves, a bit each.
    leaves: u16,
    pub(crate) offset: u64,
    /// Operations that have begun and not ended.
    pub(crate) pending: u32,
    /// A request has left fewer than `max_size` bytes.
    is_spent: bool,
    /// The sequence of its last event.
    last: u32,
    unlink: Unlink,
    entry: Option<Handle>,
}

impl Memory {
    pub(crate) fn is_active(&self) -> bool {
        self.described.threshold != 0 && !self.is_spent
    }

    pub(crate) fn has(&self, bits: u32) -> bool {
        self.described.options & bits == bits
    }

    /// Whether it goes by itself, now.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.unlink == Unlink::Unlink && !self.is_active() && self.pending == 0
    }

    /// Whether it has a queue, and its options do not disable this kind.
    #[inline]
    pub(crate) fn leaves(&self, kind: EventKind) -> bool {
        self.leaves >> kind as u16 & 1 != 0
    }

    /// What it can take of one request at most: of a walk, which passes over those that offer too
    /// little. It may offer more than it has, and is asked in vain then.
    fn offer(&self) -> Offer {
        let room = match () {
            () if !self.is_active() => return NOTHING,
            () if self.has(options::TRUNCATE) => u64::MAX,
            () if self.has(options::MANAGE_REMOTE) => self.region.len(),
            () => self.region.len().saturating_sub(self.offset),
        };
        Offer { rights: self.described.options, room: u32::try_from(room).unwrap_or(u32::MAX) }
    }

    /// Takes the space and the threshold that a request needs: offset and length.
    #[inline]
    fn claim(&mut self, wanted: &Wanted) -> (u64, u64) {
        let is_remote = self.has(options::MANAGE_REMOTE);
        let offset = if is_remote { wanted.offset } else { self.offset };
        let length = wanted.length.min(self.region.len().saturating_sub(offset));
        self.count();
        if !is_remote {
            self.offset += length;
            let left = self.region.len() - self.offset;
            self.is_spent = self.has(options::MAX_SIZE) && left < self.described.max_size;
        }
        (offset, length)
    }

    /// Takes one from the threshold.
    #[inline]
    pub(crate) fn count(&mut self) {
        if self.described.threshold > 0 {
            self.described.threshold -= 1;
        }
    }
}

/// The kinds of events that a memory descriptor leaves, a bit each.
fn leaves(described: &Described) -> u16 {
    let is_disabled = |bits: u32| described.options & bits == bits;
    let is_wanted = |kind: u32| match kind {
        ACK => !is_disabled(options::EVENT_START_DISABLE | options::EVENT_END_DISABLE),
        UNLINK => !is_disabled(options::EVENT_UNLINK_DISABLE),
        kind if kind.is_multiple_of(2) => !is_disabled(options::EVENT_START_DISABLE),
        _ => !is_disabled(options::EVENT_END_DISABLE),
    };
    let has_queue = described.queue != Handle::NO_QUEUE;
    (0..=UNLINK).filter(|kind| has_queue && is_wanted(*kind)).fold(0, |bits, kind| bits | 1 << kind)
}

/// What an entry without memory offers. It has no right that requests need.
const NOTHING: Offer = Offer::NONE;

const ACK: u32 = EventKind::Ack as u32;
const UNLINK: u32 = EventKind::Unlink as u32;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matched {
    pub(crate) memory: Handle,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Where the bytes of a put are, and whether that is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) has_ack: bool,
}

/// Status registers, by number.
pub(crate) const REGISTERS: usize = 6;

#[derive(Debug)]
pub(crate) struct Objects {
    /// The handle of the interface itself.
    pub(crate) interface: Handle,
    pub(crate) limits: Limits,
    table: Vec<Ordered<Handle>>,
    entries: Table<Entry>,
    pub(crate) memories: Table<Memory>,
    pub(crate) queues: Table<Queue>,
    pub(crate) access: Access,
    pub(crate) registers: [u64; REGISTERS],
    link: u32,
    /// Events of queues with a handler, for which it has not been called.
    pub(crate) handled: VecDeque<(Handle, Event)>,
    /// Counts what waits may wait for.
    pub(crate) changes: Changes,
    /// The memory descriptor that a call has made, changed or removed last.
    pub(crate) touched: Option<Handle>,
}

impl Objects {
    pub(crate) fn new(number: u32, limits: Limits, uid: u32) -> Self {
        let interface = Handle::of_new_interface(number);
        Self {
            interface,
            limits,
            table: (0..=limits.max_pt_index).map(|_| Ordered::new()).collect(),
            entries: table(Kind::Entry, interface, limits.max_mes),
            memories: table(Kind::Memory, interface, limits.max_mds),
            queues: table(Kind::Queue, interface, limits.max_eqs),
            access: Access::new(limits, uid),
            registers: [0; REGISTERS],
            // Its wrap comes early.
            link: u32::MAX - 2,
            handled: VecDeque::new(),
            changes: Changes::new(),
            touched: None,
        }
    }

    /// The `link` of the next pair of events.
    pub(crate) fn next_link(&mut self) -> u32 {
        self.link = self.link.wrapping_add(1);
        self.link
    }

    fn list(&mut self, portal: u32) -> Result<usize, Error> {
        let index = portal as usize;
        if index < self.table.len() { Ok(index) } else { Err(Error::PortalIndex) }
    }

    fn may_enter(&self, portal: usize) -> Result<(), Error> {
        if self.table[portal].len() >= self.limits.max_me_list as usize {
            return Err(Error::ListTooLong);
        }
        if self.entries.len() < self.limits.max_mes as usize { Ok(()) } else { Err(Error::NoSpace) }
    }

    fn enter(
        &mut self,
        portal: usize,
        unlink: Unlink,
        link: impl FnOnce(&mut Ordered<Handle>, Handle) -> Option<Ticket>,
    ) -> Result<Handle, Error> {
        let entry = Entry { portal, ticket: None, unlink, memory: None };
        let handle = self.entries.insert(entry).ok_or(Error::NoSpace)?;
        let list = &mut self.table[portal];
        match (link(list, Handle::NONE), self.entries.get_mut(handle)) {
            (Some(ticket), Some(entry)) => {
                entry.ticket = Some(ticket);
                list.set_offer(ticket, NOTHING);
                Ok(handle)
            }
            _ => {
                self.entries.remove(handle);
                Err(Error::NoSpace)
            }
        }
    }

    pub(crate) fn attach(&mut self, portal: u32, wanted: Match, unlink: Unlink, at: Position) -> Result<Handle, Error> {
        let portal = self.list(portal)?;
        self.may_enter(portal)?;
        self.enter(portal, unlink, |list, memory| {
            let pushed = match at {
                Position::Before => list.push_front(wanted.pattern(), memory),
                Position::After => list.push_back(wanted.pattern(), memory),
            };
            pushed.ok()
        })
    }

    pub(crate) fn attach_any(&mut self, wanted: Match, unlink: Unlink) -> Result<(u32, Handle), Error> {
        let portal = self.table.iter().position(Ordered::is_empty).ok_or(Error::TableFull)?;
        let portal = u32::try_from(portal).map_err(|_| Error::TableFull)?;
        Ok((portal, self.attach(portal, wanted, unlink, Position::After)?))
    }

    pub(crate) fn insert(
        &mut self,
        base: Handle,
        wanted: Match,
        unlink: Unlink,
        at: Position,
    ) -> Result<Handle, Error> {
        let entry = self.entries.get(base).ok_or(Error::Entry)?;
        let (portal, other) = (entry.portal, entry.ticket.ok_or(Error::Entry)?);
        self.may_enter(portal)?;
        self.enter(portal, unlink, |list, memory| {
            let inserted = match at {
                Position::Before => list.insert_before(other, wanted.pattern(), memory),
                Position::After => list.insert_after(other, wanted.pattern(), memory),
            };
            inserted.ok().flatten()
        })
    }

    pub(crate) fn unlink_entry(&mut self, handle: Handle) -> Result<(), Error> {
        let entry = self.entries.get(handle).ok_or(Error::Entry)?;
        let memory = entry.memory;
        if memory.and_then(|of| self.memories.get(of)).is_some_and(|of| of.pending > 0) {
            return Err(Error::EntryInUse);
        }
        self.remove_entry(handle);
        if let Some(memory) = memory
            && let Some(of) = self.memories.get_mut(memory)
        {
            of.entry = None;
            if of.unlink == Unlink::Unlink {
                self.memories.remove(memory);
            }
        }
        Ok(())
    }

    fn remove_entry(&mut self, handle: Handle) {
        if let Some(Entry { portal, ticket: Some(ticket), .. }) = self.entries.remove(handle) {
            self.table[portal].remove(ticket);
        }
    }

    fn check(&self, descriptor: Descriptor) -> Result<(Region, Described), Error> {
        let Descriptor { memory, described } = descriptor;
        let parts = if described.options & options::IOVEC == 0 { 1 } else { self.limits.max_md_iovecs as usize };
        if memory.len() > parts {
            return Err(Error::IllegalMemory);
        }
        if described.queue != Handle::NO_QUEUE {
            self.queues.get(described.queue).ok_or(Error::Queue)?;
        }
        Ok((Region::new(memory).ok_or(Error::IllegalMemory)?, described))
    }

    fn add(&mut self, descriptor: Descriptor, unlink: Unlink, entry: Option<Handle>) -> Result<Handle, Error> {
        let (region, mut described) = self.check(descriptor)?;
        described.threshold = described.threshold.max(-1);
        let leaves = leaves(&described);
        self.touched = self.memories.insert(Memory {
            region,
            own: None,
            described,
            leaves,
            offset: 0,
            pending: 0,
            is_spent: false,
            last: 0,
            unlink,
            entry,
        });
        self.touched.ok_or(Error::NoSpace)
    }

    /// The length of a memory descriptor that stays active until a call changes or removes it.
    pub(crate) fn steady(&self, handle: Handle) -> Option<u64> {
        let memory = self.memories.get(handle)?;
        let is_kept = memory.unlink == Unlink::Retain || memory.entry.is_none();
        let is_steady = is_kept && memory.described.threshold < 0 && !memory.has(options::MAX_SIZE);
        is_steady.then(|| memory.region.len())
    }

    pub(crate) fn attach_memory(&mut self, to: Handle, of: Descriptor, unlink: Unlink) -> Result<Handle, Error> {
        if self.entries.get(to).ok_or(Error::Entry)?.memory.is_some() {
            return Err(Error::EntryInUse);
        }
        let handle = self.add(of, unlink, Some(to))?;
        self.lead(to, Some(handle));
        Ok(handle)
    }

    /// Lets an entry lead to another memory descriptor, or to none.
    fn lead(&mut self, entry: Handle, memory: Option<Handle>) {
        let Some(of) = self.entries.get_mut(entry) else { return };
        of.memory = memory;
        let offer = memory.and_then(|memory| self.memories.get(memory)).map_or(NOTHING, Memory::offer);
        let Some(ticket) = of.ticket else { return };
        let list = &mut self.table[of.portal];
        list.set_offer(ticket, offer);
        if let Some(leads_to) = list.get_mut(ticket) {
            *leads_to = memory.unwrap_or(Handle::NONE);
        }
    }

    pub(crate) fn bind(&mut self, descriptor: Descriptor, unlink: Unlink) -> Result<Handle, Error> {
        self.add(descriptor, unlink, None)
    }

    pub(crate) fn unlink_memory(&mut self, handle: Handle) -> Result<(), Error> {
        if self.memories.get(handle).ok_or(Error::Memory)?.pending > 0 {
            return Err(Error::MemoryInUse);
        }
        self.remove_memory(handle);
        self.touched = Some(handle);
        Ok(())
    }

    fn remove_memory(&mut self, handle: Handle) {
        let Some(of) = self.memories.remove(handle).and_then(|memory| memory.entry) else { return };
        self.lead(of, None);
        if self.entries.get(of).is_some_and(|entry| entry.unlink == Unlink::Unlink) {
            self.remove_entry(of);
        }
    }

    /// Whether the queue has events, or will get some of operations that have begun.
    pub(crate) fn is_quiet(&self, queue: Handle) -> Result<bool, Error> {
        let is_empty = self.queues.get(queue).ok_or(Error::Queue)?.is_empty();
        let is_pending = |(_, memory): (Handle, &Memory)| memory.described.queue == queue && memory.pending > 0;
        Ok(is_empty && !self.memories.iter().any(is_pending))
    }

    /// Gives what is stated of a memory descriptor, and changes it if `new` is given and `test` is
    /// quiet or no queue.
    pub(crate) fn update(&mut self, handle: Handle, new: Option<Descriptor>, test: Handle) -> Result<Described, Error> {
        let old = self.memories.get(handle).ok_or(Error::Memory)?.described;
        let Some(new) = new else { return Ok(old) };
        let (region, mut described) = self.check(new)?;
        if test != Handle::NO_QUEUE && !self.is_quiet(test)? {
            return Err(Error::NoUpdate);
        }
        described.threshold = described.threshold.max(-1);
        if let Some(memory) = self.memories.get_mut(handle) {
            (memory.region, memory.own, memory.offset, memory.is_spent) = (region, None, 0, false);
            (memory.leaves, memory.described) = (leaves(&described), described);
            self.touched = Some(handle);
            if let Some(entry) = memory.entry {
                self.lead(entry, Some(handle));
            }
        }
        Ok(old)
    }

    /// Ends a queue, and says whether it had a handler.
    pub(crate) fn free_queue(&mut self, handle: Handle) -> Result<bool, Error> {
        self.changes.count();
        self.queues.remove(handle).map(|queue| queue.has_handler).ok_or(Error::Queue)
    }

    /// What kind of object a handle is of, if there is one.
    pub(crate) fn has(&self, handle: Handle) -> bool {
        handle == self.interface
            || self.entries.get(handle).is_some()
            || self.memories.get(handle).is_some()
            || self.queues.get(handle).is_some()
    }
}
