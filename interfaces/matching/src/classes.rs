//! Patterns by classes: those with the same masks can be found by one hash (tuple space search:
//! Srinivasan, Suri and Varghese, "Packet classification using tuple space search", SIGCOMM 1999).

use crate::lists::{Buckets, Key, Links, List};
use crate::nodes::{NONE, Nodes, nodes};
use crate::pattern::{Envelope, Masks, Offer, Pattern};
use crate::{NoMemory, Ticket};
use std::num::NonZeroU32;

/// What a pattern compares with, and what waits behind it. Of two that match, the one with the
/// lower label is first.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    wanted: Envelope,
    /// Its masks are those of its class.
    class: ClassNumber,
    pub(crate) item: T,
}

/// With the number of lives of its place: a receive that is posted costs 56 bytes, with its chain.
const _: () = assert!(size_of::<Option<Entry<u32>>>() == 24);

/// The place of a class, and one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassNumber(NonZeroU32);

impl ClassNumber {
    /// There are far fewer classes than numbers: `reserve` fails long before.
    fn of(place: usize) -> Self {
        Self(u32::try_from(place).map_or(NonZeroU32::MAX, |place| NonZeroU32::MIN.saturating_add(place)))
    }

    #[inline]
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The key of the entry at an index.
#[inline]
fn key_of<T>(entries: &Nodes<Entry<T>>, at: u32) -> Option<Key> {
    entries.at(at).map(|entry| entry.wanted.key())
}

/// What a walk needs of an entry to pass it over: 24 bytes, apart from the rest of it, so that a
/// thousand of them lie in the first cache.
#[derive(Clone, Copy, Debug)]
struct Chain {
    label: u64,
    /// Among the entries of the same class and key, by label.
    links: Links,
    offer: Offer,
}

const _: () = assert!(size_of::<Chain>() == 24);

/// The chains of entries, by the index of the entry. Those of entries that are gone are stale.
#[derive(Debug)]
struct Chains(Vec<Chain>);

impl Chains {
    #[inline]
    fn get(&self, at: u32) -> Option<Chain> {
        self.0.get(at as usize).copied()
    }

    /// Sets the chain of a new entry, for which there is room.
    fn begin(&mut self, at: u32, label: u64) {
        let chain = Chain { label, links: Links::NONE, offer: Offer::ALL };
        match self.0.get_mut(at as usize) {
            Some(place) => *place = chain,
            // Indices are given in turn.
            None => self.0.push(chain),
        }
    }
}

#[derive(Debug)]
struct Class {
    masks: Masks,
    /// Those in its buckets.
    entries: u32,
    spread: Spread,
    buckets: Buckets,
}

/// How many entries in the buckets of a class have a key of each of a few kinds. A message of a
/// kind that none has needs no hash: it is for the newest entry, or unexpected.
#[derive(Debug)]
struct Spread([u32; SPREAD]);

const SPREAD: usize = 64;

impl Spread {
    #[inline]
    fn of((source, bits): Key) -> usize {
        // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, 6.4): the upper
        // bits depend on all.
        let mixed = source.rotate_left(32).wrapping_add(bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - SPREAD.ilog2())) as usize
    }
}

impl Class {
    fn new(masks: Masks) -> Self {
        Self { masks, entries: 0, spread: Spread([0; SPREAD]), buckets: Buckets::default() }
    }

    /// Counts an entry that joins or leaves the buckets.
    #[inline]
    fn count(&mut self, key: Key, change: impl Fn(u32) -> u32) {
        let kind = &mut self.spread.0[Spread::of(key)];
        (self.entries, *kind) = (change(self.entries), change(*kind));
    }

    /// Whether an entry in the buckets may match.
    #[inline]
    fn may_match(&self, envelope: &Envelope) -> bool {
        self.spread.0[Spread::of(self.masks.key(envelope))] > 0
    }

    /// The first entry that matches, or [`NONE`].
    #[inline]
    fn first<T>(&self, entries: &Nodes<Entry<T>>, envelope: &Envelope) -> u32 {
        self.buckets.get(self.masks.key(envelope), |at| key_of(entries, at)).first
    }
}

