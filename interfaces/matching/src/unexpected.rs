//! Messages that no receive has matched.

use crate::lists::{Buckets, Key, Links, List};
use crate::nodes::{NONE, Nodes, nodes};
use crate::pattern::{Envelope, Masks, Pattern};
use crate::{NoMemory, Ticket};

/// Kinds of patterns that can be looked up by a hash at a time: full ones, and those of an MPI
/// (any source, any tag, a few more). Each costs a message 8 bytes, and a hash once it is in use.
const VIEWS: usize = 6;
/// A shorter queue is walked: cheaper than another hash for each message.
const SHORT: usize = 32;

/// A message in the queue.
#[derive(Debug)]
struct Waiting<T> {
    envelope: Envelope,
    /// In the order of arrival.
    arrival: Links,
    /// Among those that the same key of a view finds.
    links: [Links; VIEWS],
    item: T,
}

/// The messages by the key of one pair of masks.
#[derive(Debug)]
struct View {
    masks: Masks,
    buckets: Buckets,
}

/// Unexpected messages: a receive gets the oldest that it matches.
///
/// Full patterns, and the first few kinds of wildcards that are used on a long queue, cost the same
/// however many messages there are; further kinds walk the queue. Whoever inserts bounds it.
///
/// # Example
///
/// ```
/// use cci_matching::{Envelope, Pattern, Unexpected};
///
/// let mut unexpected = Unexpected::new();
/// for source in [5, 4] {
///     unexpected.insert(Envelope { source, bits: 7 }, format!("of {source}"))?;
/// }
/// let any = Pattern::new(0, 0, 7, !0);
/// assert_eq!(unexpected.peek(&any).map(|(message, _)| message.source), Some(5));
/// assert_eq!(unexpected.take(&Pattern::exact(4, 7)).map(|(_, text)| text).as_deref(), Some("of 4"));
/// assert_eq!(unexpected.len(), 1);
/// # Ok::<(), cci_matching::NoMemory<String>>(())
/// ```
#[derive(Debug)]
pub struct Unexpected<T> {
    nodes: Nodes<Waiting<T>>,
    arrival: List,
    /// The first is that of full patterns.
    views: Vec<View>,
}

fn arrival<T>(nodes: &mut Nodes<Waiting<T>>, at: u32) -> Option<&mut Links> {
    nodes.at_mut(at).map(|node| &mut node.arrival)
}

fn in_view<T>(number: usize) -> impl Fn(&mut Nodes<Waiting<T>>, u32) -> Option<&mut Links> {
    move |nodes, at| nodes.at_mut(at).map(|node| &mut node.links[number])
}

