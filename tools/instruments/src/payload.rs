//! The payload of an event, for tests whose crate forbids unsafe code.

use cci_mem::slot::{Slot, State};

/// Copies the payload of an event that a test has taken off the queue and has not returned.
///
/// # Panics
///
/// The program does not borrow the event, or the event has no payload of its length.
pub fn payload<C: Sync, E: Sync>(event: &Slot<C, E>) -> Vec<u8> {
    assert_eq!(event.state(), State::Borrowed, "the event is not the program's");
    let mut bytes = vec![0; event.detail() as usize];
    // SAFETY: the event is borrowed. Tests take, read and return events of an endpoint on one
    // thread, and hand no payload's address on.
    assert_eq!(unsafe { event.copy_payload(&mut bytes) }, bytes.len());
    bytes
}
