//! The virtual network: frames between nodes, in virtual time. `docs/design/sim.md` has the model.
//!
//! Methods come in three kinds: what a node does ([`Network::send`], [`Network::wake_at`],
//! [`Network::charge`], [`Network::take`]), what moves time ([`Network::advance`]), and getters.

mod fault;
mod frame;
mod graph;
mod link;
mod node;
mod trace;

#[cfg(test)]
mod tests;

pub use cci_proto::Time;
pub use fault::{Faults, Rule};
pub use frame::Frame;
pub use graph::{Forward, Graph, LinkIndex, LinkSettings, NodeIndex, Processor};
pub use link::LinkStats;

use frame::Flights;
use link::{DirectedLink, Passage};
use node::Node;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trace::Trace;

/// Something that concerns a node, at the time at which [`Network::advance`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// A frame can be taken.
    Frame(NodeIndex),
    /// The time has come that it asked for.
    Wake(NodeIndex),
}

/// What is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A frame is in front of the hop-th link of its route; its last byte is there by `tail`.
    Hop { frame: u32, hop: u32, tail: Time },
    /// A frame has reached its node.
    Arrival { frame: u32 },
    /// A node may take in the first of the frames that wait for it.
    Take { node: u32 },
    /// A frame can be taken by its node's program.
    Ready { frame: u32 },
    /// A node must be woken.
    Wake { node: u32 },
}

/// An event with its place in the order of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    at: Time,
    sequence: u64,
    event: Event,
}

/// A network: a graph at work.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    graph: Graph,
    links: Vec<DirectedLink>,
    nodes: Vec<Node>,
    flights: Flights,
    queue: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
    now: Time,
    trace: Trace,
}

impl Network {
    /// A network in which nothing has happened yet, at time 0.
    #[must_use]
    pub fn new(seed: u64, graph: Graph) -> Self {
        let mut network = Self {
            seed,
            graph: Graph::new(),
            links: Vec::new(),
            nodes: Vec::new(),
            flights: Flights::default(),
            queue: BinaryHeap::new(),
            sequence: 0,
            now: Time(0),
            trace: Trace::default(),
        };
        network.grow(|empty| *empty = graph);
        network
    }

    /// Adds nodes, links and routes. What is there already stays as it is.
    pub fn grow(&mut self, change: impl FnOnce(&mut Graph)) {
        change(&mut self.graph);
        for edge in self.graph.links.iter().skip(self.links.len()) {
            self.links.push(DirectedLink::new(self.seed, edge));
        }
        for processor in self.graph.nodes.iter().skip(self.nodes.len()) {
            self.nodes.push(Node::new(*processor));
        }
    }

    /// Sends a frame, whose content is in parts one after the other. A frame to a node without a
    /// route is lost.
    pub fn send(&mut self, from: NodeIndex, to: NodeIndex, tag: u64, parts: &[&[u8]]) {
        let Some(node) = self.nodes.get_mut(from.0 as usize) else { return };
        let departure = node.send(self.now, parts.iter().map(|part| part.len()).sum());
        if self.graph.route(from, to).is_empty() {
            return;
        }
        let frame = self.flights.add(from, to, tag, parts);
        if departure > self.now {
            self.schedule(departure, Event::Hop { frame, hop: 0, tail: departure });
        } else {
            self.hop(frame, 0, departure);
        }
    }

    /// Wakes a node at this time; replaces what was asked before.
    pub fn wake_at(&mut self, node: NodeIndex, at: Option<Time>) {
        let Some(asking) = self.nodes.get_mut(node.0 as usize) else { return };
        asking.wake = at;
        let Some(at) = at.map(|at| at.max(self.now)) else { return };
        asking.wake = Some(at);
        // An earlier event that is scheduled already will schedule the right one.
        if asking.scheduled.is_none_or(|scheduled| scheduled > at) {
            asking.scheduled = Some(at);
            self.schedule(at, Event::Wake { node: node.0 });
        }
    }

    /// Keeps a node's processor busy for so many nanoseconds.
    pub fn charge(&mut self, node: NodeIndex, time: u64) {
        if let Some(node) = self.nodes.get_mut(node.0 as usize) {
            node.charge(self.now, time);
        }
    }

    /// A frame that has arrived for a node, the first first.
    pub fn take(&mut self, node: NodeIndex) -> Option<Frame> {
        let number = self.nodes.get_mut(node.0 as usize)?.arrived.pop_front()?;
        Some(self.flights.take(number))
    }

    /// Gives back a frame that was taken, so that its buffer serves another.
    pub fn recycle(&mut self, frame: Frame) {
        self.flights.recycle(frame);
    }

    /// Moves time to the next thing that concerns a node, but not beyond `limit`: then time is
    /// `limit`, and the answer `None`.
    pub fn advance(&mut self, limit: Time) -> Option<Occurrence> {
        while let Some(Reverse(next)) = self.queue.peek() {
            if next.at > limit {
                break;
            }
            let Some(Reverse(next)) = self.queue.pop() else { break };
            self.now = next.at;
            if let Some(occurrence) = self.handle(next.event) {
                return Some(occurrence);
            }
        }
        if limit > self.now && limit != Time(u64::MAX) {
            self.now = limit;
        }
        None
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// When a node's processor has done what it was charged with; not later than now when it is
    /// idle.
    #[must_use]
    pub fn idle_at(&self, node: NodeIndex) -> Time {
        self.nodes.get(node.0 as usize).map_or(Time(0), Node::idle_at)
    }

    /// When the next event is due; `None` when nothing is pending.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse(next)| next.at)
    }

