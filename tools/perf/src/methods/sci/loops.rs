//! The two tests, as both ends run them: a stream with a last acknowledgement, and a ping-pong.
//! Whoever receives polls the last element of the message in its own memory.

use crate::probe::Stores;
use cci_sci::{Host, Window};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Places that messages go to in turn, and how far apart they begin: in pages of their own, and at
/// other lines of these.
const PLACES: u64 = 64;
const STRIDE: usize = 4096 + 256;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Exchanges at one place before the next.
const STAY: u64 = 64;
/// Bytes of the longest message.
pub(super) const LONGEST: u64 = 256 << 10;
/// Bytes of a side's memory.
pub(super) const LEN: usize = 1 << 20;
/// Bytes of a side's memory where messages stay at one place, and of the longest message in the
/// smaller one.
pub(super) const SMALL: usize = 4096;
pub(super) const MIDDLE: usize = 64 << 10;
pub(super) const LONGEST_SMALL: u64 = 2048;
const _: () = assert!(LONGEST_SMALL as usize + 2 * LINE <= SMALL);
const _: () = assert!(PLACES as usize * STRIDE + 2 * LINE + LONGEST as usize <= LEN);
/// What the last message of a stream has, in the untimed one and in the timed one. All others have
/// 1 and 2 in turn.
const LAST: [u64; 2] = [3, 4];

/// Memory of both ends: each stores into that of the other one, and polls its own.
pub(super) trait Lane {
    fn store<const WIDTH: usize>(&self, at: usize, value: u64);
    fn load<const WIDTH: usize>(&self, at: usize) -> u64;
    fn copy(&self, at: usize, bytes: &[u8]);
    fn flush(&self);
    /// Takes what has come, as who waits in the library does.
    fn drive(&self) {}
}

/// Windows to the own segment and to that of the other end.
pub(super) struct Windows {
    pub(super) own: Window,
    pub(super) far: Window,
    pub(super) host: Arc<Host>,
}

impl Lane for Windows {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the rest is not stored")]
    fn store<const WIDTH: usize>(&self, at: usize, value: u64) {
        let stored = match WIDTH {
            1 => self.far.store(at, value as u8),
            2 => self.far.store(at, value as u16),
            4 => self.far.store(at, value as u32),
            _ => self.far.store(at, value),
        };
        debug_assert!(stored.is_ok(), "{stored:?}");
    }

    #[inline(always)]
    fn load<const WIDTH: usize>(&self, at: usize) -> u64 {
        match WIDTH {
            1 => self.own.load::<u8>(at).map(u64::from),
            2 => self.own.load::<u16>(at).map(u64::from),
            4 => self.own.load::<u32>(at).map(u64::from),
            _ => self.own.load::<u64>(at),
        }
        .unwrap_or_default()
    }

    #[inline(always)]
    fn copy(&self, at: usize, bytes: &[u8]) {
        let written = self.far.write(at, bytes);
        debug_assert!(written.is_ok(), "{written:?}");
    }

    #[inline(always)]
    fn flush(&self) {
        self.far.flush();
    }

    #[inline(always)]
    fn drive(&self) {
        let driven = self.host.progress();
        debug_assert!(driven.is_ok(), "{driven:?}");
    }
}

impl Lane for Stores<'_> {
    #[inline(always)]
    fn store<const WIDTH: usize>(&self, at: usize, value: u64) {
        Stores::store::<WIDTH>(self, at, value);
    }

    #[inline(always)]
    fn load<const WIDTH: usize>(&self, at: usize) -> u64 {
        Stores::load::<WIDTH>(self, at)
    }

    #[inline(always)]
    fn copy(&self, at: usize, bytes: &[u8]) {
        Stores::copy(self, at, bytes);
    }

    #[inline(always)]
    fn flush(&self) {}
}

