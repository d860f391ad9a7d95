//! Single-producer, single-consumer rings in shared memory.
//!
//! [`Entry`] rings carry frames: one cache line each, header word published last, so that a message
//! costs the transfer of one line. [`Producer`] and [`Consumer`] are private cursors; what they
//! share is the entries and the consumer's published head. Grants travel in rings of words:
//! [`GrantWriter`], [`GrantReader`].
//!
//! Neither side ever reads back what it wrote itself, and what it reads from the other side is
//! checked before use: a head that runs ahead of the tail is a [`Violation`], an entry's header is
//! whatever the peer made it.

use crate::prefetch;
use crate::source::Source;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bytes of a frame's body.
pub const BODY: usize = 56;
/// Words of a frame's body.
pub const BODY_WORDS: usize = BODY / 8;

/// How many frames ahead the producer asks for lines, and the consumer: about the time of a
/// transfer between caches. A producer that asks earlier loses the lines again to a consumer at its
/// heels: with 4 instead of 2 a stream took a quarter longer.
const WRITE_AHEAD: u32 = 2;
const READ_AHEAD: u32 = 8;

/// Bits of a header between its length and its lap.
const KIND_BITS: u32 = 8;

/// Frames taken without a gap after which the consumer believes that more are there.
const STREAM: u32 = 8;

/// Frames that a gap in a stream makes up for.
const GAP: u32 = 4;

/// Pauses in a gap of a stream.
const PAUSES: u32 = 3;

/// One line of a frame ring.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Entry([AtomicU64; 8]);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Entry>() == 64);

impl Entry {
    /// A word of the body. The peer may change it at any time: to be read once.
    #[inline(always)]
    #[must_use]
    pub fn word(&self, at: usize) -> u64 {
        self.0[at + 1].load(Ordering::Relaxed)
    }

    /// The body, read once.
    #[inline(always)]
    #[must_use]
    pub fn body(&self) -> [u64; BODY_WORDS] {
        std::array::from_fn(|at| self.word(at))
    }
}

/// What the peer wrote cannot come from this library; its lane is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

/// The header of a frame: kind, length of the inline body, and a word of the kind's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame.
    pub kind: u8,
    /// Bytes of the body in use.
    pub len: u8,
    /// Usually the receiver's number of the connection.
    pub word: u32,
}

impl Header {
    fn pack(self, lap: u16) -> u64 {
        let high = u32::from(lap) << 16 | u32::from(self.kind) << 8 | u32::from(self.len);
        u64::from(high) << 32 | u64::from(self.word)
    }

    #[expect(clippy::cast_possible_truncation, reason = "each field is cut out of the word")]
    fn unpack(word: u64) -> Self {
        Self { kind: (word >> 40) as u8, len: (word >> 32) as u8, word: word as u32 }
    }
}

/// The lap of a cursor, never 0 on the first so that a fresh ring is empty.
#[expect(clippy::cast_possible_truncation, reason = "laps wrap at 16 bits")]
#[inline(always)]
const fn lap(cursor: u32, shift: u32) -> u16 {
    ((cursor >> shift) as u16).wrapping_add(1)
}

/// How many entries a frame ring of `N` has.
#[expect(clippy::cast_possible_truncation, reason = "checked")]
const fn size<const N: usize>() -> u32 {
    const { assert!(N >= 4 && N.is_power_of_two() && N < 1 << 31) };
    N as u32
}

/// The sending side's cursor of a ring of `N` entries: a power of two, at least four.
pub struct Producer<const N: usize> {
    tail: u32,
    head: u32,
}

impl<const N: usize> Producer<N> {
    /// A cursor of a fresh ring.
    #[must_use]
    pub const fn new() -> Self {
        Self { tail: 0, head: 0 }
    }

    /// Whether another frame fits. Looks at the consumer's line only when the last look leaves less
    /// than half of the ring; that line changes four times per round, so that most looks find it in
    /// this side's cache.
    ///
    /// # Errors
    ///
    /// The consumer claims to have taken more than was sent.
    #[inline]
    pub fn has_room(&mut self, shared_head: &AtomicU32) -> Result<bool, Violation> {
        let size = size::<N>();
        if self.has_ample_room() {
            return Ok(true);
        }
        // Acquire: the consumer has finished reading the entries it gives back.
        self.head = shared_head.load(Ordering::Acquire);
        let used = self.tail.wrapping_sub(self.head);
        if used > size { Err(Violation) } else { Ok(used < size) }
    }

    /// Whether less than half of the ring is in use, by what is known without a look at the
    /// consumer's line.
    #[inline(always)]
    #[must_use]
    pub fn has_ample_room(&self) -> bool {
        self.tail.wrapping_sub(self.head) < size::<N>() / 2
    }

