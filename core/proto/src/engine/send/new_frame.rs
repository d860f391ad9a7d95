//! The next new frame of a connection: its results, the reads that it serves, or its queue.

use super::message::saturating_u32;
use super::schedule::has_queued;
use crate::engine::connection::conn::{Conn, NONE, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::batch::{Batch, Ops};
use crate::engine::flow::frame_pool::{Buffer, FramePool};
use crate::engine::flow::in_flight::Payload;
use crate::engine::flow::peer_requests::PeerRead;
use crate::engine::flow::rma_state::RmaAnswer;
use crate::engine::flow::send_queue::Queued;
use crate::engine::host::{Host, Source};
use crate::engine::state::Engine;
use crate::wire::{
    DATA, LANDING, READ_BYTES_HEAD, WRITE_HEAD, emit_atomic, emit_landing, emit_large, emit_read, emit_result,
    emit_value,
};
use crate::{Access, Time};
use alloc::collections::VecDeque;

/// Bytes of a cache line, and of a word that leaves in one frame.
const LINE: u64 = 64;
const WORD: u64 = 8;
/// Capacity, bytes, from which a frame of memory ends at a cache line: the unused part of a line
/// costs it little.
const LINE_CUT: u64 = 4096;

impl Engine {
    /// Returns the next new frame: results first, then served reads and the program's queue in
    /// turn.
    pub(super) fn next_new<H: Host>(&mut self, now: Time, index: u32, host: &mut H) -> Option<Payload> {
        let conn = self.table.get_mut(index)?;
        let flow = self.flows.get_mut(conn.flow)?;
        let capacity = u32::from(conn.mtu) - saturating_u32(DATA);
        if flow.requests.has_results() {
            match results(&mut self.frames, conn.flow, flow, capacity, now) {
                Some(batch) => return Some(Payload::Batch(batch)),
                None => await_frame(conn, index, &mut self.awaiting_frame),
            }
        }
        let has_queued = has_queued(flow, conn, &self.rmas);
        if flow.requests.take_turn(has_queued) {
            return serve(flow, capacity, host);
        }
        if !has_queued {
            return None;
        }
        flow.requests.give_turn();
        match *flow.queue.front()? {
            Queued::Batch(batch) => {
                flow.queue.pop();
                Some(Payload::Batch(batch))
            }
            Queued::Rma(op) => {
                let state = self.rmas.get_mut(op.0 as usize)?.as_mut()?;
                // Taken before any state changes: without a buffer, nothing is sent now.
                let is_request = state.access.is_request();
                let buffer = if is_request { self.frames.take(conn.flow) } else { None };
                if is_request && buffer.is_none() {
                    await_frame(conn, index, &mut self.awaiting_frame);
                    return None;
                }
                if state.at == 0 && !state.is_granted {
                    flow.open_rmas.start(op, state);
                }
                if let Some(buffer) = buffer {
                    state.at = state.target.len;
                    flow.queue.pop();
                    let bytes = self.frames.bytes_mut(buffer);
                    let len = match state.access {
                        Access::Atomic(atomic) => emit_atomic(bytes, 0, state.wire, &state.target, atomic),
                        Access::Large => emit_large(bytes, 0, state.wire, state.target.len),
                        _ => emit_read(bytes, 0, state.wire, &state.target),
                    };
                    return Some(Payload::Batch(control(buffer, len, now)));
                }
                let at = state.at;
                let phase = || if at == 0 { host.phase(&Source::Local(op)) } else { 0 };
                let len = memory_len(capacity - saturating_u32(WRITE_HEAD), state.target.len - at, phase);
                state.at += len;
                if state.at == state.target.len {
                    flow.queue.pop();
                }
                let is_last = state.at == state.target.len;
                Some(Payload::Write { op: state.wire, at, len: saturating_u32(len), is_last })
            }
            Queued::Aborted(op) => {
                flow.queue.pop();
                Some(Payload::Aborted { op, is_last: true })
            }
        }
    }
}

/// Appends a connection that found no frame buffer to the list of those that wait for one.
fn await_frame(conn: &mut Conn, index: u32, awaiting_frame: &mut VecDeque<u32>) {
    if !conn.has(bit::AWAITING_FRAME) {
        conn.set(bit::AWAITING_FRAME);
        awaiting_frame.push_back(index);
    }
}

fn control(buffer: Buffer, len: usize, now: Time) -> Batch {
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    Batch { buffer, len, messages: 0, ops: Ops::NONE, of: NONE, is_open: false, prompt: false, since: now }
}

/// Moves waiting results into one frame.
fn results(frames: &mut FramePool, owner: u32, flow: &mut Flow, capacity: u32, now: Time) -> Option<Batch> {
    let buffer = frames.take(owner)?;
    let capacity = (capacity as usize).min(frames.stride());
    let bytes = frames.bytes_mut(buffer);
    let mut len = 0;
    while len + LANDING <= capacity
        && let Some((op, answer)) = flow.requests.pop_result()
    {
        len = emit_answer(bytes, len, op, answer);
    }
    Some(control(buffer, len, now))
}

/// Writes what the initiator of an operation is told. Returns where the record ends.
pub(crate) fn emit_answer(frame: &mut [u8], at: usize, op: u32, answer: RmaAnswer) -> usize {
    match answer {
        RmaAnswer::Status(status) => emit_result(frame, at, op, status),
        RmaAnswer::Value(value) => emit_value(frame, at, op, value),
        RmaAnswer::Landing(handle) => emit_landing(frame, at, op, handle),
    }
}

/// Returns the next bytes of the read that is being served.
fn serve<H: Host>(flow: &mut Flow, capacity: u32, host: &mut H) -> Option<Payload> {
    let PeerRead { op, target, at } = flow.requests.next_read()?;
    let phase = || if at == 0 { host.phase(&Source::Served(target)) } else { 0 };
    let len = memory_len(capacity - saturating_u32(READ_BYTES_HEAD), target.len - at, phase);
    flow.requests.advance_read(len);
    Some(Payload::ReadBytes { op, target, at, len: saturating_u32(len) })
}

/// Returns how many of the `left` bytes of memory a frame carries that has this capacity for them.
/// A frame that is not the last ends at a word of 8 bytes, so that no word is sent in two frames. A
/// large one ends at a cache line: a copy that starts inside a word takes three times as long.
/// `phase`: address of the first byte modulo a line; 0 after an earlier frame.
pub(crate) fn memory_len(capacity: u32, left: u64, phase: impl FnOnce() -> u8) -> u64 {
    let capacity = u64::from(capacity);
    if left <= capacity {
        return left;
    }
    let (unit, phase) = (if capacity < LINE_CUT { WORD } else { LINE }, u64::from(phase()));
    capacity - (phase + capacity) % unit
}
