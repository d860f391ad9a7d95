//! The counters of an endpoint, in a page that other processes can read. `docs/design/counters.md`
//! has the layout.

use crate::ring::BODY;
use crate::segment::Segment;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use rustix::io::{Errno, Result};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt::{self, Display, Write};
use std::ops::Deref;
use std::ptr::NonNull;

/// Name of the memfd; its number is that of the layout.
pub const NAME: &str = "cci-counters/1";
/// Stands at the beginning of a page that is complete: "cci-ctr1".
pub const MAGIC: u64 = u64::from_le_bytes(*b"cci-ctr1");
/// Number of the layout.
pub const VERSION: u32 = 1;
/// Bytes of a page.
pub const LEN: usize = 4096;
/// In `flags`: times are those of a virtual network.
pub const VIRTUAL: u32 = 1;
/// In `flags`: what crosses a network is sealed; with [`CLEAR`], where the peer agrees.
pub const SEALED: u32 = 2;
/// In `flags`: what crosses a network is in clear; with [`SEALED`], where the peer asks for that.
pub const CLEAR: u32 = 4;
/// In `state`: the endpoint's handle is armed, so that its program may sleep on it.
pub const ARMED: u64 = 1;
/// In `state`: the program holds every receive slot, and a peer waits for one.
pub const STARVING: u64 = 2;
/// Whom the endpoint waits for: entries of the list.
pub const WAITS: usize = 16;

/// Bytes of the longest text.
const LONGEST: usize = 192;

/// Text in words, padded with zeroes.
#[repr(C)]
pub struct Text<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Text<WORDS> {
    /// Writes it, as far as there is room.
    pub fn set(&self, text: impl Display) {
        let mut bytes = Bytes { bytes: [0; LONGEST], at: 0, room: (8 * WORDS).min(LONGEST) };
        // Only its end can be missing.
        let _ = write!(bytes, "{text}");
        for (word, chunk) in self.0.iter().zip(bytes.bytes.chunks_exact(8)) {
            let mut part = [0; 8];
            part.copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(part), Ordering::Relaxed);
        }
    }

    /// What stands there, which may be anything: what could move a terminal's cursor is replaced.
    #[must_use]
    pub fn get(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..end]);
        text.chars().map(|char| if char.is_ascii_graphic() { char } else { '?' }).collect()
    }
}

/// Takes text up to a number of bytes.
struct Bytes {
    bytes: [u8; LONGEST],
    at: usize,
    room: usize,
}

impl Write for Bytes {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = text.len().min(self.room - self.at);
        self.bytes[self.at..self.at + len].copy_from_slice(&text.as_bytes()[..len]);
        self.at += len;
        if len == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// An entry of the list of those that the endpoint waits for.
#[repr(C)]
pub struct Wait {
    generation: AtomicU32,
    kind: AtomicU32,
    _reserved: u64,
    since: AtomicU64,
    operations: AtomicU64,
    peer: Text<12>,
}

const _: () = assert!(size_of::<Wait>() == 128);

/// What stands in an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What for, as the transport's crate numbers it; never 0.
    pub kind: u32,
    /// Since when, nanoseconds.
    pub since: u64,
    /// Operations that wait.
    pub operations: u64,
    /// The peer, as its URI or address.
    pub peer: String,
}

impl Wait {
    /// Changes between two states: what a reader sees in between is marked by an odd generation.
    fn change(&self, write: impl FnOnce(&Self)) {
        let generation = self.generation.load(Ordering::Relaxed);
        self.generation.store(generation.wrapping_add(1), Ordering::Relaxed);
        // With the reader's reads of the generation before and after: what it saw of the fields is
        // whole if both are the same.
        fence(Ordering::Release);
        write(self);
        self.generation.store(generation.wrapping_add(2), Ordering::Release);
    }

    /// Enters somebody, or changes what is said of them.
    pub fn show(&self, waiting: (u32, u64, u64), peer: impl Display) {
        let (kind, since, operations) = waiting;
        self.change(|wait| {
            wait.since.store(since, Ordering::Relaxed);
            wait.operations.store(operations, Ordering::Relaxed);
            wait.peer.set(peer);
            wait.kind.store(kind, Ordering::Relaxed);
        });
    }

