//! Engines over a virtual network, driven by whoever says what their programs do.

use crate::machine::{Machine, Route};
use crate::node::{ACCEPTED, Delivery, Node};
use cci_proto::engine::{Config, Engine, Index, Open};
use cci_proto::{Address, Failure, SendError, Time, wire};
use cci_sim::network::{LinkStats, Network, NodeIndex, Occurrence};
use std::collections::VecDeque;

/// Largest frame that carries messages, and what it needs beside them.
const LARGEST_FRAME: u32 = Engine::FRAME as u32;
const HEAD: u32 = wire::DATA as u32 + wire::MESSAGE_HEAD as u32;
/// A request is padded to this, and its payload here is short.
const SHORTEST_MTU: u32 = 640;
/// Handshakes that a node has open at a time.
const HANDSHAKES: usize = 8;
/// Frames and operations that a node may have in flight.
const IN_FLIGHT: u32 = 8192;

/// What a driver is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The oldest message of a connection that had not arrived has: it was posted at this time.
    Arrived {
        /// The connection's number.
        connection: u32,
        /// When its message was posted.
        posted: Time,
    },
    /// The time has come that a node asked for.
    Woken {
        /// The node.
        node: u32,
    },
}

/// A connection, from the node that asks for it to the other.
#[derive(Clone, Debug)]
struct Connection {
    from: u32,
    to: u32,
    index: Option<Index>,
    /// When its messages were posted that have not arrived.
    posted: VecDeque<Time>,
}

/// A machine at work.
pub struct World {
    machine: Machine,
    network: Network,
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    open: usize,
    failed: Option<(u32, Failure)>,
    /// Messages that found no buffer, by node.
    waiting: Vec<VecDeque<u32>>,
    happened: VecDeque<Happening>,
    buffer: Vec<u8>,
    message: Vec<u8>,
}

fn address(node: u32) -> Address {
    let mut address = Address::default();
    address.0[..4].copy_from_slice(&node.to_be_bytes());
    address
}

fn node_of(address: &Address) -> NodeIndex {
    NodeIndex(u32::from_be_bytes([address.0[0], address.0[1], address.0[2], address.0[3]]))
}

