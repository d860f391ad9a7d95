//! Acknowledgements: what arrived, how long it took, what was lost (RFC 9002, section 6.1).

use super::mtu;
use crate::Time;
use crate::engine::connection::conn::{Conn, bit};
use crate::engine::flow::Flow;
use crate::engine::flow::batch::{Ops, join};
use crate::engine::flow::congestion::Sample;
use crate::engine::flow::frame_pool::FramePool;
use crate::engine::flow::in_flight::InFlight;
use crate::engine::flow::send_window::Accepted;
use crate::engine::send::schedule::has_queued;
use crate::engine::serial::distance;
use crate::engine::state::Engine;
use crate::wire::{Ack, Data, Sack, flags};

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
        let is_newer = flow.loss_detection.on_echo(ack.echo_number);
        let rtt = if is_newer { round_trip(now, ack) } else { None };
        if let Some(sample) = rtt {
            conn.on_rtt(sample);
        }
        if !conn.is_reliable() {
            return Ops::NONE;
        }
        let advanced = distance(ack.ack, flow.send_window.seq(0, conn.next_seq));
        if advanced > 0 && advanced as usize > flow.send_window.len() {
            self.stats.malformed += 1;
            return Ops::NONE;
        }
        let (mut accepted, mut done) = (Accepted::default(), Ops::NONE);
        for _ in 0..advanced.max(0) {
            if let Some(batch) = flow.send_window.pop_accepted(ack.echo_number, &mut accepted) {
                self.frames.give(batch.buffer);
                done = join(&mut self.links, done, batch.ops);
            }
        }
        take_sack(flow, ack.echo_number, (sack, advanced.min(0)), &mut accepted, &mut self.frames);
        if accepted.has_above_base {
            flow.loss_detection.reset_above_base();
        }
        if accepted.spurious > 0 {
            self.stats.spurious += u64::from(accepted.spurious);
            flow.loss_detection.on_spurious();
            flow.congestion.on_spurious();
        }
        if accepted.bytes > 0 || advanced > 0 {
            flow.probe_timeout.on_progress(now);
        }
        if flow.loss_detection.is_newest_echo(ack.echo_number) {
            self.stats.not_ready += u64::from(update_from_peer(now, conn, flow, data));
        }
        detect_losses(now, conn, flow);
        let is_app_limited = flow.requests.is_empty() && !has_queued(flow, conn, &self.rmas);
        let sample = Sample {
            bytes: accepted.bytes,
            rtt,
            base_rtt: conn.min_rtt,
            echoed: ack.echo_number,
            number: conn.number,
            marks: if is_newer { flow.congestion.new_marks(ack.congested) } else { 0 },
            is_app_limited,
        };
        flow.congestion.on_ack(now, &sample);
        done
    }

    /// Declares frames lost that should have been acknowledged by now.
    pub(super) fn expire_losses(&mut self, now: Time, index: u32) {
        let Some(conn) = self.table.get_mut(index) else { return };
        if let Some(flow) = self.flows.get_mut(conn.flow) {
            detect_losses(now, conn, flow);
        }
    }
}

/// Returns the round-trip time of the echoed frame without the peer's delay, microseconds. Ignores
/// implausible times, which a faulty peer sends.
fn round_trip(now: Time, ack: &Ack) -> Option<u32> {
    let sample = now.micros().wrapping_sub(ack.echo_time).saturating_sub(u32::from(ack.delay)).max(1);
    (ack.delay < u16::MAX && sample < LONGEST_RTT).then_some(sample)
}

/// Marks the frames that a SACK acknowledges. Frames accepted in order have left the send window
/// already, so the first bit is its second frame. An older acknowledgement begins `behind` frames
/// earlier (not positive).
fn take_sack(
    flow: &mut Flow,
    echo: u32,
    (sack, behind): (&Sack<'_>, i32),
    accepted: &mut Accepted,
    frames: &mut FramePool,
) {
    for (word, bits) in sack.words().enumerate() {
        let mut bits: u64 = bits;
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 64 words")]
            let Ok(at) = usize::try_from(behind.saturating_add(1 + 64 * word as i32 + bit as i32)) else { continue };
            if let Some(buffer) = flow.send_window.accept_out_of_order(at, echo, accepted) {
                frames.give(buffer);
            }
        }
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
    let has_echo = |front: &InFlight| flow.loss_detection.has_echo_since(front.number());
    let is_answered = flow.send_window.front().is_none_or(has_echo);
    flow.peer.on_retry(now, is_answered);
}

/// Declares frames lost that should have been acknowledged by now.
fn detect_losses(now: Time, conn: &mut Conn, flow: &mut Flow) {
    let lost = flow.loss_detection.detect(now, conn.loss_delay(), !flow.peer.is_ready(), &mut flow.send_window);
    if lost > 0 {
        flow.congestion.on_lost(lost);
    }
    if flow.loss_detection.is_black_hole() {
        mtu::fall_back(conn, flow);
    }
}