/// Entries by class, key and label.
#[derive(Debug)]
pub(crate) struct Classes<T> {
    pub(crate) entries: Nodes<Entry<T>>,
    chains: Chains,
    /// One without entries is used for the next new masks.
    classes: Vec<Class>,
    /// Used by a lookup: the next entry of each class.
    heads: Vec<u32>,
    /// An entry behind all others that is in no bucket yet, or [`NONE`]. The next one puts it
    /// there. Most programs wait for the message that they have asked for last: it is found without
    /// being entered and taken out again.
    newest: u32,
    /// The class of the entry that was inserted last: the next one mostly has its masks.
    recent: ClassNumber,
}

fn links(chains: &mut Chains, at: u32) -> Option<&mut Links> {
    chains.0.get_mut(at as usize).map(|chain| &mut chain.links)
}

impl<T> Classes<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: nodes(),
            chains: Chains(Vec::new()),
            classes: Vec::new(),
            heads: Vec::new(),
            newest: NONE,
            recent: ClassNumber(NonZeroU32::MIN),
        }
    }

    /// Makes room for an entry with this pattern, and returns the number of its class; `None`:
    /// there is no memory.
    #[inline]
    fn reserve(&mut self, pattern: &Pattern) -> Option<ClassNumber> {
        // A place that was used before has its chain.
        if !self.entries.has_free() {
            self.entries.reserve()?;
            self.chains.0.try_reserve((self.entries.len() + 1).saturating_sub(self.chains.0.len())).ok()?;
        }
        if self.classes.get(self.recent.place()).is_none_or(|class| class.masks != pattern.masks) {
            self.recent = ClassNumber::of(self.class_of(pattern.masks)?);
        }
        Some(self.recent)
    }

    /// The place of the class with these masks; `None`: there is no memory.
    #[inline(never)]
    fn class_of(&mut self, masks: Masks) -> Option<usize> {
        let is_it = |class: &Class| class.masks == masks;
        let found = self.classes.iter().position(is_it);
        if let Some(at) = found.or_else(|| self.classes.iter().position(|class| class.entries == 0)) {
            self.classes[at].masks = masks;
            return Some(at);
        }
        self.classes.try_reserve(1).ok()?;
        // A lookup has room for the heads of all.
        self.heads.try_reserve(self.classes.len() + 1).ok()?;
        self.classes.push(Class::new(masks));
        Some(self.classes.len() - 1)
    }

    /// Makes room in the buckets of a class for one more entry.
    fn reserve_bucket(&mut self, number: ClassNumber) -> Option<()> {
        self.classes[number.place()].buckets.reserve(|index| key_of(&self.entries, index))
    }

    /// Puts an entry into its bucket, where there is room.
    fn link(&mut self, index: u32, label: u64, near: [u32; 2]) {
        let Self { entries, chains, classes, .. } = self;
        let Some((number, wanted)) = entries.at(index).map(|entry| (entry.class, entry.wanted)) else { return };
        let class = &mut classes[number.place()];
        class.count(wanted.key(), |count| count + 1);
        class.buckets.change(wanted.key(), entries, key_of, |entries, list| {
            let prev = predecessor(entries, chains, *list, (number, wanted, label), near);
            list.link(chains, links, (index, prev));
        });
    }

    /// Puts the newest entry into its bucket; `None`: there is no memory, and it stays where it is.
    #[inline]
    fn link_newest(&mut self) -> Option<()> {
        if self.newest == NONE { Some(()) } else { self.link_at(self.newest) }
    }

    #[inline(never)]
    fn link_at(&mut self, index: u32) -> Option<()> {
        self.reserve_bucket(self.entries.at(index)?.class)?;
        self.newest = NONE;
        self.link(index, self.label(index)?, [NONE; 2]);
        Some(())
    }

    /// Inserts an entry behind all others.
    #[inline]
    pub(crate) fn insert_last(&mut self, pattern: Pattern, label: u64, item: T) -> Result<Ticket, NoMemory<T>> {
        let number = self.link_newest().and_then(|()| self.reserve(&pattern));
        let Some(number) = number else { return Err(NoMemory(item)) };
        let ticket = self.entries.insert_with(|_| Entry { wanted: pattern.wanted, class: number, item });
        self.chains.begin(ticket.index, label);
        self.newest = ticket.index;
        Ok(ticket)
    }

    /// Inserts an entry. `near` are entries that may have its class and key, and stand next to it:
    /// before it, and after it. Without them it is behind all others.
    pub(crate) fn insert(
        &mut self,
        pattern: Pattern,
        label: u64,
        item: T,
        near: [u32; 2],
    ) -> Result<Ticket, NoMemory<T>> {
        if near == [NONE; 2] {
            return self.insert_last(pattern, label, item);
        }
        let mut reserve = || {
            self.link_newest()?;
            let number = self.reserve(&pattern)?;
            self.reserve_bucket(number).map(|()| number)
        };
        let Some(number) = reserve() else { return Err(NoMemory(item)) };
        let ticket = self.entries.insert_with(|_| Entry { wanted: pattern.wanted, class: number, item });
        self.chains.begin(ticket.index, label);
        self.link(ticket.index, label, near);
        Ok(ticket)
    }

    /// Takes out the entry at an index.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Option<Entry<T>> {
        if index == self.newest {
            self.newest = NONE;
        } else {
            self.unlink(index);
        }
        self.entries.remove_at(index)
    }

    fn unlink(&mut self, index: u32) {
        let Self { entries, chains, classes, .. } = self;
        let (Some(entry), Some(chain)) = (entries.at(index), chains.get(index)) else { return };
        let (key, class) = (entry.wanted.key(), &mut classes[entry.class.place()]);
        class.count(key, |count| count - 1);
        class.buckets.change(key, entries, key_of, |_, list| list.unlink(chains, links, chain.links));
    }

    /// The pattern of an entry.
    pub(crate) fn pattern(&self, entry: &Entry<T>) -> Pattern {
        Pattern { wanted: entry.wanted, masks: self.classes[entry.class.place()].masks }
    }

    /// The label of the entry at an index.
    pub(crate) fn label(&self, at: u32) -> Option<u64> {
        self.chains.get(at).map(|chain| chain.label)
    }

    /// Sets what the entry at an index offers.
    pub(crate) fn set_offer(&mut self, at: u32, offer: Offer) {
        if let Some(chain) = self.chains.0.get_mut(at as usize) {
            chain.offer = offer;
        }
    }

    /// Gives an entry another label, by which its order stays.
    pub(crate) fn set_label(&mut self, at: u32, label: u64) {
        if let Some(chain) = self.chains.0.get_mut(at as usize) {
            chain.label = label;
        }
    }

    /// Takes out the first entry that matches, whatever it offers.
    #[inline]
    pub(crate) fn take(&mut self, envelope: &Envelope) -> Option<T> {
        let linked = self.entries.len() - usize::from(self.newest != NONE);
        if linked == 0 { self.take_newest(envelope) } else { self.take_linked(envelope) }
    }

    #[inline(never)]
    fn take_linked(&mut self, envelope: &Envelope) -> Option<T> {
        let mut in_use = (0..self.classes.len()).filter(|at| self.classes[*at].entries > 0);
        let at = match (in_use.next(), in_use.next()) {
            (Some(only), None) => self.take_first(only, envelope),
            _ => self.find_linked(envelope, Offer::NONE, &mut |_, _| true).inspect(|at| self.unlink(*at)),
        };
        match at {
            Some(at) => self.entries.remove_at(at).map(|entry| entry.item),
            None => self.take_newest(envelope),
        }
    }

    /// Takes the first entry of a class that matches out of its bucket.
    #[inline]
    fn take_first(&mut self, class: usize, envelope: &Envelope) -> Option<u32> {
        let Self { entries, chains, classes, .. } = self;
        let class = &mut classes[class];
        if !class.may_match(envelope) {
            return None;
        }
        let key = class.masks.key(envelope);
        let at = class.buckets.take_first(key, chains, |_, at| key_of(entries, at), links)?;
        class.count(key, |count| count - 1);
        Some(at)
    }

    /// As [`Classes::take`], of the newest entry alone.
    #[inline]
    fn take_newest(&mut self, envelope: &Envelope) -> Option<T> {
        let Self { entries, classes, newest, .. } = self;
        let entry = entries.at(*newest)?;
        if classes.get(entry.class.place())?.masks.key(envelope) != entry.wanted.key() {
            return None;
        }
        entries.remove_at(std::mem::replace(newest, NONE)).map(|entry| entry.item)
    }

    /// The first entry that matches and that `accepts`, which is asked for each that matches and
    /// offers what is needed, in order.
    #[inline]
    pub(crate) fn find(
        &mut self,
        envelope: &Envelope,
        need: Offer,
        mut accepts: impl FnMut(&mut T, &mut Offer) -> bool,
    ) -> Option<u32> {
        if self.entries.len() > usize::from(self.newest != NONE)
            && let Some(at) = self.find_linked(envelope, need, &mut accepts)
        {
            return Some(at);
        }
        let Self { entries, chains, classes, newest, .. } = self;
        let entry = entries.at(*newest)?;
        if classes[entry.class.place()].masks.key(envelope) != entry.wanted.key() {
            return None;
        }
        walk(entries, chains, (*newest, u64::MAX), need, &mut accepts).ok()
    }

    /// As [`Classes::find`], of the entries in buckets.
    #[inline]
    fn find_linked(
        &mut self,
        envelope: &Envelope,
        need: Offer,
        accepts: &mut impl FnMut(&mut T, &mut Offer) -> bool,
    ) -> Option<u32> {
        let Self { entries, chains, classes, heads, .. } = self;
        if let [class] = &classes[..] {
            let first = class.first(entries, envelope);
            return walk(entries, chains, (first, u64::MAX), need, accepts).ok();
        }
        heads.clear();
        let in_use = classes.iter().filter(|class| class.entries > 0);
        heads.extend(in_use.map(|class| class.first(entries, envelope)).filter(|at| *at != NONE));
        loop {
            let (nearest, limit) = nearest(chains, heads)?;
            // Along one list, as far as no other list has an entry before.
            match walk(entries, chains, (heads[nearest], limit), need, accepts) {
                Ok(at) => return Some(at),
                Err(NONE) => drop(heads.swap_remove(nearest)),
                Err(at) => heads[nearest] = at,
            }
        }
    }
}

