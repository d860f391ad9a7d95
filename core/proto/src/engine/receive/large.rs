//! The answer to a peer that has a large message.

use crate::Failure;
use crate::engine::connection::conn::State;
use crate::engine::flow::rma_state::RmaAnswer;
use crate::engine::index::Index;
use crate::engine::state::{Engine, flow_of, mark_conn_ready};

impl Engine {
    /// Answers a large message that [`Host::large`](crate::engine::Host::large) has noted, by its
    /// operation: with the handle of memory that the peer may write, or with the reason why there
    /// is none. Returns false if it cannot be told now: to be called again. A connection that is
    /// not open needs no answer.
    pub fn answer_large(&mut self, index: Index, op: u32, landing: Result<[u64; 2], Failure>) -> bool {
        let index = index.0;
        let Some(conn) = self.table.get_mut(index).filter(|conn| conn.state == State::Open) else { return true };
        let Some(flow) = flow_of(&mut self.flows, conn, index) else { return false };
        flow.requests.push_result(op, landing.map_or_else(RmaAnswer::refusal, RmaAnswer::Landing));
        mark_conn_ready(conn, index, &mut self.ready);
        true
    }
}
