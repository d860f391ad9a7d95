//! Several events, taken by one lock.

use super::put_back;
use cci_proto::PollError;
use cci_transport::{Endpoint, Slot};

/// Events that are taken by one lock: so many pointers lie on the stack. More would leave the cache
/// and the ways that are short while few slots are in use.
const BATCH: usize = 16;

/// Hands the next events to `handler`, outside the lock, `most` at most, and returns how many it
/// has seen. They are its own. Once it returns false it is not called again: the endpoint is gone,
/// and with it what it has not seen. If it panics, that is given back.
///
/// # Errors
///
/// As `next_event`; then the handler has not been called.
#[inline]
pub fn poll(
    endpoint: &Endpoint,
    most: usize,
    mut handler: impl FnMut(&'static Slot) -> bool,
) -> Result<usize, PollError> {
    let mut total = 0;
    while total < most {
        let asked = BATCH.min(most - total);
        let mut batch = Batch::default();
        let found = match endpoint.next_events(asked, |slot| batch.push(slot)) {
            Err(error) if total == 0 => return Err(error),
            // The next call tells, if it is still so.
            Err(_) => break,
            Ok(found) => found,
        };
        while let Some(slot) = batch.next() {
            total += 1;
            if !handler(slot) {
                std::mem::forget(batch);
                return Ok(total);
            }
        }
        if found < asked {
            break;
        }
    }
    Ok(total)
}

/// Events that the program has got and not seen.
#[derive(Default)]
struct Batch {
    events: [Option<&'static Slot>; BATCH],
    next: usize,
    end: usize,
}

impl Batch {
    #[inline(always)]
    fn push(&mut self, slot: &'static Slot) {
        self.events[self.end] = Some(slot);
        self.end += 1;
    }
}

impl Iterator for Batch {
    type Item = &'static Slot;

    #[inline(always)]
    fn next(&mut self) -> Option<&'static Slot> {
        let slot = self.events[..self.end].get(self.next).copied().flatten();
        self.next += 1;
        slot
    }
}

impl Drop for Batch {
    #[expect(unsafe_code, reason = "as of `put_back`")]
    fn drop(&mut self) {
        // SAFETY: nobody has seen them.
        self.for_each(|slot| unsafe { put_back(slot) });
    }
}