/// Walks a list from an entry on, below a label, to one that offers what is needed and that
/// `accepts`; or the entry before which it ended.
#[inline]
fn walk<T>(
    entries: &mut Nodes<Entry<T>>,
    chains: &mut Chains,
    (mut at, limit): (u32, u64),
    need: Offer,
    accepts: &mut impl FnMut(&mut T, &mut Offer) -> bool,
) -> Result<u32, u32> {
    while let Some(rest @ [_, ..]) = chains.0.get_mut(at as usize..) {
        // Most entries lie behind the one that they follow. So the place of the next one need not
        // wait for its number.
        for chain in rest {
            if chain.label >= limit {
                return Err(at);
            }
            if chain.offer.covers(need)
                && let Some(entry) = entries.at_mut(at)
                && accepts(&mut entry.item, &mut chain.offer)
            {
                return Ok(at);
            }
            let behind = at.wrapping_add(1);
            at = chain.links.next;
            if at != behind {
                break;
            }
        }
    }
    Err(NONE)
}

/// Which of these entries has the lowest label, and the lowest label of the others.
#[inline]
fn nearest(chains: &Chains, heads: &[u32]) -> Option<(usize, u64)> {
    let (mut nearest, mut lowest, mut limit) = (None, u64::MAX, u64::MAX);
    for (number, at) in heads.iter().enumerate() {
        let label = chains.get(*at)?.label;
        if label < lowest {
            (nearest, lowest, limit) = (Some(number), label, lowest);
        } else {
            limit = limit.min(label);
        }
    }
    nearest.map(|nearest| (nearest, limit))
}

/// The entry of the list behind which one with this label goes, or [`NONE`].
fn predecessor<T>(
    entries: &Nodes<Entry<T>>,
    chains: &Chains,
    list: List,
    (class, wanted, label): (ClassNumber, Envelope, u64),
    [before, after]: [u32; 2],
) -> u32 {
    let is_beside = |at: u32| entries.at(at).filter(|entry| (entry.class, entry.wanted) == (class, wanted));
    if is_beside(before).is_some() {
        return before;
    }
    if is_beside(after).is_some() {
        return chains.get(after).map_or(NONE, |chain| chain.links.prev);
    }
    let mut at = list.last;
    while let Some(chain) = chains.get(at) {
        if chain.label < label {
            return at;
        }
        at = chain.links.prev;
    }
    NONE
}
