//! The memory in which an endpoint publishes its registrations: chunks of entries. The first one is
//! there from the start. Each further one doubles the room, and is made when the others are full.

use cci_mem::segment::Segment;
use cci_mem::sync::{AtomicU64, Ordering, fence};
use cci_proto::RegisterError;
use rustix::fd::OwnedFd;
use std::num::NonZeroU32;

/// Words of the header line and of an entry.
pub(crate) const LINE_WORDS: usize = 8;
const LINE: usize = LINE_WORDS * 8;
/// Entries of the first chunk, a power of two.
const FIRST: usize = 1 << 16;
/// Chunks beside the first, at most.
const FURTHER: u32 = 8;
/// Registrations that an endpoint can have at a time.
const CAPACITY: usize = FIRST << FURTHER;
/// Bytes of the first chunk, whose first line is the header; the pages that hold no registration
/// take no memory.
pub(crate) const FIRST_LEN: usize = (FIRST + 1) * LINE;
/// Entries whose memory is reserved at a time.
const BATCH: usize = 512;

const _: () = assert!(FIRST.is_multiple_of(BATCH));

/// The further chunk that an entry lies in, if it does, and its offset in its chunk, bytes.
fn place(index: usize) -> (Option<NonZeroU32>, usize) {
    // The chunk `n` has as many entries as all before it: it begins with entry `FIRST << (n - 1)`.
    let number = NonZeroU32::new(usize::BITS - (index / FIRST).leading_zeros());
    let offset = match number {
        None => (index + 1) * LINE,
        Some(number) => (index - (FIRST << (number.get() - 1))) * LINE,
    };
    (number, offset)
}

/// Bytes of a further chunk; `None`: there is none of this number.
pub(crate) fn further_len(number: u32) -> Option<usize> {
    (1..=FURTHER).contains(&number).then(|| (FIRST << (number - 1)) * LINE)
}

/// Where a further chunk stands in a list of them.
fn at(number: NonZeroU32) -> usize {
    number.get() as usize - 1
}

/// This endpoint's chunks.
pub(crate) struct Chunks {
    first: Segment,
    further: Vec<Segment>,
    /// Entries that have memory.
    reserved: usize,
}

impl Chunks {
    /// The first chunk, with the endpoint's key in its header.
    pub(crate) fn new(key: [u64; 2]) -> rustix::io::Result<Self> {
        let first = Segment::create_published("cci-registry", FIRST_LEN)?;
        first.reserve(0, LINE)?;
        let chunks = Self { first, further: Vec::new(), reserved: 0 };
        for (word, key) in chunks.header().iter().zip(key) {
            word.store(key, Ordering::Relaxed);
        }
        Ok(chunks)
    }

    fn header(&self) -> &[AtomicU64] {
        self.first.words64(0, LINE_WORDS)
    }

    /// The first chunk.
    pub(crate) fn first(&self) -> &Segment {
        &self.first
    }

    /// How many further ones there are.
    pub(crate) fn further_count(&self) -> u32 {
        u32::try_from(self.further.len()).unwrap_or(FURTHER)
    }

    /// A further one: 1 is the first of them.
    pub(crate) fn further(&self, number: u32) -> Option<&Segment> {
        self.further.get(at(NonZeroU32::new(number)?))
    }

    /// An entry that has memory.
    pub(crate) fn entry(&self, index: u32) -> &[AtomicU64] {
        let (number, offset) = place(index as usize);
        let chunk = number.and_then(|number| self.further.get(at(number))).unwrap_or(&self.first);
        chunk.words64(offset, LINE_WORDS)
    }

    /// Gives this entry memory, which is the next one without. Returns whether that took a further
    /// chunk.
    pub(crate) fn reserve(&mut self, index: usize) -> Result<bool, RegisterError> {
        if index < self.reserved {
            return Ok(false);
        }
        if index >= CAPACITY {
            return Err(RegisterError::NoMemory);
        }
        let (number, offset) = place(self.reserved);
        let lacking = number.filter(|number| at(*number) == self.further.len());
        let reserve = |chunk: &Segment| chunk.reserve(offset, BATCH * LINE).map_err(|_| RegisterError::NoMemory);
        match (lacking, number) {
            (Some(lacking), _) => {
                let len = further_len(lacking.get()).ok_or(RegisterError::NoMemory)?;
                let chunk = Segment::create_published("cci-registry", len).map_err(|_| RegisterError::NoMemory)?;
                reserve(&chunk)?;
                self.further.push(chunk);
            }
            (None, number) => reserve(number.and_then(|number| self.further.get(at(number))).unwrap_or(&self.first))?,
        }
        self.reserved += BATCH;
        // Release: peers look at reserved entries only, since touching others would take memory.
        self.header()[2].store(self.reserved as u64, Ordering::Release);
        Ok(lacking.is_some())
    }
}

/// A peer's chunks, which this side can only read.
pub(crate) struct PeerChunks {
    first: Segment,
    /// `None`: one that could not be mapped here, and is done without.
    further: Vec<Option<Segment>>,
}

impl PeerChunks {
    /// Maps the first one.
    pub(crate) fn attach(fd: OwnedFd) -> rustix::io::Result<Self> {
        let mut first = Segment::attach_read_only(fd, FIRST_LEN)?;
        first.close_file();
        Ok(Self { first, further: Vec::new() })
    }

    /// The words of the header.
    pub(crate) fn header(&self) -> &[AtomicU64] {
        self.first.words64(0, LINE_WORDS)
    }

