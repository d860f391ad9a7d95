//! Requests at the objects, and the events that they and operations leave.

use super::{Matched, Objects, Placed};
use crate::handles::Handle;
use crate::memory::Region;
use crate::options;
use crate::queue::Facts;
use crate::types::{Event, EventKind};
use crate::wanted::Wanted;
use cci_matching::{Envelope, Offer};

/// Events that wait for handlers; the oldest are lost then, to their handlers alone.
const MOST_HANDLED: usize = 1 << 16;

impl Objects {
    /// Finds the entry of a request, and takes the space and the threshold that it needs. `None`:
    /// nobody wants it, and it is counted.
    pub(crate) fn take(&mut self, wanted: &Wanted) -> Option<Matched> {
        let handle = self.find_or_drop(wanted)?;
        let memory = self.memories.get_mut(handle)?;
        let (offset, length) = memory.claim(wanted);
        memory.pending += 1;
        self.registers[2] += 1;
        self.registers[3] += length;
        Some(Matched { memory: handle, offset, length })
    }

    /// A put with its bytes, in one pass: found, placed by `copy`, which takes memory, offset and
    /// length, and over, with its events. `None`: nobody wants it, and it is counted.
    #[inline(always)]
    pub(crate) fn place(&mut self, wanted: &Wanted, copy: impl FnOnce(&Region, u64, usize) -> bool) -> Option<Placed> {
        let handle = self.find_or_drop(wanted)?;
        let link = self.next_link();
        let memory = self.memories.get_mut(handle)?;
        let (offset, length) = memory.claim(wanted);
        let leaves_start = memory.leaves(EventKind::PutStart);
        self.registers[2] += 1;
        self.registers[3] += length;
        let mut facts = wanted.facts(offset, length, link);
        if leaves_start {
            self.push(handle, EventKind::PutStart, &facts);
        }
        let memory = self.memories.get(handle)?;
        let is_in = copy(&memory.region, offset, length as usize);
        let (has_ack, is_over) = (is_in && !memory.has(options::ACK_DISABLE), memory.is_over());
        facts.failure = u32::from(!is_in);
        if memory.leaves(EventKind::PutEnd) {
            self.push(handle, EventKind::PutEnd, &facts);
        }
        if is_over {
            self.settle(handle, &facts);
        }
        Some(Placed { offset, length, has_ack })
    }

    #[inline]
    fn find_or_drop(&mut self, wanted: &Wanted) -> Option<Handle> {
        let found = if self.access.lets_in(wanted) { self.find(wanted) } else { None };
        if found.is_none() {
            self.drop_request(wanted.length);
        }
        found
    }

    #[cold]
    pub(crate) fn drop_request(&mut self, length: u64) {
        self.registers[0] += 1;
        self.registers[1] = self.registers[1].saturating_add(length);
    }

    fn find(&mut self, wanted: &Wanted) -> Option<Handle> {
        let Self { table, memories, .. } = self;
        let list = table.get_mut(wanted.portal as usize)?;
        let envelope = Envelope { source: wanted.initiator.word(), bits: wanted.bits };
        let need = Offer { rights: wanted.operation, room: u32::try_from(wanted.length).unwrap_or(u32::MAX) };
        let accepts = |leads_to: &mut Handle, offer: &mut Offer| {
            let Some(memory) = memories.get(*leads_to) else { return false };
            let is_remote = memory.has(options::MANAGE_REMOTE);
            let offset = if is_remote { wanted.offset } else { memory.offset };
            let fits = offset.checked_add(wanted.length).is_some_and(|end| end <= memory.region.len());
            // Nothing is cut that begins behind the end.
            let is_cut = memory.has(options::TRUNCATE) && offset <= memory.region.len();
            let is_accepted = memory.is_active() && (fits || is_cut);
            if !is_accepted {
                *offer = memory.offer();
            }
            is_accepted
        };
        let ticket = list.find_offer(&envelope, need, accepts)?;
        list.get(ticket).copied()
    }

    /// Leaves an event of a memory descriptor, if it has a queue and wants this kind.
    #[inline(always)]
    pub(crate) fn report(&mut self, handle: Handle, kind: EventKind, facts: &Facts) {
        if self.memories.get(handle).is_some_and(|memory| memory.leaves(kind)) {
            self.push(handle, kind, facts);
        }
    }

    #[inline(never)]
    fn push(&mut self, handle: Handle, kind: EventKind, facts: &Facts) {
        let Some(memory) = self.memories.get_mut(handle) else { return };
        let to = memory.described.queue;
        let Some(queue) = self.queues.get_mut(to) else { return };
        memory.last = queue.push(kind, handle, &memory.described, facts);
        if queue.has_handler {
            let event = queue.last();
            self.hand_to_handler(to, event);
        }
        self.changes.count();
    }

    #[cold]
    fn hand_to_handler(&mut self, of: Handle, event: Option<Event>) {
        // An engine goes on while no call of the program takes them.
        if self.handled.len() >= MOST_HANDLED {
            self.handled.pop_front();
        }
        self.handled.extend(event.map(|event| (of, event)));
    }

    /// Ends an operation that was pending: its END event, and what goes by itself.
    #[inline]
    pub(crate) fn end(&mut self, handle: Handle, kind: EventKind, facts: &Facts) {
        let Some(memory) = self.memories.get_mut(handle) else { return };
        memory.pending -= 1;
        let is_over = memory.is_over();
        self.report(handle, kind, facts);
        if is_over {
            self.settle(handle, facts);
        }
    }

    /// Unlinks a memory descriptor that goes by itself, if it has come to its end. Its UNLINK event
    /// has the facts of the operation that was its last, and the sequence of its last event as
    /// `link`.
    #[inline(never)]
    pub(crate) fn settle(&mut self, handle: Handle, facts: &Facts) {
        if let Some(memory) = self.memories.get(handle).filter(|memory| memory.is_over()) {
            let facts = Facts { link: memory.last, ..*facts };
            self.report(handle, EventKind::Unlink, &facts);
            self.remove_memory(handle);
        }
    }
}
