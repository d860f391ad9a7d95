//! A run of a world: what occurs, in virtual time, to the end.

use super::plan::End;
use super::program;
use super::side::{CheckedHost, ConnectionEvent, Operation, Piece};
use super::violation::{Rule, Violation};
use super::world::{Node, Stage, Totals, World, address, node_of};
use cci_proto::engine::{Index, Sealer, Transmit};
use cci_proto::wire::Kind;
use cci_proto::{Failure, wire};
use cci_sim::network::{Frame, NodeIndex, Occurrence, Time};

/// Virtual time in which a world must come to rest, nanoseconds.
const LIMIT: Time = Time(600_000_000_000);
/// Virtual time after which nobody says farewell any more.
const FAREWELL: u64 = 60_000_000_000;
/// So many frames of a million lost or damaged, and every farewell may be lost in one of many runs.
const LOSSY: u32 = 50_000;
/// Occurrences after which a world is taken for one that does not come to rest. Steps of programs
/// that wait for room do not count: where a third of all frames is lost they take minutes.
const OCCURRENCES: u32 = 3_000_000;
/// Occurrences of one moment after which an engine is taken for one that spins.
const AT_ONCE: u32 = 100_000;
/// Frames that one call may bring forth.
const OUTPUTS: u32 = 20_000;

/// Whether a frame carries a slice of another: the kind of DATA's first record, behind its sack.
fn is_slice(frame: &[u8]) -> bool {
    let sack = frame.get(37).map_or(0, |words| 8 * usize::from(*words));
    frame[1] == Kind::Data as u8 && frame.get(wire::DATA + sack) == Some(&9)
}

impl World {
    /// Runs to the end. Says the trace hash.
    ///
    /// # Errors
    ///
    /// The first rule that was broken.
    pub fn run(&mut self) -> Result<u64, Violation> {
        for node in 0..self.nodes.len() {
            self.settle(node, true);
        }
        self.until("all that was started ends", LIMIT, |world| world.has_ended() && world.is_quiet())?;
        self.end_keepalive();
        self.until("the network empties", LIMIT, |world| world.is_quiet() && world.network.in_flight() == 0)?;
        self.check_rest()?;
        self.end_connections()
    }

    /// Closes every connection, from one side or both, and sees everything come to an end.
    fn end_connections(&mut self) -> Result<u64, Violation> {
        for connection in 0..self.connections.len() {
            let side = usize::from(self.nodes[0].random.below(2) == 0);
            for side in [side, 1 - side] {
                self.close_if_open(connection, side);
                if self.nodes[0].random.below(2) == 0 {
                    break;
                }
            }
        }
        let patience = Time(self.network.now().0 + FAREWELL);
        let is_empty = |world: &Self| world.is_quiet() && world.network.in_flight() == 0;
        let is_reported = |world: &Self| is_empty(world) && world.is_told() || world.network.now() >= patience;
        self.until("all connections end", patience, is_reported)?;
        // Every farewell of a connection may have been lost, or damaged on the way, which comes to
        // the same.
        let faults = &self.plan.link.faults;
        if !self.is_told() && faults.loss + faults.corrupt < LOSSY {
            self.oracle.violate(Rule::Rest, format!("a connection's end was not reported; {}", self.unrest()));
        }
        for connection in 0..self.connections.len() {
            self.close_if_open(connection, 0);
            self.close_if_open(connection, 1);
        }
        self.until("nothing is left", LIMIT, |world| is_empty(world) && world.is_over())?;
        self.check_slots()?;
        self.totals.resent = self.nodes.iter().map(|node| node.engine.stats().resent).sum();
        self.totals.time = self.network.now().0;
        Ok(self.network.trace())
    }

