//! Calls of a program in the accelerated mode that do not take the engine's lock: puts and gets
//! write commands into a ring, reads copy events out of the rings of queues.
//! `docs/design/portals.md` has the figure, who writes what, and the order of locks.

use crate::changes::{Changes, look_in_vain};
use crate::errors::Error;
use crate::handles::Handle;
use crate::initiator::Target;
use crate::objects::Objects;
use crate::operations;
use crate::queue::{Events, Queue, Ring};
use crate::shared::frames::Command;
use crate::shared::rings::{COMMANDS, In, Lines, Out, Own};
use crate::state::State;
use crate::types::Event;
use cci::Endpoint;
use cci_ground::{SPIN, may_spin};
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::mutex::lock;
use cci_mem::sleep;
use cci_mem::sync::{AtomicBool, AtomicU32, Ordering, spin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Spins for which an engine leaves its lock to a call that waits for it.
const YIELD: usize = 100;
/// Operations that are kept for commands on their way.
const RESERVE: usize = 2 * COMMANDS;

/// What calls and the engine share besides the engine's lock.
pub(crate) struct Calls {
    commands: Mutex<Commands>,
    reads: Mutex<Reads>,
    pairing: Pairing,
    /// The memory of the ring of commands, with the word for the engine's sleep.
    lines: Own<COMMANDS>,
    /// Calls that wait for the engine's lock.
    wanting: AtomicU32,
    /// Few operations are left: calls find out under the lock whether theirs may begin.
    is_tight: AtomicBool,
}

/// What calls that begin operations have.
pub(crate) struct Commands {
    ring: Out<COMMANDS, Own<COMMANDS>>,
    /// Memory descriptors that stay active until a call changes them, and their lengths, by index.
    steady: Vec<Option<(Handle, u64)>>,
    is_closed: bool,
}

/// What reads of events have.
pub(crate) struct Reads {
    /// By index.
    queues: Vec<Option<(Handle, Arc<Ring>)>>,
    /// Queues whose events go to handlers, too.
    handlers: usize,
    /// Reads that found nothing.
    vain: u32,
    is_closed: bool,
}

/// What has become of a call that begins an operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// The engine will follow the command.
    Over,
    /// So will the caller, under the lock: the engine sleeps.
    Followed,
    /// Nothing was written: the call has to take the lock.
    Refused,
}

fn place<V>(all: &mut Vec<Option<V>>, handle: Handle) -> &mut Option<V> {
    let index = handle.index();
    if all.len() <= index {
        all.resize_with(index + 1, || None);
    }
    &mut all[index]
}

impl Commands {
    fn room_of(&self, memory: Handle) -> Option<u64> {
        let (handle, length) = (*self.steady.get(memory.index())?)?;
        (handle == memory).then_some(length)
    }

    /// Notes what a call has changed.
    pub(crate) fn note(&mut self, objects: &mut Objects, is_closed: bool) {
        self.is_closed = is_closed;
        if let Some(memory) = objects.touched.take() {
            *place(&mut self.steady, memory) = objects.steady(memory).map(|length| (memory, length));
        }
    }
}

impl Reads {
    #[inline]
    fn pop(&self, queue: Handle) -> Result<(Event, bool), Error> {
        match self.queues.get(queue.index()) {
            Some(Some((handle, ring))) if *handle == queue => ring.pop(),
            _ => Err(Error::Queue),
        }
    }
}

impl Calls {
    /// With the side of the ring that reads commands.
    pub(crate) fn new() -> (Self, In<COMMANDS, Own<COMMANDS>>) {
        let lines = Own::new();
        let ring = Out::new(lines.clone());
        let calls = Self {
            commands: Mutex::new(Commands { ring, steady: Vec::new(), is_closed: false }),
            reads: Mutex::new(Reads { queues: Vec::new(), handlers: 0, vain: 0, is_closed: false }),
            pairing: prepare(),
            lines: lines.clone(),
            wanting: AtomicU32::new(0),
            is_tight: AtomicBool::new(false),
        };
        (calls, In::new(lines))
    }

