//! Events of objects that wait for a call or for a callback, and callbacks with theirs.

use crate::types::{Callback, Then};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

/// Events of an object that nobody has taken, at most.
const MOST_EVENTS: usize = 1024;

/// Events that wait for a call or for a callback.
pub(crate) struct Notices<E> {
    pub(crate) events: VecDeque<E>,
    pub(crate) callback: Option<Callback<E>>,
}

impl<E> Notices<E> {
    pub(crate) fn new() -> Self {
        Self { events: VecDeque::new(), callback: None }
    }

    pub(crate) fn push(&mut self, event: E) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// What has callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Segment(u32, u64),
    Remote(u64),
    Interrupt(u32, u64),
    Queue(u64),
    Connecting(u64),
}

/// Takes the callback from an object.
pub(crate) fn retire<E: 'static>(retired: &mut Vec<Box<dyn Send>>, notices: &mut Notices<E>) {
    if let Some(callback) = notices.callback.take() {
        retired.push(Box::new(callback));
    }
}

/// A callback, with its event.
pub(crate) type Call = Box<dyn FnOnce() -> Then + Send>;

/// The next event of an object that has a callback.
pub(crate) fn call_of<E: Send + 'static>(notices: &mut Notices<E>) -> Option<Call> {
    let callback = Arc::clone(notices.callback.as_ref()?);
    let event = notices.events.pop_front()?;
    Some(Box::new(move || {
        let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
        callback(event)
    }))
}