    fn until(&mut self, what: &str, limit: Time, is_reached: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        while !is_reached(self) {
            self.step(limit);
            if self.oracle.violation.is_none()
                && (self.network.now() >= LIMIT || self.totals.occurrences >= OCCURRENCES)
            {
                let detail =
                    format!("{what}: not by now, after {} occurrences; {}", self.totals.occurrences, self.unrest());
                self.oracle.violate(Rule::Rest, detail);
            }
            if let Some(violation) = self.oracle.violation.clone() {
                return Err(violation);
            }
        }
        self.oracle.violation.clone().map_or(Ok(()), Err)
    }

    /// Moves time to the next occurrence, and handles it.
    fn step(&mut self, limit: Time) {
        let before = self.totals;
        self.totals.occurrences += 1;
        let occurrence = self.network.advance(limit);
        self.oracle.now = self.network.now();
        self.shrink();
        let mut is_idle = false;
        let node = match occurrence {
            Some(Occurrence::Frame(node)) => {
                self.receive(node);
                node.0 as usize
            }
            Some(Occurrence::Wake(node)) => {
                is_idle = !self.wake(node.0 as usize);
                node.0 as usize
            }
            None => return,
        };
        let now = self.network.now();
        self.at_once = if self.at_once.0 == now { (now, self.at_once.1 + 1) } else { (now, 0) };
        if self.at_once.1 > AT_ONCE {
            self.oracle
                .violate(Rule::Bounds, format!("node {node} spins: {:?}", self.nodes[node].engine.poll_timeout()));
        }
        self.listen(node);
        let idle = !self.nodes[node].random.chance(self.plan.hasty);
        self.settle(node, idle);
        if is_idle && self.totals == (Totals { occurrences: self.totals.occurrences, ..before }) {
            self.totals.occurrences = before.occurrences;
        }
    }

    fn receive(&mut self, node: NodeIndex) {
        let now = self.network.now();
        let at = node.0 as usize;
        while let Some(frame) = self.network.take(node) {
            let Frame { from, congested, bytes, .. } = &frame;
            let Node { engine, side, .. } = &mut self.nodes[at];
            let mut host = CheckedHost { side, oracle: &mut self.oracle };
            // One that is broken is dropped.
            let _ = engine.handle_frame(now, &address(from.0), bytes, *congested, &mut host);
            self.network.recycle(frame);
        }
    }

    /// Wakes a node; whether its engine had something to do.
    fn wake(&mut self, at: usize) -> bool {
        let now = self.network.now();
        let node = &mut self.nodes[at];
        let is_due = node.engine.poll_timeout().is_some_and(|due| due <= now);
        if is_due {
            node.engine.handle_timeout(now, &mut CheckedHost { side: &mut node.side, oracle: &mut self.oracle });
        }
        if node.step_at.is_some_and(|due| due <= now) {
            node.step_at = None;
            program::step(self, at);
        }
        is_due
    }

    /// Handles what the engine has reported, sends what it has to send, and sets the node's
    /// wake-up.
    pub(super) fn settle(&mut self, at: usize, idle: bool) {
        while !self.nodes[at].side.connection_events.is_empty() {
            let mut events = std::mem::take(&mut self.nodes[at].side.connection_events);
            for (index, user, event) in events.drain(..) {
                self.on_connection_event(at, index, user, event);
            }
            if self.nodes[at].side.connection_events.is_empty() {
                self.nodes[at].side.connection_events = events;
            }
        }
        self.land(at);
        self.transmit(at, idle);
        let now = self.network.now();
        if self.nodes[at].step_at.is_none() && program::has_work(self, at) {
            let think = self.nodes[at].random.between(1, self.plan.think);
            self.nodes[at].step_at = Some(Time(now.0 + think));
        }
        let node = &self.nodes[at];
        let wake = [node.step_at, node.reports.next_at(), node.engine.poll_timeout()].into_iter().flatten().min();
        self.network.wake_at(NodeIndex(node.side.number), wake);
    }