    pub(crate) fn commands(&self) -> MutexGuard<'_, Commands> {
        lock(&self.commands)
    }

    pub(crate) fn reads(&self) -> MutexGuard<'_, Reads> {
        lock(&self.reads)
    }

    /// Hands a command over that begins an operation of this memory descriptor, if it can be told
    /// here that it will begin.
    #[inline]
    pub(crate) fn hand_over(
        &self,
        (memory, region): (Handle, Option<(u64, u64)>),
        to: &Target,
        command: &Command,
    ) -> Handed {
        let is_numbered = |number: u32| number <= u32::from(u16::MAX);
        if !to.process.is_definite() || !is_numbered(to.portal) || !is_numbered(to.access) {
            return Handed::Refused;
        }
        let mut commands = self.commands();
        let Some(length) = commands.room_of(memory) else { return Handed::Refused };
        let is_inside = |(offset, part): (u64, u64)| offset.checked_add(part).is_some_and(|end| end <= length);
        if commands.is_closed || !region.is_none_or(is_inside) || !self.may_push(&mut commands.ring) {
            return Handed::Refused;
        }
        commands.ring.push(&command.frame());
        if commands.ring.must_wake(self.pairing) { Handed::Followed } else { Handed::Over }
    }

    /// Whether the engine takes commands, and there is room. Waits a while for room.
    #[inline]
    fn may_push(&self, ring: &mut Out<COMMANDS, Own<COMMANDS>>) -> bool {
        // Both are hints.
        let is_open = |ring: &Out<_, _>| !self.is_tight.load(Ordering::Relaxed) && ring.is_awake();
        if !is_open(ring) {
            return false;
        }
        // The engine is of this process: its head is right.
        if ring.has_room().is_ok_and(|has_room| has_room) {
            return true;
        }
        let begun = Instant::now();
        while is_open(ring) && may_spin(begun, Instant::now()) {
            spin();
            if ring.has_room().is_ok_and(|has_room| has_room) {
                return true;
            }
        }
        false
    }

    /// Notes whether operations run out.
    pub(crate) fn note_room(&self, state: &State) {
        let is_tight = state.operations.len() + RESERVE > operations::MOST;
        if self.is_tight.load(Ordering::Relaxed) != is_tight {
            self.is_tight.store(is_tight, Ordering::Relaxed);
        }
    }

    /// Takes the engine's lock, which the engine leaves to this call.
    pub(crate) fn lock<G>(&self, enter: impl FnOnce() -> G) -> G {
        // The engine pauses or does not: nothing depends on it.
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let state = enter();
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Leaves the lock, which the engine does not hold now, to calls that wait for it.
    pub(crate) fn give_way(&self) {
        let mut spins = 0;
        while self.wanting.load(Ordering::Relaxed) > 0 && spins < YIELD {
            spin();
            spins += 1;
        }
    }

    /// Announces that the engine sleeps, which holds its lock. False: there are commands, and it
    /// may not.
    pub(crate) fn doze(&self, state: &State) -> bool {
        sleep::arm(self.lines.sleep());
        self.pairing.heavy_here();
        let is_empty = state.commands.as_ref().is_none_or(In::is_empty);
        if !is_empty {
            sleep::disarm(self.lines.sleep());
        }
        is_empty
    }

    /// The engine follows commands again.
    pub(crate) fn rise(&self) {
        sleep::disarm(self.lines.sleep());
    }

    /// The engine ends: calls take the lock from now on. Commands of those that have found it awake
    /// are in the ring, or their calls follow them.
    pub(crate) fn end(&self) {
        sleep::arm(self.lines.sleep());
        self.pairing.heavy_here();
    }

    /// Enters a queue that reads may name from now on.
    pub(crate) fn add_queue(&self, handle: Handle, queue: &Queue) {
        let Events::Shared(ring) = &queue.events else { return };
        let mut reads = self.reads();
        reads.handlers += usize::from(queue.has_handler);
        *place(&mut reads.queues, handle) = Some((handle, Arc::clone(ring)));
    }

    pub(crate) fn remove_queue(&self, handle: Handle, has_handler: bool) {
        let mut reads = self.reads();
        reads.handlers -= usize::from(has_handler);
        *place(&mut reads.queues, handle) = None;
    }

    /// Reads find that the interface is closed.
    pub(crate) fn close(&self) {
        self.reads().is_closed = true;
    }

    /// The oldest event of a queue.
    #[inline]
    pub(crate) fn event(&self, queue: Handle) -> Result<(Event, bool), Error> {
        let mut reads = self.reads();
        if reads.is_closed {
            return Err(Error::Network);
        }
        let found = reads.pop(queue);
        if found == Err(Error::QueueEmpty) {
            reads.vain = reads.vain.wrapping_add(1);
            let vain = reads.vain;
            drop(reads);
            look_in_vain(vain);
        }
        found
    }

    /// Looks at queues for a while, and returns in which there was an event. `None`: in none, or a
    /// wait has other things to look at.
    pub(crate) fn look(
        &self,
        queues: &[Handle],
        limit: Option<Duration>,
        changes: &Changes,
    ) -> Option<Result<(usize, Event, bool), Error>> {
        let mut begun = None;
        let limit = limit.map_or(SPIN, |limit| limit.min(SPIN));
        loop {
            let before = changes.get();
            let reads = self.reads();
            if reads.is_closed || reads.handlers > 0 {
                return None;
            }
            for (index, queue) in queues.iter().enumerate() {
                match reads.pop(*queue) {
                    Ok((event, is_lost)) => return Some(Ok((index, event, is_lost))),
                    Err(Error::QueueEmpty) => {}
                    Err(why) => return Some(Err(why)),
                }
            }
            drop(reads);
            let begun = *begun.get_or_insert_with(Instant::now);
            while changes.get() == before {
                if begun.elapsed() >= limit || cci::is_oversubscribed() {
                    return None;
                }
                spin();
            }
        }
    }
}

