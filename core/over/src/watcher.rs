//! The thread that waits in a library while the program sleeps on the OS handle.
//!
//! It waits for one thing, hands it over, writes the waker, and parks.

use cci_transport::{PollSet, lock, spawn_quiet_thread};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

const STACK: usize = 128 << 10;

/// A wait in a library.
pub trait Wait: Send + Sync + 'static {
    /// What it returns.
    type Found: Send;

    /// Blocks until something has happened; `None`: the endpoint is closed.
    fn wait(&self) -> Option<Self::Found>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Parked,
    Watching,
    /// The endpoint closes, or is closed.
    Ended,
}

struct Watch<F> {
    state: State,
    handed: VecDeque<F>,
}

struct Shared<W: Wait> {
    wait: W,
    handle: Arc<PollSet>,
    watch: Mutex<Watch<W::Found>>,
    changed: Condvar,
}

impl<W: Wait> Shared<W> {
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
            let found = self.wait.wait();
            watch = lock(&self.watch);
            match found {
                Some(found) => watch.handed.push_back(found),
                None => watch.state = State::Ended,
            }
            if watch.state == State::Watching {
                watch.state = State::Parked;
            }
            self.handle.write_waker();
        }
    }
}

/// The thread of an endpoint that waits in its library. It starts when a program first sleeps.
pub struct Watcher<W: Wait> {
    shared: Arc<Shared<W>>,
    name: &'static str,
    thread: Option<JoinHandle<()>>,
    /// The thread may wait, or have handed something over.
    is_away: bool,
}

impl<W: Wait> fmt::Debug for Watcher<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watcher({})", self.name)
    }
}

impl<W: Wait> Watcher<W> {
    /// Creates a watcher without a thread. `name` is that of its thread.
    pub fn new(wait: W, name: &'static str, handle: Arc<PollSet>) -> Self {
        let watch = Mutex::new(Watch { state: State::Parked, handed: VecDeque::new() });
        Self {
            shared: Arc::new(Shared { wait, handle, watch, changed: Condvar::new() }),
            name,
            thread: None,
            is_away: false,
        }
    }

    /// Takes what the thread has handed over: `Some(None)` while it still waits; `None` where it is
    /// parked and has nothing.
    #[inline]
    pub fn take(&mut self) -> Option<Option<W::Found>> {
        if self.is_away { self.take_back() } else { None }
    }

    #[cold]
    fn take_back(&mut self) -> Option<Option<W::Found>> {
        let mut watch = lock(&self.shared.watch);
        let found = watch.handed.pop_front();
        self.is_away = found.is_some() || watch.state == State::Watching;
        self.is_away.then_some(found)
    }

    /// Whether the thread waits.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.is_away && lock(&self.shared.watch).state == State::Watching
    }

    /// Drains the waker, and has the thread wait. False: something was handed over, or there is no
    /// thread to be had.
    pub fn watch(&mut self) -> bool {
        let shared = &self.shared;
        if self.thread.is_none() {
            let runs = Arc::clone(shared);
            self.thread = spawn_quiet_thread(self.name, STACK, move || runs.run()).ok();
        }
        let mut watch = lock(&shared.watch);
        if self.thread.is_none() || watch.state == State::Ended || !watch.handed.is_empty() {
            return false;
        }
        // Before the thread can write it again.
        shared.handle.drain_waker();
        self.is_away = true;
        if watch.state == State::Parked {
            watch.state = State::Watching;
            shared.changed.notify_one();
        }
        true
    }

    /// Ends the thread. `close` ends its wait.
    pub fn end(&mut self, close: impl FnOnce()) {
        lock(&self.shared.watch).state = State::Ended;
        self.shared.changed.notify_one();
        close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
