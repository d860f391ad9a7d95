//! The registrations of an endpoint: memory for RMA by peers and for its own RMA.

use cci_mem::memory::{Memory, Span};
use cci_proto::engine::Target;
use cci_proto::{Failure, RegisterError, Registration, Rights, RmaHandle, Time};
use cci_transport::{Connection, RegistrationTable};

/// A period in which frames of a registration are copied before their check: this many frames, and
/// all until this time.
#[derive(Clone, Copy, Default)]
struct CopyPeriod {
    frames: u32,
    until: Time,
    /// How often the next period is doubled.
    doublings: u32,
}

/// Frames that are copied after a retransmission from their registration, and for how long at
/// least, microseconds.
const COPIED_FRAMES: u32 = 4096;
const COPIED_FOR: u64 = 1_000_000;
/// Most doublings: each period is twice as long as the last. Memory that keeps changing loses a
/// frame after each period, which is retransmitted only after a timeout if it was the last frame.
const MOST_DOUBLINGS: u32 = 6;

/// The name of a connection among registrations.
fn name(connection: &Connection) -> u64 {
    connection.place().into()
}

/// Registered memory that a frame is to carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameMemory {
    pub(super) number: Registration,
    pub(super) span: Span,
    /// Somebody changes it, perhaps, so that a check is to be of a copy.
    pub(super) is_changing: bool,
}

/// The registrations.
pub(super) struct Registrations {
    table: RegistrationTable<CopyPeriod>,
    /// Registrations with rights for peers.
    exposed: usize,
    /// What the system could not read. Each fails the next operation that sends a byte of
    /// it, once, because the program may have mapped the memory again.
    faults: Vec<Span>,
    /// The time of the frames that the engine builds now.
    pub(super) now: Time,
}

/// Most recorded faults. One that is not recorded occurs again.
const MOST_FAULTS: usize = 64;

impl Registrations {
    /// Empty; `key` is the endpoint's own and random.
    pub(super) fn new(key: u64) -> Self {
        Self { table: RegistrationTable::new(key), exposed: 0, faults: Vec::new(), now: Time(0) }
    }

    /// Registers memory.
    ///
    /// # Errors
    ///
    /// Those of [`RegistrationTable::register`].
    pub(super) fn register(
        &mut self,
        memory: Memory,
        rights: Rights,
        only: Option<&Connection>,
    ) -> Result<RmaHandle, RegisterError> {
        let (_, handle) = self.table.register(memory, rights, only.map(name), CopyPeriod::default())?;
        self.exposed += usize::from(rights != Rights::NONE);
        Ok(handle)
    }

    /// Registers memory by a handle that another way of the endpoint has given.
    ///
    /// # Errors
    ///
    /// Those of [`RegistrationTable::adopt`].
    pub(super) fn adopt(&mut self, handle: &RmaHandle, memory: Memory, rights: Rights) -> Result<(), RegisterError> {
        self.table.adopt(handle, memory, rights, CopyPeriod::default())?;
        self.exposed += usize::from(rights != Rights::NONE);
        Ok(())
    }

    /// Ends a registration; its memory, for a last look.
    ///
    /// # Errors
    ///
    /// No such registration.
    pub(super) fn deregister(&mut self, handle: &RmaHandle) -> Result<Memory, RegisterError> {
        let (rights, memory) = self.table.deregister(handle)?;
        self.exposed -= usize::from(rights != Rights::NONE);
        self.forget_faults(&memory);
        Ok(memory)
    }

    /// Ends a registration without rights; its memory, for a last look.
    pub(super) fn end(&mut self, number: Registration) -> Option<Memory> {
        let memory = self.table.remove(number)?;
        self.forget_faults(&memory);
        Some(memory)
    }

    /// What is registered at these addresses from now on is other memory.
    fn forget_faults(&mut self, memory: &Memory) {
        self.faults.retain(|fault| !fault.touches(memory));
    }

    /// The living registration that a handle names, if an operation of this connection may use it.
    pub(super) fn find(&self, handle: &RmaHandle, of: &Connection) -> Option<(Registration, &Memory)> {
        let (number, entry) = self.table.find(handle.name())?;
        Some((number, entry.memory_for(name(of))?))
    }

    /// The memory of a registration found before, if it still lives.
    #[inline]
    pub(super) fn living(&self, number: Registration) -> Option<&Memory> {
        self.table.get(number)?.memory()
    }

    /// The memory that an operation of the peer of the connection at this place names, if it may do
    /// this to all of it.
    ///
    /// # Errors
    ///
    /// Handle, connection, right or range do not allow it.
    #[inline]
    pub(super) fn resolve(
        &self,
        place: u32,
        target: &Target,
        right: Rights,
    ) -> Result<(Registration, &Memory), Failure> {
        let (number, memory) = self.resolve_again(target, right)?;
        let is_served = self.table.get(number).is_some_and(|entry| entry.serves(place.into()));
        if is_served { Ok((number, memory)) } else { Err(Failure::RemoteHandle) }
    }

