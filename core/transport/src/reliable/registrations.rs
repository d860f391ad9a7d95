//! This endpoint's registrations: what peers may touch by frames, and what its own RMA copies from and to.

use cci_mem::memory::{Memory, Piece};
use cci_proto::engine::Target;
use cci_proto::{Failure, RegisterError, Registration, Rights, RmaHandle, Time};
use std::collections::VecDeque;
use subtle::ConstantTimeEq;

/// Frames of a registration that are copied before their check: so many, and all up to this time.
#[derive(Clone, Copy, Default)]
struct Copied {
    frames: u32,
    until: Time,
    /// Times that the next of these periods is doubled.
    doublings: u32,
}

/// Frames that are copied after one of their registration was sent again, and for how long at least, microseconds.
const COPIED_FRAMES: u32 = 4096;
const COPIED_FOR: u64 = 1_000_000;
/// Each such period is twice as long as the last, up to so many times: memory that goes on changing loses a frame after each of them,
/// which comes again only after a timeout if it was the last one.
const MOST_DOUBLINGS: u32 = 6;

struct Own {
    copied: Copied,
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
    /// When the frames leave that are asked for now.
    pub(super) now: Time,
}

/// Faults that are remembered. One that is not remembered occurs again.
const MOST_FAULTS: usize = 64;

impl Registry {
    /// Empty; `key` is the endpoint's own and random.
    pub(super) fn new(key: u64) -> Self {
        Self { key, entries: Vec::new(), free: VecDeque::new(), exposed: 0, faults: Vec::new(), now: Time(0) }
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
                let copied = Copied::default();
                self.entries.push(Own { copied, generation: 0, secret: 0, rights: Rights::NONE, memory: None });
                index
            }
        };
        let own = &mut self.entries[index as usize];
        own.generation = own.generation.wrapping_add(1);
        own.copied = Copied::default();
        let len = memory.len();
        (own.secret, own.rights, own.memory) = (secret, rights, Some(memory));
        self.exposed += usize::from(rights != Rights::NONE);
        let number = Registration { index, generation: own.generation };
        Ok(RmaHandle { stuff: [number.mixed(self.key), secret, len, 0] })
    }

    /// HostCtx a registration; its memory, for a last look.
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
    pub(super) fn resolve(&self, target: &Target, right: Rights) -> Result<(Registration, &Memory), Failure> {
        let (number, own) = self.named(target.handle).ok_or(Failure::RemoteHandle)?;
        let memory = own.memory.as_ref().ok_or(Failure::RemoteHandle)?;
        let inside = target.offset.checked_add(target.len).is_some_and(|end| end <= memory.len());
        if inside && own.rights.has(right) { Ok((number, memory)) } else { Err(Failure::RemoteHandle) }
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
    pub(super) fn check(&mut self, number: Registration, piece: Piece) -> Result<Piece, Failure> {
        let piece = if self.is_copied(number.index) { piece.changing() } else { piece };
        if self.faults.is_empty() { Ok(piece) } else { self.check_faults(piece) }
    }

    /// Has the next frames of this registration be copied before their check: one of them was lost, perhaps because its memory
    /// changed between the check and the system's copy.
    #[cold]
    pub(super) fn copy_first(&mut self, number: Registration) {
        let now = self.now;
        let Some(own) = self.entries.get_mut(number.index as usize).filter(|own| own.generation == number.generation)
        else {
            return;
        };
        let Copied { frames, until, doublings } = own.copied;
        // One that was lost although it was copied says nothing about its memory.
        let is_over = frames == 0 && now >= until && until > Time(0);
        let doublings = (doublings + u32::from(is_over)).min(MOST_DOUBLINGS);
        own.copied =
            Copied { frames: COPIED_FRAMES << doublings, until: now.plus_micros(COPIED_FOR << doublings), doublings };
    }

    /// Whether a frame of this registration is to be copied; counts it.
    #[inline]
    fn is_copied(&mut self, index: u32) -> bool {
        let now = self.now;
        let Some(Copied { frames, until, .. }) = self.entries.get_mut(index as usize).map(|own| &mut own.copied) else {
            return false;
        };
        let is_copied = *frames > 0 || now < *until;
        *frames = frames.saturating_sub(1);
        is_copied
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

    /// HostCtx all registrations.
    pub(super) fn clear(&mut self) {
        for own in &mut self.entries {
            own.memory = None;
        }
        self.exposed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{COPIED_FOR, COPIED_FRAMES, MOST_DOUBLINGS, Registry};
    use cci_mem::arena::SharedMemory;
    use cci_proto::{Rights, Time};

    #[test]
    fn frames_are_copied_for_a_while_after_one_was_sent_again() {
        let mut registry = Registry::new(7);
        let memory = SharedMemory::new(4096).expect("memory");
        let [first, other] = [(); 2].map(|()| {
            let handle = registry.register(memory.memory(), Rights::NONE).expect("registered");
            registry.find(&handle).expect("it is there").0
        });
        let piece = memory.memory().piece(0, 4096).expect("inside");
        let is_copied =
            |registry: &mut Registry, number| registry.check(number, piece).is_ok_and(|piece| piece.is_changing());
        assert!(!is_copied(&mut registry, first));
        registry.now = Time(5_000_000_000);
        registry.copy_first(first);
        for _ in 0..COPIED_FRAMES {
            assert!(is_copied(&mut registry, first));
            assert!(!is_copied(&mut registry, other), "it is another registration's");
        }
        assert!(is_copied(&mut registry, first), "a second has not passed");
        registry.now = registry.now.plus_micros(COPIED_FOR);
        assert!(!is_copied(&mut registry, first));
        for period in (1..=MOST_DOUBLINGS).chain([MOST_DOUBLINGS]) {
            registry.copy_first(first);
            registry.copy_first(first);
            registry.now = registry.now.plus_micros(COPIED_FOR << period);
            for _ in 0..COPIED_FRAMES << period {
                assert!(is_copied(&mut registry, first), "so many frames have not left in period {period}");
            }
            assert!(!is_copied(&mut registry, first), "one loss in a period does not make it longer");
        }
        let handle = registry.register(memory.memory(), Rights::NONE).expect("registered");
        let third = registry.find(&handle).expect("it is there").0;
        registry.copy_first(third);
        registry.now = registry.now.plus_micros(COPIED_FOR);
        (0..COPIED_FRAMES).for_each(|_| assert!(is_copied(&mut registry, third)));
        assert!(!is_copied(&mut registry, third), "each registration has periods of its own");
    }
}
