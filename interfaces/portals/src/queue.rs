//! Event queues.

use crate::errors::Error;
use crate::handles::Handle;
use crate::types::{ANY, Described, Event, EventKind, ProcessId};

/// Events of a queue at most.
const MOST: u64 = 1 << 20;

/// What the events of an operation have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) initiator: ProcessId,
    pub(crate) uid: u32,
    pub(crate) jid: u32,
    pub(crate) portal: u32,
    pub(crate) bits: u64,
    pub(crate) rlength: u64,
    pub(crate) mlength: u64,
    pub(crate) offset: u64,
    pub(crate) header: u64,
    pub(crate) link: u32,
    pub(crate) failure: u32,
}

impl Facts {
    /// Of no operation.
    pub(crate) fn of_none(link: u32) -> Self {
        Self {
            initiator: ProcessId::default(),
            uid: 0,
            jid: 0,
            portal: ANY,
            bits: 0,
            rlength: 0,
            mlength: 0,
            offset: 0,
            header: 0,
            link,
            failure: 0,
        }
    }
}

/// A ring of events. When it is full, the oldest goes.
#[derive(Debug)]
pub(crate) struct Queue {
    ring: Box<[Event]>,
    /// Counts what was put in, and what was read or lost.
    written: u64,
    read: u64,
    has_lost: bool,
    sequence: u32,
    /// The program has a handler that is called for each event.
    pub(crate) has_handler: bool,
}

impl Queue {
    /// A ring for at least `count` events, of which a power of two is made; `None`: too many, or
    /// no memory.
    pub(crate) fn new(count: u64, has_handler: bool) -> Option<Self> {
        if count > MOST {
            return None;
        }
        let count = usize::try_from(count.max(2).checked_next_power_of_two()?).ok()?;
        let mut ring = Vec::new();
        ring.try_reserve_exact(count).ok()?;
        ring.resize(count, Event::default());
        // Its first event has the number 0 after the wrap that tests see.
        Some(Self { ring: ring.into(), written: 0, read: 0, has_lost: false, sequence: u32::MAX, has_handler })
    }

    /// Puts an event of a memory descriptor in, and returns it with its number.
    #[inline]
    pub(crate) fn push(&mut self, kind: EventKind, memory: Handle, described: &Described, facts: &Facts) -> &Event {
        self.sequence = self.sequence.wrapping_add(1);
        let length = self.ring.len() as u64;
        if self.written - self.read == length {
            self.read += 1;
            self.has_lost = true;
        }
        let Facts { initiator, uid, jid, portal, bits, rlength, mlength, offset, header, link, failure } = *facts;
        let place = &mut self.ring[(self.written & (length - 1)) as usize];
        self.written += 1;
        *place = Event {
            kind,
            initiator,
            uid,
            jid,
            portal,
            bits,
            rlength,
            mlength,
            offset,
            memory,
            described: *described,
            header,
            link,
            failure,
            sequence: self.sequence,
        };
        place
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written == self.read
    }

    /// The oldest event, and whether some before it were lost.
    #[inline]
    pub(crate) fn pop(&mut self) -> Result<(Event, bool), Error> {
        if self.is_empty() {
            return Err(Error::QueueEmpty);
        }
        let event = self.ring[(self.read & (self.ring.len() as u64 - 1)) as usize];
        self.read += 1;
        Ok((event, std::mem::take(&mut self.has_lost)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, link: u32) {
        queue.push(EventKind::Ack, Handle::NONE, &Described::default(), &Facts::of_none(link));
    }

    #[test]
    fn the_oldest_events_go_and_the_next_read_says_so_once() {
        let mut queue = Queue::new(5, false).expect("memory");
        for link in 0..8 {
            push(&mut queue, link);
        }
        assert_eq!(queue.pop().map(|(event, is_lost)| (event.link, is_lost)), Ok((0, false)), "eight fit");
        for link in 8..10 {
            push(&mut queue, link);
        }
        assert_eq!(queue.pop().map(|(event, is_lost)| (event.link, is_lost)), Ok((2, true)), "one was lost");
        for link in 3..10 {
            assert_eq!(
                queue.pop().map(|(event, is_lost)| (event.link, event.sequence, is_lost)),
                Ok((link, link, false))
            );
        }
        assert_eq!(queue.pop().map(|_| ()), Err(Error::QueueEmpty));
    }

    #[test]
    fn a_queue_has_a_power_of_two_and_at_least_two() {
        for (count, length) in [(1, 2), (2, 2), (3, 4), (5, 8), (1024, 1024)] {
            assert_eq!(Queue::new(count, false).expect("memory").ring.len(), length);
        }
        assert!(Queue::new(u64::MAX, false).is_none() && Queue::new(1 << 60, false).is_none());
    }
}