impl State {
    /// Follows commands that are in the ring, at most so many, and returns how many there were.
    #[inline]
    pub(crate) fn follow(&mut self, endpoint: &Endpoint, most: usize) -> usize {
        let mut followed = 0;
        while followed < most {
            let Some((frame, _)) = self.commands.as_mut().and_then(In::take) else { break };
            followed += 1;
            match Command::parse(&frame) {
                Some(Command::Put { memory, region, wants_ack, to }) => {
                    let begun = self.put(endpoint, memory, region, wants_ack, &to);
                    if begun.is_err() {
                        self.refuse_put(memory, region, &to);
                    }
                }
                Some(Command::Get { memory, region, from }) => {
                    let begun = self.get(endpoint, memory, region, &from);
                    if begun.is_err() {
                        self.refuse_get(memory, region, &from);
                    }
                }
                _ => {}
            }
        }
        followed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Descriptor, EventKind, Limits, ProcessId, buffer};
    use crate::{Interface, Place, Unlink};
    use cci_peers::Table;

    /// Commands that cannot be followed, of calls that have returned.
    #[test]
    fn an_operation_that_cannot_begin_ends_by_an_event() {
        let endpoint = cci::Endpoint::open(&cci_conformance::sm_device(), &crate::endpoint_options());
        let own = ProcessId { nid: 9, pid: 0 };
        let place = Place::of(endpoint.expect("an endpoint"), own, Box::new(Table::new()));
        let ni = Interface::accelerated(place, 0, Limits::default()).expect("an interface");
        let queue = ni.queue(8, false).expect("room");
        let absent = Target { bits: 5, ..Target::at(ProcessId { nid: 9, pid: 1 }, 4) };
        let quiet = ni.bind(Descriptor::new(&buffer(vec![0; 8])), Unlink::Retain).expect("room");
        while ni.put(quiet, None, false, &absent).is_ok() {}
        assert_eq!(ni.counts().0, operations::MOST);
        let memory = Descriptor::new(&buffer(vec![0; 8])).events(queue);
        let memory = ni.bind(memory, Unlink::Retain).expect("room");
        let calls = ni.core().calls.as_ref().expect("it has an engine");
        for command in [
            Command::Put { memory, region: Some((4, 2)), wants_ack: true, to: absent },
            Command::Get { memory, region: None, from: absent },
        ] {
            calls.commands().ring.push(&command.frame());
        }
        assert_eq!(ni.counts().0, operations::MOST, "they were followed");
        let read = || ni.event(queue).map(|(of, _)| (of.kind, of.failure, of.bits, of.offset, of.rlength, of.mlength));
        for (kinds, offset, length) in
            [([EventKind::SendStart, EventKind::SendEnd], 4, 2), ([EventKind::ReplyStart, EventKind::ReplyEnd], 0, 8)]
        {
            assert_eq!([read(), read()], kinds.map(|kind| Ok((kind, 1, 5, offset, length, 0))));
        }
        assert_eq!((read(), ni.unlink_memory(memory)), (Err(Error::QueueEmpty), Ok(())));
    }
}