    /// Publishes a frame whose body is `body`. The caller has asked [`Producer::has_room`].
    #[inline]
    pub fn push(&mut self, entries: &[Entry; N], header: Header, body: Source<'_>) {
        let entry = &entries[self.tail as usize % N];
        Self::fill(entry, body);
        self.publish(entries, entry, header);
    }

    /// As [`Producer::push`], when the caller has asked [`Producer::has_ample_room`].
    #[inline(always)]
    pub fn push_amply(&mut self, entries: &[Entry; N], header: Header, body: Source<'_>) {
        let tail = self.tail;
        let entry = &entries[tail as usize % N];
        Self::fill(entry, body);
        self.tail = Self::show(entry, header, tail);
        // Where the ring ends it is a line that follows it, once a lap: not worth a wrap in each
        // call.
        prefetch::write_after(entry, WRITE_AHEAD as usize);
    }

    #[inline(always)]
    fn fill(entry: &Entry, body: Source<'_>) {
        debug_assert!(body.len() <= BODY);
        let mut words = entry.0[1..].iter();
        for (value, word) in body.words().zip(words.by_ref()) {
            word.store(value, Ordering::Relaxed);
        }
        if let (Some(value), Some(word)) = (body.last_word(), words.next()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Publishes a frame whose body is these words.
    #[inline]
    pub fn push_words<const W: usize>(&mut self, entries: &[Entry; N], header: Header, body: [u64; W]) {
        const { assert!(W <= BODY_WORDS) };
        let entry = &entries[self.tail as usize % N];
        for (word, value) in entry.0[1..].iter().zip(body) {
            word.store(value, Ordering::Relaxed);
        }
        self.publish(entries, entry, header);
    }

    /// Publishes an entry, and asks for the line of one that will be filled soon, so that the store
    /// into it need not wait: never for one that the consumer has still to read.
    #[inline(always)]
    fn publish(&mut self, entries: &[Entry; N], entry: &Entry, header: Header) {
        self.tail = Self::show(entry, header, self.tail);
        let soon = self.tail.wrapping_add(WRITE_AHEAD - 1);
        if soon.wrapping_sub(self.head) < size::<N>() {
            prefetch::write(&entries[soon as usize % N]);
        }
    }

    /// The next tail. Without the cursor itself, which would be read again after a store to shared
    /// memory.
    #[inline(always)]
    fn show(entry: &Entry, header: Header, tail: u32) -> u32 {
        // Release: publishes the body, and whatever payload the frame points to, to the consumer.
        entry.0[0].store(header.pack(lap(tail, N.trailing_zeros())), Ordering::Release);
        tail.wrapping_add(1)
    }

    /// A cursor that begins elsewhere, so that tests meet the wrap of every counter. The ring of
    /// zeroes and the shared head, which begins at `cursor` too, must read as empty there: no entry
    /// may be looked at first in the lap whose number is 0. So `cursor / N` may end in neither
    /// 0xffff nor, unless `cursor` is a multiple of `N`, 0xfffe. Rings that begin at 0 meet that
    /// lap only with entries of the lap before.
    #[must_use]
    pub const fn starting_at(cursor: u32) -> Self {
        Self { tail: cursor, head: cursor }
    }
}

impl<const N: usize> Default for Producer<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// What a consumer finds at its place: a frame's header that is not taken apart, or nothing.
#[derive(Clone, Copy)]
pub struct Peeked {
    word: u64,
    /// Kind of the frame; 256 or more: there is none.
    kind: u32,
}

impl Peeked {
    /// Whether it is a frame of this kind.
    #[inline(always)]
    #[must_use]
    pub fn is(self, kind: u8) -> bool {
        self.kind == u32::from(kind)
    }

    /// The header of the frame, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn header(self) -> Option<Header> {
        (self.kind <= u32::from(u8::MAX)).then(|| Header::unpack(self.word))
    }
}

/// The receiving side's cursor of a ring of `N` entries.
pub struct Consumer<const N: usize> {
    head: u32,
    /// Frames taken without a gap.
    streak: u32,
    /// The lap of `head`, above the bits of a kind.
    lap: u32,
}

impl<const N: usize> Consumer<N> {
    /// A cursor of a fresh ring.
    #[must_use]
    pub const fn new() -> Self {
        Self::starting_at(0)
    }

    /// As [`Producer::starting_at`].
    #[must_use]
    pub const fn starting_at(cursor: u32) -> Self {
        Self { head: cursor, streak: 0, lap: Self::lap_of(cursor) }
    }

    const fn lap_of(head: u32) -> u32 {
        (lap(head, N.trailing_zeros()) as u32) << KIND_BITS
    }

    /// The next frame's header, if one has been published.
    #[inline(always)]
    #[must_use]
    pub fn peek(&self, entries: &[Entry; N]) -> Option<Header> {
        self.look(entries).header()
    }

