//! What paths do beside losing frames: they come to carry less, and routers say things, true ones
//! and others.

use super::plan::NODES;
use super::reports::{QUOTED, Report};
use super::side::CheckedHost;
use super::world::{Node, World, address, node_of};
use cci_proto::Address;
use cci_proto::engine::Index;
use cci_sim::network::{LinkIndex, Time};

impl World {
    /// From some time on all paths carry less.
    pub(super) fn shrink(&mut self) {
        if self.plan.shrinks.is_some_and(|(at, _)| at <= self.network.now())
            && let Some((_, mtu)) = self.plan.shrinks.take()
        {
            self.plan.link.mtu = mtu;
            for link in (0..self.network.graph().links()).map(LinkIndex) {
                self.network.set_link(link, &self.plan.link);
            }
        }
    }

    /// A frame of so many bytes, whose head is in the buffer, has left a node: a router may have
    /// something to say about it.
    pub(super) fn route(&mut self, at: usize, to: Address, head: usize, len: usize) {
        let node = &mut self.nodes[at];
        node.reports.note(to, &self.buffer[..head]);
        let is_nobody = node_of(&to) >= NODES;
        let is_too_big = len > self.plan.link.mtu;
        if !(is_nobody || is_too_big) || !node.router.chance(self.plan.tells) {
            return;
        }
        // A router that quotes too little says nothing that is believed.
        let quoted = usize::try_from(node.router.between(8, QUOTED as u64)).unwrap_or(QUOTED).min(head);
        node.reports.waiting.push(Report {
            at: Time(self.network.now().0 + 2 * self.plan.link.delay),
            to,
            quoted: self.buffer[..quoted].to_vec(),
            limit: (!is_nobody).then(|| u16::try_from(self.plan.link.mtu).unwrap_or(u16::MAX)),
        });
    }

    /// A node hears what was said to it, and now and then something that is not so.
    pub(super) fn listen(&mut self, at: usize) {
        let now = self.network.now();
        while let Some(due) = self.nodes[at].reports.waiting.iter().position(|report| report.at <= now) {
            let report = self.nodes[at].reports.waiting.swap_remove(due);
            self.say(at, &report);
        }
        if self.nodes[at].router.chance(self.plan.lies)
            && let Some(lie) = self.lie(at)
        {
            self.say(at, &lie);
        }
    }

    fn say(&mut self, at: usize, report: &Report) {
        let now = self.network.now();
        let Node { engine, side, .. } = &mut self.nodes[at];
        match report.limit {
            Some(limit) => engine.handle_too_big(&report.to, &report.quoted, limit),
            None => {
                let host = &mut CheckedHost { side, oracle: &mut self.oracle };
                engine.handle_unreachable(now, &report.to, &report.quoted, true, host);
            }
        }
    }

    /// What somebody may say who has not seen the frame that he quotes: one bit of an identifier is
    /// wrong, or the address. Or a limit, which anybody on the path may name.
    fn lie(&mut self, at: usize) -> Option<Report> {
        let Node { reports, router, .. } = &mut self.nodes[at];
        let chosen = usize::try_from(router.below(reports.last.len().max(1) as u64)).unwrap_or(0);
        let (to, mut quoted) = reports.last.values().nth(chosen).cloned()?;
        let (mut to, limit) = (to, u16::try_from(router.below(10_000)).unwrap_or(0));
        match router.below(3) {
            0 => to = address(NODES + 3),
            1 => quoted[usize::try_from(router.between(8, 23)).unwrap_or(8)] ^= 1 << router.below(8),
            _ => return Some(Report { at: self.network.now(), to, quoted, limit: Some(limit) }),
        }
        let limit = (router.below(2) == 0).then_some(limit);
        Some(Report { at: self.network.now(), to, quoted, limit })
    }

    /// The program of the peer is gone, and its system says so of the last frame of a connection.
    /// Whether that was believed: not if it was a request, which cannot name the peer's identifier.
    pub(super) fn refuse(&mut self, at: usize, index: Index) -> bool {
        let before = self.nodes[at].side.connection_events.len();
        let id = self.nodes[at].engine.identifier(index).unwrap_or(0);
        if let Some((to, quoted)) = self.nodes[at].reports.last.get(&id).cloned() {
            self.say(at, &Report { at: self.network.now(), to, quoted, limit: None });
        }
        self.nodes[at].side.connection_events.len() > before
    }
}
