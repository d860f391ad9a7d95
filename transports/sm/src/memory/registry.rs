//! Registrations: this endpoint's own, published for peers to read, and a peer's, as read by this
//! side.
//!
//! Of the secret in a handle (`RegistrationTable` in `core/transport`) only a keyed hash is
//! published.

use crate::format::layout::pair;
use crate::memory::chunks::{Chunks, PeerChunks};
use crate::memory::lingering::Lingering;
use cci_mem::arena;
use cci_mem::hazard;
use cci_mem::memory::Memory;
use cci_mem::segment::Segment;
use cci_mem::sync::{AtomicU64, Ordering, fence};
use cci_proto::{RegisterError, Registration, Rights, RmaHandle};
use cci_transport::{Connection, OpenError, RegistrationTable};
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;

/// Words of an entry.
mod word {
    pub(super) const GENERATION: usize = 0;
    pub(super) const START: usize = 1;
    pub(super) const LEN: usize = 2;
    pub(super) const RIGHTS: usize = 3;
    pub(super) const SEGMENT: usize = 4;
    pub(super) const OFFSET: usize = 5;
    pub(super) const HASH: usize = 6;
    /// The name of the only connection that it serves, 0 for all.
    pub(super) const ONLY: usize = 7;
}

fn hash(key: [u64; 2], secret: u64) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(key[0], key[1]);
    hasher.write_u64(secret);
    hasher.finish()
}

/// The name of a connection among the registrations of an endpoint: its number on its lane there,
/// and the number of that lane.
pub(crate) fn name(lane: u32, connection: u32) -> u64 {
    // Never 0, which names none.
    pair(connection, lane.wrapping_add(1))
}

/// [`name`] of a connection of this side.
fn name_of(cell: &Connection) -> u64 {
    name(cell.lane.load(Ordering::Relaxed), cell.local.load(Ordering::Relaxed))
}

/// A library allocation behind a registration.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) segment: Arc<Segment>,
    /// Its number, which peers know it by.
    pub(crate) number: u64,
}

/// What is stored beside a registration.
struct Own {
    /// Killed, and perhaps still announced by a peer.
    dead: bool,
    shared: Option<Shared>,
    /// The lanes whose peers have imported it.
    importers: Vec<u32>,
}

/// What peers are to be sent for a registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// The segment of its library memory, unless they have it.
    pub(crate) segment: Option<u64>,
    /// A further chunk of published registrations.
    pub(crate) has_chunk: bool,
}

/// This endpoint's registrations.
pub(crate) struct Registry {
    published: Chunks,
    key: [u64; 2],
    table: RegistrationTable<Own>,
    /// Library allocations by number, with how many registrations lie in each.
    shares: BTreeMap<u64, (usize, Shared)>,
    /// Those without a registration that peers still map.
    lingering: Lingering,
}

impl Registry {
    pub(crate) fn new(key: [u64; 2]) -> Result<Self, OpenError> {
        let system = |source: rustix::io::Errno| OpenError::system("no memory for an endpoint's registrations", source);
        Ok(Self {
            published: Chunks::new(key).map_err(system)?,
            key,
            table: RegistrationTable::new(key[0]),
            shares: BTreeMap::new(),
            lingering: Lingering::default(),
        })
    }

    /// The memory in which they are published.
    pub(crate) fn chunks(&self) -> &Chunks {
        &self.published
    }