    /// Frames on their way or not taken yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.count()
    }

    /// Frames that a node can take.
    #[must_use]
    pub fn waiting(&self, node: NodeIndex) -> usize {
        self.nodes.get(node.0 as usize).map_or(0, |node| node.arrived.len())
    }

    /// What has been delivered when, to whom, in one number: the same for the same seed and the
    /// same calls.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.trace.value()
    }

    /// Nodes, links, routes.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What a link is like now.
    #[must_use]
    pub fn link(&self, link: LinkIndex) -> Option<&LinkSettings> {
        Some(self.links.get(link.0 as usize)?.settings())
    }

    /// What a link has carried.
    #[must_use]
    pub fn link_stats(&self, link: LinkIndex) -> Option<LinkStats> {
        Some(self.links.get(link.0 as usize)?.stats)
    }

    /// Makes a link another one, from now on.
    pub fn set_link(&mut self, link: LinkIndex, settings: &LinkSettings) {
        if let Some(link) = self.links.get_mut(link.0 as usize) {
            link.set(settings);
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse(Scheduled { at, sequence: self.sequence, event }));
    }

    fn handle(&mut self, event: Event) -> Option<Occurrence> {
        match event {
            Event::Hop { frame, hop, tail } => {
                self.hop(frame, hop, tail);
                None
            }
            Event::Arrival { frame } => self.arrive(frame),
            Event::Take { node } => self.take_in(node),
            Event::Ready { frame } => Some(self.deliver(frame)),
            Event::Wake { node } => self.wake(node),
        }
    }

    /// A frame enters a link of its route.
    fn hop(&mut self, number: u32, hop: u32, tail: Time) {
        let frame = self.flights.get(number);
        let Some(at) = self.graph.route(frame.from, frame.to).get(hop as usize) else { return };
        let link = &mut self.links[at.0 as usize];
        let Passage::Through { head, tail, marked, rule, copy } = link.carry(self.now, tail, frame.bytes.len()) else {
            return self.lose(number);
        };
        frame.congested |= marked;
        match rule {
            Rule::Drop => return self.lose(number),
            Rule::Corrupt => fault::corrupt(&mut frame.bytes, link.random()),
            Rule::Duplicate => {
                let twin = self.flights.copy(number);
                self.pass_on(twin, hop, copy, copy);
            }
            Rule::Pass | Rule::Deliver(_) => {}
        }
        self.pass_on(number, hop, head, tail);
    }

    /// A frame leaves the hop-th link of its route, its first byte at `head`, its last at `tail`.
    fn pass_on(&mut self, number: u32, mut hop: u32, mut head: Time, mut tail: Time) {
        let frame = self.flights.get(number);
        let (route, len) = (self.graph.route(frame.from, frame.to), frame.bytes.len());
        loop {
            hop += 1;
            let Some(next) = route.get(hop as usize) else {
                return self.schedule(tail, Event::Arrival { frame: number });
            };
            let link = &mut self.links[next.0 as usize];
            let entry = link.entry(head, tail);
            if !link.is_clear() {
                return self.schedule(entry, Event::Hop { frame: number, hop, tail });
            }
            // Nobody waits there and nothing happens: no event is needed to know when the frame
            // leaves it.
            (head, tail) = link.pass(entry, tail, len);
        }
    }

    fn lose(&mut self, number: u32) {
        let frame = self.flights.take(number);
        self.flights.recycle(frame);
    }

    fn arrive(&mut self, number: u32) -> Option<Occurrence> {
        let to = self.flights.get(number).to;
        let node = &mut self.nodes[to.0 as usize];
        node.waiting.push_back(number);
        // Of those that wait only the first has an event.
        if node.waiting.len() > 1 { None } else { self.take_in(to.0) }
    }

    /// A node takes in the first frame that waits, if its processor and its interface are free.
    fn take_in(&mut self, number: u32) -> Option<Occurrence> {
        let node = &mut self.nodes[number as usize];
        let at = node.takes_at(self.now);
        if at > self.now {
            self.schedule(at, Event::Take { node: number });
            return None;
        }
        let frame = node.waiting.pop_front()?;
        let ready = node.receive(self.now, self.flights.get(frame).bytes.len());
        let next = (!node.waiting.is_empty()).then(|| node.takes_at(self.now));
        let occurrence = if ready > self.now {
            self.schedule(ready, Event::Ready { frame });
            None
        } else {
            Some(self.deliver(frame))
        };
        // After the program has seen the one before, so that its answer goes first.
        if let Some(next) = next {
            self.schedule(next, Event::Take { node: number });
        }
        occurrence
    }

    fn deliver(&mut self, number: u32) -> Occurrence {
        let frame = self.flights.get(number);
        self.trace.word(self.now.0);
        self.trace.word(u64::from(frame.from.0) << 32 | u64::from(frame.to.0));
        self.trace.word(frame.tag ^ u64::from(frame.congested));
        self.trace.bytes(&frame.bytes);
        let to = frame.to;
        self.nodes[to.0 as usize].arrived.push_back(number);
        Occurrence::Frame(to)
    }

    fn wake(&mut self, number: u32) -> Option<Occurrence> {
        let node = &mut self.nodes[number as usize];
        if node.scheduled != Some(self.now) {
            // A later event of a wake-up for which an earlier one was scheduled afterwards.
            return None;
        }
        node.scheduled = None;
        match node.wake {
            Some(at) if at <= self.now => {
                node.wake = None;
                Some(Occurrence::Wake(NodeIndex(number)))
            }
            Some(at) => {
                node.scheduled = Some(at);
                self.schedule(at, Event::Wake { node: number });
                None
            }
            None => None,
        }
    }
}
