//! Mapped memory of a segment, of this process or of another one.

use crate::broadcast::Commons;
use crate::device_memory::{Found, Piece};
use crate::errors::Error;
use crate::mirror::Mirror;
use crate::types::{Access, Kind};
use cci::{Import, Memory, Rights, SharedMemory};
use cci_mem::fork::Mark;
use cci_mem::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// Where the pages come from.
enum Pages {
    Own(Arc<SharedMemory>),
    Peer(Import),
    /// In the memory of a device, whose room is kept.
    Piece(Arc<Piece>, Memory),
    /// There, of another node: the word that changes when it ends, and what it was.
    Found(Memory, &'static AtomicU64, u64),
    /// That all members of a broadcast group have on this host.
    Common(Arc<Commons>, Memory),
    /// Memory of this process, kept equal to that of the owner.
    Mirror(Arc<Mirror>),
}

/// The memory of a segment, mapped as long as this value.
pub(crate) struct Mapped {
    pages: Pages,
    start: usize,
    len: usize,
    /// The connection is no more, or the segment is removed.
    is_lost: AtomicBool,
    /// Windows that live.
    windows: AtomicUsize,
    mark: Mark,
}

impl Mapped {
    pub(crate) fn own(memory: Arc<SharedMemory>, mark: Mark) -> Self {
        let (start, len) = (memory.memory().start(), memory.len());
        Self::new(Pages::Own(memory), start, len, mark)
    }

    /// `None`: it does not fit the address space.
    pub(crate) fn peer(import: Import, mark: Mark) -> Option<Self> {
        let (start, len) = (import.as_ptr().expose_provenance(), usize::try_from(import.len()).ok()?);
        Some(Self::new(Pages::Peer(import), start, len, mark))
    }

    /// A segment of this process in the memory of a device.
    pub(crate) fn piece(piece: &Arc<Piece>, mark: Mark) -> Self {
        let memory = piece.memory();
        let (start, len) = (memory.start(), piece.range.len());
        Self::new(Pages::Piece(Arc::clone(piece), memory), start, len, mark)
    }

    /// A segment of another node there.
    pub(crate) fn found(found: &Found, mark: Mark) -> Self {
        let pages = Pages::Found(found.memory.clone(), found.life, found.seen);
        Self::new(pages, found.memory.start(), found.range.len(), mark)
    }

    /// The memory of a broadcast group on this host.
    pub(crate) fn common(commons: &Arc<Commons>, mark: Mark) -> Self {
        let memory = commons.memory();
        let (start, len) = (memory.start(), commons.len());
        Self::new(Pages::Common(Arc::clone(commons), memory), start, len, mark)
    }

    /// The same memory once more, for a connection of this process to itself. `None`: it is of
    /// another process.
    pub(crate) fn again(&self) -> Option<Self> {
        let pages = match &self.pages {
            Pages::Own(memory) => Pages::Own(Arc::clone(memory)),
            Pages::Piece(piece, memory) => Pages::Piece(Arc::clone(piece), memory.clone()),
            Pages::Common(commons, memory) => Pages::Common(Arc::clone(commons), memory.clone()),
            Pages::Peer(_) | Pages::Found(..) | Pages::Mirror(_) => return None,
        };
        Some(Self::new(pages, self.start, self.len, self.mark))
    }

    /// The memory, to be registered. `None`: it is of another process.
    pub(crate) fn memory(&self) -> Option<Memory> {
        match &self.pages {
            Pages::Own(memory) => Some(memory.memory()),
            Pages::Piece(_, memory) | Pages::Common(_, memory) => Some(memory.clone()),
            Pages::Peer(_) | Pages::Found(..) | Pages::Mirror(_) => None,
        }
    }

    pub(crate) fn mirror(mirror: Arc<Mirror>, mark: Mark) -> Self {
        let (start, len) = (mirror.region.start(), mirror.len);
        Self::new(Pages::Mirror(mirror), start, len, mark)
    }

    /// The mirror, if the owner has other pages.
    #[inline]
    pub(crate) fn as_mirror(&self) -> Option<&Mirror> {
        match &self.pages {
            Pages::Mirror(mirror) => Some(mirror),
            Pages::Own(_) | Pages::Peer(_) | Pages::Piece(..) | Pages::Found(..) | Pages::Common(..) => None,
        }
    }

    fn new(pages: Pages, start: usize, len: usize, mark: Mark) -> Self {
        Self { pages, start, len, is_lost: AtomicBool::new(false), windows: AtomicUsize::new(0), mark }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.pages {
            Pages::Own(_) | Pages::Peer(_) | Pages::Piece(..) | Pages::Found(..) | Pages::Common(..) => Kind::Shared,
            Pages::Mirror(_) => Kind::Mirror,
        }
    }

    /// Whether a store still reaches the segment, as far as this process has been told.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        let is_registered = match &self.pages {
            Pages::Own(_) | Pages::Piece(..) | Pages::Common(..) | Pages::Mirror(_) => true,
            Pages::Peer(import) => import.is_current(),
            // Publishes nothing.
            Pages::Found(_, life, seen) => life.load(Ordering::Relaxed) == *seen,
        };
        // Publishes nothing: what the owner has stored before is ordered by its own stores.
        is_registered && !self.is_lost.load(Ordering::Relaxed) && self.mark.is_here()
    }

    pub(crate) fn lose(&self) {
        // As in `is_current`.
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Whether the owner allows it.
    pub(crate) fn allows(&self, access: Access) -> bool {
        match &self.pages {
            Pages::Own(_) | Pages::Piece(..) | Pages::Found(..) | Pages::Common(..) | Pages::Mirror(_) => true,
            Pages::Peer(import) => access == Access::Read || import.rights().has(Rights::WRITE),
        }
    }

    /// Copies out. False: the range lies outside.
    pub(crate) fn read(&self, offset: usize, target: &mut [u8]) -> bool {
        if !self.has(offset, target.len()) {
            return false;
        }
        match &self.pages {
            Pages::Own(memory) => memory.read(offset, target),
            Pages::Peer(import) => return import.read(offset as u64, target),
            Pages::Piece(_, memory) | Pages::Found(memory, ..) | Pages::Common(_, memory) => {
                return memory.copy_out(offset as u64, target);
            }
            Pages::Mirror(mirror) => return mirror.region.memory().copy_out(offset as u64, target),
        }
        true
    }

    /// Copies in. False: the range lies outside, or the owner allows reading alone.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        if !self.has(offset, bytes.len()) {
            return false;
        }
        match &self.pages {
            Pages::Own(memory) => memory.write(offset, bytes),
            Pages::Peer(import) => return import.write(offset as u64, bytes),
            Pages::Piece(_, memory) | Pages::Found(memory, ..) | Pages::Common(_, memory) => {
                return memory.copy_in(offset as u64, bytes);
            }
            Pages::Mirror(mirror) => return mirror.region.memory().copy_in(offset as u64, bytes),
        }
        true
    }

    pub(crate) fn has(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    pub(crate) fn check(&self, offset: usize, len: usize) -> Result<(), Error> {
        if self.has(offset, len) { Ok(()) } else { Err(Error::OutOfRange) }
    }

    pub(crate) fn is_in_use(&self) -> bool {
        // Publishes nothing.
        self.windows.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn begin_window(&self) {
        // As in `is_in_use`.
        self.windows.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_window(&self) {
        // As in `is_in_use`.
        self.windows.fetch_sub(1, Ordering::Relaxed);
    }
}
