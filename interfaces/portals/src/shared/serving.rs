//! What the engine has of one program.

use super::frames::{Command, Returned, write_event};
use super::rings::{AREA_AT, COMMANDS, EVENTS, Frame, In, Out};
use super::socket;
use crate::errors::Error;
use crate::handles::Handle;
use crate::interface::Interface;
use crate::options;
use crate::queue::Queue;
use crate::state::State;
use crate::types::{Descriptor, Event};
use cci::{Endpoint, Memory};
use cci_ground::Changing;
use cci_mem::barrier::Pairing;
use cci_mem::ring::Violation;
use cci_mem::segment::Segment;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Commands of one turn: the next program waits for no more.
const BATCH: usize = 64;
/// Events that the queues of a program may hold together.
const MOST_EVENTS: u64 = 1 << 16;

/// The program breaks the rules, or has gone.
pub(super) struct Gone;

impl From<Violation> for Gone {
    fn from(_: Violation) -> Self {
        Self
    }
}

/// A program, and all that it has at the engine.
pub(super) struct Serving {
    pub(super) socket: OwnedFd,
    pairing: Pairing,
    commands: In<COMMANDS>,
    events: Out<EVENTS>,
    /// What found no room yet: the answers to one turn, or the lines of one event.
    outgoing: VecDeque<Frame>,
    ni: Interface,
    area: Memory,
    /// With how many events each.
    queues: Vec<(Handle, u64)>,
    /// The changes until which all queues were empty.
    seen: Option<u64>,
}

impl Serving {
    pub(super) fn new(socket: OwnedFd, pairing: Pairing, segment: Segment, ni: Interface) -> Option<Self> {
        let len = segment.len().checked_sub(AREA_AT)?;
        let segment = Arc::new(segment);
        let area = Memory::of_peer(Arc::clone(&segment), AREA_AT, len)?;
        Some(Self {
            socket,
            pairing,
            commands: In::<COMMANDS>::of_commands(&segment),
            events: Out::<EVENTS>::of_events(&segment),
            outgoing: VecDeque::with_capacity(2 * BATCH),
            ni,
            area,
            queues: Vec::new(),
            seen: None,
        })
    }

    /// Takes commands, makes progress, and returns events. False: there was nothing to do.
    pub(super) fn turn(&mut self) -> Result<bool, Gone> {
        let core = Arc::clone(self.ni.core());
        let mut state = core.lock();
        let (mut taken, mut must_wake) = (0, false);
        // Each has one answer at most.
        while taken < BATCH && self.outgoing.len() < BATCH {
            let Some((frame, gives_room)) = self.commands.take() else { break };
            (taken, must_wake) = (taken + 1, must_wake || gives_room);
            self.follow(&frame, &mut state, core.endpoint())?;
        }
        let found = state.take_all(core.endpoint());
        if state.has_failed {
            return Err(Gone);
        }
        let written = self.hand_out(&mut state)?;
        drop(state);
        if (written || must_wake) && self.events.must_wake(self.pairing) {
            socket::wake(&self.socket);
        }
        Ok(taken > 0 || found > 0 || written)
    }

    /// Writes answers and events as far as there is room.
    fn hand_out(&mut self, state: &mut State) -> Result<bool, Gone> {
        let mut written = false;
        loop {
            while let Some(frame) = self.outgoing.front() {
                if !self.events.has_room()? {
                    return Ok(written);
                }
                self.events.push(frame);
                self.outgoing.pop_front();
                written = true;
            }
            let changes = state.objects.changes.get();
            if self.seen == Some(changes) {
                return Ok(written);
            }
            match self.next_event(state) {
                Some((event, is_lost)) => self.outgoing.extend(write_event(&event, is_lost)),
                None => self.seen = Some(changes),
            }
        }
    }

    fn next_event(&self, state: &mut State) -> Option<(Event, bool)> {
        self.queues.iter().find_map(|(queue, _)| state.objects.queues.get_mut(*queue)?.pop().ok())
    }

