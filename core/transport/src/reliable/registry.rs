//! This endpoint's registrations: what peers may touch by frames, and what its own RMA copies from and to.

use cci_mem::memory::{Memory, Piece};
use cci_proto::engine::Target;
use cci_proto::{Failure, RegisterError, Registration, Rights, RmaHandle};
use std::collections::VecDeque;
use subtle::ConstantTimeEq;

struct Own {
    generation: u32,
    secret: u64,
    rights: Rights,
    /// None: deregistered.
    memory: Option<Memory>,
}

/// The registrations.
pub(super) struct Registry {
    key: u64,
    entries: Vec<Own>,
    /// First in, first out: a stale handle meets a dead generation for as long as possible.
    free: VecDeque<u32>,
    /// Registrations with rights for peers.
    exposed: usize,
    /// Pieces that the system could not read. Each fails the next operation that is to send a byte of it, once: the program may
    /// have mapped the memory again.
    faults: Vec<Piece>,
}

/// Faults that are remembered. One that is not remembered occurs again.
const MOST_FAULTS: usize = 64;

impl Registry {
    /// Empty; `key` is the endpoint's own and random.
    pub(super) fn new(key: u64) -> Self {
        Self { key, entries: Vec::new(), free: VecDeque::new(), exposed: 0, faults: Vec::new() }
    }

    /// Registers memory.
    ///
    /// # Errors
    ///
    /// An empty range, one around the end of the address space, or no memory or random number to be had.
    pub(super) fn register(&mut self, memory: Memory, rights: Rights) -> Result<RmaHandle, RegisterError> {
        if memory.is_empty() {
            return Err(RegisterError::Null);
        }
        if (memory.start() as u64).checked_add(memory.len()).is_none() {
            return Err(RegisterError::WrapsAround);
        }
        let [secret] = super::random().map_err(|_| RegisterError::NoMemory)?;
        let index = match self.free.pop_front() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.entries.len()).map_err(|_| RegisterError::NoMemory)?;
                self.entries.try_reserve(1).map_err(|_| RegisterError::NoMemory)?;
                self.entries.push(Own { generation: 0, secret: 0, rights: Rights::NONE, memory: None });
                index
            }
        };
        let own = &mut self.entries[index as usize];
        own.generation = own.generation.wrapping_add(1);
        let len = memory.len();
        (own.secret, own.rights, own.memory) = (secret, rights, Some(memory));
        self.exposed += usize::from(rights != Rights::NONE);
        let number = Registration { index, generation: own.generation };
        Ok(RmaHandle { stuff: [number.mixed(self.key), secret, len, 0] })
    }

    /// Ends a registration; its memory, for a last look.
    ///
    /// # Errors
    ///
    /// No such registration.
    pub(super) fn deregister(&mut self, handle: &RmaHandle) -> Result<Memory, RegisterError> {
        let [first, secret, ..] = handle.stuff;
        let (number, _) = self.named([first, secret]).ok_or(RegisterError::UnknownHandle)?;
        let own = self.entries.get_mut(number.index as usize).ok_or(RegisterError::UnknownHandle)?;
        let memory = own.memory.take().ok_or(RegisterError::UnknownHandle)?;
        self.exposed -= usize::from(own.rights != Rights::NONE);
        self.free.push_back(number.index);
        self.faults.retain(|fault| !fault.touches(&memory));
        Ok(memory)
    }

    /// The living registration that a handle names.
    pub(super) fn find(&self, handle: &RmaHandle) -> Option<(Registration, &Memory)> {
        let [first, secret, ..] = handle.stuff;
        let (number, own) = self.named([first, secret])?;
        Some((number, own.memory.as_ref()?))
    }

    #[inline]
    fn named(&self, words: [u64; 2]) -> Option<(Registration, &Own)> {
        let Registration { index, .. } = Registration::unmixed(self.key, words[0]);
        let own = self.entries.get(index as usize)?;
        let number = Registration { index, generation: own.generation };
        // Both words as a whole, so that the time says nothing about how much of a guess was right.
        let right = words[0].ct_eq(&number.mixed(self.key)) & words[1].ct_eq(&own.secret);
        (bool::from(right) && own.memory.is_some()).then_some((number, own))
    }

    /// The memory of a registration found before, if it still lives.
    #[inline]
    pub(super) fn living(&self, number: Registration) -> Option<&Memory> {
        let own = self.entries.get(number.index as usize)?;
        own.memory.as_ref().filter(|_| own.generation == number.generation)
    }

    /// The memory that a peer's operation names, if it may do this to all of it.
    ///
    /// # Errors
    ///
    /// Handle, right or range do not allow it.
    #[inline]
    pub(super) fn resolve(&self, target: &Target, right: Rights) -> Result<&Memory, Failure> {
        let (_, own) = self.named(target.handle).ok_or(Failure::RemoteHandle)?;
        let memory = own.memory.as_ref().ok_or(Failure::RemoteHandle)?;
        let inside = target.offset.checked_add(target.len).is_some_and(|end| end <= memory.len());
        if inside && own.rights.has(right) { Ok(memory) } else { Err(Failure::RemoteHandle) }
    }

    /// The system could not read a piece.
    #[cold]
    pub(super) fn note_fault(&mut self, piece: Piece) {
        let is_registered =
            self.entries.iter().any(|own| own.memory.as_ref().is_some_and(|memory| piece.touches(memory)));
        if is_registered && self.faults.len() < MOST_FAULTS {
            self.faults.push(piece);
        }
    }

    /// Refuses a piece that the system could not read when it was last sent.
    ///
    /// # Errors
    ///
    /// It could not.
    #[inline]
    pub(super) fn check(&mut self, piece: Piece) -> Result<Piece, Failure> {
        if self.faults.is_empty() { Ok(piece) } else { self.check_faults(piece) }
    }

    #[cold]
    fn check_faults(&mut self, piece: Piece) -> Result<Piece, Failure> {
        match self.faults.iter().position(|fault| fault.overlaps(&piece)) {
            Some(at) => {
                self.faults.swap_remove(at);
                Err(Failure::Copy)
            }
            None => Ok(piece),
        }
    }

    /// Whether peers may touch anything.
    #[inline]
    pub(super) fn is_exposed(&self) -> bool {
        self.exposed > 0
    }

    /// Ends all registrations.
    pub(super) fn clear(&mut self) {
        for own in &mut self.entries {
            own.memory = None;
        }
        self.exposed = 0;
    }
}
