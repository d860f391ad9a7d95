//! What a CLOSE acknowledges: everything that its sender has delivered, since nothing can ask it
//! later.

use crate::engine::connection::conn::{Conn, NONE};
use crate::engine::flow::Flow;
use crate::engine::flow::batch::{Ops, join};
use crate::engine::flow::frame_pool::FramePool;
use crate::engine::flow::in_flight::Payload;
use crate::engine::flow::rma_state::RmaAnswer;
use crate::engine::host::Host;
use crate::engine::send::new_frame::emit_answer;
use crate::engine::serial::distance;
use crate::engine::state::Engine;
use crate::wire::{CLOSE, Close, HEADER, Header, Kind, MAX_SACK, Record, Records, Sack, VALUE};
use alloc::boxed::Box;
use alloc::vec;

impl Engine {
    /// The body of the CLOSE of a connection whose flow is still there, from offset 32 on.
    pub(crate) fn farewell(&self, index: u32) -> Box<[u8]> {
        let Some(conn) = self.table.get(index) else { return Box::default() };
        // A CLOSE fits the path in any case.
        let mut frame = vec![0; usize::from(conn.base_mtu).max(CLOSE)];
        let flow = self.flows.get(conn.flow).filter(|_| conn.is_reliable());
        // A frame that is held has arrived, and is never delivered now.
        let (sack, words) = flow.map_or(([0; MAX_SACK], 0), |flow| flow.reorder_queue.delivered());
        let words = words.min((frame.len() - CLOSE) / 8);
        let close = Close {
            header: Header { kind: Kind::Close, to: 0, from: 0, number: 0, time: 0 },
            reason: 0,
            is_answer: false,
            ack: if conn.is_reliable() { conn.recv_next } else { 0 },
            messages: flow.map_or(0, |flow| flow.next_frame.messages()),
        };
        let mut end = close.emit(&sack[..words], &mut frame);
        if let Some(flow) = flow {
            let sent = flow.send_window.payloads().flat_map(|payload| results(payload, &self.frames));
            let is_end = |(_, answer): &(u32, RmaAnswer)| !matches!(answer, RmaAnswer::Landing(_));
            for (op, answer) in sent.chain(flow.requests.results()).filter(is_end) {
                if end + VALUE > frame.len() {
                    break;
                }
                end = emit_answer(&mut frame, end, op, answer);
            }
        }
        frame[HEADER..end].into()
    }

    /// Ends the operations that the peer's CLOSE acknowledges; all others fail.
    pub(crate) fn take_farewell<H: Host>(
        &mut self,
        index: u32,
        close: &Close,
        sack: &Sack<'_>,
        records: Records<'_>,
        host: &mut H,
    ) {
        for record in records {
            let mut ended = None;
            if let Some(mut ctx) = self.recv_ctx_of_flow(index) {
                ctx.rma_answer(&record, host, &mut |end| ended = Some(end));
            }
            if let Some((op, outcome)) = ended {
                self.end_rma_part(index, op, outcome, host);
            }
        }
        let done = self.settle(index, close, sack);
        self.end_list(index, done, Ok(()), host);
    }

    /// Takes the operations out of the frames in flight whose messages were delivered.
    fn settle(&mut self, index: u32, close: &Close, sack: &Sack<'_>) -> Ops {
        let Some(conn) = self.table.get(index).filter(|conn| conn.is_reliable()) else { return Ops::NONE };
        let Some(flow) = self.flows.get_mut(conn.flow) else { return Ops::NONE };
        let Some(advanced) = accepted(conn, flow, close.ack) else {
            self.stats.malformed += 1;
            return Ops::NONE;
        };
        let links = &mut self.links;
        let mut done = Ops::NONE;
        let mut take = |at: usize, most: usize| {
            let ops = flow.send_window.take_ops(at, most, links);
            done = join(links, done, ops);
        };
        (0..advanced).for_each(|at| take(at, usize::MAX));
        take(advanced, close.messages.into());
        for (word, bits) in sack.words().enumerate() {
            let first = advanced + 1 + 64 * word;
            (0..64).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| take(first + bit, usize::MAX));
        }
        done
    }
}

/// The frames in flight that are before `ack`; `None` when it is not one that this side has sent.
fn accepted(conn: &Conn, flow: &Flow, ack: u32) -> Option<usize> {
    let oldest = flow.send_window.seq(0, conn.next_seq);
    usize::try_from(distance(ack, oldest)).ok().filter(|advanced| *advanced <= flow.send_window.len())
}

/// The answers in a frame that is in flight.
fn results<'f>(payload: &Payload, frames: &'f FramePool) -> impl Iterator<Item = (u32, RmaAnswer)> + use<'f> {
    let records = match payload {
        Payload::Batch(batch) if batch.of == NONE => {
            Records::again(&frames.bytes(batch.buffer)[..usize::from(batch.len)])
        }
        _ => None,
    };
    records.into_iter().flatten().filter_map(|record| match record {
        Record::Result { op, status } => Some((op, RmaAnswer::Status(status))),
        Record::Value { op, value } => Some((op, RmaAnswer::Value(value))),
        _ => None,
    })
}
