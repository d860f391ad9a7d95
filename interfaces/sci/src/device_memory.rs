//! Memory that nodes share without CCI: a device file, or a plain file named as one
//! (`docs/design/sci.md`, Memory of a device). Each node of the table owns a part of it: only its
//! processes change the part's directory, under a lock of the file. Others read it.

use crate::claims::{self, Named};
use crate::errors::{Error, NotOpened};
use crate::nodes::Nodes;
use crate::sys::{FileMap, map_file};
use cci::Memory;
use cci_mem::descriptors;
use cci_mem::directory::Entry;
use cci_mem::fork::Mark;
use cci_mem::sync::{AtomicU64, Ordering};
use rustix::fd::OwnedFd;
use rustix::fs::{
    FallocateFlags, FileType, FlockOperation, Mode, OFlags, SealFlags, Stat, fallocate, fcntl_get_seals, flock, fstat,
    major, minor, open,
};
use rustix::io::Errno;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first word of a part that is in use.
const MAGIC: u64 = u64::from_le_bytes(*b"ccisci-m");
const PAGE: usize = 4096;
/// Device files are mapped in huge pages.
const DEVICE_ALIGNMENT: u64 = 2 << 20;
/// Bytes of the header and of an entry, and how many entries there are.
const LINE: usize = 64;
const ENTRIES: usize = PAGE / LINE - 1;
/// Words of an entry. Its life is odd while it is used, and changes when connections end.
const LIFE: usize = 0;
const ID: usize = 8;
const OFFSET: usize = 16;
const LEN: usize = 24;
const AVAILABLE: usize = 32;
/// How long the lock is tried, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// The memory, as one node has it.
pub(crate) struct DeviceMemory {
    file: OwnedFd,
    /// Its device and number.
    name: (u64, u64),
    map: FileMap,
    /// Files have holes, devices have none.
    is_plain: bool,
    nodes: Vec<u32>,
    own: u32,
}

/// A segment of this process in the memory. Dropping it frees its room.
pub(crate) struct Piece {
    memory: Arc<DeviceMemory>,
    entry: usize,
    pub(crate) range: Range<usize>,
    mark: Mark,
    /// The entry's name: whoever can claim it finds that its owner has ended.
    claim: Option<OwnedFd>,
}

/// A segment that was found: where it is, and the word that changes when it ends.
pub(crate) struct Found {
    pub(crate) memory: Memory,
    pub(crate) range: Range<usize>,
    pub(crate) life: &'static AtomicU64,
    pub(crate) seen: u64,
}

fn refused(path: &Path, why: &str) -> NotOpened {
    NotOpened::Memory(format!("the memory {} {why}; correct SCI_MEMORY", path.display()))
}

/// Bytes of a device file.
fn device_size(of: &Stat) -> Option<u64> {
    let path = format!("/sys/dev/char/{}:{}/size", major(of.st_rdev), minor(of.st_rdev));
    let size: u64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(size / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT)
}

/// Whether somebody else than this user may cut a file under a mapping.
fn others_may_cut(file: &OwnedFd, of: &Stat) -> bool {
    let is_sealed = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    let is_own = of.st_uid == rustix::process::geteuid().as_raw();
    !is_sealed && (!is_own || of.st_mode & 0o022 != 0)
}

impl DeviceMemory {
    /// Maps the memory, and divides it where nobody has done so.
    pub(crate) fn open(path: &Path, nodes: &Nodes) -> Result<Self, NotOpened> {
        // A pipe does not wait for its other end.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open(path, flags, Mode::empty()).and_then(descriptors::above_standard);
        let file = file.map_err(|why| refused(path, &format!("cannot be opened: {why}")))?;
        let of = fstat(&file)?;
        let (size, is_plain) = match FileType::from_raw_mode(of.st_mode) {
            FileType::RegularFile if others_may_cut(&file, &of) => {
                return Err(refused(
                    path,
                    "may be cut by other users; name a file of your own that others cannot write",
                ));
            }
            FileType::RegularFile => (u64::try_from(of.st_size).unwrap_or(0), true),
            FileType::CharacterDevice => {
                (device_size(&of).ok_or_else(|| refused(path, "is a device without a size, as no /dev/dax is"))?, false)
            }
            _ => return Err(refused(path, "is neither a device nor a file")),
        };
        let numbers: Vec<_> = nodes.numbers().collect();
        let least = numbers.len() * 2 * PAGE;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size < least {
            return Err(refused(path, &format!("has {size} bytes, and the node table needs {least} at least")));
        }
        let name = (of.st_dev, of.st_ino);
        let map = map_file(&file, name, size);
        let map = map.map_err(|why| refused(path, &format!("cannot be mapped: {why}")))?;
        let memory = Self { file, name, map, is_plain, nodes: numbers, own: nodes.own() };
        memory.divide().map_err(|why| match why {
            Error::NoSpace => refused(path, "has no room on its file system"),
            Error::Access => refused(path, "was divided for another node table; empty it, or name that table"),
            _ => refused(path, "is locked by another process for 5 s"),
        })?;
        Ok(memory)
    }