    /// Registers memory. Also says what is to be sent to peers: the segment of library memory, by
    /// its first registration, unless it has lingered; and a further chunk.
    pub(crate) fn register(
        &mut self,
        memory: Memory,
        rights: Rights,
        only: Option<&Connection>,
    ) -> Result<(RmaHandle, News), RegisterError> {
        let has_chunk = self.published.reserve(self.table.next_index())?;
        let (start, len) = (memory.start() as u64, memory.len());
        let found = arena::find(&memory);
        let offset = found.as_ref().map_or(0, |(.., offset)| *offset);
        let shared = found.map(|(segment, number, _)| Shared { number, segment });
        let own = Own { dead: false, shared: shared.clone(), importers: Vec::new() };
        let only = only.map(name_of);
        let (number, handle) = self.table.register(memory, rights, only, own)?;
        let words = self.published.entry(number.index);
        words[word::START].store(start, Ordering::Relaxed);
        words[word::LEN].store(len, Ordering::Relaxed);
        words[word::RIGHTS].store(u64::from(rights.bits()), Ordering::Relaxed);
        words[word::SEGMENT].store(shared.as_ref().map_or(0, |shared| shared.number), Ordering::Relaxed);
        words[word::OFFSET].store(offset as u64, Ordering::Relaxed);
        words[word::HASH].store(hash(self.key, handle.words()[1]), Ordering::Relaxed);
        words[word::ONLY].store(only.unwrap_or(0), Ordering::Relaxed);
        // Release: publishes the entry with its generation.
        words[word::GENERATION].store(u64::from(number.generation), Ordering::Release);
        let Some(shared) = shared else { return Ok((handle, News { segment: None, has_chunk })) };
        let number = shared.number;
        let (count, _) = self.shares.entry(number).or_insert((0, shared));
        *count += 1;
        let is_new = *count == 1 && !self.lingering.remove(number);
        Ok((handle, News { segment: is_new.then_some(number), has_chunk }))
    }

    /// The living registration that a handle names, if it serves the connection with this name.
    #[inline(always)]
    pub(crate) fn find(&self, handle: &RmaHandle, name: u64) -> Option<(Registration, &Memory, Rights)> {
        let (number, entry) = self.table.find(handle.name())?;
        let memory = entry.memory_for(name).filter(|_| !entry.state.dead)?;
        Some((number, memory, entry.rights()))
    }

    /// As [`Registry::find`], for this side's own operation of a connection.
    pub(crate) fn find_for(&self, handle: &RmaHandle, cell: &Connection) -> Option<(Registration, &Memory)> {
        let (number, memory, _) = self.find(handle, name_of(cell))?;
        Some((number, memory))
    }

    /// The registration that a handle names, to be deregistered: living, or killed and not yet
    /// forgotten.
    pub(crate) fn find_to_kill(&self, handle: &RmaHandle) -> Option<Registration> {
        self.table.find(handle.name()).map(|(number, _)| number)
    }

    /// The memory of a registration found before, if it still lives.
    #[inline]
    pub(crate) fn living(&self, number: Registration) -> Option<&Memory> {
        self.table.get(number).filter(|entry| !entry.state.dead)?.memory()
    }

    /// Marks a registration dead: peers that look from now on refuse it. Those that looked before
    /// have announced it.
    pub(crate) fn kill(&mut self, number: Registration) {
        if let Some(entry) = self.table.get_mut(number) {
            entry.state.dead = true;
            let words = self.published.entry(number.index);
            hazard::retire(&words[word::GENERATION], u64::from(number.generation.wrapping_add(1)));
        }
    }

    /// The peer of this lane has imported a registration, and is to know of its end.
    pub(crate) fn note_importer(&mut self, number: Registration, lane: u32) {
        if let Some(entry) = self.table.get_mut(number)
            && !entry.state.importers.contains(&lane)
        {
            entry.state.importers.push(lane);
        }
    }

    /// The lanes whose peers are to know that a registration has ended, each once, and what it is
    /// called among them.
    pub(crate) fn take_importers(&mut self, number: Registration) -> (Vec<u32>, u64) {
        let importers = self.table.get_mut(number).map(|entry| std::mem::take(&mut entry.state.importers));
        (importers.unwrap_or_default(), number.mixed(self.key[0]))
    }

    /// Marks the registrations dead that serve this connection alone, which has ended.
    pub(crate) fn orphan(&mut self, cell: &Connection) {
        for number in self.table.orphan(name_of(cell)) {
            self.kill(number);
        }
    }

