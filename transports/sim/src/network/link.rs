//! A directed link at work: who waits in front of it, and when a frame gets through.

use super::fault::Rule;
use super::graph::{Edge, Forward, LinkSettings};
use crate::Random;
use cci_proto::Time;

/// What became of a frame on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// It is too long, or there was no room for it in the queue.
    Refused,
    /// It comes out at the other end.
    Through {
        /// Its first byte.
        head: Time,
        /// Its last byte.
        tail: Time,
        /// More waited than the threshold for marking.
        marked: bool,
        /// What happens to it there.
        rule: Rule,
        /// When its copy comes, if there is one: so much later or earlier.
        copy: Time,
    },
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames that came to it.
    pub frames: u64,
    /// Bytes of frames that it carried.
    pub bytes: u64,
    /// Frames for which there was no room in its queue.
    pub overflowed: u64,
    /// Frames that were too long.
    pub too_long: u64,
    /// Frames lost by fault.
    pub lost: u64,
    /// Frames marked.
    pub marked: u64,
}

/// A directed link.
#[derive(Debug)]
pub(super) struct DirectedLink {
    settings: LinkSettings,
    random: Random,
    /// When its end is free to take the next frame.
    free: Time,
    /// The queue's length and the threshold for marking, as the time that their bytes take.
    queue_time: u64,
    mark_time: u64,
    pub(super) stats: LinkStats,
}

/// The time that `bytes` take, nanoseconds, rounded up.
fn duration(bytes: u64, bandwidth: u64) -> u64 {
    if bandwidth == 0 {
        return 0;
    }
    if bytes == u64::MAX {
        return u64::MAX;
    }
    u64::try_from((u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bandwidth))).unwrap_or(u64::MAX)
}

impl DirectedLink {
    pub(super) fn new(seed: u64, edge: &Edge) -> Self {
        let mut link = Self {
            settings: LinkSettings::default(),
            random: Random::of(seed, u64::from(edge.from.0), u64::from(edge.to.0)),
            free: Time(0),
            queue_time: 0,
            mark_time: 0,
            stats: LinkStats::default(),
        };
        link.set(&edge.settings);
        link
    }

    pub(super) fn set(&mut self, settings: &LinkSettings) {
        self.settings = settings.clone();
        self.queue_time = duration(settings.queue, settings.bandwidth);
        self.mark_time = duration(settings.mark, settings.bandwidth);
    }

    pub(super) fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// When a frame of which the first and the last byte are in front of it then may start.
    pub(super) fn entry(&self, head: Time, tail: Time) -> Time {
        match self.settings.forward {
            Forward::Store => tail,
            Forward::CutThrough => head,
        }
    }

    /// Carries a frame of `len` bytes, which is in front of it now, and its last byte by `tail`.
    pub(super) fn carry(&mut self, now: Time, tail: Time, len: usize) -> Passage {
        let number = self.stats.frames;
        self.stats.frames += 1;
        if len > self.settings.mtu {
            self.stats.too_long += 1;
            return Passage::Refused;
        }
        let own = duration(len as u64, self.settings.bandwidth);
        let waiting = self.free.since(now);
        // A frame that need not wait needs no room in the queue.
        if self.settings.bandwidth > 0 && waiting > 0 && waiting.saturating_add(own) > self.queue_time {
            self.stats.overflowed += 1;
            return Passage::Refused;
        }
        let marked = waiting > self.mark_time;
        self.stats.marked += u64::from(marked);
        self.stats.bytes += len as u64;
        let start = Time(now.0.max(self.free.0));
        let end = Time(start.0.saturating_add(own).max(tail.0));
        if self.settings.bandwidth > 0 {
            self.free = end;
        }
        let rule = self.settings.faults.rule(number, &mut self.random);
        self.stats.lost += u64::from(rule == Rule::Drop);
        let mut late = self.settings.delay.saturating_add(self.jitter());
        if let Rule::Deliver(after) = rule {
            late = late.saturating_add(after);
        }
        let copy = if rule == Rule::Duplicate {
            Time(end.0.saturating_add(self.settings.delay).saturating_add(self.jitter()))
        } else {
            end
        };
        let out = |time: Time| Time(time.0.saturating_add(late));
        Passage::Through { head: out(start), tail: out(end), marked, rule, copy }
    }

    /// Whether each frame gets through as if it were the only one, whatever comes before it.
    pub(super) fn is_clear(&self) -> bool {
        let LinkSettings { bandwidth, mtu, jitter, faults, .. } = &self.settings;
        *bandwidth == 0 && *mtu == usize::MAX && *jitter == 0 && faults.is_none()
    }

    /// As [`DirectedLink::carry`], for a clear link: when the first and the last byte come out.
    pub(super) fn pass(&mut self, entry: Time, tail: Time, len: usize) -> (Time, Time) {
        self.stats.frames += 1;
        self.stats.bytes += len as u64;
        let out = |time: Time| Time(time.0.saturating_add(self.settings.delay));
        (out(entry), out(entry.max(tail)))
    }

    fn jitter(&mut self) -> u64 {
        if self.settings.jitter == 0 { 0 } else { self.random.between(0, self.settings.jitter) }
    }
}
