//! Match lists, whose order the program makes.

use crate::classes::{Classes, Entry};
use crate::lists::{Links, List};
use crate::nodes::{NONE, Nodes};
use crate::pattern::{Envelope, Offer, Pattern};
use crate::{NoMemory, Ticket};

/// Labels lie below this. Between any two entries there is a label, or some are given new ones.
const END: u64 = 1 << 62;
/// Between the last entry and one that is put behind it.
const GAP: u64 = 1 << 32;
/// A range of 2^i labels is dense with more than (2/T)^i entries (Bender, Cole, Demaine,
/// Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a list", ESA 2002;
/// T between 1 and 2).
const T: f64 = 1.3;

#[derive(Debug)]
struct Item<T> {
    /// In the order of the list.
    order: Links,
    item: T,
}

/// A match list: a message goes to the first entry that matches it and accepts it.
///
/// Entries that do not match are not walked. Inserting costs the same at any place, but for new
/// labels now and then (amortized O(log n)).
///
/// # Example
///
/// ```
/// use cci_matching::{Envelope, Ordered, Pattern};
///
/// let mut list = Ordered::new();
/// let last = list.push_back(Pattern::any(), ("rest", 1000))?;
/// list.insert_before(last, Pattern::exact(1, 7), ("first", 8))?.expect("still there");
///
/// // An entry may refuse, for want of space for instance, and matching goes on.
/// let message = Envelope { source: 1, bits: 7 };
/// let found = list.find(&message, |(_, space)| *space >= 100).expect("the rest takes it");
/// assert_eq!(list.get(found), Some(&("rest", 1000)));
/// # Ok::<(), cci_matching::NoMemory<(&str, i32)>>(())
/// ```
#[derive(Debug)]
pub struct Ordered<T> {
    classes: Classes<Item<T>>,
    order: List,
}

fn order<T>(entries: &mut Nodes<Entry<Item<T>>>, at: u32) -> Option<&mut Links> {
    entries.at_mut(at).map(|entry| &mut entry.item.order)
}

