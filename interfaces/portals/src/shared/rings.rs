//! The segment that a program and the engine share: a ring of commands, a ring of events, a word
//! for the sleep of each side, and memory that the program's descriptors name.

use cci_mem::barrier::Pairing;
use cci_mem::ring::{Consumer, Entry, Header, Producer, Violation};
use cci_mem::segment::Segment;
use cci_mem::sleep;
use cci_mem::sync::AtomicU32;
use std::sync::Arc;

/// Commands and events that a ring has room for.
pub(super) const COMMANDS: usize = 256;
pub(super) const EVENTS: usize = 1024;
/// Words of a frame's body.
pub(super) const WORDS: usize = 7;

const LINE: usize = 64;
const PAGE: usize = 4096;
/// Where the rings are; a page before them has words, each in a line of its own.
const COMMANDS_AT: usize = PAGE;
const EVENTS_AT: usize = COMMANDS_AT + COMMANDS * LINE;
/// Where the program's memory begins.
pub(super) const AREA_AT: usize = EVENTS_AT + EVENTS * LINE;
/// Bytes of a program's memory, at most.
const MOST_AREA: usize = 1 << 30;

/// A line of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) word: u32,
    pub(super) body: [u64; WORDS],
}

/// Bytes of a segment with so many bytes of memory. `None`: that is too much.
pub(super) fn len_of(area: usize) -> Option<usize> {
    (area <= MOST_AREA).then(|| AREA_AT + area.next_multiple_of(PAGE))
}

/// Where a ring lies.
#[derive(Clone, Copy)]
struct Place {
    entries: usize,
    /// How far the consumer is.
    head: usize,
    /// Whether the consumer sleeps.
    sleep: usize,
}

const OF_COMMANDS: Place = Place { entries: COMMANDS_AT, head: 0, sleep: LINE };
const OF_EVENTS: Place = Place { entries: EVENTS_AT, head: 2 * LINE, sleep: 3 * LINE };

/// One side of a ring.
struct End {
    segment: Arc<Segment>,
    place: Place,
}

impl End {
    #[inline]
    fn entries<const N: usize>(&self) -> &[Entry; N] {
        self.segment.entries(self.place.entries)
    }

    #[inline]
    fn head(&self) -> &AtomicU32 {
        &self.segment.words32(self.place.head, 1)[0]
    }

    #[inline]
    fn sleep(&self) -> &AtomicU32 {
        &self.segment.words32(self.place.sleep, 1)[0]
    }
}

/// The side that writes.
pub(super) struct Out<const N: usize> {
    end: End,
    cursor: Producer<N>,
}

impl Out<COMMANDS> {
    pub(super) fn of_commands(segment: &Arc<Segment>) -> Self {
        Self { end: End { segment: Arc::clone(segment), place: OF_COMMANDS }, cursor: Producer::new() }
    }
}

impl Out<EVENTS> {
    pub(super) fn of_events(segment: &Arc<Segment>) -> Self {
        Self { end: End { segment: Arc::clone(segment), place: OF_EVENTS }, cursor: Producer::new() }
    }
}

impl<const N: usize> Out<N> {
    /// Whether a frame fits.
    ///
    /// # Errors
    ///
    /// The other side claims to have read what was not written.
    #[inline]
    pub(super) fn has_room(&mut self) -> Result<bool, Violation> {
        self.cursor.has_room(self.end.head())
    }

    /// Writes a frame, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, frame: &Frame) {
        let header = Header { kind: frame.kind, len: 0, word: frame.word };
        self.cursor.push_words(self.end.entries(), header, frame.body);
    }

    /// Whether the reader must be woken, after frames were written.
    #[inline]
    pub(super) fn must_wake(&self, pairing: Pairing) -> bool {
        sleep::must_wake(self.end.sleep(), pairing)
    }
}

/// The side that reads.
pub(super) struct In<const N: usize> {
    end: End,
    cursor: Consumer<N>,
}

impl In<COMMANDS> {
    pub(super) fn of_commands(segment: &Arc<Segment>) -> Self {
        Self { end: End { segment: Arc::clone(segment), place: OF_COMMANDS }, cursor: Consumer::new() }
    }
}

impl In<EVENTS> {
    pub(super) fn of_events(segment: &Arc<Segment>) -> Self {
        Self { end: End { segment: Arc::clone(segment), place: OF_EVENTS }, cursor: Consumer::new() }
    }
}

impl<const N: usize> In<N> {
    /// Takes a frame, each of its words read once, and whether the writer has room by it that it
    /// may wait for.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(Frame, bool)> {
        let entries = self.end.entries();
        let header = self.cursor.peek(entries)?;
        let frame = Frame { kind: header.kind, word: header.word, body: self.cursor.shown(entries).body() };
        let gives_room = self.cursor.advance(self.end.head());
        Some((frame, gives_room))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cursor.peek(self.end.entries()).is_none()
    }

    /// Announces a sleep. A heavy fence, and another look at the ring, have to follow.
    pub(super) fn arm(&self) {
        sleep::arm(self.end.sleep());
    }

    pub(super) fn disarm(&self) {
        sleep::disarm(self.end.sleep());
    }
}
