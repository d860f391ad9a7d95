//! The thread that waits for an event while the program sleeps on the OS handle.
//!
//! The event queue has one reader at a time: calls of the program while the watcher is parked, the
//! watcher while it watches. It takes one event, hands it over, writes the waker, and parks.

use crate::sys::{Event, Interface};
use cci_transport::{PollSet, lock, spawn_quiet_thread};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

const STACK: usize = 128 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Parked,
    Watching,
    /// The endpoint closes, or the queue is gone.
    Ended,
}

#[derive(Default)]
struct Watch {
    state: State,
    handed: VecDeque<Event>,
}

struct Shared {
    interface: Arc<Interface>,
    queue: u32,
    handle: Arc<PollSet>,
    watch: Mutex<Watch>,
    changed: Condvar,
}

impl Shared {
    fn run(&self) {
        let mut watch = lock(&self.watch);
        loop {
            while watch.state == State::Parked {
                watch = self.changed.wait(watch).unwrap_or_else(PoisonError::into_inner);
            }
            if watch.state == State::Ended {
                return;
            }
            drop(watch);
            let event = self.interface.wait(self.queue);
            watch = lock(&self.watch);
            match event {
                Ok(event) => watch.handed.push_back(event),
                // Freed: the endpoint closes.
                Err(_) => watch.state = State::Ended,
            }
            if watch.state == State::Watching {
                watch.state = State::Parked;
            }
            self.handle.write_waker();
        }
    }
}

/// The reader of an event queue.
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The watcher may have the queue, or have handed an event over.
    is_away: bool,
}

impl Watcher {
    pub(crate) fn new(interface: Arc<Interface>, queue: u32, handle: Arc<PollSet>) -> Self {
        let (watch, changed) = Default::default();
        Self { shared: Arc::new(Shared { interface, queue, handle, watch, changed }), thread: None, is_away: false }
    }

    /// The oldest event. It makes progress, unless the watcher does.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        if self.is_away
            && let Some(found) = self.take_back()
        {
            return found;
        }
        self.shared.interface.event(self.shared.queue).ok().flatten()
    }

    /// What the watcher has handed over; `None`: it is parked, and has nothing.
    #[cold]
    fn take_back(&mut self) -> Option<Option<Event>> {
        let mut watch = lock(&self.shared.watch);
        let event = watch.handed.pop_front();
        self.is_away = event.is_some() || watch.state == State::Watching;
        self.is_away.then_some(event)
    }

    /// Whether the watcher has the queue.
    pub(crate) fn is_watching(&self) -> bool {
        self.is_away && lock(&self.shared.watch).state == State::Watching
    }

    /// Has the watcher watch, and drains the waker. False: an event waits, or there is no thread to
    /// be had.
    pub(crate) fn watch(&mut self) -> bool {
        let shared = &self.shared;
        if self.thread.is_none() {
            let runs = Arc::clone(shared);
            self.thread = spawn_quiet_thread("cci-portals", STACK, move || runs.run());
        }
        let mut watch = lock(&shared.watch);
        if self.thread.is_none() || watch.state == State::Ended || !watch.handed.is_empty() {
            return false;
        }
        // Before the watcher can write it again.
        shared.handle.drain_waker();
        self.is_away = true;
        if watch.state == State::Parked {
            watch.state = State::Watching;
            shared.changed.notify_one();
        }
        true
    }

    /// Ends the thread. The queue is gone afterwards.
    pub(crate) fn end(&mut self) {
        lock(&self.shared.watch).state = State::Ended;
        self.shared.changed.notify_one();
        self.shared.interface.free_queue(self.shared.queue);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
