//! Which segments of library memory and which chunks of registrations a peer was sent, and which it
//! is still to be sent or told to be gone.

use crate::format::packet::Kind;
use crate::memory::registry::Registry;
use std::collections::{BTreeSet, VecDeque};

/// Segments that wait by number. When more changed, all are compared.
const NUMBERS: usize = 64;

/// What one peer knows of this endpoint's segments.
#[derive(Default)]
pub(crate) struct Announced {
    /// Chunks of registrations beside the first that it was sent.
    chunks: u32,
    /// Those that it was sent and was not told to be gone.
    sent: BTreeSet<u64>,
    /// Those that may have changed since, each once.
    changed: VecDeque<u64>,
    /// Others may have changed too.
    all: bool,
    /// Why what waits has not been sent.
    blocked: Option<Blocked>,
}

/// Why packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The socket has no room; it becomes writable.
    Full,
    /// The system has no memory, or too many descriptors are under way: tried again by timer.
    Short,
}

impl Announced {
    /// A segment has got its first registration, or peers are to give it back.
    pub(crate) fn on_change(&mut self, number: u64) {
        if self.all || self.changed.contains(&number) {
            return;
        }
        if self.changed.len() < NUMBERS {
            self.changed.push_back(number);
        } else {
            self.all = true;
        }
    }

    /// All segments are to be compared.
    pub(crate) fn on_change_of_all(&mut self) {
        self.all = true;
    }

    /// Why packets wait, if they do.
    pub(crate) fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    /// Notes why packets wait, if they do. Returns whether that has changed.
    pub(crate) fn set_blocked(&mut self, blocked: Option<Blocked>) -> bool {
        std::mem::replace(&mut self.blocked, blocked) != blocked
    }

    /// The next packet that the peer needs. It stays the next until [`Announced::on_sent`].
    pub(crate) fn next(&mut self, registry: &Registry) -> Option<(Kind, u64)> {
        if self.chunks < registry.chunks().further_count() {
            return Some((Kind::Registry, u64::from(self.next_chunk())));
        }
        loop {
            while let Some(number) = self.changed.front().copied() {
                let was_sent = self.sent.contains(&number);
                if registry.shares(number) > 0 && !was_sent {
                    return Some((Kind::Segment, number));
                }
                if was_sent && !registry.keeps(number) {
                    return Some((Kind::SegmentGone, number));
                }
                self.changed.pop_front();
            }
            if !std::mem::take(&mut self.all) {
                return None;
            }
            let gone = self.sent.iter().copied().filter(|number| !registry.keeps(*number));
            let new = registry.shared().map(|shared| shared.number).filter(|number| !self.sent.contains(number));
            self.changed = gone.chain(new).take(NUMBERS + 1).collect();
            self.all = self.changed.len() > NUMBERS;
            self.changed.truncate(NUMBERS);
        }
    }

    /// The number of the next chunk of registrations beside the first.
    pub(crate) fn next_chunk(&self) -> u32 {
        self.chunks + 1
    }

    pub(crate) fn on_sent(&mut self, kind: Kind, number: u64) {
        if kind == Kind::Registry {
            self.chunks += 1;
            return;
        }
        self.changed.pop_front();
        if kind == Kind::Segment {
            self.sent.insert(number);
        } else {
            self.sent.remove(&number);
        }
    }
}