    /// Clears the entry.
    pub fn clear(&self) {
        self.change(|wait| wait.kind.store(0, Ordering::Relaxed));
    }

    /// Counts changes; odd while one is being made.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// What stands in it; none when it is free.
    #[must_use]
    pub fn get(&self) -> Option<Waiting> {
        let kind = self.kind.load(Ordering::Relaxed);
        (kind != 0).then(|| Waiting {
            kind,
            since: self.since.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
            peer: self.peer.get(),
        })
    }
}

/// The page. Written with relaxed order by the holder of the endpoint's lock; each word is right by
/// itself.
#[repr(C, align(4096))]
pub struct Page {
    magic: AtomicU64,
    version: AtomicU32,
    len: AtomicU32,
    pid: AtomicU32,
    /// [`VIRTUAL`], [`SEALED`], [`CLEAR`].
    pub flags: AtomicU32,
    /// When the endpoint was opened, nanoseconds.
    pub opened: AtomicU64,
    /// Name of the transport.
    pub transport: Text<2>,
    _header: [u64; 2],
    /// What others connect to.
    pub uri: Text<24>,

    // Counted as it happens.
    /// Messages sent.
    pub sent: AtomicU64,
    /// Bytes of those of them that are longer than [`BODY`]: shorter ones are not weighed, since
    /// that would cost as much again as counting them.
    pub sent_long_bytes: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Bytes of those of them that are longer than [`BODY`].
    pub received_long_bytes: AtomicU64,
    /// RMA that this side began and that ended well.
    pub rma: AtomicU64,
    /// Its bytes.
    pub rma_bytes: AtomicU64,
    /// Times that a peer had no room, so that a message had to wait.
    pub not_ready: AtomicU64,
    /// Times that this side had no receive slot for a peer.
    pub refused: AtomicU64,
    /// Messages dropped.
    pub dropped: AtomicU64,

    // Noted now and then.
    /// Frames for connections that do not exist.
    pub strays: AtomicU64,
    /// Frames that contradict themselves.
    pub malformed: AtomicU64,
    /// Frames sent.
    pub frames_sent: AtomicU64,
    /// Frames received.
    pub frames_received: AtomicU64,
    /// Frames sent again.
    pub resent: AtomicU64,
    /// Frames that came a second time.
    pub duplicates: AtomicU64,
    /// Losses that turned out to be none.
    pub spurious: AtomicU64,
    /// Frames dropped because nothing more could be held back.
    pub unheld: AtomicU64,
    /// When the program last had the endpoint make progress and the clock was read, nanoseconds.
    pub progress: AtomicU64,
    /// [`ARMED`], [`STARVING`].
    pub state: AtomicU64,
    /// Connections, those being made included.
    pub connections: AtomicU64,
    /// Operations that have begun and not ended.
    pub in_flight: AtomicU64,
    /// Receive slots that are taken.
    pub recv_taken: AtomicU64,
    /// Those of them that the program holds, or has given back lately.
    pub recv_lent: AtomicU64,
    /// Receive slots that may be taken.
    pub recv_limit: AtomicU64,
    /// Send slots that are taken: by operations, or by their events.
    pub send_taken: AtomicU64,
    /// Send slots that may be taken.
    pub send_limit: AtomicU64,
    /// RMA slots that are taken.
    pub rma_taken: AtomicU64,
    /// RMA slots that may be taken.
    pub rma_limit: AtomicU64,
    /// Those waited for that found no entry in the list.
    pub unlisted: AtomicU64,
    _counters: [u64; 67],

    /// Whom the endpoint waits for.
    pub waits: [Wait; WAITS],
    _rest: [u64; 128],
}

const _: () = assert!(size_of::<Page>() == LEN);
const _: () = assert!(std::mem::offset_of!(Page, uri) == 64);
const _: () = assert!(std::mem::offset_of!(Page, sent) == 256);
const _: () = assert!(std::mem::offset_of!(Page, waits) == 1024);

/// Adds to a word that one thread at a time writes: no locked instruction.
#[inline(always)]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

impl Page {
    /// A message of this many bytes was sent.
    #[inline(always)]
    pub fn on_sent(&self, len: usize) {
        add(&self.sent, 1);
        if len > BODY {
            add(&self.sent_long_bytes, len as u64);
        }
    }