    /// As `resolve`, of an operation that it has allowed before.
    #[inline]
    pub(super) fn resolve_again(&self, target: &Target, right: Rights) -> Result<(Registration, &Memory), Failure> {
        let (number, entry) = self.table.find(target.handle).ok_or(Failure::RemoteHandle)?;
        let memory = entry.memory().ok_or(Failure::RemoteHandle)?;
        if memory.contains(target.offset, target.len) && entry.rights().has(right) && !entry.is_orphaned() {
            Ok((number, memory))
        } else {
            Err(Failure::RemoteHandle)
        }
    }

    /// Records what the system could not read.
    #[cold]
    pub(super) fn note_fault(&mut self, span: Span) {
        let is_registered =
            self.table.iter().any(|(_, entry)| entry.memory().is_some_and(|memory| span.touches(memory)));
        if is_registered && self.faults.len() < MOST_FAULTS {
            self.faults.push(span);
        }
    }

    /// Memory of this registration for a frame, unless the system could not read it when it was
    /// last sent.
    ///
    /// # Errors
    ///
    /// It could not.
    #[inline]
    pub(super) fn check(&mut self, number: Registration, span: Span) -> Result<FrameMemory, Failure> {
        let memory = FrameMemory { number, span, is_changing: self.is_copied(number) };
        if self.faults.is_empty() { Ok(memory) } else { self.check_faults(memory) }
    }

    /// Begins a period in which frames of this registration are copied before their check. A frame
    /// was lost, perhaps because its memory changed between the check and the system's copy.
    #[cold]
    pub(super) fn copy_first(&mut self, number: Registration) {
        let now = self.now;
        let Some(entry) = self.table.get_mut(number) else { return };
        let CopyPeriod { frames, until, doublings } = entry.state;
        // A frame that was copied was lost for another reason.
        let is_over = frames == 0 && now >= until && until > Time(0);
        let doublings = (doublings + u32::from(is_over)).min(MOST_DOUBLINGS);
        entry.state = CopyPeriod {
            frames: COPIED_FRAMES << doublings,
            until: now.plus_micros(COPIED_FOR << doublings),
            doublings,
        };
    }

    /// Whether the next frame of this registration must be copied. Counts the frame.
    #[inline]
    fn is_copied(&mut self, number: Registration) -> bool {
        let now = self.now;
        let Some(entry) = self.table.get_mut(number) else { return false };
        let CopyPeriod { frames, until, .. } = &mut entry.state;
        let is_copied = *frames > 0 || now < *until;
        *frames = frames.saturating_sub(1);
        is_copied
    }

    #[cold]
    fn check_faults(&mut self, memory: FrameMemory) -> Result<FrameMemory, Failure> {
        match self.faults.iter().position(|fault| fault.overlaps(&memory.span)) {
            Some(at) => {
                self.faults.swap_remove(at);
                Err(Failure::Copy)
            }
            None => Ok(memory),
        }
    }

    /// Takes the registrations for this connection, which has ended, from everybody.
    pub(super) fn orphan(&mut self, connection: &Connection) {
        self.table.orphan(name(connection));
    }

    /// Whether peers may touch anything.
    #[inline]
    pub(super) fn is_exposed(&self) -> bool {
        self.exposed > 0
    }

    /// Ends all registrations.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.exposed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{COPIED_FOR, COPIED_FRAMES, MOST_DOUBLINGS, Registrations};
    use cci_mem::arena::SharedMemory;
    use cci_proto::{Rights, Time};
    use cci_transport::Connection;

    #[test]
    fn frames_are_copied_for_a_while_after_one_was_sent_again() {
        let mut registry = Registrations::new(7);
        let memory = SharedMemory::new(4096).expect("memory");
        let of = Connection::default();
        let [first, other] = [(); 2].map(|()| {
            let handle = registry.register(memory.memory(), Rights::NONE, None).expect("registered");
            registry.find(&handle, &of).expect("it is there").0
        });
        let span = memory.memory().span(0, 4096).expect("inside");
        let is_copied =
            |registry: &mut Registrations, number| registry.check(number, span).is_ok_and(|memory| memory.is_changing);
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
        let handle = registry.register(memory.memory(), Rights::NONE, None).expect("registered");
        let third = registry.find(&handle, &of).expect("it is there").0;
        registry.copy_first(third);
        registry.now = registry.now.plus_micros(COPIED_FOR);
        (0..COPIED_FRAMES).for_each(|_| assert!(is_copied(&mut registry, third)));
        assert!(!is_copied(&mut registry, third), "each registration has periods of its own");
    }
}