    /// The number of the next further one.
    pub(crate) fn next_number(&self) -> u32 {
        u32::try_from(self.further.len() + 1).unwrap_or(u32::MAX)
    }

    /// Maps the next further one, of which the peer has sent the descriptor. Without one, or where
    /// it cannot be mapped, it is done without. Returns the bytes mapped.
    pub(crate) fn add(&mut self, fd: Option<OwnedFd>, len: usize) -> usize {
        let mapped = fd.and_then(|fd| Segment::attach_read_only(fd, len).ok());
        self.further.push(mapped.map(|mut chunk| {
            chunk.close_file();
            chunk
        }));
        self.further.last().map_or(0, |chunk| chunk.as_ref().map_or(0, Segment::len))
    }

    /// How many entries have memory, by the peer's word.
    #[inline(always)]
    fn reserved(&self) -> u64 {
        // Pairs with the release in `Chunks::reserve`. A relaxed load and a fence: of memory that
        // is mapped for reading only, Rust allows no load that acquires.
        let reserved = self.header()[2].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        reserved
    }

    /// An entry that has memory and is mapped.
    #[inline(always)]
    pub(crate) fn entry(&self, index: u32) -> Option<&[AtomicU64]> {
        if u64::from(index) >= self.reserved() {
            return None;
        }
        let index = index as usize;
        if index < FIRST { Some(self.first.words64((index + 1) * LINE, LINE_WORDS)) } else { self.further_entry(index) }
    }

    #[cold]
    #[inline(never)]
    fn further_entry(&self, index: usize) -> Option<&[AtomicU64]> {
        let (number, offset) = place(index);
        let chunk = self.further.get(at(number?))?.as_ref()?;
        (offset + LINE <= chunk.len()).then(|| chunk.words64(offset, LINE_WORDS))
    }

    /// Whether an entry has memory, by the peer's word, in a chunk that is not mapped here.
    pub(crate) fn lacks(&self, index: u32) -> bool {
        let number = place(index as usize).0;
        let is_mapped = |number| self.further.get(at(number)).is_some_and(Option::is_some);
        u64::from(index) < self.reserved() && number.is_some_and(|number| !is_mapped(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_one_behind_the_other_in_chunks_that_double() {
        assert_eq!((CAPACITY, further_len(0), further_len(FURTHER + 1)), (1 << 24, None, None));
        let mut next = (None, LINE);
        for index in (0..2 * FIRST).chain(4 * FIRST - 9..4 * FIRST + 9).chain(CAPACITY - 9..CAPACITY) {
            let (number, offset) = place(index);
            if index < 2 * FIRST && index != FIRST {
                assert_eq!((number, offset), next, "entry {index}");
            }
            let len = number.map_or(FIRST_LEN, |number| further_len(number.get()).expect("a chunk"));
            assert!(offset + LINE <= len, "entry {index}");
            next = (number, offset + LINE);
        }
        assert_eq!(place(FIRST), (NonZeroU32::new(1), 0));
        assert_eq!(place(2 * FIRST), (NonZeroU32::new(2), 0));
        assert_eq!(place(CAPACITY).0.map(NonZeroU32::get), Some(FURTHER + 1), "the first that there is no room for");
    }

    #[test]
    fn a_peer_reads_what_is_reserved_and_mapped() {
        let mut own = Chunks::new([1, 2]).expect("memory");
        let attach = |segment: &Segment| OwnedFd::from(segment.share().expect("a descriptor"));
        let mut peer = PeerChunks::attach(attach(own.first())).expect("a mapping");
        assert!(peer.entry(0).is_none() && !peer.lacks(0), "nothing is reserved");
        let grown: Vec<usize> = (0..FIRST + 1).filter(|index| own.reserve(*index).expect("memory")).collect();
        assert_eq!(grown, [FIRST]);
        let last = u32::try_from(FIRST).expect("small");
        for index in [0, last - 1, last] {
            own.entry(index)[0].store(u64::from(index) + 7, Ordering::Relaxed);
        }
        let read = |peer: &PeerChunks, index: u32| peer.entry(index).map(|words| words[0].load(Ordering::Relaxed));
        assert_eq!((read(&peer, 0), read(&peer, last - 1)), (Some(7), Some(u64::from(last) + 6)));
        assert!(read(&peer, last).is_none() && peer.lacks(last), "its chunk has not come");
        assert_eq!((peer.next_number(), own.further_count()), (1, 1));
        let len = further_len(1).expect("a chunk");
        assert_eq!(peer.add(Some(attach(own.further(1).expect("one"))), len), len);
        assert_eq!((read(&peer, last), peer.lacks(last)), (Some(u64::from(last) + 7), false));
        assert!(!peer.lacks(last + 4096) && !peer.lacks(u32::MAX), "not reserved");
    }

    #[test]
    fn a_chunk_that_cannot_be_mapped_is_done_without() {
        let mut own = Chunks::new([1, 2]).expect("memory");
        let first = OwnedFd::from(own.first().share().expect("a descriptor"));
        let mut peer = PeerChunks::attach(first).expect("a mapping");
        let grown = (0..=FIRST).filter(|index| own.reserve(*index).expect("memory")).count();
        assert_eq!(grown, 1);
        assert_eq!((peer.add(None, further_len(1).expect("a chunk")), peer.next_number()), (0, 2));
        let index = u32::try_from(FIRST).expect("small");
        assert!(peer.lacks(index) && peer.entry(index).is_none());
    }
}
