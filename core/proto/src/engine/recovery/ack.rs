//! Acknowledgements: what arrived, how long it took, what was lost (RFC 9002, section 6.1).

use super::mtu;
use crate::Time;
use crate::engine::connection::conn::{Conn, NONE, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::batch::{Ops, join};
use crate::engine::flow::congestion::Sample;
use crate::engine::flow::frame_pool::FramePool;
use crate::engine::flow::queue::{FrameState, Payload};
use crate::engine::send::schedule::has_queued;
use crate::engine::serial::distance;
use crate::engine::state::Engine;
use crate::wire::{Ack, Data, Sack, flags};

/// Largest reorder threshold, frames.
const MOST_REORDER: u32 = 64;
/// Longest plausible round trip, microseconds. Longer samples are ignored.
const LONGEST_RTT: u32 = 30_000_000;

impl Engine {
    /// Handles the acknowledgement of a frame. Returns the operations that have ended. The caller
    /// reports them to the host.
    pub(crate) fn handle_ack(&mut self, now: Time, index: u32, data: &Data, sack: &Sack<'_>) -> Ops {
        let Some(conn) = self.table.get_mut(index) else { return Ops::NONE };
        let Some(flow) = self.flows.get_mut(conn.flow) else { return Ops::NONE };
        let ack = &data.ack;
        // A number that was never sent: the acknowledgement is forged or corrupt.
        if distance(ack.echo_number, conn.number) >= 0 {
            self.stats.malformed += 1;
            return Ops::NONE;
        }
        let is_newer = flow.echoed.is_none_or(|echoed| distance(ack.echo_number, echoed) > 0);
        let is_current = is_newer || flow.echoed == Some(ack.echo_number);
        let mut rtt = None;
        if is_newer {
            flow.echoed = Some(ack.echo_number);
            rtt = round_trip(now, ack);
        }
        if let Some(sample) = rtt {
            conn.on_rtt(sample);
        }
        if !conn.is_reliable() {
            return Ops::NONE;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most WINDOW")]
        let oldest = conn.next_seq.wrapping_sub(flow.in_flight.len() as u32);
        let advanced = distance(ack.ack, oldest);
        if advanced > 0 && advanced as usize > flow.in_flight.len() {
            self.stats.malformed += 1;
            return Ops::NONE;
        }
        let (mut bytes, mut spurious, mut done) = (0, 0, Ops::NONE);
        for _ in 0..advanced.max(0) {
            if flow.in_flight.front().is_some_and(|frame| frame.state != FrameState::Accepted) {
                bytes += accept(flow, 0, ack.echo_number, &mut spurious);
            }
            flow.lost_from = flow.lost_from.saturating_sub(1);
            if let Some(Payload::Batch(batch)) = flow.in_flight.pop_front().map(|frame| frame.payload) {
                self.frames.give(batch.buffer);
                flow.messages_in_flight -= u32::from(batch.messages);
                done = join(&mut self.links, done, batch.ops);
            }
        }
        bytes += take_sack(flow, ack, (sack, advanced.min(0)), &mut spurious, &mut self.frames);
        if spurious > 0 {
            self.stats.spurious += u64::from(spurious);
            flow.reorder_threshold = (flow.reorder_threshold + 1).min(MOST_REORDER);
            flow.congestion.on_spurious();
        }
        if bytes > 0 || advanced > 0 {
            flow.probe_timeout.on_progress(now);
        }
        if is_current {
            self.stats.not_ready += u64::from(update_from_peer(now, conn, flow, data));
        }
        detect_losses(now, conn, flow, self.config.base_mtu);
        let marks = if is_newer { ack.congested.wrapping_sub(flow.marks) } else { 0 };
        flow.marks = if is_newer { ack.congested } else { flow.marks };
        let is_app_limited = flow.requests.is_empty() && !has_queued(flow, conn, &self.rmas);
        let sample = Sample {
            bytes,
            rtt,
            base_rtt: conn.min_rtt,
            echoed: ack.echo_number,
            number: conn.number,
            marks,
            is_app_limited,
        };
        flow.congestion.on_ack(now, &sample);
        done
    }

    /// Declares frames lost that should have been acknowledged by now.
    pub(super) fn expire_losses(&mut self, now: Time, index: u32) {
        let Some(conn) = self.table.get_mut(index) else { return };
        if let Some(flow) = self.flows.get_mut(conn.flow) {
            detect_losses(now, conn, flow, self.config.base_mtu);
        }
    }
}

/// Marks a frame in flight as accepted. Returns its bytes.
fn accept(flow: &mut Flow, at: usize, echoed: u32, spurious: &mut u32) -> u64 {
    let Some(frame) = flow.in_flight.get_mut(at) else { return 0 };
    let bytes = u64::from(frame.bytes);
    if frame.is_large {
        flow.large_lost = 0;
    }
    if frame.state == FrameState::Lost {
        flow.lost -= 1;
        *spurious += 1;
    } else {
        flow.bytes_in_flight = flow.bytes_in_flight.saturating_sub(bytes);
        // It was retransmitted, but the peer has not echoed that transmission yet: the first one
        // had arrived.
        if frame.was_lost && distance(frame.number, echoed) > 0 {
            *spurious += 1;
        }
    }
    frame.state = FrameState::Accepted;
    bytes
}

/// Returns the round-trip time of the echoed frame without the peer's delay, microseconds. Ignores
/// implausible times, which a faulty peer sends.
fn round_trip(now: Time, ack: &Ack) -> Option<u32> {
    let sample = now.micros().wrapping_sub(ack.echo_time).saturating_sub(u32::from(ack.delay)).max(1);
    (ack.delay < u16::MAX && sample < LONGEST_RTT).then_some(sample)
}

/// Marks the frames that a SACK acknowledges. Returns their bytes. Frames accepted in order have
/// left `in_flight` already, so the first bit is its second frame. An older acknowledgement begins
/// `behind` frames earlier (not positive).
fn take_sack(
    flow: &mut Flow,
    ack: &Ack,
    (sack, behind): (&Sack<'_>, i32),
    spurious: &mut u32,
    frames: &mut FramePool,
) -> u64 {
    let mut bytes = 0;
    for (word, bits) in sack.words().enumerate() {
        let mut bits: u64 = bits;
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 64 words")]
            let Ok(at) = usize::try_from(behind.saturating_add(1 + 64 * word as i32 + bit as i32)) else { continue };
            if flow.in_flight.get(at).is_some_and(|frame| frame.state != FrameState::Accepted) {
                bytes += accept(flow, at, ack.echo_number, spurious);
                release(flow, at, frames);
            }
        }
    }
    bytes
}

/// Gives back the buffer of an accepted frame without messages, which only has to arrive.
fn release(flow: &mut Flow, at: usize, frames: &mut FramePool) {
    if let Some(frame) = flow.in_flight.get_mut(at)
        && let Payload::Batch(batch) = frame.payload
        && batch.messages == 0
        && batch.ops.head == NONE
    {
        frames.give(batch.buffer);
        frame.payload = Payload::Empty;
    }
}

/// Notes the peer's credit and readiness. Returns true if the peer just became not ready.
fn update_from_peer(now: Time, conn: &mut Conn, flow: &mut Flow, data: &Data) -> bool {
    conn.credit = data.ack.credit;
    if data.flags & flags::RNR == 0 {
        flow.peer.on_ready();
        return false;
    }
    let is_new = flow.peer.on_not_ready(now);
    if is_new {
        conn.clear(bit::PING);
    }
    is_new
}

/// Notes a retry at a peer without slots.
pub(super) fn note_retry(now: Time, flow: &mut Flow) {
    let is_echoed = |number| flow.echoed.is_some_and(|echoed| distance(echoed, number) >= 0);
    let is_answered = flow.in_flight.front().is_none_or(|front| is_echoed(front.number));
    flow.peer.on_retry(now, is_answered);
}

/// Declares frames lost if a frame sent enough later has arrived, by count or by time. Sets
/// `loss_at` to when the next one would be lost by time.
fn detect_losses(now: Time, conn: &mut Conn, flow: &mut Flow, base: u16) {
    flow.loss_at = None;
    let Some(echoed) = flow.echoed else { return };
    let delay = conn.loss_delay();
    let (mut lost, mut large) = (0, 0);
    for at in 0..flow.in_flight.len() {
        let Some(frame) = flow.in_flight.get_mut(at) else { break };
        let behind = distance(echoed, frame.number);
        if behind <= 0 {
            // Sent once: all that follow were sent later.
            if frame.attempts == 1 {
                break;
            }
            continue;
        }
        // Without a slot the peer has refused the oldest frame, which is not lost then.
        if frame.state != FrameState::Sent || at == 0 && !flow.peer.is_ready() {
            continue;
        }
        let expires = Time(frame.sent.0.saturating_add(delay));
        if behind.unsigned_abs() >= flow.reorder_threshold || expires <= now {
            frame.state = FrameState::Lost;
            frame.was_lost = true;
            lost += u64::from(frame.bytes);
            large += u32::from(frame.attempts > 1 && frame.is_large);
            flow.bytes_in_flight = flow.bytes_in_flight.saturating_sub(u64::from(frame.bytes));
            flow.lost += 1;
            flow.lost_from = flow.lost_from.min(at);
        } else {
            flow.loss_at = Some(flow.loss_at.map_or(expires, |other: Time| other.min(expires)));
        }
    }
    if lost > 0 {
        flow.congestion.on_lost(lost);
    }
    flow.large_lost += large;
    if flow.large_lost >= mtu::BLACK_HOLE_LOSSES {
        mtu::fall_back(conn, flow, base);
    }
}