impl World {
    /// A machine at time 0, without connections.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        let mtu = (machine.message.saturating_add(HEAD)).clamp(SHORTEST_MTU, LARGEST_FRAME);
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        let config = Config {
            mtu,
            base_mtu: mtu,
            max_send_size: machine.message.max(1),
            recv_buffer: 8 << 20,
            frames: IN_FLIGHT,
            holds: IN_FLIGHT,
            operations: IN_FLIGHT,
            machine: 0,
            unchecked_on_host: false,
            patient: false,
            first_seq: None,
        };
        let nodes = (0..machine.nodes).map(|number| Node::new(&config, machine.seed, number)).collect();
        Self {
            network: Network::new(machine.seed, machine.graph()),
            nodes,
            connections: Vec::new(),
            open: 0,
            failed: None,
            waiting: vec![VecDeque::new(); machine.nodes as usize],
            happened: VecDeque::new(),
            buffer: vec![0; usize::from(mtu).max(2048)],
            message: vec![0; machine.message as usize],
            machine: machine.clone(),
        }
    }

    /// Sets the links that frames take from one node to another.
    pub fn set_route(&mut self, from: u32, to: u32, route: &Route) {
        let mut hops = Vec::new();
        self.machine.hops(route, &mut hops);
        self.network.grow(|graph| graph.set_route(NodeIndex(from), NodeIndex(to), &hops));
    }

    /// Opens connections, which are numbered on from those that there are, and runs until the
    /// network is quiet. Each node asks for its own in the order given, a few at a time.
    ///
    /// # Errors
    ///
    /// One does not open: its number, and why.
    pub fn connect(&mut self, pairs: impl IntoIterator<Item = (u32, u32)>) -> Result<(), (u32, Failure)> {
        let mut queues = vec![VecDeque::new(); self.nodes.len()];
        for (from, to) in pairs {
            queues[from as usize].push_back(u32::try_from(self.connections.len()).unwrap_or(u32::MAX));
            self.connections.push(Connection { from, to, index: None, posted: VecDeque::new() });
        }
        for (node, queue) in queues.iter_mut().enumerate() {
            for _ in 0..HANDSHAKES {
                self.ask(queue);
            }
            self.settle(node);
        }
        while self.open < self.connections.len() {
            let before = self.open;
            let Some(node) = self.advance(Time(u64::MAX)) else { break };
            if let Some(failed) = self.failed {
                return Err(failed);
            }
            for _ in before..self.open {
                self.ask(&mut queues[node]);
            }
            self.settle(node);
        }
        self.rest();
        self.failed.map_or(Ok(()), Err)
    }

    /// Asks for the next connection of a node.
    fn ask(&mut self, queue: &mut VecDeque<u32>) {
        let Some(number) = queue.pop_front() else { return };
        let Connection { from, to, .. } = self.connections[number as usize];
        let (now, payload) = (self.now(), number.to_be_bytes());
        let open = Open {
            to: address(to),
            attribute: self.machine.attribute,
            payload: &payload,
            host_cookie: number,
            timeout: None,
            token: 0,
        };
        if self.nodes[from as usize].engine.connect(now, &open).is_err() {
            self.failed = Some((number, Failure::Refused));
        }
    }

    /// Runs until no frame is on its way.
    pub fn rest(&mut self) {
        while self.network.in_flight() > 0
            && let Some(node) = self.advance(Time(u64::MAX))
        {
            self.settle(node);
        }
    }

    /// Posts a message of the machine's length on a connection. One for which the engine has no
    /// buffer now goes as soon as it has.
    ///
    /// # Panics
    ///
    /// There is no such connection.
    pub fn post(&mut self, connection: u32) {
        let now = self.now();
        let Connection { from, posted, .. } = &mut self.connections[connection as usize];
        posted.push_back(now);
        let node = *from as usize;
        self.waiting[node].push_back(connection);
        self.settle(node);
    }

    /// Wakes the program of a node at this time, with [`Happening::Woken`]; replaces what was asked
    /// before.
    ///
    /// # Panics
    ///
    /// There is no such node.
    pub fn wake_at(&mut self, node: u32, at: Time) {
        self.nodes[node as usize].wake = Some(at);
        self.set_wake(node as usize);
    }

    /// When the processor of a node has done what it is charged with; now if it has.
    #[must_use]
    pub fn free_at(&self, node: u32) -> Time {
        self.network.idle_at(NodeIndex(node)).max(self.now())
    }

    /// What happens next. `None`: nothing more until `limit`; time is `limit` then, or where it was
    /// if nothing is pending at all and the limit is the end of time.
    ///
    /// # Errors
    ///
    /// A connection has ended: its number, and why.
    pub fn next(&mut self, limit: Time) -> Result<Option<Happening>, (u32, Failure)> {
        loop {
            if let Some(failed) = self.failed {
                return Err(failed);
            }
            if let Some(happening) = self.happened.pop_front() {
                return Ok(Some(happening));
            }
            let Some(node) = self.advance(limit) else { return Ok(None) };
            self.settle(node);
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// Messages that have been posted and have not arrived.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.connections.iter().map(|connection| connection.posted.len()).sum()
    }

    /// Which nodes a connection joins.
    ///
    /// # Panics
    ///
    /// There is no such connection.
    #[must_use]
    pub fn ends(&self, connection: u32) -> (u32, u32) {
        let Connection { from, to, .. } = &self.connections[connection as usize];
        (*from, *to)
    }

    /// What a link of the machine has carried.
    #[must_use]
    pub fn link_stats(&self, link: u32) -> LinkStats {
        self.network.link_stats(Machine::link(link)).unwrap_or_default()
    }

    /// All deliveries in one number: the same for the same machine and the same calls.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.network.trace()
    }

    /// Moves time to what concerns a node next: its number. It has to be settled.
    fn advance(&mut self, limit: Time) -> Option<usize> {
        let (Occurrence::Frame(NodeIndex(number)) | Occurrence::Wake(NodeIndex(number))) =
            self.network.advance(limit)?;
        let (at, now) = (number as usize, self.now());
        let Node { engine, program, wake } = &mut self.nodes[at];
        while let Some(frame) = self.network.take(NodeIndex(number)) {
            // One that is broken is dropped.
            let _ = engine.handle_frame(now, &address(frame.from.0), &frame.bytes, frame.congested, program);
            self.network.recycle(frame);
        }
        if engine.poll_timeout().is_some_and(|due| due <= now) {
            engine.handle_timeout(now, program);
        }
        if wake.is_some_and(|wake| wake <= now) {
            *wake = None;
            self.happened.push_back(Happening::Woken { node: number });
        }
        self.listen(at);
        Some(at)
    }

    /// Does what a node's program does about what was delivered to it.
    fn listen(&mut self, at: usize) {
        let now = self.now();
        let Node { engine, program, .. } = &mut self.nodes[at];
        for delivery in program.deliveries.drain(..) {
            match delivery {
                // A client that has gone meanwhile is none.
                Delivery::Request(index, number) => drop(engine.accept(now, index, ACCEPTED | number)),
                Delivery::Opened(index, number) => {
                    self.connections[number as usize].index = Some(index);
                    self.open += 1;
                }
                Delivery::Ended(number, why) => self.failed = Some((number, why)),
                Delivery::Message(connection) => {
                    // What came twice is no message.
                    let Some(posted) = self.connections[connection as usize].posted.pop_front() else { continue };
                    self.happened.push_back(Happening::Arrived { connection, posted });
                }
            }
        }
    }

    /// Sends what a node has to send, and sets its wake-up.
    fn settle(&mut self, at: usize) {
        loop {
            self.transmit(at);
            if !self.send_waiting(at) {
                break;
            }
        }
        self.set_wake(at);
    }

    /// Hands the engine the messages that wait, as far as it has room; whether it took one.
    fn send_waiting(&mut self, at: usize) -> bool {
        let (now, waiting) = (self.now(), &mut self.waiting[at]);
        let Node { engine, program, .. } = &mut self.nodes[at];
        let mut sent = false;
        while let Some(number) = waiting.front()
            && let Some(index) = self.connections[*number as usize].index
            && let Some(op) = program.op()
        {
            match engine.send(now, index, &[&self.message], op, false) {
                Ok(()) => sent = true,
                Err(why) => {
                    program.free_ops.push(op.0);
                    if why != SendError::NoBuffers {
                        self.failed = Some((*number, Failure::Refused));
                    }
                    break;
                }
            }
            waiting.pop_front();
        }
        sent
    }

    fn transmit(&mut self, at: usize) {
        let now = self.now();
        let Node { engine, program, .. } = &mut self.nodes[at];
        let from = NodeIndex(u32::try_from(at).unwrap_or(u32::MAX));
        while let Some(frame) = engine.poll_transmit(now, true, &mut self.buffer, program) {
            let bytes = &mut self.buffer[..frame.len];
            wire::seal(bytes, 0, |check| check);
            self.network.send(from, node_of(&frame.to), 0, &[bytes]);
        }
    }

    fn set_wake(&mut self, at: usize) {
        let Node { engine, wake, .. } = &self.nodes[at];
        let due = match (engine.poll_timeout(), *wake) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.network.wake_at(NodeIndex(u32::try_from(at).unwrap_or(u32::MAX)), due);
    }
}
