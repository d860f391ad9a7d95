//! Tasks that wait for a send buffer.

use cci_mem::mutex::lock;
use cci_mem::sync::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// Tasks that wait for room, and how often other tasks have looked for events.
#[derive(Default)]
pub(super) struct Senders {
    /// Counts the looks of tasks. In one order with `are_waiting` (`SeqCst`): either the look finds
    /// the sender, or the sender the look.
    looks: AtomicU64,
    /// Whether `waiting` has entries. Written with its lock held.
    are_waiting: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Senders {
    /// A task has looked for events, or has taken one: there may be room.
    pub(super) fn on_look(&self) {
        self.looks.fetch_add(1, Ordering::SeqCst);
        if self.are_waiting.load(Ordering::SeqCst) {
            let waiting = {
                let mut waiting = lock(&self.waiting);
                self.are_waiting.store(false, Ordering::SeqCst);
                std::mem::take(&mut *waiting)
            };
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }

    /// Ready once another task has looked since `before`.
    pub(super) fn poll_look(&self, context: &Context<'_>, before: u64) -> Poll<()> {
        {
            let mut waiting = lock(&self.waiting);
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            self.are_waiting.store(true, Ordering::SeqCst);
        }
        // After the registration: either the other task finds it, or this look finds the other's.
        if self.looks() == before { Poll::Pending } else { Poll::Ready(()) }
    }
}