    /// Marks all registrations dead, for the end of the endpoint.
    pub(crate) fn kill_all(&mut self) {
        let numbers: Vec<_> = self.table.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.kill(number);
        }
    }

    /// Forgets a dead registration that nobody announces any more. Its library memory lingers from
    /// this time on, milliseconds, if it was the last one there. Returns whether it does.
    pub(crate) fn forget(&mut self, number: Registration, now: impl FnOnce() -> u64) -> bool {
        let shared = self.table.get_mut(number).and_then(|entry| entry.state.shared.take());
        self.table.remove(number);
        let Some(shared) = shared else { return false };
        let Some((count, _)) = self.shares.get_mut(&shared.number) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.shares.remove(&shared.number);
            self.lingering.insert(shared.number, shared.segment.len() as u64, now());
        }
        is_last
    }

    /// A segment that peers are to give back, if there is one.
    pub(crate) fn expire(&mut self, now: u64) -> Option<u64> {
        self.lingering.expire(now)
    }

    /// When a segment is to be given back, milliseconds.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.lingering.deadline()
    }

    /// Whether peers that have this segment keep it.
    pub(crate) fn keeps(&self, number: u64) -> bool {
        self.shares(number) > 0 || self.lingering.contains(number)
    }

    /// The library allocations behind living registrations, each once.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &Shared> + '_ {
        self.shares.values().map(|(_, shared)| shared)
    }

    /// How many registrations lie in this library allocation.
    pub(crate) fn shares(&self, number: u64) -> usize {
        self.shares.get(&number).map_or(0, |(count, _)| *count)
    }

    /// The segment of a library allocation with registrations.
    pub(crate) fn segment_of(&self, number: u64) -> Option<&Segment> {
        self.shares.get(&number).map(|(_, shared)| &*shared.segment)
    }
}

/// A peer's registrations, which this side can only read.
pub(crate) struct PeerRegistry {
    published: PeerChunks,
    key: [u64; 2],
    /// The peer's number of the lane.
    lane: u32,
    /// The handle whose secret was found right last: a registration's hash does not change while
    /// its generation lives.
    verified: [u64; 2],
}

/// Where a peer's registered bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) number: Registration,
    /// Address in the peer of the operation's first byte.
    pub(crate) address: u64,
    /// The library segment they lie in, 0 for none, and their offset there.
    pub(crate) segment: u64,
    pub(crate) segment_offset: u64,
}

/// What a peer says of a registration that lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub(crate) target: Target,
    pub(crate) len: u64,
    pub(crate) rights: Rights,
}

impl PeerRegistry {
    /// `lane`: the peer's number of the lane.
    pub(crate) fn attach(fd: rustix::fd::OwnedFd, lane: u32) -> rustix::io::Result<Self> {
        let published = PeerChunks::attach(fd)?;
        let header = published.header();
        let key = [header[0].load(Ordering::Relaxed), header[1].load(Ordering::Relaxed)];
        Ok(Self { published, key, lane, verified: [0; 2] })
    }

    /// The chunks.
    pub(crate) fn chunks(&mut self) -> &mut PeerChunks {
        &mut self.published
    }

    /// Whether the registration that a handle names may be published in a chunk that is not mapped
    /// here.
    pub(crate) fn lacks(&self, handle: &RmaHandle) -> bool {
        self.published.lacks(Registration::unmixed(self.key[0], handle.name()[0]).index)
    }

    /// Finds the registration that a handle names, if it serves this connection, which has this
    /// number on the peer's side.
    #[inline]
    pub(crate) fn find(&mut self, connection: u32, handle: &RmaHandle) -> Option<Published> {
        let [first, secret] = handle.name();
        let Registration { index, generation } = Registration::unmixed(self.key[0], first);
        let known = self.verified == [first, secret];
        let words = self.published.entry(index)?;
        let living = u64::from(generation);
        let published = words[word::GENERATION].load(Ordering::Relaxed);
        // Pairs with the release in `register`; as in `PeerChunks::entry`.
        fence(Ordering::Acquire);
        if generation.is_multiple_of(2) || published != living {
            return None;
        }
        let read = |at: usize| words[at].load(Ordering::Relaxed);
        let rights = u32::try_from(read(word::RIGHTS)).ok().and_then(Rights::from_bits)?;
        let only = read(word::ONLY);
        if !known && read(word::HASH) != hash(self.key, secret) || only != 0 && only != name(self.lane, connection) {
            return None;
        }
        let target = Target {
            number: Registration { index, generation },
            address: read(word::START),
            segment: read(word::SEGMENT),
            segment_offset: read(word::OFFSET),
        };
        let found = Published { target, len: read(word::LEN), rights };
        self.verified = [first, secret];
        Some(found)
    }

