//! A host for tests: it records what an engine reports, and checks that buffers, ranges and ends
//! are such as the engine promises.

use super::host::{Event, Host, Index, MessageBuffer, Op, Source, Target};
use super::sealer::Sealer;
use super::toy_sealer::ToySealer;
use crate::wire::Crc;
use crate::{Atomic, Failure};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// A host that records deliveries, ends and events.
#[derive(Debug, Default)]
pub struct RecordingHost {
    /// Free slots.
    pub slots: u32,
    /// The result of `credit`, if it is not the number of free slots.
    pub claim: Option<u32>,
    /// Whether the program returns the slot of each message at once.
    pub returns: bool,
    /// Messages that have begun, which is also the number of the newest buffer.
    pub begun: u32,
    /// Messages that are incomplete, by their buffers.
    pub buffers: BTreeMap<u32, Vec<u8>>,
    /// Delivered messages, oldest first.
    pub received: Vec<Vec<u8>>,
    /// Outcomes of the operations that ended. An operation that is still here must not end again.
    pub ended: BTreeMap<u32, Result<(), Failure>>,
    /// Operations in the order of their ends.
    pub order: Vec<u32>,
    /// Events of connections, of any kind.
    pub events: u32,
    /// Connections that opened.
    pub opened: Vec<Index>,
    /// Connections that clients requested.
    pub requests: Vec<Index>,
    /// Connections that broke.
    pub broken: Vec<(Index, Failure)>,
    /// Failures of connects that were refused.
    pub refused: Vec<Failure>,
    /// Whether the peers of those had answered.
    pub answered: Vec<bool>,
    /// Times that a peer was silent for the keepalive timeout.
    pub silent: u32,
    /// The registered memory. Its handle is `[7, 7]`.
    pub memory: Vec<u8>,
    /// The local memory of all operations.
    pub local: Vec<u8>,
    /// Whether `source` fails.
    pub dead: bool,
    /// Parts that were copied before the CRC of their frame was verified.
    pub copied: u32,
    /// Atomic operations of peers.
    pub changes: u32,
    /// Large messages that wait for memory: operation and length.
    pub large: Vec<(u32, u64)>,
    /// The large message that peers write to `memory`: operation and length.
    pub landing: Option<(u32, u64)>,
    /// The owner of its keys, if it has some.
    pub sealer: Option<ToySealer>,
    /// Payloads of requests.
    pub payloads: Vec<Vec<u8>>,
    /// Whether those refused connects had an answer about security.
    pub security: Vec<bool>,
}

impl Host for RecordingHost {
    type Piece = Vec<u8>;

    fn sealer(&mut self) -> Option<&mut dyn Sealer> {
        self.sealer.as_mut().map(|sealer| sealer as &mut dyn Sealer)
    }

    fn credit(&self) -> u32 {
        self.claim.unwrap_or(self.slots)
    }

    fn begin(&mut self, _: u32, len: u32) -> Option<MessageBuffer> {
        self.slots = self.slots.checked_sub(1)?;
        self.begun += 1;
        self.buffers.insert(self.begun, vec![0; len as usize]);
        Some(MessageBuffer(self.begun))
    }

    fn fill(&mut self, buffer: MessageBuffer, at: u32, bytes: &[u8]) {
        let at = at as usize;
        self.buffers.get_mut(&buffer.0).expect("begun")[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn deliver(&mut self, _: u32, buffer: MessageBuffer) {
        let message = self.buffers.remove(&buffer.0).expect("begun");
        self.received.push(message);
        self.slots += u32::from(self.returns);
    }

    fn abandon(&mut self, buffer: MessageBuffer) {
        self.buffers.remove(&buffer.0).expect("begun");
        self.slots += 1;
    }

    fn write(&mut self, _: u32, target: &Target, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.may_read(0, target)?;
        let at = usize::try_from(target.offset + at).expect("small");
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn write_checked(&mut self, _: u32, target: &Target, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.write(0, target, at, bytes).ok()?;
        self.copied += 1;
        Some(crc.update(bytes))
    }

    fn place_checked(&mut self, op: Op, at: u64, bytes: &[u8], crc: Crc) -> Option<Crc> {
        self.place(op, at, bytes);
        self.copied += 1;
        Some(crc.update(bytes))
    }

    fn source(&mut self, source: &Source, at: u64, len: u32) -> Result<Vec<u8>, Failure> {
        if self.dead {
            return Err(Failure::Copy);
        }
        let (from, at) = match source {
            Source::Local(_) => (&self.local, at),
            Source::Served(target) => (&self.memory, target.offset + at),
        };
        let at = usize::try_from(at).expect("small");
        Ok(from[at..at + len as usize].to_vec())
    }

    fn may_read(&mut self, _: u32, target: &Target) -> Result<(), Failure> {
        let fits = target.offset.checked_add(target.len).is_some_and(|end| end <= self.memory.len() as u64);
        if target.handle == [7, 7] && fits { Ok(()) } else { Err(Failure::RemoteHandle) }
    }

    fn atomic(&mut self, _: u32, target: &Target, atomic: Atomic) -> Result<u64, Failure> {
        self.may_read(0, target)?;
        self.changes += 1;
        let at = usize::try_from(target.offset).expect("small");
        let len = usize::try_from(target.len).expect("a word");
        let mut word = [0; 8];
        word[..len].copy_from_slice(&self.memory[at..at + len]);
        let old = u64::from_le_bytes(word);
        if let Some(new) = atomic.apply(old, target.len) {
            self.memory[at..at + len].copy_from_slice(&new.to_le_bytes()[..len]);
        }
        Ok(old)
    }

    fn large(&mut self, _: u32, op: u32, len: u64) -> Result<(), Failure> {
        if len > self.memory.len() as u64 {
            return Err(Failure::TooLong);
        }
        self.large.push((op, len));
        Ok(())
    }

    fn written_whole(&mut self, _: u32, op: u32, outcome: Result<(), ()>) {
        if let Some((_, len)) = self.landing.take_if(|(landing, _)| *landing == op)
            && outcome == Ok(())
        {
            self.received.push(self.memory[..usize::try_from(len).expect("small")].to_vec());
        }
    }

    fn place(&mut self, _: Op, at: u64, bytes: &[u8]) {
        let at = usize::try_from(at).expect("small");
        self.local[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn ended(&mut self, op: Op, outcome: Result<(), Failure>) {
        assert!(self.ended.insert(op.0, outcome).is_none(), "operation {op:?} ended twice");
        self.order.push(op.0);
    }

    fn event(&mut self, index: Index, _: u32, event: Event<'_>) -> bool {
        self.events += 1;
        match event {
            Event::Request { payload, .. } => {
                self.requests.push(index);
                self.payloads.push(payload.to_vec());
            }
            Event::Expected { .. } => self.requests.push(index),
            Event::Open { .. } => self.opened.push(index),
            Event::Refused { failure, is_answered, is_security } => {
                self.security.push(is_security);
                self.refused.push(failure);
                self.answered.push(is_answered);
            }
            Event::Broken(failure) => self.broken.push((index, failure)),
            Event::Silent => self.silent += 1,
            Event::Redirected { .. } => {}
        }
        true
    }
}
