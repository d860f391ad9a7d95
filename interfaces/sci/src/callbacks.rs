//! Callbacks that are due, one that runs, and those that are no more.

use crate::notices::{Call, Source};
use std::collections::VecDeque;

/// The callbacks of a host.
#[derive(Default)]
pub(crate) struct Callbacks {
    pub(crate) ready: VecDeque<Source>,
    /// Calls of callbacks that their objects have no more.
    pub(crate) due: VecDeque<(Source, Call)>,
    /// Whose callback runs.
    pub(crate) running: Option<Source>,
    /// Callbacks that are no more: dropped without the lock, since they may own objects.
    pub(crate) retired: Vec<Box<dyn Send>>,
}

impl Callbacks {
    /// Whether a callback of an object runs, or will.
    pub(crate) fn will_call(&self, source: Source) -> bool {
        self.running == Some(source) || self.due.iter().any(|(of, _)| *of == source)
    }

    /// Calls none any more. What they own may hold the host.
    pub(crate) fn close(&mut self) {
        self.ready.clear();
        self.retired.push(Box::new(std::mem::take(&mut self.due)));
    }

    /// Forgets the calls of an object: its own callback removes it.
    pub(crate) fn forget_calls(&mut self, source: Source) {
        let (gone, due) = std::mem::take(&mut self.due).into_iter().partition(|(of, _)| *of == source);
        self.due = due;
        let gone: VecDeque<_> = gone;
        self.retired.push(Box::new(gone));
    }
}