    /// Finds the bytes that an operation names: by their handle, with `offset` and `len`. None when
    /// handle, right or range do not allow it to this connection, which has this number on the
    /// peer's side.
    pub(crate) fn resolve(
        &mut self,
        connection: u32,
        handle: &RmaHandle,
        (offset, len): (u64, u64),
        right: Rights,
    ) -> Option<Target> {
        let Published { target, len: registered, rights } = self.find(connection, handle)?;
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= registered);
        let address = target.address.checked_add(offset)?;
        let segment_offset = target.segment_offset.checked_add(offset)?;
        (rights.has(right) && is_inside).then_some(Target { address, segment_offset, ..target })
    }

    /// Protects a registration from its end while this side copies, if it still lives; until
    /// [`hazard::release`].
    pub(crate) fn enter(&self, hazard: &AtomicU64, number: Registration) -> bool {
        // Never 0: a living generation is odd.
        hazard::protect(hazard, number.word(), || {
            let words = self.published.entry(number.index);
            words.is_some_and(|words| words[word::GENERATION].load(Ordering::Relaxed) == u64::from(number.generation))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Registry;
    use crate::format::packet::Kind;
    use crate::memory::announced::Announced;
    use cci_mem::arena::SharedMemory;
    use cci_mem::memory::{HeapBytes, Memory};
    use cci_proto::{Rights, RmaHandle};
    use std::sync::Arc;

    fn memory(len: usize) -> Memory {
        Memory::of_bytes(&Arc::new(HeapBytes::new(vec![0; len])))
    }

    #[test]
    fn a_handle_is_stale_after_deregistration_and_never_names_its_successor() {
        let mut registry = Registry::new([1, 2]).unwrap();
        let memory = memory(16);
        let (handle, _) = registry.register(memory.clone(), Rights::READ, None).unwrap();
        let (number, _, rights) = registry.find(&handle, 1).unwrap();
        assert_eq!(rights, Rights::READ);
        let mut invented = handle;
        let mut words = invented.words();
        words[1] ^= 1;
        invented = RmaHandle::from_words(words);
        assert!(registry.find(&invented, 1).is_none());
        registry.kill(number);
        registry.forget(number, || 0);
        assert!(registry.find(&handle, 1).is_none() && registry.living(number).is_none());
        let (again, _) = registry.register(memory.clone(), Rights::READ, None).unwrap();
        assert_ne!(again, handle);
        assert!(registry.find(&handle, 1).is_none());
    }

    #[test]
    fn a_segment_that_is_registered_again_is_neither_sent_nor_taken_back() {
        let mut registry = Registry::new([7, 8]).unwrap();
        let mut announced = Announced::default();
        let shared = SharedMemory::new(4096).unwrap();
        let turn = |registry: &mut Registry| {
            let (handle, new) = registry.register(shared.memory(), Rights::READ, None).unwrap();
            let (number, ..) = registry.find(&handle, 1).unwrap();
            registry.kill(number);
            (number, new.segment)
        };
        let (first, new) = turn(&mut registry);
        let segment = new.expect("the peer does not know it");
        announced.on_change(segment);
        assert_eq!(announced.next(&registry), Some((Kind::Segment, segment)));
        announced.on_sent(Kind::Segment, segment);
        assert!(registry.forget(first, || 0));
        announced.on_change_of_all();
        assert_eq!(announced.next(&registry), None, "it lingers");
        let (second, new) = turn(&mut registry);
        assert_eq!((new, registry.deadline()), (None, None), "the peer has it still");
        assert!(registry.forget(second, || 0));
        let gone = registry.expire(registry.deadline().expect("it lingers"));
        assert_eq!(gone, Some(segment));
        announced.on_change(segment);
        assert_eq!(announced.next(&registry), Some((Kind::SegmentGone, segment)));
    }

    #[test]
    fn a_handle_carries_no_address() {
        let mut registry = Registry::new([5, 6]).unwrap();
        let memory = memory(4096);
        let start = memory.start() as u64;
        let (handle, _) = registry.register(memory, Rights::NONE, None).unwrap();
        assert!(handle.words().iter().all(|word| word >> 12 != start >> 12));
    }
}
