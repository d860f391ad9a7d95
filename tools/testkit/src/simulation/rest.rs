//! What must hold when a world is at rest, and what keeps one from it.

use super::messages::State;
use super::plan::End;
use super::side::Oracle;
use super::transfers::Transfer;
use super::violation::{Rule, Violation};
use super::world::{ConnectionEnd, Stage, World};
use super::{pattern, program};

impl World {
    /// Without keepalive, an idle connection sends nothing.
    pub(super) fn end_keepalive(&mut self) {
        let now = self.network.now();
        for (ends, planned) in
            self.connections.iter().zip(&self.plan.connections).filter(|(_, plan)| plan.keepalive > 0)
        {
            for (end, node) in ends.iter().zip(planned.nodes).filter(|(end, _)| end.stage == Stage::Open) {
                self.nodes[node as usize].engine.set_timeouts(now, end.index, planned.send_timeout, 0);
            }
        }
        for at in 0..self.nodes.len() {
            self.settle(at, true);
        }
    }

    /// Nothing happens any more by itself.
    pub(super) fn is_quiet(&self) -> bool {
        self.nodes.iter().all(|node| node.side.borrowed.is_empty() && node.engine.is_quiet())
    }

    /// Programs have done everything, and every operation has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.nodes.iter().all(|node| node.side.open_operations() == 0)
            && (0..self.nodes.len()).all(|at| !program::has_work(self, at))
            && self.connections.iter().flatten().all(|end| end.stage != Stage::Opening)
    }

    /// No side has a connection any more.
    pub(super) fn is_over(&self) -> bool {
        self.connections.iter().flatten().all(|end| matches!(end.stage, Stage::Before | Stage::Over))
    }

    /// As [`World::is_over`], but for connections of which one side believes that the other is
    /// gone: it says no farewell.
    pub(super) fn is_told(&self) -> bool {
        let is_over = |end: &ConnectionEnd| matches!(end.stage, Stage::Before | Stage::Over);
        self.connections.iter().zip(&self.plan.connections).all(|(ends, planned)| {
            ends.iter().all(is_over) || matches!(planned.end, End::Unreachable { .. }) && ends.iter().any(is_over)
        })
    }

    /// What keeps the world from rest, for a report.
    pub(super) fn unrest(&self) -> String {
        let mut reasons = vec![format!("{} frames on their way", self.network.in_flight())];
        for (at, node) in self.nodes.iter().enumerate() {
            let (open, borrowed) = (node.side.open_operations(), node.side.borrowed.len());
            let (quiet, due) = (node.engine.is_quiet(), node.engine.poll_timeout().map(|due| due.0));
            let taken = node.side.taken_slots();
            if open + borrowed + taken > 0 || !quiet {
                reasons.push(format!(
                    "node {at}: {open} operations, {borrowed} events held, {taken} slots taken, quiet {quiet}, due {due:?}"
                ));
            }
        }
        for (number, ends) in self.connections.iter().enumerate() {
            let planned = &self.plan.connections[number];
            let open = [0, 1].map(|side| self.oracle.streams[number * 2 + side].open());
            let is_settled = ends.iter().all(|end| matches!(end.stage, Stage::Over | Stage::Before));
            let is_done = ends.iter().all(|end| end.stage == Stage::Open && end.messages + end.transfers == 0);
            if open != [0, 0] || !is_settled && !is_done {
                let (name, nodes) = (planned.attribute.name(), planned.nodes);
                reasons.push(format!("connection {number} {name} {nodes:?}, {open:?} sends open: {ends:?}"));
            }
        }
        let open = |transfer: &&Transfer| transfer.state == State::Open;
        reasons.extend(self.oracle.transfers.all().iter().filter(open).take(3).map(|transfer| format!("{transfer:?}")));
        reasons.join("; ")
    }

    /// What must hold when nothing moves any more.
    pub(super) fn check_rest(&mut self) -> Result<(), Violation> {
        self.check_slots()?;
        for stream in 0..self.oracle.streams.len() {
            if self.oracle.excused[stream] {
                continue;
            }
            let Oracle { streams, transfers, .. } = &self.oracle;
            let key = u32::try_from(stream).unwrap_or(u32::MAX);
            if let Err((rule, detail)) = streams[stream].check_rest(key, Oracle::may_miss(transfers)) {
                self.oracle.violate(rule, detail);
            }
        }
        for (number, ends) in self.connections.iter().enumerate() {
            if !self.oracle.excused[number * 2] && ends.iter().any(|end| end.stage != Stage::Open) {
                let detail = format!("connection {number} is not open at rest: {ends:?}");
                self.oracle.violate(Rule::Handshake, detail);
                break;
            }
        }
        self.check_memory();
        self.oracle.violation.clone().map_or(Ok(()), Err)
    }

    /// Every byte that an RMA was to change, and no later one, is what it was to be; every other
    /// is 0.
    pub(super) fn check_memory(&mut self) {
        for node in &self.nodes {
            let mut expected = vec![0_u8; self.arena_next[node.side.number as usize]];
            let mut known = vec![true; expected.len()];
            for transfer in self.oracle.transfers.all().iter().filter(|transfer| transfer.node == node.side.number) {
                let range = transfer.to..transfer.to + transfer.len;
                if transfer.done == transfer.len {
                    expected[range.clone()]
                        .copy_from_slice(&pattern::bytes()[transfer.from..transfer.from + transfer.len]);
                    known[range].fill(true);
                } else if transfer.done > 0 {
                    known[range].fill(false);
                }
            }
            let differs = |(at, known): (usize, &bool)| *known && expected[at] != node.side.arena[at];
            if let Some(at) = known.iter().enumerate().position(differs) {
                let detail =
                    format!("node {}, byte {at}: {}, not {}", node.side.number, node.side.arena[at], expected[at]);
                return self.oracle.violate(Rule::Memory, detail);
            }
        }
    }

    pub(super) fn check_slots(&mut self) -> Result<(), Violation> {
        for node in &self.nodes {
            if node.side.taken_slots() > 0 {
                let detail = format!("node {}: {} slots are taken at rest", node.side.number, node.side.taken_slots());
                self.oracle.violate(Rule::SlotLost, detail);
                break;
            }
        }
        self.oracle.violation.clone().map_or(Ok(()), Err)
    }
}
