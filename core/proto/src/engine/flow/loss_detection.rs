//! Loss detection (RFC 9002, section 6.1): a frame is lost if one that was sent enough later has
//! arrived. Also black-hole detection (RFC 8899, section 4.3), which counts losses of large frames.

use super::send_window::SendWindow;
use crate::Time;
use crate::engine::serial::distance;

/// Frames by which a frame is late until it is lost (RFC 9002), and the most that reordering makes
/// of it.
const LEAST_REORDER: u32 = 3;
const MOST_REORDER: u32 = 64;
/// Losses in a row of large frames which had been lost before, while no large frame arrived: the
/// path is a black hole for them (RFC 8899, section 4.3). Where three in ten frames are lost for
/// other reasons, twelve in a row are one case in two million.
const BLACK_HOLE_LOSSES: u32 = 12;

/// What acknowledgements have shown about the frames in flight.
#[derive(Debug)]
pub(crate) struct LossDetection {
    /// Newest transmission number that an acknowledgement echoed.
    echoed: Option<u32>,
    /// A frame is lost once a frame sent this many later was accepted.
    reorder_threshold: u32,
    /// Losses in a row of retransmitted large frames.
    losses_above_base: u32,
    /// When the oldest late frame will be lost by time.
    due_at: Option<Time>,
}

impl LossDetection {
    pub(crate) const fn new() -> Self {
        Self { echoed: None, reorder_threshold: LEAST_REORDER, losses_above_base: 0, due_at: None }
    }

    /// Notes the transmission number that an acknowledgement echoes. Returns whether it is newer
    /// than all before.
    #[inline]
    pub(crate) fn on_echo(&mut self, number: u32) -> bool {
        let is_newer = self.echoed.is_none_or(|echoed| distance(number, echoed) > 0);
        if is_newer {
            self.echoed = Some(number);
        }
        is_newer
    }

    /// Returns whether this is the newest transmission number that was echoed.
    #[inline]
    pub(crate) fn is_newest_echo(&self, number: u32) -> bool {
        self.echoed == Some(number)
    }

    /// Returns whether this transmission number or a newer one was echoed.
    pub(crate) fn has_echo_since(&self, number: u32) -> bool {
        self.echoed.is_some_and(|echoed| distance(echoed, number) >= 0)
    }

    /// Notes that frames were declared lost too early, because the network reorders.
    pub(crate) fn on_spurious(&mut self) {
        self.reorder_threshold = (self.reorder_threshold + 1).min(MOST_REORDER);
    }

    /// Forgets the losses of large frames: one has arrived, or none is in flight any more.
    #[inline]
    pub(crate) fn reset_above_base(&mut self) {
        self.losses_above_base = 0;
    }

    /// Returns whether the path drops large frames.
    #[inline]
    pub(crate) const fn is_black_hole(&self) -> bool {
        self.losses_above_base >= BLACK_HOLE_LOSSES
    }

    /// Returns when the next late frame will be lost, if nothing arrives until then.
    #[inline]
    pub(crate) const fn due_at(&self) -> Option<Time> {
        self.due_at
    }

    /// Declares frames lost if a frame sent enough later has arrived, by count or by time. `delay`:
    /// that time, nanoseconds. `is_front_held`: the peer has refused the oldest frame for lack of a
    /// slot, so that it is not lost. Returns the lost bytes.
    pub(crate) fn detect(&mut self, now: Time, delay: u64, is_front_held: bool, window: &mut SendWindow) -> u64 {
        self.due_at = None;
        let Some(echoed) = self.echoed else { return 0 };
        let mut lost = 0;
        for at in 0..window.len() {
            let Some(frame) = window.get(at) else { break };
            let behind = distance(echoed, frame.number());
            if behind <= 0 {
                // Sent once: all that follow were sent later.
                if frame.attempts() == 1 {
                    break;
                }
                continue;
            }
            if !frame.is_sent() || at == 0 && is_front_held {
                continue;
            }
            let expires = Time(frame.sent_at().0.saturating_add(delay));
            if behind.unsigned_abs() >= self.reorder_threshold || expires <= now {
                self.losses_above_base += u32::from(frame.attempts() > 1 && frame.is_above_base());
                lost += window.declare_lost(at);
            } else {
                self.due_at = Some(self.due_at.map_or(expires, |other| other.min(expires)));
            }
        }
        lost
    }
}
