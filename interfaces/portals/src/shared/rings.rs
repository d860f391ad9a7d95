//! The segment that a program and the engine share: a ring of commands, a ring of events, a word
//! for the sleep of each side, and memory that the program's descriptors name. Both sides of a ring
//! are the same for an engine of this process, where the ring is its own memory.

use cci_mem::barrier::Pairing;
use cci_mem::ring::{Consumer, Entry, Header, Producer, Violation};
use cci_mem::segment::Segment;
use cci_mem::sleep;
use cci_mem::sync::{AtomicU32, Ordering};
use std::sync::Arc;

/// Commands and events that a ring has room for.
pub(crate) const COMMANDS: usize = 256;
pub(super) const EVENTS: usize = 1024;
/// Words of a frame's body.
const WORDS: usize = 7;

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
pub(crate) struct Frame {
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

/// The memory of a ring.
pub(crate) trait Lines<const N: usize> {
    fn entries(&self) -> &[Entry; N];
    /// How far the reader is.
    fn head(&self) -> &AtomicU32;
    /// Whether the reader sleeps.
    fn sleep(&self) -> &AtomicU32;
}

/// A ring in a segment.
pub(crate) struct Shared {
    segment: Arc<Segment>,
    place: Place,
}

impl<const N: usize> Lines<N> for Shared {
    #[inline]
    fn entries(&self) -> &[Entry; N] {
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

/// A ring in memory of this process.
#[derive(Clone)]
pub(crate) struct Own<const N: usize>(Arc<OwnLines<N>>);

/// A word in a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Word(AtomicU32);

struct OwnLines<const N: usize> {
    entries: [Entry; N],
    head: Word,
    sleep: Word,
}

impl<const N: usize> Own<N> {
    pub(crate) fn new() -> Self {
        let entries = std::array::from_fn(|_| Entry::default());
        Self(Arc::new(OwnLines { entries, head: Word::default(), sleep: Word::default() }))
    }
}

impl<const N: usize> Lines<N> for Own<N> {
    #[inline]
    fn entries(&self) -> &[Entry; N] {
        &self.0.entries
    }

    #[inline]
    fn head(&self) -> &AtomicU32 {
        &self.0.head.0
    }

    #[inline]
    fn sleep(&self) -> &AtomicU32 {
        &self.0.sleep.0
    }
}

/// The side that writes.
pub(crate) struct Out<const N: usize, L: Lines<N> = Shared> {
    lines: L,
    cursor: Producer<N>,
}

impl Out<COMMANDS> {
    pub(super) fn of_commands(segment: &Arc<Segment>) -> Self {
        Self::new(Shared { segment: Arc::clone(segment), place: OF_COMMANDS })
    }
}

impl Out<EVENTS> {
    pub(super) fn of_events(segment: &Arc<Segment>) -> Self {
        Self::new(Shared { segment: Arc::clone(segment), place: OF_EVENTS })
    }
}

impl<const N: usize, L: Lines<N>> Out<N, L> {
    pub(crate) fn new(lines: L) -> Self {
        Self { lines, cursor: Producer::new() }
    }

    /// Whether a frame fits.
    ///
    /// # Errors
    ///
    /// The other side claims to have read what was not written.
    #[inline]
    pub(crate) fn has_room(&mut self) -> Result<bool, Violation> {
        self.cursor.has_room(self.lines.head())
    }

    /// Writes a frame, for which there is room.
    #[inline]
    pub(crate) fn push(&mut self, frame: &Frame) {
        let header = Header { kind: frame.kind, len: 0, word: frame.word };
        self.cursor.push_words(self.lines.entries(), header, frame.body);
    }

    /// Whether the reader has not announced that it sleeps.
    #[inline]
    pub(crate) fn is_awake(&self) -> bool {
        // A hint: who has written asks [`Out::must_wake`].
        self.lines.sleep().load(Ordering::Relaxed) == sleep::AWAKE
    }

    /// Whether the reader must be woken, after frames were written.
    #[inline]
    pub(crate) fn must_wake(&self, pairing: Pairing) -> bool {
        sleep::must_wake(self.lines.sleep(), pairing)
    }
}

/// The side that reads.
pub(crate) struct In<const N: usize, L: Lines<N> = Shared> {
    lines: L,
    cursor: Consumer<N>,
}

impl In<COMMANDS> {
    pub(super) fn of_commands(segment: &Arc<Segment>) -> Self {
        Self::new(Shared { segment: Arc::clone(segment), place: OF_COMMANDS })
    }
}

impl In<EVENTS> {
    pub(super) fn of_events(segment: &Arc<Segment>) -> Self {
        Self::new(Shared { segment: Arc::clone(segment), place: OF_EVENTS })
    }
}

impl<const N: usize, L: Lines<N>> In<N, L> {
    pub(crate) fn new(lines: L) -> Self {
        Self { lines, cursor: Consumer::new() }
    }

    /// Takes a frame, each of its words read once, and whether the writer has room by it that it
    /// may wait for.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Frame, bool)> {
        let entries = self.lines.entries();
        let header = self.cursor.peek(entries)?;
        let frame = Frame { kind: header.kind, word: header.word, body: self.cursor.shown(entries).body() };
        let gives_room = self.cursor.advance(self.lines.head());
        Some((frame, gives_room))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cursor.peek(self.lines.entries()).is_none()
    }

    /// Announces a sleep. A heavy fence, and another look at the ring, have to follow.
    pub(crate) fn arm(&self) {
        sleep::arm(self.lines.sleep());
    }

    pub(crate) fn disarm(&self) {
        sleep::disarm(self.lines.sleep());
    }
}
