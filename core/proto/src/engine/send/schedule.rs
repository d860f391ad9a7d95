//! What may leave now: the window, pacing, credit and fences.

use crate::Time;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::in_flight::InFlight;
use crate::engine::flow::rma_state::RmaState;
use crate::engine::flow::send_queue::Queued;

/// Transmissions after which a frame is sent with no other in flight behind it.
const MOST_ATTEMPTS: u8 = 6;

/// Returns the index in the send window of the frame to retransmit now, if any.
pub(crate) fn again(now: Time, conn: &Conn, flow: &mut Flow) -> Option<usize> {
    if flow.probe_timeout.take_due()
        && let Some(at) = flow.send_window.first_unaccepted()
    {
        return Some(at);
    }
    if !flow.send_window.has_lost() || flow.congestion.next_at() > now {
        return None;
    }
    if sends_oldest_only(flow) {
        return flow.send_window.front()?.is_lost().then_some(0);
    }
    let fits = flow.send_window.bytes() < window(conn, flow);
    // Messages wait for slots. Other frames do not: the peer's program may need them before it
    // returns a slot.
    flow.send_window.next_lost(flow.peer.is_ready()).filter(|_| fits)
}

/// Returns the index in the send window of the frame that is leaving in slices, unless it was
/// accepted meanwhile.
pub(super) fn sliced(conn: &Conn, flow: &mut Flow) -> Option<usize> {
    let back = conn.next_seq.wrapping_sub(flow.slicing?.seq()) as usize;
    let at = flow.send_window.unaccepted_back(back);
    if at.is_none() {
        flow.slicing = None;
    }
    at
}

/// Returns whether only the oldest frame may leave. It was lost so often that its followers may be
/// the reason, for example by filling a queue. RFC 9002, section 7.6, uses the minimum window in
/// that case.
fn sends_oldest_only(flow: &Flow) -> bool {
    let is_unlucky = |front: &InFlight| front.attempts() > MOST_ATTEMPTS && !front.is_accepted();
    flow.peer.is_ready() && flow.send_window.front().is_some_and(is_unlucky)
}

/// Returns how many bytes may be in flight.
fn window(conn: &Conn, flow: &Flow) -> u64 {
    flow.congestion.window(conn.mtu.into()).min(u64::from(conn.peer_buffer)).max(u64::from(conn.mtu))
}

/// Returns whether a new frame may leave now.
pub(super) fn may_send_new(now: Time, conn: &Conn, flow: &Flow) -> bool {
    flow.has_unsent() && fits_window(now, conn, flow)
}

/// Returns whether another sequenced frame may be in flight now.
pub(crate) fn fits_window(now: Time, conn: &Conn, flow: &Flow) -> bool {
    !flow.send_window.is_full()
        && !sends_oldest_only(flow)
        && flow.congestion.next_at() <= now
        && (flow.send_window.is_empty() || flow.send_window.bytes() + u64::from(conn.mtu) <= window(conn, flow))
}

/// Returns whether the front of the queue may be sent: no earlier operation blocks it, and the peer
/// has credit for its messages (see `has_credit`).
pub(crate) fn has_queued(flow: &Flow, conn: &Conn, rmas: &[Option<RmaState>]) -> bool {
    match flow.queue.front() {
        None => false,
        Some(Queued::Batch(batch)) => {
            let barred = flow.open_rmas.barrier().is_some_and(|op| batch.of != op.0);
            !barred && flow.peer.is_ready() && has_credit(conn, flow, batch.messages)
        }
        Some(Queued::Rma(op)) => match flow.open_rmas.barrier() {
            Some(barrier) => barrier == *op,
            None => {
                let Some(rma) = rmas.get(op.0 as usize).and_then(Option::as_ref) else { return true };
                flow.open_rmas.may_start(rma, flow.send_window.messages() > 0)
            }
        },
        Some(Queued::Aborted(_)) => true,
    }
}

/// Returns whether the peer has room for this many more messages. With no message in flight one may
/// always leave, since its acknowledgement brings new credit.
pub(super) fn has_credit(conn: &Conn, flow: &Flow, messages: u16) -> bool {
    let wanted = flow.send_window.messages() + u32::from(messages);
    wanted <= u32::from(conn.credit) || messages == 0 || flow.send_window.messages() == 0
}

/// Returns whether `transmit` may find something on an open connection. Entries that wait for a
/// time are the timer's.
pub(crate) fn has_work(conn: &Conn, flow: Option<&Flow>) -> bool {
    let moves = |flow: &Flow| {
        flow.has_unsent()
            || flow.send_window.has_lost()
            || flow.probe_timeout.is_due()
            || flow.slicing.is_some()
            || flow.path_probing.has_reply()
    };
    conn.has(bit::ACK_NOW | bit::PING | bit::CONFIRM) || flow.is_some_and(moves)
}
