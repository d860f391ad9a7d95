//! Waiting for other ranks: looking a few times, then asleep in the endpoint.

use crate::fault::Fault;
use crate::layout::SLEEPING;
use crate::world::World;
use cci::PollError;
use cci_mem::sync::{Ordering, fence, spin};
use std::time::Duration;

/// How often a wait looks before it sleeps.
const LOOKS: u32 = 4000;
/// The same where ranks share a processor.
const LOOKS_SHARED: u32 = 20;
/// Looks between two polls.
const LOOKS_A_POLL: u32 = 200;

/// The longest sleep of a wait that its peers end by a message.
const LONG: Duration = Duration::from_millis(200);
/// The first and the longest sleep of one that ends unannounced: for bytes that are stored.
const SHORT: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));

/// Who ends a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// A peer, which wakes this rank.
    Announced,
    /// A peer, which does not look whether this rank sleeps.
    Unannounced,
}

impl World {
    /// Waits until `done` returns true, and serves other ranks meanwhile.
    ///
    /// # Errors
    ///
    /// A rank has ended without leaving, or the endpoint has failed.
    pub(crate) fn wait_until(&self, ends: Ends, done: impl Fn() -> bool) -> Result<(), Fault> {
        let looks = if cci::is_oversubscribed() { LOOKS_SHARED } else { LOOKS };
        for look in 1..=looks {
            if done() {
                return Ok(());
            }
            spin();
            if look % LOOKS_A_POLL == 0 {
                self.poll()?;
            }
        }
        let mut unannounced = SHORT.0;
        loop {
            self.poll()?;
            let sleeping = self.windows.own_word(SLEEPING);
            sleeping.store(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let ended = done();
            let slept = match self.lost() {
                _ if ended => Ok(()),
                Some(rank) => {
                    self.blame(rank);
                    Err(Fault::Gone { rank })
                }
                None if ends == Ends::Announced => self.nap(Some(LONG)),
                None => self.nap(Some(unannounced)),
            };
            self.windows.own_word(SLEEPING).store(0, Ordering::Release);
            slept?;
            if ended || done() {
                return Ok(());
            }
            unannounced = (unannounced * 2).min(SHORT.1);
        }
    }

    /// Sleeps until something has come, and serves it; for `limit`, or a while, at most.
    pub(crate) fn nap(&self, limit: Option<Duration>) -> Result<(), Fault> {
        match self.endpoint.wait(Some(limit.unwrap_or(LONG))) {
            Ok(Some(event)) => self.handle(event),
            Ok(None) | Err(PollError::NoBuffers) => {}
            Err(why) => return Err(Fault::Endpoint(why.to_string())),
        }
        self.poll()
    }
}