/// The messages of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Messages {
    /// 1, 2, 4, 8, or a multiple of 8.
    pub(super) bytes: usize,
    /// They end at the end of a line; otherwise 8 bytes behind.
    pub(super) is_aligned: bool,
    /// A flush after each.
    pub(super) flushes: bool,
    /// Who waits calls the library in between.
    pub(super) drives: bool,
    /// The windows that they go through.
    pub(super) windows: usize,
    /// All go to one place: a mirror window of few bytes is compared soon.
    pub(super) stays: bool,
    /// They go one way, to the place with this number, with a last acknowledgement; otherwise
    /// there and back.
    pub(super) stream: Option<u64>,
    /// Untimed ones, and timed ones.
    pub(super) warm: u64,
    pub(super) count: u64,
}

/// Whether a message may have so many bytes.
pub(super) fn is_size(bytes: u64) -> bool {
    matches!(bytes, 1 | 2 | 4) || (8..=LONGEST).contains(&bytes) && bytes.is_multiple_of(8)
}

impl Messages {
    /// Where a message ends.
    #[inline(always)]
    fn end(&self, place: u64) -> usize {
        let place = if self.stays { 0 } else { place % PLACES };
        let begin = usize::try_from(place).unwrap_or_default() * STRIDE;
        begin + LINE + self.bytes.next_multiple_of(LINE) + if self.is_aligned { 0 } else { 8 }
    }

    /// Empties what the other end polls, so that nothing from before is taken for a message.
    pub(super) fn reset(&self, lane: &impl Lane) {
        for place in 0..if self.stays { 1 } else { PLACES } {
            lane.store::<8>((self.end(place) - 1) / 8 * 8, 0);
        }
        lane.flush();
    }

    /// The part of an end, the untimed messages or the timed ones.
    pub(super) fn run(&self, lane: &impl Lane, sends_first: bool, is_timed: bool) {
        match self.bytes {
            1 => self.run_by::<1, false>(lane, sends_first, is_timed),
            2 => self.run_by::<2, false>(lane, sends_first, is_timed),
            4 => self.run_by::<4, false>(lane, sends_first, is_timed),
            8 => self.run_by::<8, false>(lane, sends_first, is_timed),
            _ => self.run_by::<8, true>(lane, sends_first, is_timed),
        }
    }

    fn run_by<const WIDTH: usize, const COPIED: bool>(&self, lane: &impl Lane, sends_first: bool, is_timed: bool) {
        let mut end = End::<_, WIDTH, COPIED> { lane, messages: self, buffer: vec![0x5a; self.bytes] };
        let (from, count) = if is_timed { (self.warm, self.count) } else { (0, self.warm) };
        if count == 0 {
            return;
        }
        match (self.stream, sends_first) {
            (Some(place), true) => end.stream(place, LAST[usize::from(is_timed)], count),
            (Some(place), false) => end.acknowledge(place, LAST[usize::from(is_timed)]),
            (None, true) => end.ping(from, count),
            (None, false) => end.pong(from, count),
        }
    }
}

/// An end, with elements of `WIDTH` bytes: a whole message, or the last element of one that is
/// copied.
struct End<'a, L, const WIDTH: usize, const COPIED: bool> {
    lane: &'a L,
    messages: &'a Messages,
    buffer: Vec<u8>,
}