    fn word(&self, at: usize) -> &'static AtomicU64 {
        self.map.word(at)
    }

    /// The part of a node.
    fn part(&self, node: u32) -> Option<Range<usize>> {
        let at = self.nodes.iter().position(|number| *number == node)?;
        let len = self.map.len() / self.nodes.len() / PAGE * PAGE;
        Some(at * len..(at + 1) * len)
    }

    /// What stands behind the magic of a part.
    fn header(&self, node: u32) -> [u64; 3] {
        [u64::from(node), self.nodes.len() as u64, self.map.len() as u64]
    }

    /// Whether a part is in use, and divided as this process has it. `None`: nobody uses it.
    fn is_divided(&self, node: u32, part: &Range<usize>) -> Option<bool> {
        // Acquire: what was written before the magic.
        let magic = self.word(part.start).load(Ordering::Acquire);
        if magic == 0 {
            return None;
        }
        let words = [8, 16, 24].map(|at| self.word(part.start + at).load(Ordering::Relaxed));
        Some(magic == MAGIC && words == self.header(node))
    }

    /// Begins this node's part.
    fn divide(&self) -> Result<(), Error> {
        let _lock = self.lock()?;
        for node in &self.nodes {
            let part = self.part(*node).ok_or(Error::Access)?;
            // A load from a hole takes a page too.
            self.reserve(part.start..part.start + PAGE)?;
            match self.is_divided(*node, &part) {
                Some(true) => {}
                Some(false) => return Err(Error::Access),
                None if *node == self.own => {
                    for (at, word) in [8, 16, 24].into_iter().zip(self.header(*node)) {
                        self.word(part.start + at).store(word, Ordering::Relaxed);
                    }
                    // Release: publishes the words before it.
                    self.word(part.start).store(MAGIC, Ordering::Release);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The lock of this node's processes, until the value is dropped or the process ends.
    fn lock(&self) -> Result<Lock<'_>, Error> {
        let begun = Instant::now();
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(&self.file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(_) => return Err(Error::System),
            }
        }
    }

    /// Fills the holes of a file: a store into one could find the file system full.
    fn reserve(&self, range: Range<usize>) -> Result<(), Error> {
        if !self.is_plain {
            return Ok(());
        }
        // One that was cut meanwhile must not be lengthened: other mappings have its old size.
        let is_whole =
            fstat(&self.file).is_ok_and(|of| of.st_size >= 0 && of.st_size.cast_unsigned() >= self.map.len() as u64);
        if !is_whole {
            return Err(Error::System);
        }
        loop {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, range.start as u64, range.len() as u64) {
                Err(Errno::INTR) => {}
                done => return done.map_err(|_| Error::NoSpace),
            }
        }
    }

    fn entries(part: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let first = part.start + LINE;
        (0..ENTRIES).map(move |entry| first + entry * LINE)
    }

    /// The words of an entry: number, offset, length.
    fn entry(&self, at: usize) -> Entry<'static, 3> {
        let of = |word: usize| self.word(at + word);
        Entry { life: of(LIFE), available: of(AVAILABLE), words: [ID, OFFSET, LEN].map(of) }
    }

    /// The number and the range of an entry of a part, whatever a process of its node has written
    /// there. `None`: it leads out of the part.
    fn segment([id, offset, len]: [u64; 3], part: &Range<usize>) -> Option<(u32, Range<usize>)> {
        let (start, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        let end = start.checked_add(len)?;
        let is_inside = start >= part.start + PAGE && end <= part.end && len > 0 && start.is_multiple_of(PAGE);
        is_inside.then_some((u32::try_from(id).ok()?, start..end))
    }

    /// An entry of a part under the lock. `None`: it is not used, or it leads out of the part.
    fn read(&self, entry: usize, part: &Range<usize>) -> Option<(u32, Range<usize>)> {
        Self::segment(self.entry(entry).used()?, part)
    }

    /// Takes room for a segment of this node, whose name the caller has claimed, and empties it.
    pub(crate) fn create(self: &Arc<Self>, id: u32, len: usize, mark: Mark) -> Result<Piece, Error> {
        let part = self.part(self.own).ok_or(Error::System)?;
        let bytes = len.checked_next_multiple_of(PAGE).ok_or(Error::NoSpace)?;
        let lock = self.lock()?;
        self.sweep(&part);
        let (entry, start) = self.place(&part, bytes).ok_or(Error::NoSpace)?;
        let claim = Some(self.claim(entry)?);
        let range = start..start + len;
        self.reserve(start..start + bytes)?;
        self.entry(entry).begin([u64::from(id), start as u64, len as u64]);
        // The room is taken, and nobody finds it yet: others need not wait until it is empty.
        drop(lock);
        self.map.clear(start..start + bytes);
        Ok(Piece { memory: Arc::clone(self), entry, range, mark, claim })
    }

    /// Claims the name of a free entry. Who has freed it lets its name go soon.
    fn claim(&self, entry: usize) -> Result<OwnedFd, Error> {
        let begun = Instant::now();
        loop {
            match claims::claim(self.own, Named::Room(self.name, entry)) {
                Err(Error::SegmentIdUsed) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                claimed => return claimed.map_err(|_| Error::System),
            }
        }
    }

    /// Frees the entries of owners that have ended.
    fn sweep(&self, part: &Range<usize>) {
        for entry in Self::entries(part).filter(|entry| self.read(*entry, part).is_some()) {
            if claims::claim(self.own, Named::Room(self.name, entry)).is_ok() {
                self.entry(entry).end();
            }
        }
    }

    /// A free entry, and the first free range of so many bytes.
    fn place(&self, part: &Range<usize>, bytes: usize) -> Option<(usize, usize)> {
        let mut used: Vec<_> = Self::entries(part).filter_map(|entry| self.read(entry, part)).collect();
        used.sort_unstable_by_key(|(_, range)| range.start);
        let entry = Self::entries(part).find(|entry| self.read(*entry, part).is_none())?;
        let mut start = part.start + PAGE;
        for (_, range) in used {
            if range.start.saturating_sub(start) >= bytes {
                break;
            }
            start = start.max(range.end.next_multiple_of(PAGE));
        }
        (part.end.checked_sub(start)? >= bytes).then_some((entry, start))
    }

    /// Finds a segment that its owner has made available.
    pub(crate) fn find(&self, node: u32, id: u32) -> Option<Found> {
        let part = self.part(node)?;
        if self.is_divided(node, &part) != Some(true) {
            return None;
        }
        Self::entries(&part).find_map(|entry| {
            let entry = self.entry(entry);
            let (seen, words) = entry.find()?;
            let (_, range) = Self::segment(words, &part).filter(|(other, _)| *other == id)?;
            Some(Found { memory: self.map.memory(range.clone()), range, life: entry.life, seen })
        })
    }
}