    /// Follows a command. Messages of the program to itself are served at once: many of them would
    /// be copies of its whole memory.
    fn follow(&mut self, frame: &Frame, state: &mut State, endpoint: &Endpoint) -> Result<(), Gone> {
        let value = |handle: Handle| u64::from(handle.bits());
        let objects = &mut state.objects;
        let answer = match Command::parse(frame).ok_or(Gone)? {
            Command::Put { memory, region, wants_ack, to } => {
                let begun = state.put(endpoint, memory, region, wants_ack, &to);
                self.refuse(begun);
                state.serve_self(endpoint);
                return Ok(());
            }
            Command::Get { memory, region, from } => {
                let begun = state.get(endpoint, memory, region, &from);
                self.refuse(begun);
                state.serve_self(endpoint);
                return Ok(());
            }
            Command::Queue(count) => self.queue(count, state).map(value),
            Command::FreeQueue(queue) => {
                self.queues.retain(|(of, _)| *of != queue);
                objects.free_queue(queue).map(|_| 0)
            }
            Command::Attach { portal, wanted, unlink, at } => objects.attach(portal, wanted, unlink, at).map(value),
            Command::UnlinkEntry(entry) => objects.unlink_entry(entry).map(|()| 0),
            Command::AttachMemory { entry, described, unlink } => {
                let descriptor = self.descriptor(described);
                descriptor.and_then(|of| objects.attach_memory(entry, of, unlink)).map(value)
            }
            Command::Bind { described, unlink } => {
                self.descriptor(described).and_then(|of| objects.bind(of, unlink)).map(value)
            }
            Command::UnlinkMemory(memory) => objects.unlink_memory(memory).map(|()| 0),
            Command::Status(register) => {
                let found = usize::try_from(register).ok().and_then(|at| objects.registers.get(at).copied());
                found.ok_or(Error::Register)
            }
        };
        let (code, value) = answer.map_or_else(|why| (why.code().unsigned_abs(), 0), |value| (0, value));
        self.outgoing.push_back(Returned::answer(code, value));
        Ok(())
    }

    fn refuse(&mut self, begun: Result<(), Error>) {
        if let Err(why) = begun {
            self.outgoing.push_back(Returned::refused(why.code().unsigned_abs()));
        }
    }

    fn queue(&mut self, count: u64, state: &mut State) -> Result<Handle, Error> {
        let held: u64 = self.queues.iter().map(|(_, count)| count).sum();
        let queue = (1..=MOST_EVENTS - held).contains(&count).then(|| Queue::new(count, false, false)).flatten();
        let handle = state.objects.queues.insert(queue.ok_or(Error::NoSpace)?).ok_or(Error::NoSpace)?;
        self.queues.push((handle, count));
        Ok(handle)
    }

    /// A descriptor of memory that both have: its start is an offset there.
    fn descriptor(&self, described: crate::types::Described) -> Result<Descriptor, Error> {
        if described.options & options::IOVEC != 0 {
            return Err(Error::IllegalMemory);
        }
        let part = self.area.part(described.start, described.length).ok_or(Error::IllegalMemory)?;
        Ok(Descriptor::of(if part.is_empty() { Vec::new() } else { vec![part] }, described))
    }

    /// Announces that the engine sleeps.
    pub(super) fn arm(&self) {
        self.commands.arm();
    }

    pub(super) fn disarm(&self) {
        self.commands.disarm();
    }

    /// Does what a program said before it went: at most what its ring holds, since others may go on
    /// to write there.
    pub(super) fn finish(&mut self) {
        for _ in 0..=COMMANDS / BATCH {
            if !self.turn().is_ok_and(|worked| worked) || !self.has_work() {
                break;
            }
        }
    }

    /// Whether there is something to do after [`Serving::arm`] and a heavy fence. Commands wait
    /// while their answers would have no room.
    pub(super) fn has_work(&mut self) -> bool {
        let may_write = !self.outgoing.is_empty() && self.events.has_room().unwrap_or(true);
        may_write || self.outgoing.len() < BATCH && !self.commands.is_empty()
    }

    /// How long a sleep may last.
    pub(super) fn left(&self) -> Option<Duration> {
        self.ni.core().lock().left()
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        self.ni.core().endpoint()
    }

    pub(super) fn pairing(&self) -> Pairing {
        self.pairing
    }
}