impl<L: Lane, const WIDTH: usize, const COPIED: bool> End<'_, L, WIDTH, COPIED> {
    #[inline(always)]
    fn put(&mut self, place: u64, value: u64) {
        let end = self.messages.end(place);
        if COPIED {
            let last = self.buffer.len() - WIDTH;
            self.buffer[last..].copy_from_slice(&value.to_ne_bytes()[..WIDTH]);
            self.lane.copy(end - self.buffer.len(), &self.buffer);
        } else {
            self.lane.store::<WIDTH>(end - WIDTH, value);
        }
        if self.messages.flushes {
            self.lane.flush();
        }
    }

    #[inline(always)]
    fn wait(&self, place: u64, value: u64) {
        let at = self.messages.end(place) - WIDTH;
        while self.lane.load::<WIDTH>(at) != value {
            if self.messages.drives {
                self.lane.drive();
            }
        }
    }

    /// The element of a message, which is never 0 nor that of the message before.
    #[inline(always)]
    fn value(number: u64) -> u64 {
        number % (u64::MAX >> (64 - 8 * WIDTH)) + 1
    }

    fn ping(&mut self, from: u64, count: u64) {
        for number in from..from + count {
            self.put(number / STAY, Self::value(number));
            self.wait(number / STAY, Self::value(number));
        }
    }

    fn pong(&mut self, from: u64, count: u64) {
        for number in from..from + count {
            self.wait(number / STAY, Self::value(number));
            self.put(number / STAY, Self::value(number));
        }
    }

    fn stream(&mut self, place: u64, last: u64, count: u64) {
        for number in 1..count {
            self.put(place, 1 + number % 2);
        }
        self.put(place, last);
        self.wait(place, last);
    }

    /// The acknowledgement is an element.
    fn acknowledge(&self, place: u64, last: u64) {
        self.wait(place, last);
        self.lane.store::<WIDTH>(self.messages.end(place) - WIDTH, last);
        self.lane.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::VecDeque;

    /// Its own memory is that of the other end, which answers each message with itself.
    #[derive(Default)]
    struct Mirror {
        seen: RefCell<VecDeque<(usize, usize)>>,
        memory: RefCell<Vec<u8>>,
    }

    impl Lane for Mirror {
        fn store<const WIDTH: usize>(&self, at: usize, value: u64) {
            assert!(at.is_multiple_of(WIDTH), "{at} for {WIDTH} bytes");
            self.copy(at, &value.to_le_bytes()[..WIDTH]);
        }

        fn load<const WIDTH: usize>(&self, at: usize) -> u64 {
            let mut word = [0; 8];
            word[..WIDTH].copy_from_slice(&self.memory.borrow()[at..at + WIDTH]);
            u64::from_le_bytes(word)
        }

        fn copy(&self, at: usize, bytes: &[u8]) {
            self.seen.borrow_mut().push_back((at, bytes.len()));
            self.memory.borrow_mut().resize(LEN, 0);
            let old = self.memory.borrow()[at..at + bytes.len()].to_vec();
            assert_ne!(old, bytes, "an equal value at {at} is not seen");
            self.memory.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        }

        fn flush(&self) {}
    }

    fn messages(bytes: usize, is_aligned: bool, stream: Option<u64>) -> Messages {
        let (warm, count) = (3, 20_000);
        Messages { bytes, is_aligned, flushes: true, drives: false, windows: 0, stays: false, stream, warm, count }
    }

    #[test]
    fn a_message_ends_with_its_line_or_eight_bytes_behind() {
        for (bytes, is_aligned, rest) in [(1, true, 0), (8, true, 0), (72, true, 0), (8, false, 8), (65_536, false, 8)]
        {
            let lane = Mirror::default();
            let of = Messages { count: 200, ..messages(bytes, is_aligned, None) };
            of.run(&lane, true, false);
            of.run(&lane, true, true);
            let seen = lane.seen.borrow();
            assert_eq!(seen.len(), 203);
            assert!(seen.iter().all(|(at, len)| (at + len) % LINE == rest && *len == bytes), "{bytes}");
        }
    }

    /// The mirror refuses equal values.
    #[test]
    fn no_element_is_what_it_replaces() {
        for bytes in [1, 2, 4, 8] {
            let lane = Mirror::default();
            let of = messages(bytes, true, None);
            of.run(&lane, true, false);
            of.run(&lane, true, true);
            let lane = Mirror::default();
            let of = messages(bytes, false, Some(70));
            of.run(&lane, true, false);
            of.run(&lane, true, true);
            of.reset(&lane.cleared());
        }
    }

    impl Mirror {
        /// With other bytes wherever a reset stores.
        fn cleared(&self) -> Self {
            Self { seen: RefCell::default(), memory: RefCell::new(vec![7; LEN]) }
        }
    }

    #[test]
    fn sizes_are_elements_or_whole_words() {
        let sizes = [0, 1, 2, 3, 4, 6, 8, 9, 16, 65_536, LONGEST, LONGEST + 8];
        assert_eq!(sizes.map(is_size), [false, true, true, false, true, false, true, false, true, true, true, false]);
    }
}