/// Held while it lives.
struct Lock<'a>(&'a OwnedFd);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

impl Piece {
    /// Its bytes.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.map.memory(self.range.clone())
    }

    /// Others may find it, or no more.
    pub(crate) fn set_available(&self, is_available: bool) {
        self.memory.entry(self.entry).set_available(is_available);
    }

    /// Ends all connections; nobody finds it any more.
    pub(crate) fn disconnect(&self) {
        self.memory.entry(self.entry).renew();
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // A forked child drops copies of what its parent uses.
        if self.mark.is_here() {
            self.memory.entry(self.entry).end();
            // From here on others use the entry.
            drop(self.claim.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    const TABLE: &str = "4 localhost\n8 localhost\n";

    /// A file that is removed in the end.
    struct Temporary(PathBuf);

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn file(name: &str, len: u64) -> Temporary {
        let path = std::env::temp_dir().join(format!("cci-sci-memory-{}-{name}", std::process::id()));
        let file = File::create(&path).expect("a file");
        file.set_len(len).expect("a length");
        file.set_permissions(Permissions::from_mode(0o600)).expect("a mode");
        Temporary(path)
    }

    fn nodes(own: u32) -> Nodes {
        Nodes::parse(TABLE).and_then(|nodes| nodes.at(own)).expect("a table")
    }

    fn open_at(path: &Path, own: u32) -> Arc<DeviceMemory> {
        Arc::new(DeviceMemory::open(path, &nodes(own)).expect("a memory"))
    }

    fn mark() -> Mark {
        Mark::new().expect("a mark")
    }

    fn why(path: &Path, table: &str) -> String {
        match DeviceMemory::open(path, &Nodes::parse(table).expect("a table")) {
            Ok(_) => panic!("{} is opened", path.display()),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_segment_is_found_by_another_node_while_it_is_available() {
        let named = file("found", 64 << 10);
        let (four, eight) = (open_at(&named.0, 4), open_at(&named.0, 8));
        let piece = four.create(7, 5000, mark()).expect("room");
        assert!(eight.find(4, 7).is_none(), "it is not available");
        piece.set_available(true);
        let found = eight.find(4, 7).expect("available");
        assert!(found.range == piece.range && found.range.len() == 5000);
        assert!(eight.find(8, 7).is_none() && eight.find(4, 8).is_none() && eight.find(12, 7).is_none());
        piece.disconnect();
        assert_ne!(found.life.load(Ordering::Relaxed), found.seen, "its connections end");
        assert!(eight.find(4, 7).is_none());
        piece.set_available(true);
        let again = eight.find(4, 7).expect("available");
        drop(piece);
        assert_ne!(again.life.load(Ordering::Relaxed), again.seen);
        assert!(eight.find(4, 7).is_none());
    }

    #[test]
    fn room_is_used_again_and_ends() {
        let named = file("room", 64 << 10);
        let memory = open_at(&named.0, 4);
        // 32 KiB of the node, less a page.
        let first = memory.create(1, 4096, mark()).expect("room");
        let second = memory.create(2, 16 << 10, mark()).expect("room");
        assert_eq!(memory.create(3, 12 << 10, mark()).err(), Some(Error::NoSpace));
        let third = memory.create(3, 8 << 10, mark()).expect("room");
        assert!(third.range.start >= second.range.end && second.range.start >= first.range.end);
        // A window keeps the room of a segment that is no more, whoever has its number.
        first.disconnect();
        let again = memory.create(1, 4096, mark()).err();
        assert_eq!(again, Some(Error::NoSpace));
        drop(third);
        // Whose owners have ended without a word.
        for mut ended in [first, second] {
            drop(ended.claim.take());
            std::mem::forget(ended);
        }
        assert_eq!(memory.create(3, 28 << 10, mark()).map(|piece| piece.range.len()).ok(), Some(28 << 10));
        assert_eq!(memory.create(3, 29 << 10, mark()).err(), Some(Error::NoSpace));
    }

    #[test]
    fn new_segments_are_empty() {
        let named = file("empty", 64 << 10);
        let memory = open_at(&named.0, 8);
        let piece = memory.create(1, 4096, mark()).expect("room");
        memory.word(piece.range.start + 8).store(77, Ordering::Relaxed);
        let at = piece.range.start;
        drop(piece);
        let piece = memory.create(1, 4096, mark()).expect("room");
        assert_eq!((piece.range.start, memory.word(at + 8).load(Ordering::Relaxed)), (at, 0));
    }

    #[test]
    fn an_entry_that_lies_leads_nowhere() {
        let named = file("lies", 64 << 10);
        let (four, eight) = (open_at(&named.0, 4), open_at(&named.0, 8));
        let piece = four.create(7, 4096, mark()).expect("room");
        piece.set_available(true);
        for (at, value) in
            [(OFFSET, 0), (OFFSET, 4097), (OFFSET, 32 << 10), (OFFSET, u64::MAX), (LEN, 0), (LEN, 1 << 40)]
        {
            let word = four.word(piece.entry + at);
            let before = word.swap(value, Ordering::Relaxed);
            assert!(eight.find(4, 7).is_none(), "{at}: {value}");
            word.store(before, Ordering::Relaxed);
        }
        assert!(eight.find(4, 7).is_some());
        four.word(8).store(99, Ordering::Relaxed);
        assert!(eight.find(4, 7).is_none(), "another table");
    }

    #[test]
    fn what_cannot_be_shared_is_named() {
        let named = file("wrong", 64 << 10);
        drop(open_at(&named.0, 4));
        assert!(why(&named.0, "4 localhost\n").contains("divided for another node table"));
        std::fs::set_permissions(&named.0, Permissions::from_mode(0o620)).expect("a mode");
        assert!(why(&named.0, TABLE).contains("may be cut by other users"));
        let small = file("small", 16 << 10);
        assert!(why(&small.0, "4 localhost\n8 localhost\n12 localhost\n").contains("needs 24576 at least"));
        assert!(why(Path::new("/dev/null"), TABLE).contains("device without a size"));
        assert!(why(Path::new("/no/such/file"), TABLE).contains("cannot be opened"));
        assert!(why(&std::env::temp_dir(), TABLE).contains("cannot be opened"));
    }

    #[test]
    fn a_file_that_was_cut_is_refused_and_not_lengthened() {
        let named = file("cut", 64 << 10);
        let [memory, _other] = [8, 4].map(|node| open_at(&named.0, node));
        File::options().write(true).open(&named.0).and_then(|file| file.set_len(40 << 10)).expect("cut");
        assert!(matches!(memory.create(1, 4096, mark()), Err(Error::System)));
        assert_eq!(std::fs::metadata(&named.0).expect("there").len(), 40 << 10);
        assert!(DeviceMemory::open(&named.0, &nodes(8)).is_err());
    }
}
