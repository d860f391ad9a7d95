//! Waiting for other ranks: looking a few times, then asleep in the endpoint.

use crate::fault::Fault;
use crate::frame::{Ask, Header};
use crate::layout::SLEEPING;
use crate::looks::{LONG, LOOKS, LOOKS_A_POLL, LOOKS_SHARED, SERVED, SHORT};
use crate::world::World;
use cci::PollError;
use cci_mem::announcement::{announce, must_wake, needs_limit, withdraw};
use cci_mem::sync::spin;
use std::time::Duration;

/// Who ends a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// A peer, which looks whether this rank sleeps, and fences before where its pairing is so.
    Announced,
    /// A peer, which looks without a fence of its own.
    Unfenced,
}

impl World {
    /// Waits until `done` returns true, and serves other ranks meanwhile.
    ///
    /// # Errors
    ///
    /// A rank has ended without leaving, or the endpoint has failed.
    pub(crate) fn wait_until(&self, ends: Ends, done: impl Fn() -> bool) -> Result<(), Fault> {
        if done() {
            return Ok(());
        }
        let looks = if cci::is_oversubscribed() { LOOKS_SHARED } else { LOOKS };
        // What is waited for may come by a message, or need this rank's service.
        let looks_a_poll = if self.is_all_mapped.get() { LOOKS_A_POLL } else { 1 };
        let (mut look, mut short) = (0, SHORT.0);
        loop {
            // A sleep in vain has ended with a poll, and is followed by the next one.
            if look < looks {
                while look < looks {
                    if done() {
                        return Ok(());
                    }
                    spin();
                    look += 1;
                    if look.is_multiple_of(looks_a_poll) && self.poll_all()? {
                        look = look.min(looks.saturating_sub(SERVED));
                    }
                }
                self.poll()?;
            }
            announce(self.windows.own_word(SLEEPING), self.pairing);
            let ended = done();
            let slept = match self.lost() {
                _ if ended => Ok(false),
                Some(rank) => {
                    self.blame(rank);
                    Err(Fault::Gone { rank })
                }
                None if needs_limit(ends == Ends::Announced, self.pairing) => self.nap(Some(short)),
                // The limit is for ranks that have ended; no wake-up needs it.
                None => self.nap(Some(LONG)),
            };
            withdraw(self.windows.own_word(SLEEPING));
            if slept? {
                look = looks.saturating_sub(SERVED);
            }
            if ended || done() {
                return Ok(());
            }
            short = (short * 2).min(SHORT.1);
        }
    }

    /// Wakes a rank that sleeps in a wait, if its memory is mapped here: what it waits for has been
    /// written before.
    #[inline]
    pub(crate) fn wake(&self, rank: u32) -> Result<(), Fault> {
        let Some(sleeping) = self.windows.word(rank, SLEEPING) else { return Ok(()) };
        if !must_wake(sleeping) {
            return Ok(());
        }
        let wake = Header { ask: Ask::Wake, number: 0, address: 0 }.emit();
        // One that is gone is noticed by who waits for it.
        match self.send(rank, &wake) {
            Err(Fault::Gone { .. }) => Ok(()),
            sent => sent,
        }
    }

    /// Sleeps until something has come, and serves it; for `limit`, or a while, at most. Whether
    /// something has come.
    pub(crate) fn nap(&self, limit: Option<Duration>) -> Result<bool, Fault> {
        let limit = limit.unwrap_or(LONG);
        let has_come = if let Some(carrier) = &mut *self.carrier.borrow_mut() {
            // All that a peer does comes by it. The end of a peer is seen after the sleep.
            carrier.wait(limit)?
        } else {
            self.sleep(limit)?
        };
        Ok(self.poll_all()? || has_come)
    }

    fn sleep(&self, limit: Duration) -> Result<bool, Fault> {
        match self.endpoint.wait(Some(limit)) {
            Ok(Some(event)) => {
                self.handle(event);
                Ok(true)
            }
            Ok(None) | Err(PollError::NoBuffers) => Ok(false),
            Err(why) => Err(Fault::Endpoint(why.to_string())),
        }
    }
}
