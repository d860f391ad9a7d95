//! Which connections wait for their peer, and since when: for whoever watches.

use super::connection::conn::{Conn, State};
use super::flow::Flow;
use super::index::Index;
use super::recovery::timeout::oldest;
use super::state::Engine;
use crate::Time;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The peer's part of the handshake.
    Handshake,
    /// The peer has no slot.
    Slot,
    /// Acknowledgements, the bytes of a read, or room in the window.
    Acknowledgement,
}

/// A connection that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The connection.
    pub index: Index,
    /// What for.
    pub what: WaitsFor,
    /// Since when it has not moved.
    pub since: Time,
    /// Messages and RMAs that are open.
    pub operations: u32,
}

impl Engine {
    /// The connections that wait for their peer. Looks at everything that is open, so it is for now
    /// and then.
    pub fn waits(&self) -> impl Iterator<Item = Wait> + '_ {
        let handshakes = self.exchanges.iter().filter_map(|(index, exchange)| {
            let state = self.table.get(*index)?.state;
            matches!(state, State::Asking | State::Accepting).then(|| Wait {
                index: Index(*index),
                what: WaitsFor::Handshake,
                since: exchange.since(),
                operations: 1,
            })
        });
        let flows = self.flows.iter().filter_map(|flow| wait_of(self.table.get(flow.conn())?, flow));
        handshakes.chain(flows)
    }
}

fn wait_of(conn: &Conn, flow: &Flow) -> Option<Wait> {
    if conn.state != State::Open {
        return None;
    }
    let (what, since) = match flow.peer.not_ready_since() {
        Some(since) => (WaitsFor::Slot, since),
        None => (
            WaitsFor::Acknowledgement,
            oldest(flow)?.max(flow.probe_timeout.progress_at()).max(flow.open_rmas.moved_at()),
        ),
    };
    let operations = flow.send_window.messages() as usize + flow.queue.messages() + flow.open_rmas.len() as usize;
    Some(Wait { index: Index(flow.conn()), what, since, operations: u32::try_from(operations).unwrap_or(u32::MAX) })
}