impl<T> Unexpected<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new() -> Self {
        let full = View { masks: Masks::ALL, buckets: Buckets::default() };
        Self { nodes: nodes(), arrival: List::EMPTY, views: vec![full] }
    }

    /// Inserts a message behind all others.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn insert(&mut self, envelope: Envelope, item: T) -> Result<Ticket, NoMemory<T>> {
        let Self { nodes, views, .. } = self;
        if nodes.reserve().is_none() || views.iter_mut().any(|view| view.reserve(nodes).is_none()) {
            return Err(NoMemory(item));
        }
        let ticket =
            nodes.insert_with(|_| Waiting { envelope, arrival: Links::NONE, links: [Links::NONE; VIEWS], item });
        self.arrival.link(nodes, arrival, (ticket.index, self.arrival.last));
        views.iter_mut().enumerate().for_each(|(number, view)| view.add(nodes, number, ticket.index));
        Ok(ticket)
    }

    /// Returns the oldest message that a pattern matches, and leaves it in the queue.
    pub fn peek(&mut self, pattern: &Pattern) -> Option<(&Envelope, &T)> {
        let at = self.find(pattern)?;
        self.nodes.at(at).map(|node| (&node.envelope, &node.item))
    }

    /// Takes out the oldest message that a pattern matches.
    pub fn take(&mut self, pattern: &Pattern) -> Option<(Envelope, T)> {
        let at = self.find(pattern)?;
        self.remove_at(at)
    }

    /// Takes out a message.
    pub fn remove(&mut self, ticket: Ticket) -> Option<(Envelope, T)> {
        self.nodes.get(ticket)?;
        self.remove_at(ticket.index)
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &Envelope, &T)> {
        let mut at = self.arrival.first;
        std::iter::from_fn(move || {
            let (index, node) = (at, self.nodes.at(at)?);
            at = node.arrival.next;
            Some((self.nodes.key(index), &node.envelope, &node.item))
        })
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&mut self, pattern: &Pattern) -> Option<u32> {
        let known = self.views.iter().position(|view| view.masks == pattern.masks);
        let number = match known {
            Some(number) => number,
            None if self.len() <= SHORT => return self.walk(pattern),
            None => match self.add_view(pattern.masks) {
                Some(number) => number,
                None => return self.walk(pattern),
            },
        };
        let View { masks, buckets } = &self.views[number];
        Some(buckets.get(pattern.key(), key_of(*masks, &self.nodes)).first).filter(|at| *at != NONE)
    }

    fn walk(&self, pattern: &Pattern) -> Option<u32> {
        let mut at = self.arrival.first;
        while let Some(node) = self.nodes.at(at) {
            if pattern.matches(&node.envelope) {
                return Some(at);
            }
            at = node.arrival.next;
        }
        None
    }

    /// Adds a view of all messages; none when there are enough, or no memory.
    #[cold]
    fn add_view(&mut self, masks: Masks) -> Option<usize> {
        let number = self.views.len();
        if number == VIEWS || self.views.try_reserve(1).is_err() {
            return None;
        }
        let mut view = View { masks, buckets: Buckets::default() };
        let mut at = self.arrival.first;
        while let Some(next) = self.nodes.at(at).map(|node| node.arrival.next) {
            view.reserve(&self.nodes)?;
            view.add(&mut self.nodes, number, at);
            at = next;
        }
        self.views.push(view);
        Some(number)
    }

    fn remove_at(&mut self, index: u32) -> Option<(Envelope, T)> {
        let Waiting { envelope, links, .. } = *self.nodes.at(index)?;
        for (number, View { masks, buckets }) in self.views.iter_mut().enumerate() {
            let key_of = |nodes: &Nodes<_>, at| key_of(*masks, nodes)(at);
            let unlink = |nodes: &mut Nodes<_>, list: &mut List| list.unlink(nodes, in_view(number), links[number]);
            buckets.change(masks.key(&envelope), &mut self.nodes, key_of, unlink);
        }
        let node = self.nodes.remove_at(index)?;
        self.arrival.unlink(&mut self.nodes, arrival, node.arrival);
        if self.is_empty() {
            // What a long queue needed costs short ones a hash for each message.
            self.views.truncate(1);
        }
        Some((node.envelope, node.item))
    }
}

/// The key of a message by masks.
fn key_of<T>(masks: Masks, nodes: &Nodes<Waiting<T>>) -> impl Fn(u32) -> Option<Key> {
    move |at| nodes.at(at).map(|node| masks.key(&node.envelope))
}

impl View {
    /// Makes room for another message; `None`: there is no memory.
    fn reserve<T>(&mut self, nodes: &Nodes<Waiting<T>>) -> Option<()> {
        self.buckets.reserve(key_of(self.masks, nodes))
    }

    /// Adds the youngest message.
    fn add<T>(&mut self, nodes: &mut Nodes<Waiting<T>>, number: usize, at: u32) {
        let Self { masks, buckets } = self;
        let key_of = |nodes: &Nodes<_>, at| key_of(*masks, nodes)(at);
        let Some(key) = key_of(nodes, at) else { return };
        buckets.change(key, nodes, key_of, |nodes, list| list.link(nodes, in_view(number), (at, list.last)));
    }
}

impl<T> Default for Unexpected<T> {
    fn default() -> Self {
        Self::new()
    }
}
