//! Calls that wait for mirrors.

use crate::errors::Error;
use crate::mirror::memory::{BLOCK, Mirror, Sent};
use crate::mirror::reading::Load;
use crate::mirror::state::Twin;
use crate::shared::Shared;
use crate::state::State;
use std::ops::Range;
use std::time::{Duration, Instant};

impl Shared {
    /// Sends what the program has changed in a mirror.
    pub(crate) fn flush_mirror(&self, token: u64, is_confirmed: bool) -> Sent {
        let (mut pass, mut asked) = (None, None);
        let sent = self.drive(|state| {
            let step = |state: &mut State, twin: &mut Twin| {
                if !state.own_pass(self.endpoint(), twin, (&mut pass, is_confirmed)) {
                    return None;
                }
                if !is_confirmed {
                    return Some(Sent::All);
                }
                if !twin.failed.is_empty() && twin.pass.is_none() {
                    // Sent again by another pass.
                    (pass, asked) = (None, None);
                    return None;
                }
                let asked = *asked.get_or_insert_with(|| state.ask(self.endpoint(), twin));
                (twin.patches.confirmed >= asked).then_some(Sent::All)
            };
            state.with_twin(token, step).unwrap_or(Some(Sent::Gone))
        });
        match sent {
            Some(sent) => sent,
            None if self.lock().is_ok() => Sent::Late,
            None => Sent::Gone,
        }
    }

    /// Waits until owners have what the program has stored to all mirrors. No owner that is late
    /// keeps what is of others from being sent. False: one is late, or it was long.
    pub(crate) fn confirm_mirrors(&self, limit: Duration) -> bool {
        let Ok(tokens) = self.with(|state| Ok(state.mirrors.all.keys().copied().collect::<Vec<_>>())) else {
            return true;
        };
        let until = Instant::now() + limit;
        // One that has ended meanwhile has nobody to wait for.
        let pass = |is_confirmed| {
            let is_sent = |token| Instant::now() < until && self.flush_mirror(token, is_confirmed) != Sent::Late;
            tokens.iter().filter(|token| !is_sent(**token)).count() == 0
        };
        pass(false) & pass(true)
    }

    /// Reads the blocks of a segment that have these bytes into its mirror.
    pub(crate) fn load_mirror(&self, mirror: &Mirror, range: Range<usize>) -> Result<(), Error> {
        let mut load = Load::new(range.start / BLOCK..range.end.div_ceil(BLOCK));
        let loaded = self.drive(|state| {
            let step = |state: &mut State, twin: &mut Twin| state.load_step(self.endpoint(), twin, &mut load);
            state.with_twin(mirror.token, step).unwrap_or(Some(Err(Error::SegmentNotConnected)))
        });
        match loaded {
            Some(loaded) => loaded,
            None if self.lock().is_ok() => Err(Error::Timeout),
            None => Err(Error::NotInitialized),
        }
    }

    /// Sends what the program has changed in mirrors of the owner of an interrupt, before the
    /// message.
    pub(crate) fn flush_for_trigger(&self, attachment: u64) {
        let tokens: Vec<(u64, bool)> = {
            let Ok(state) = self.lock() else { return };
            let Some(partner) = state.attachments.get(&attachment).map(|of| of.partner) else { return };
            // The hosts of a group have other links than this one: they are to have it before.
            let found = state.mirrors.all.values().filter(|twin| twin.partner == partner || twin.group.is_some());
            found.map(|twin| (twin.mirror.token, twin.group.is_some())).collect()
        };
        for (token, is_confirmed) in tokens {
            // What is late comes behind; sequences report it.
            let _ = self.flush_mirror(token, is_confirmed);
        }
    }
}