impl<T> Ordered<T> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { classes: Classes::new(), order: List::EMPTY }
    }

    /// Inserts an entry before all others.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn push_front(&mut self, pattern: Pattern, item: T) -> Result<Ticket, NoMemory<T>> {
        self.insert(NONE, pattern, item)
    }

    /// Inserts an entry behind all others.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn push_back(&mut self, pattern: Pattern, item: T) -> Result<Ticket, NoMemory<T>> {
        self.insert(self.order.last, pattern, item)
    }

    /// Inserts an entry before another; `None`: the other is gone.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn insert_before(&mut self, other: Ticket, pattern: Pattern, item: T) -> Result<Option<Ticket>, NoMemory<T>> {
        match self.links(other).map(|links| links.prev) {
            Some(prev) => self.insert(prev, pattern, item).map(Some),
            None => Ok(None),
        }
    }

    /// Inserts an entry behind another; `None`: the other is gone.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn insert_after(&mut self, other: Ticket, pattern: Pattern, item: T) -> Result<Option<Ticket>, NoMemory<T>> {
        match self.links(other) {
            Some(_) => self.insert(other.index, pattern, item).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the first entry that matches and that `accepts`. It is asked for each entry that
    /// matches, in the order of the list, until it says yes.
    pub fn find(&mut self, message: &Envelope, mut accepts: impl FnMut(&mut T) -> bool) -> Option<Ticket> {
        self.find_offer(message, Offer::NONE, |item, _| accepts(item))
    }

    /// Returns the first entry that matches, offers what is needed, and that `accepts`. Entries
    /// that offer less are passed over by a look at their [`Offer`] alone. One that refuses may
    /// change its offer, so that it is passed over the next time.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_matching::{Envelope, Offer, Ordered, Pattern};
    ///
    /// let mut list = Ordered::new();
    /// let small = list.push_back(Pattern::any(), "small")?;
    /// let large = list.push_back(Pattern::any(), "large")?;
    /// list.set_offer(small, Offer { rights: 1, room: 8 });
    ///
    /// let (message, need) = (Envelope { source: 1, bits: 7 }, Offer { rights: 1, room: 9 });
    /// let mut asked = Vec::new();
    /// let found = list.find_offer(&message, need, |item, _| {
    ///     asked.push(*item);
    ///     true
    /// });
    /// assert_eq!((found, asked), (Some(large), vec!["large"]));
    /// # Ok::<(), cci_matching::NoMemory<&str>>(())
    /// ```
    #[inline]
    pub fn find_offer(
        &mut self,
        message: &Envelope,
        need: Offer,
        mut accepts: impl FnMut(&mut T, &mut Offer) -> bool,
    ) -> Option<Ticket> {
        let at = self.classes.find(message, need, |item, offer| accepts(&mut item.item, offer))?;
        Some(self.classes.entries.key(at))
    }

    /// Sets what an entry offers; a new one offers [`Offer::ALL`]. Nothing happens where the entry
    /// is gone.
    pub fn set_offer(&mut self, entry: Ticket, offer: Offer) {
        if self.classes.entries.get(entry).is_some() {
            self.classes.set_offer(entry.index, offer);
        }
    }

    /// Returns an entry.
    #[must_use]
    pub fn get(&self, ticket: Ticket) -> Option<&T> {
        self.classes.entries.get(ticket).map(|entry| &entry.item.item)
    }

    /// Returns an entry to be changed.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.classes.entries.get_mut(ticket).map(|entry| &mut entry.item.item)
    }

    /// Takes out an entry.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.classes.entries.get(ticket)?;
        let Item { order: own, item } = self.classes.remove(ticket.index)?.item;
        self.order.unlink(&mut self.classes.entries, order, own);
        Some(item)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, Pattern, &T)> {
        let mut at = self.order.first;
        std::iter::from_fn(move || {
            let (index, entry) = (at, self.classes.entries.at(at)?);
            at = entry.item.order.next;
            Some((self.classes.entries.key(index), self.classes.pattern(entry), &entry.item.item))
        })
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn links(&self, ticket: Ticket) -> Option<Links> {
        self.classes.entries.get(ticket).map(|entry| entry.item.order)
    }

    /// Inserts behind the entry at `prev`, or first.
    fn insert(&mut self, prev: u32, pattern: Pattern, item: T) -> Result<Ticket, NoMemory<T>> {
        let next = match self.classes.entries.at(prev) {
            Some(entry) => entry.item.order.next,
            None => self.order.first,
        };
        let label = self.label_between(prev, next);
        let inserted = self.classes.insert(pattern, label, Item { order: Links::NONE, item }, [prev, next]);
        let ticket = inserted.map_err(|NoMemory(item)| NoMemory(item.item))?;
        self.order.link(&mut self.classes.entries, order, (ticket.index, prev));
        Ok(ticket)
    }

    fn label(&self, at: u32) -> Option<u64> {
        self.classes.label(at)
    }

    /// A label between those of two neighbours, which may get others.
    fn label_between(&mut self, prev: u32, next: u32) -> u64 {
        loop {
            let (from, to) = (self.label(prev), self.label(next));
            let label = match (from, to) {
                (None, None) => END / 2,
                (Some(from), None) => from + GAP.min((END - from) / 2),
                (None, Some(to)) => to - GAP.min(to.div_ceil(2)),
                (Some(from), Some(to)) => from + (to - from) / 2,
            };
            // Below `END`, and no neighbour's.
            if from.is_none_or(|from| label > from) && to.is_none_or(|to| label < to) {
                return label;
            }
            self.spread(if from.is_some() { prev } else { next });
        }
    }

    /// Spreads the labels around an entry over the smallest range that is not dense.
    #[cold]
    fn spread(&mut self, around: u32) {
        let Some(label) = self.label(around) else { return };
        let (mut first, mut last, mut count, mut room) = (around, around, 1_u64, 1.0_f64);
        for bits in 1..=END.trailing_zeros() {
            let size = 1 << bits;
            let begin = label & !(size - 1);
            room *= 2.0 / T;
            first = self.walk(first, |order| order.prev, |label| label >= begin, &mut count);
            last = self.walk(last, |order| order.next, |label| label - begin < size, &mut count);
            #[expect(clippy::cast_precision_loss, reason = "the bound need not be exact")]
            let is_dense = count as f64 > room || size / (count + 1) < 2;
            if !is_dense || size == END {
                return self.label_evenly((first, last), begin, size / (count + 1));
            }
        }
    }

    /// Goes on from `at` while the labels are in range; the last in range.
    fn walk(&self, mut at: u32, step: impl Fn(Links) -> u32, is_inside: impl Fn(u64) -> bool, count: &mut u64) -> u32 {
        while let Some(entry) = self.classes.entries.at(at) {
            let next = step(entry.item.order);
            if !self.label(next).is_some_and(&is_inside) {
                break;
            }
            (at, *count) = (next, *count + 1);
        }
        at
    }

    fn label_evenly(&mut self, (first, last): (u32, u32), begin: u64, gap: u64) {
        let (mut at, mut label) = (first, begin);
        while let Some(next) = self.classes.entries.at(at).map(|entry| entry.item.order.next) {
            label += gap;
            self.classes.set_label(at, label);
            if at == last {
                return;
            }
            at = next;
        }
    }
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self::new()
    }
}