    /// As [`Consumer::peek`], for whoever first wants to know whether there is a frame of a certain
    /// kind.
    #[inline(always)]
    #[must_use]
    pub fn look(&self, entries: &[Entry; N]) -> Peeked {
        let entry = &entries[self.head as usize % N];
        // Acquire: pairs with `publish`.
        let word = entry.0[0].load(Ordering::Acquire);
        let high = (word >> 40) as u32;
        Peeked { word, kind: high ^ self.lap }
    }

    /// Asks for the line of a frame that has probably come by now: only while frames come without a
    /// gap, otherwise it would take the line away from the producer, who is about to write it.
    #[inline(always)]
    pub fn prefetch(&self, entries: &[Entry; N]) {
        if self.streak >= STREAM {
            prefetch::read(&entries[self.head.wrapping_add(READ_AHEAD) as usize % N]);
        }
    }

    /// Whether frames come as fast as they are taken, so that the next one is probably there
    /// already.
    #[inline(always)]
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.streak >= STREAM
    }

    /// `peek` showed nothing. In a stream, waits for about as long as a line takes to change hands:
    /// a consumer at the heels of its producer takes each line away from him while he writes the
    /// next, and both crawl. A stream is more than `GAP` frames for each gap.
    #[inline(always)]
    pub fn on_gap(&mut self) {
        if self.streak > 0 {
            self.end_streak();
        }
    }

    fn end_streak(&mut self) {
        if self.streak >= STREAM {
            for _ in 0..PAUSES {
                std::hint::spin_loop();
            }
        }
        self.streak = self.streak.saturating_sub(GAP);
    }

    /// The entry of the frame that `peek` showed.
    #[inline(always)]
    #[must_use]
    pub fn shown<'a>(&self, entries: &'a [Entry; N]) -> &'a Entry {
        &entries[self.head as usize % N]
    }

    /// Takes the frame that `peek` showed. The producer learns of it every quarter of a ring, so
    /// that the line of the head changes hands seldom; true when it learnt now.
    #[inline(always)]
    pub fn advance(&mut self, shared_head: &AtomicU32) -> bool {
        self.head = self.head.wrapping_add(1);
        if self.streak < 2 * STREAM {
            self.streak += 1;
        }
        let told = self.head.is_multiple_of(size::<N>() / 4);
        if told {
            self.lap = Self::lap_of(self.head);
            // Release: the entries before it have been read.
            shared_head.store(self.head, Ordering::Release);
        }
        told
    }
}

impl<const N: usize> Default for Consumer<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Bits of a grant's index.
const INDEX_BITS: u32 = 16;

/// The side that grants: tells the peer which payload slots it may fill. Never more grants are open
/// than the ring has words, because the granter owns the slots.
pub struct GrantWriter {
    tail: u32,
    shift: u32,
}

impl GrantWriter {
    /// A cursor of a fresh ring of `1 << shift` words.
    #[must_use]
    pub const fn new(shift: u32) -> Self {
        Self { tail: 0, shift }
    }

    /// As [`Producer::starting_at`].
    #[must_use]
    pub const fn starting_at(shift: u32, cursor: u32) -> Self {
        Self { tail: cursor, shift }
    }

    /// Grants a slot.
    #[inline]
    pub fn grant(&mut self, words: &[AtomicU32], index: u16) {
        let word = &words[self.tail as usize & (words.len() - 1)];
        let value = u32::from(lap(self.tail, self.shift)) << INDEX_BITS | u32::from(index);
        // Release: the granter has finished with the slot's bytes.
        word.store(value, Ordering::Release);
        self.tail = self.tail.wrapping_add(1);
    }
}

/// The side that fills granted slots.
pub struct GrantReader {
    head: u32,
    shift: u32,
}

impl GrantReader {
    /// A cursor of a fresh ring of `1 << shift` words.
    #[must_use]
    pub const fn new(shift: u32) -> Self {
        Self { head: 0, shift }
    }

    /// As [`Producer::starting_at`].
    #[must_use]
    pub const fn starting_at(shift: u32, cursor: u32) -> Self {
        Self { head: cursor, shift }
    }

    /// Asks for the line of the next grant.
    #[inline(always)]
    pub fn prefetch(&self, words: &[AtomicU32]) {
        prefetch::read(&words[self.head as usize & (words.len() - 1)]);
    }

    /// The next granted slot, unchecked.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the index is cut out of the word")]
    pub fn take(&mut self, words: &[AtomicU32]) -> Option<u16> {
        // Acquire: pairs with `grant`.
        let value = words[self.head as usize & (words.len() - 1)].load(Ordering::Acquire);
        if (value >> INDEX_BITS) as u16 != lap(self.head, self.shift) {
            return None;
        }
        self.head = self.head.wrapping_add(1);
        Some(value as u16)
    }
}
