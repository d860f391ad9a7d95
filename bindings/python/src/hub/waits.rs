//! Waits on a hub: each looks, spins, then sleeps, and serves the other hubs of its thread.

use super::inner::Hub;
use super::serving::Others;
use super::state::Changes;
use crate::errors::Refusal;
use crate::waiting::{Deadline, SLICE, spin};
use cci::{Endpoint, Unusable};
use pyo3::prelude::*;
use std::time::Duration;

/// After so many events a wait looks at signals and at its deadline.
const FOUND: u32 = 64;

impl Hub {
    /// Looks for an event for a while, and takes it over.
    pub(super) fn spin(&self, py: Python<'_>, endpoint: &Endpoint, time: Duration, changes: &mut Changes) -> bool {
        // Without a buffer nothing comes; the next look finds out again.
        matches!(spin(py, &self.sleepers, time, || self.take(endpoint, changes)), Ok(Some(())))
    }

    /// One look for an event. False: there is none now.
    fn look(&self, py: Python<'_>, endpoint: &Endpoint, changes: &mut Changes) -> PyResult<bool> {
        let found = self.take(endpoint, changes);
        self.looked(py, endpoint, found.map(|found| found.is_some()), changes)
    }

    /// Takes an event over: looks, and at first spins. False: none has come.
    fn find(
        &self,
        py: Python<'_>,
        endpoint: &Endpoint,
        deadline: &mut Deadline,
        has_looked: &mut bool,
    ) -> PyResult<bool> {
        let mut changes = Changes::default();
        let mut is_found = self.look(py, endpoint, &mut changes)?;
        if !is_found && !*has_looked {
            let left = deadline.left().map_or(self.spin, |left| left.min(self.spin));
            is_found = self.spin(py, endpoint, left, &mut changes);
        }
        *has_looked = !is_found;
        if is_found && !changes.keys.is_empty() {
            self.sleepers.wake();
        }
        Ok(is_found)
    }

    /// Repeats `attempt` until it gives something, and makes progress in between; `None`: the time
    /// is over. Looks, then sleeps, without the interpreter. A signal's handler may raise.
    pub(super) fn wait<T>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        mut attempt: impl FnMut() -> PyResult<Option<T>>,
    ) -> PyResult<Option<T>> {
        let mut deadline = Deadline::new(limit);
        let mut has_looked = false;
        let mut found = 0_u32;
        loop {
            // First: what was closed tells so by itself.
            if let Some(done) = attempt()? {
                return Ok(Some(done));
            }
            let Some(endpoint) = self.opened.share() else {
                // It was closed after the attempt, which may say it in its own way.
                return attempt()?.map_or_else(|| Err(Unusable::Closed.raise(py)), |done| Ok(Some(done)));
            };
            if self.find(py, &endpoint, &mut deadline, &mut has_looked)? {
                found = found.wrapping_add(1);
                // Events of others that do not end hold up neither signals nor the deadline.
                if found.is_multiple_of(FOUND) {
                    py.check_signals()?;
                    if deadline.left() == Some(Duration::ZERO) {
                        return attempt();
                    }
                }
                continue;
            }
            let others = Others::beside(&self.0);
            let is_served = others.serve(py);
            py.check_signals()?;
            let left = deadline.left();
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            if !is_served && let Some(done) = self.sleep(py, &endpoint, left, &others, &mut attempt)? {
                return Ok(Some(done));
            }
        }
    }

    /// Sleeps until something comes, here or for others of this thread, unless `attempt` gives
    /// something first.
    fn sleep<T>(
        &self,
        py: Python<'_>,
        endpoint: &Endpoint,
        left: Option<Duration>,
        others: &Others,
        attempt: &mut impl FnMut() -> PyResult<Option<T>>,
    ) -> PyResult<Option<T>> {
        let sleeper = self.sleepers.announce(py, endpoint)?;
        let beside = others.announce(py);
        // A close before the announcement woke nobody.
        if self.opened.share().is_none() {
            return Ok(None);
        }
        // Nor did what came before it.
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        let mut changes = Changes::default();
        if self.look(py, endpoint, &mut changes)? {
            self.sleepers.wake();
            return Ok(None);
        }
        drop(changes);
        if others.serve(py) {
            return Ok(None);
        }
        let left = if others.are_more { Some(left.map_or(SLICE, |left| left.min(SLICE))) } else { left };
        let waiting = self.sleepers.enter();
        py.detach(|| sleeper.sleep(left, &beside));
        drop(waiting);
        py.check_signals()?;
        Ok(None)
    }
}
