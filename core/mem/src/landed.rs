//! Messages that stand in memory of their own, as long as the program has their events.

use crate::memory::Memory;
use crate::pages::SharedPages;
use crate::slot::{Access, Slot, State};
use std::sync::Arc;

/// A message in the first `len` bytes of these pages, which have one byte more.
#[derive(Debug)]
pub struct Message<W> {
    /// The pages.
    pub pages: Arc<SharedPages>,
    /// Bytes of the message.
    pub len: u32,
    /// Who has written it.
    pub writer: W,
}

/// The messages that are shown. Private to the holder of the endpoint's lock.
pub struct Landed<C: 'static, E: 'static, W>(Vec<(Message<W>, &'static Slot<C, E>)>);

impl<C: 'static, E: 'static, W> Default for Landed<C, E, W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Sync, E: Sync, W> Landed<C, E, W> {
    /// Fills in an event whose payload is this message; the byte after it becomes a zero. With
    /// [`Access::Private`] nobody else writes the pages any more. False, and nothing is shown: the
    /// pages are too short.
    #[must_use]
    pub fn show(
        &mut self,
        slot: &'static Slot<C, E>,
        kind: u32,
        message: Message<W>,
        access: Access,
        third: u64,
    ) -> bool {
        let memory = Memory::of_pages(&message.pages, usize::MAX);
        if !memory.copy_in(message.len.into(), &[0]) {
            return false;
        }
        let payload = std::ptr::with_exposed_provenance_mut(memory.start());
        // SAFETY: `len` bytes and one more, which live as long as the entry, until the slot shows
        // them no more; the contract above.
        unsafe { slot.fill_payload(kind, payload, access, message.len, third) };
        self.0.push((message, slot));
        true
    }

    /// Passes the messages whose events are back to `free`.
    pub fn take_back(&mut self, mut free: impl FnMut(Message<W>)) {
        let mut at = 0;
        while let Some((message, slot)) = self.0.get(at) {
            // A slot that is taken again shows the old address until it is filled in.
            let shows = slot.words()[0] == message.pages.start().expose_provenance() as u64;
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

    fn message(len: u32) -> Message<char> {
        let pages = Arc::new(SharedPages::new(101).expect("memory"));
        assert!(Memory::of_pages(&pages, 101).copy_in(0, &[7; 101]));
        Message { pages, len, writer: 'w' }
    }

    #[test]
    fn memory_comes_back_with_its_event() {
        let (mut landed, slot) = (Landed::default(), slot());
        slot.set_state(State::Taken);
        assert!(landed.show(slot, 2, message(100), Access::Private, 5));
        landed.take_back(|_| panic!("the event waits"));
        slot.set_state(State::Borrowed);
        landed.take_back(|_| panic!("the program has it"));
        let mut copy = [0; 200];
        // SAFETY: the event is borrowed, and is returned below; there is no other thread.
        let len = unsafe { slot.copy_payload(&mut copy) };
        assert_eq!((len, copy[99], copy[100]), (100, 7, 0));
        assert!(slot.give_back());
        let mut freed = Vec::new();
        landed.take_back(|message| freed.push((message.len, message.writer, message.pages.len())));
        assert_eq!(freed, [(100, 'w', 101)]);
    }

    #[test]
    fn a_slot_that_shows_something_else_holds_nothing() {
        let (mut landed, slot) = (Landed::default(), slot());
        slot.set_state(State::Borrowed);
        assert!(landed.show(slot, 2, message(8), Access::Shared, 5));
        slot.fill_inline(2, 3, 5, |_| 0);
        let mut freed = 0;
        landed.take_back(|_| freed += 1);
        assert_eq!(freed, 1);
        assert!(!landed.show(slot, 2, message(101), Access::Shared, 5), "no room for the zero");
    }
}