    /// A message that rode in a frame's body was sent.
    #[inline(always)]
    pub fn on_sent_inline(&self) {
        add(&self.sent, 1);
    }

    /// A message of this many bytes was received.
    #[inline(always)]
    pub fn on_received(&self, len: usize) {
        add(&self.received, 1);
        if len > BODY {
            add(&self.received_long_bytes, len as u64);
        }
    }

    /// A message that rode in a frame's body was received.
    #[inline(always)]
    pub fn on_received_inline(&self) {
        add(&self.received, 1);
    }

    /// An RMA of this many bytes has ended well.
    #[inline]
    pub fn on_rma(&self, bytes: u64) {
        add(&self.rma, 1);
        add(&self.rma_bytes, bytes);
    }

    /// A peer has no room.
    pub fn on_not_ready(&self) {
        add(&self.not_ready, 1);
    }

    /// This side has no receive slot for a peer.
    pub fn on_refused(&self) {
        add(&self.refused, 1);
    }

    /// A message was dropped.
    pub fn on_dropped(&self) {
        add(&self.dropped, 1);
    }

    /// Magic, version and length, of a page that may be anything.
    #[must_use]
    pub fn head(&self) -> (u64, u32, u32) {
        // Acquire: pairs with `Home::publish`.
        let magic = self.magic.load(Ordering::Acquire);
        (magic, self.version.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed))
    }

    /// The process, as it knew itself when it published the page.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
}

/// Where a page is: on the heap, or in a memfd that other processes can read.
pub struct Home {
    page: NonNull<Page>,
    /// What it is in; none: the heap.
    segment: Option<Box<Segment>>,
}

// SAFETY: a page is not bound to a thread, and consists of atomics and of words that are never
// touched.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Home {
    /// A page of zeroes on the heap.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn new() -> Result<Self> {
        // SAFETY: a page has bytes.
        let page = unsafe { alloc_zeroed(Layout::new::<Page>()) };
        // All zeroes are a page: it consists of atomics and integers.
        Ok(Self { page: NonNull::new(page.cast()).ok_or(Errno::NOMEM)?, segment: None })
    }

    /// A copy of what was read from a file, whatever it is; none when it is shorter than a page.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..LEN)?;
        let home = Self::new().ok()?;
        // SAFETY: `LEN` bytes each; the copy is this function's alone, and all bits are a page, as
        // for zeroes.
        unsafe { home.page.cast::<u8>().copy_from_nonoverlapping(NonNull::from(bytes).cast(), LEN) };
        Some(home)
    }

    /// Moves the page to where other processes find it, with what stands in it.
    ///
    /// # Errors
    ///
    /// No descriptor, memory or address space left, or the system forbids it: it stays where it is.
    pub fn publish(&mut self) -> Result<()> {
        let segment = Segment::create_published(NAME, LEN)?;
        // Touching it must not fail later.
        segment.reserve(0, LEN)?;
        let page = NonNull::new(segment.bytes(0, LEN).cast::<Page>()).ok_or(Errno::NOMEM)?;
        // SAFETY: `LEN` bytes each, mapped at a page's boundary; nobody reads the new one yet, and
        // `&mut self` keeps others from the old.
        unsafe { page.copy_from_nonoverlapping(self.page, 1) };
        drop(std::mem::replace(self, Self { page, segment: Some(Box::new(segment)) }));
        self.version.store(VERSION, Ordering::Relaxed);
        self.len.store(u32::try_from(LEN).unwrap_or(0), Ordering::Relaxed);
        self.pid.store(std::process::id(), Ordering::Relaxed);
        // Release: whoever sees the magic sees the rest.
        self.magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// Whether other processes find it.
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.segment.is_some()
    }
}

impl Deref for Home {
    type Target = Page;

    #[inline(always)]
    fn deref(&self) -> &Page {
        // SAFETY: allocated or mapped as long as `self`, aligned, any bits are a page; others of
        // this process reach it through `self` only, and no other process can write to it.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.segment.is_none() {
            // SAFETY: allocated by `new` with this layout; whoever borrowed from it is gone.
            unsafe { dealloc(self.page.as_ptr().cast(), Layout::new::<Page>()) };
        }
    }
}