    /// Gives large messages of peers memory: half of them at once, the others at the next
    /// opportunity, which their sender brings about by asking whether this node is still there.
    fn land(&mut self, at: usize) {
        let Node { engine, side, .. } = &mut self.nodes[at];
        let handle = side.registrations.first().map(|registration| registration.handle);
        side.landings.retain_mut(|asked| {
            let (connection, end) = (asked.user as usize / 2, asked.user as usize % 2);
            let waits = std::mem::take(&mut asked.waits);
            let (Some(ends), Some(handle)) = (self.connections.get(connection), handle) else { return false };
            waits || !engine.answer_large(ends[end].index, asked.operation, Ok(handle))
        });
    }

    fn transmit(&mut self, at: usize, idle: bool) {
        let now = self.network.now();
        for count in 0.. {
            let Node { engine, side, .. } = &mut self.nodes[at];
            let mut host = CheckedHost { side, oracle: &mut self.oracle };
            let Some(frame) = engine.poll_transmit(now, idle, &mut self.buffer, &mut host) else { return };
            let piece = frame.piece.as_ref().map_or(&[][..], |piece| side.piece(piece));
            let len = frame.len + piece.len();
            if piece.len() != frame.piece_len as usize || len > usize::from(self.plan.config.mtu) || count > OUTPUTS {
                let detail =
                    format!("node {at}: output {count} of one call has {len} bytes, {} in memory", frame.piece_len);
                return self.oracle.violate(Rule::Bounds, detail);
            }
            self.let_go(at, &frame);
        }
    }

    /// A frame, written to the buffer, leaves a node.
    pub(super) fn let_go(&mut self, at: usize, frame: &Transmit<Piece>) {
        let side = &mut self.nodes[at].side;
        let number = NodeIndex(side.number);
        let piece = frame.piece.as_ref().map_or(&[][..], |piece| side.piece(piece));
        let len = frame.len + piece.len();
        self.totals.frames += 1;
        self.totals.slices += u64::from(is_slice(&self.buffer[..frame.len]));
        let head = &mut self.buffer[..frame.len];
        if !self.tampering.passes(side.number, head, piece.is_empty()) {
            return;
        }
        let to = NodeIndex(node_of(&frame.to));
        let Some(seal) = &frame.seal else {
            wire::seal(head, piece.len(), |check| if frame.checked { check.update(piece) } else { check });
            self.network.send(number, to, 0, &[head, piece]);
            return self.route(at, frame.to, frame.len, len);
        };
        wire::begin_seal(head, piece.len(), seal.number, seal.phase);
        let mut whole = [&head[..], piece, &[0; wire::TAG]].concat();
        let is_sealed = side.sealer.as_mut().is_some_and(|sealer| {
            whole.split_first_chunk_mut().is_some_and(|(header, buffer)| sealer.seal(seal, header, buffer))
        });
        if !is_sealed {
            return;
        }
        if whole.len() > usize::from(self.plan.config.mtu) {
            let detail = format!("node {at}: a sealed frame of {} bytes", whole.len());
            return self.oracle.violate(Rule::Bounds, detail);
        }
        self.network.send(number, to, 0, &[&whole]);
        self.route(at, frame.to, frame.len, whole.len());
        if let Some((from, to, forged)) = self.attacker.as_mut().and_then(|attacker| attacker.hear(number, to, whole)) {
            self.network.send(from, to, 0, &[&forged]);
        }
    }

