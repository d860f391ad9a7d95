//! Event queues.

use crate::errors::Error;
use crate::handles::Handle;
use crate::packed::{WORDS, pack, unpack};
use crate::types::{Described, Event, EventKind, ProcessId};
use cci_mem::overwriting;
use std::sync::Arc;

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

/// A ring of events, with one writer and one reader at a time, who have no lock. The writer never
/// waits: when the ring is full, the oldest event goes.
#[derive(Debug)]
pub(crate) struct Ring(overwriting::Ring<WORDS>);

impl Ring {
    fn new(length: usize) -> Option<Self> {
        overwriting::Ring::new(length).map(Self)
    }

    /// The last event. The writer's.
    fn last(&self) -> Option<Event> {
        unpack(&self.0.last())
    }

    /// The writer's.
    #[inline(always)]
    fn push(&self, event: &Event) {
        self.0.push(&pack(event));
    }

    /// Whether there is nothing to read. May be asked by anybody.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The oldest event, and whether some before it were lost. The reader's.
    #[inline]
    pub(crate) fn pop(&self) -> Result<(Event, bool), Error> {
        let (words, has_lost) = self.0.pop().ok_or(Error::QueueEmpty)?;
        unpack(&words).map(|event| (event, has_lost)).ok_or(Error::Unknown)
    }
}

/// A ring of events whose writer and reader have one lock.
#[derive(Debug)]
pub(crate) struct Plain {
    slots: Box<[Event]>,
    /// Counts what was put in, and what was read or lost.
    written: u64,
    read: u64,
    has_lost: bool,
}

impl Plain {
    fn new(length: usize) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(length).ok()?;
        slots.resize(length, Event::default());
        Some(Self { slots: slots.into(), written: 0, read: 0, has_lost: false })
    }

    #[inline(always)]
    fn push(&mut self, event: impl FnOnce() -> Event) {
        let length = self.slots.len() as u64;
        if self.written - self.read == length {
            self.read += 1;
            self.has_lost = true;
        }
        let slot = &mut self.slots[(self.written & (length - 1)) as usize];
        *slot = event();
        self.written += 1;
    }

    #[inline]
    fn pop(&mut self) -> Result<(Event, bool), Error> {
        if self.written == self.read {
            return Err(Error::QueueEmpty);
        }
        let event = self.slots[(self.read & (self.slots.len() as u64 - 1)) as usize];
        self.read += 1;
        Ok((event, std::mem::take(&mut self.has_lost)))
    }

    fn last(&self) -> Option<Event> {
        self.slots.get((self.written.wrapping_sub(1) & (self.slots.len() as u64 - 1)) as usize).copied()
    }
}

/// Where the events of a queue are.
#[derive(Debug)]
pub(crate) enum Events {
    /// In the generic mode.
    Plain(Plain),
    /// In the accelerated mode, where reads do not take the lock.
    Shared(Arc<Ring>),
}

/// An event queue. When it is full, the oldest event goes.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) events: Events,
    sequence: u32,
    /// The program has a handler that is called for each event.
    pub(crate) has_handler: bool,
}

impl Queue {
    /// A ring for at least `count` events, of which a power of two is made; `None`: too many, or
    /// no memory. `is_shared`: it is read without the lock.
    pub(crate) fn new(count: u64, has_handler: bool, is_shared: bool) -> Option<Self> {
        if count > MOST {
            return None;
        }
        let count = usize::try_from(count.max(2).checked_next_power_of_two()?).ok()?;
        let events =
            if is_shared { Events::Shared(Arc::new(Ring::new(count)?)) } else { Events::Plain(Plain::new(count)?) };
        // Its first event has the number 0 after the wrap that tests see.
        Some(Self { events, sequence: u32::MAX, has_handler })
    }

    /// Puts an event of a memory descriptor in, and returns its number.
    #[inline]
    pub(crate) fn push(&mut self, kind: EventKind, memory: Handle, described: &Described, facts: &Facts) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let Facts { initiator, uid, jid, portal, bits, rlength, mlength, offset, header, link, failure } = *facts;
        let sequence = self.sequence;
        let event = || Event {
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
            sequence,
        };
        match &mut self.events {
            Events::Plain(ring) => ring.push(event),
            Events::Shared(ring) => ring.push(&event()),
        }
        sequence
    }

    /// The event that was put in last.
    #[cold]
    pub(crate) fn last(&self) -> Option<Event> {
        match &self.events {
            Events::Plain(ring) => ring.last(),
            Events::Shared(ring) => ring.last(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.events {
            Events::Plain(ring) => ring.written == ring.read,
            Events::Shared(ring) => ring.is_empty(),
        }
    }

    /// The oldest event, and whether some before it were lost. No other thread reads meanwhile.
    #[inline]
    pub(crate) fn pop(&mut self) -> Result<(Event, bool), Error> {
        match &mut self.events {
            Events::Plain(ring) => ring.pop(),
            Events::Shared(ring) => ring.pop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ANY;

    /// Of no operation.
    fn facts(link: u32) -> Facts {
        Facts {
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

    fn push(queue: &mut Queue, link: u32) {
        queue.push(EventKind::Ack, Handle::NONE, &Described::default(), &facts(link));
    }

    #[test]
    fn the_oldest_events_go_and_the_next_read_says_so_once() {
        for is_shared in [false, true] {
            let mut queue = Queue::new(5, false, is_shared).expect("memory");
            for link in 0..8 {
                push(&mut queue, link);
            }
            assert_eq!(queue.last().map(|event| event.link), Some(7));
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
    }

    #[test]
    fn a_queue_has_a_power_of_two_and_at_least_two() {
        let length = |queue: &Queue| match &queue.events {
            Events::Plain(ring) => ring.slots.len(),
            Events::Shared(ring) => ring.0.length(),
        };
        for is_shared in [false, true] {
            for (count, wanted) in [(1, 2), (2, 2), (3, 4), (5, 8), (1024, 1024)] {
                assert_eq!(length(&Queue::new(count, false, is_shared).expect("memory")), wanted);
            }
            let too_many = [u64::MAX, 1 << 60].map(|count| Queue::new(count, false, is_shared));
            assert!(too_many.iter().all(Option::is_none));
        }
    }

    /// The reader is overtaken again and again.
    #[test]
    fn no_event_is_torn_while_the_writer_overtakes_the_reader() {
        const EVENTS: u32 = 300_000;
        for length in [2, 8] {
            let mut queue = Queue::new(length, false, true).expect("memory");
            let Events::Shared(ring) = &queue.events else { unreachable!("it is shared") };
            let ring = Arc::clone(ring);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for link in 1..=EVENTS {
                        let number = u64::from(link);
                        let described = Described { user: number, ..Described::default() };
                        let facts = Facts { bits: number, rlength: number, header: number, ..facts(link) };
                        queue.push(EventKind::Ack, Handle::NONE, &described, &facts);
                    }
                });
                let mut last = 0;
                while last < EVENTS {
                    let Ok((event, is_lost)) = ring.pop() else { continue };
                    let number = u64::from(event.link);
                    assert_eq!([event.bits, event.rlength, event.header, event.described.user], [number; 4]);
                    assert_eq!(event.sequence, event.link - 1);
                    assert!(event.link > last && is_lost == (event.link != last + 1), "{last} and {}", event.link);
                    last = event.link;
                }
            });
        }
    }
}
