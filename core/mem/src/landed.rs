//! Messages that stand in memory of their own, as long as the program has their events.

use crate::memory::{HeapBytes, Memory};
use crate::slot::{Access, Slot, State};
use std::sync::Arc;

/// The messages that are shown. Private to the holder of the endpoint's lock.
pub struct Landed<C: 'static, E: 'static>(Vec<(Arc<HeapBytes>, &'static Slot<C, E>)>);

impl<C: 'static, E: 'static> Default for Landed<C, E> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Sync, E: Sync> Landed<C, E> {
    /// Fills in an event whose payload is these bytes but the last, which becomes a zero. Nobody else writes them any more. False,
    /// and nothing is shown: there is no last byte, or an event cannot say so many.
    #[must_use]
    pub fn show(&mut self, slot: &'static Slot<C, E>, kind: u32, bytes: Arc<HeapBytes>, third: u64) -> bool {
        let memory = Memory::of_bytes(&bytes);
        let Some(len) = memory.len().checked_sub(1).and_then(|len| u32::try_from(len).ok()) else { return false };
        // Inside, as the last byte.
        let _ = memory.copy_in(len.into(), &[0]);
        let payload = std::ptr::with_exposed_provenance_mut(memory.start());
        self.0.push((bytes, slot));
        // SAFETY: `len` bytes and one more, which live as long as the entry, until the slot shows them no more; the contract above.
        unsafe { slot.fill_payload(kind, payload, Access::Private, len, third) };
        true
    }

    /// Passes the memory of the messages whose events are back to `free`.
    pub fn take_back(&mut self, mut free: impl FnMut(Arc<HeapBytes>)) {
        let mut at = 0;
        while let Some((bytes, slot)) = self.0.get(at) {
            // A slot that is taken again shows the old address until it is filled in.
            let shows = slot.words()[0] == Memory::of_bytes(bytes).start() as u64;
            if shows && matches!(slot.state(), State::Taken | State::Borrowed) {
                at += 1;
            } else {
                free(self.0.swap_remove(at).0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU32;

    fn slot() -> &'static Slot<AtomicU32, AtomicU32> {
        let regions = Box::leak(Box::new(crate::region::Regions::<Slot<AtomicU32, AtomicU32>>::new()));
        &regions.take(1).expect("memory")[0]
    }

    #[test]
    fn memory_comes_back_with_its_event() {
        let (mut landed, slot) = (Landed::default(), slot());
        slot.set_state(State::Taken);
        assert!(landed.show(slot, 2, Arc::new(HeapBytes::new(vec![7; 101])), 5));
        landed.take_back(|_| panic!("the event waits"));
        slot.set_state(State::Borrowed);
        landed.take_back(|_| panic!("the program has it"));
        let mut copy = [0; 200];
        assert_eq!((slot.copy_payload(&mut copy), copy[99], copy[100]), (100, 7, 0));
        assert!(slot.give_back());
        let mut freed = 0;
        landed.take_back(|bytes| freed += Memory::of_bytes(&bytes).len());
        assert_eq!(freed, 101);
    }

    #[test]
    fn a_slot_that_shows_something_else_holds_nothing() {
        let (mut landed, slot) = (Landed::default(), slot());
        slot.set_state(State::Borrowed);
        assert!(landed.show(slot, 2, Arc::new(HeapBytes::new(vec![7; 9])), 5));
        slot.fill_inline(2, 3, 5, |_| 0);
        let mut freed = 0;
        landed.take_back(|_| freed += 1);
        assert_eq!(freed, 1);
        assert!(!landed.show(slot, 2, Arc::new(HeapBytes::new(Vec::new())), 5), "no room for the zero");
    }
}