    fn on_connection_event(&mut self, at: usize, index: Index, user: u32, event: ConnectionEvent) {
        if let ConnectionEvent::Request(attribute, payload) = event {
            return program::request(self, at, index, attribute, &payload);
        }
        if let ConnectionEvent::Expected(attribute, token) = event {
            return program::expected(self, at, index, attribute, token);
        }
        if let Some(waiting) = self.nodes[at].requests.iter().position(|(request, _)| *request == index)
            && user == 0
            && matches!(event, ConnectionEvent::Broken(_))
        {
            // The client has given up before it was answered.
            self.nodes[at].requests.swap_remove(waiting);
            let now = self.network.now();
            let Node { engine, side, .. } = &mut self.nodes[at];
            return engine.close(now, index, &mut CheckedHost { side, oracle: &mut self.oracle });
        }
        let (connection, side) = (usize::try_from(user / 2).unwrap_or(usize::MAX), usize::from(user % 2 == 1));
        let Some(ends) = self.connections.get_mut(connection) else {
            return self.oracle.violate(Rule::Handshake, format!("node {at}: {event:?} with cookie {user}"));
        };
        let end = &mut ends[side];
        let planned = &self.plan.connections[connection];
        let excused = self.oracle.excused[connection * 2];
        let unexpected = match (&event, end.stage) {
            (ConnectionEvent::Open(size), Stage::Opening) if *size == self.plan.config.max_send_size => {
                end.stage = Stage::Open;
                let (send, keepalive) = (planned.send_timeout, planned.keepalive);
                if send > 0 || keepalive > 0 {
                    self.nodes[at].engine.set_timeouts(self.network.now(), end.index, send, keepalive);
                }
                return;
            }
            (ConnectionEvent::Redirected(node, token), Stage::Opening)
                if planned.broker.is_some() && planned.nodes[1] == *node =>
            {
                let index = end.index;
                self.totals.redirected += 1;
                return self.nodes[at].engine.follow(self.network.now(), index, address(*node), *token);
            }
            (ConnectionEvent::Refused(failure), Stage::Opening) => {
                end.stage = Stage::Over;
                match planned.end {
                    End::Rejected if side == 0 => *failure != Failure::Refused,
                    End::Nobody if *failure == Failure::Refused => self.plan.tells == 0,
                    End::Nobody => *failure != Failure::TimedOut,
                    _ => !excused,
                }
            }
            (ConnectionEvent::Broken(_), Stage::Opening | Stage::Open) => {
                end.stage = Stage::Broken;
                self.oracle.over[connection * 2 + (1 - side)] = true;
                // The other side will meet a connection that is gone.
                self.oracle.excused[connection * 2] = true;
                self.oracle.excused[connection * 2 + 1] = true;
                !excused
            }
            (ConnectionEvent::Silent, Stage::Open) => planned.keepalive == 0,
            _ => true,
        };
        if unexpected {
            let detail =
                format!("connection {connection}, side {side}, {planned:?}: {event:?} while {:?}", ends[side].stage);
            self.oracle.violate(Rule::Handshake, detail);
        }
    }

    /// One side closes a connection, if it has one.
    pub(super) fn close_if_open(&mut self, connection: usize, side: usize) {
        let end = &mut self.connections[connection][side];
        if !matches!(end.stage, Stage::Opening | Stage::Open | Stage::Broken) {
            return;
        }
        end.stage = Stage::Over;
        let own = connection * 2 + side;
        self.oracle.excused[connection * 2] = true;
        self.oracle.excused[connection * 2 + 1] = true;
        let at = self.plan.connections[connection].nodes[side] as usize;
        let (now, index) = (self.network.now(), end.index);
        let Node { engine, side: node, .. } = &mut self.nodes[at];
        engine.close(now, index, &mut CheckedHost { side: node, oracle: &mut self.oracle });
        self.oracle.over[own ^ 1] = true;
        let stream = u32::try_from(own).unwrap_or(u32::MAX);
        let transfers = &self.oracle.transfers;
        let left = self.nodes[at].side.open(|operation| match operation {
            Operation::Send(of, _) => of == stream,
            Operation::Transfer(number) => transfers.get(number).stream == stream,
        });
        if left > 0 {
            let detail = format!("connection {connection}: {left} operations are open after side {side} has closed it");
            self.oracle.violate(Rule::EndsOnce, detail);
        }
        self.settle(at, true);
    }
}
