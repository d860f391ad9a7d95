//! What a sealed connection has besides that of a plain one: numbers of 64 bits, phases of keys,
//! and which numbers have come (`docs/design/sealed.md`).

use super::replay::{NUMBERS, Windows};
use crate::Time;
use crate::engine::sealer::Phase;
use crate::engine::serial::distance;
use crate::wire::TAG;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Connections whose state gets memory together.
const CHUNK: usize = 64;
/// How long a key is used, in units of time of 16 s: about 10 minutes.
const KEY_LIFE: u16 = 38;
/// Frames under one key, in multiples of what the host allows, beyond which nothing is sent.
const LIMIT: u32 = 2;
/// Frames after which the peer is asked again for the acknowledgement that a new key needs.
const ASK_EVERY: u32 = 1024;
/// Seconds for which frames of the previous phase are opened: three of the longest probe timeouts.
const PREVIOUS_LIFE: u16 = 3;
/// Stands for no window.
const NO_WINDOW: u16 = u16::MAX;

/// Bytes by which a sealed frame is longer than a plain one.
#[expect(clippy::cast_possible_truncation, reason = "16")]
pub(crate) const OVERHEAD: u16 = TAG as u16;

/// Bits of [`SealedConn`].
mod bit {
    /// A sealed frame was sent.
    pub(super) const SENT: u8 = 1;
    /// A sealed frame has come.
    pub(super) const RECEIVED: u8 = 2;
    /// The lowest bit of the phase of what is sent, and of what is received.
    pub(super) const SEND_PHASE: u8 = 4;
    pub(super) const RECEIVE_PHASE: u8 = 8;
    /// The peer has acknowledged a frame of the present phase.
    pub(super) const ACKNOWLEDGED: u8 = 16;
    /// Frames of the previous phase are opened.
    pub(super) const PREVIOUS: u8 = 32;
    /// The peer has given its reset token.
    pub(super) const TOKEN: u8 = 64;
    /// The peer was asked for an acknowledgement.
    pub(super) const ASKED: u8 = 128;
}

/// The state of a sealed connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedConn {
    /// The first number of the present phase of what is sent.
    began: u64,
    /// The newest number that has come.
    received: u64,
    /// What the peer shows if it has forgotten the connection.
    token: [u8; TAG],
    /// When the present phase of what is sent began, in units of 16 s, which wrap after 12 days.
    since: u16,
    /// When that of what is received began, seconds, which wrap.
    receive_since: u16,
    /// The window, or [`NO_WINDOW`].
    window: u16,
    bits: u8,
}

// With 88 bytes for its secrets: 128 bytes beyond a plain connection.
const _: () = assert!(size_of::<SealedConn>() <= 40);

impl SealedConn {
    const NEW: Self =
        Self { began: 0, received: 0, token: [0; TAG], since: 0, receive_since: 0, window: NO_WINDOW, bits: 0 };

    fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    fn set(&mut self, bit: u8, on: bool) {
        self.bits = if on { self.bits | bit } else { self.bits & !bit };
    }

    /// Returns the next transmission, of which this is the lower half of the number. `limit`: frames
    /// under one key. `None`: the peer has acknowledged nothing for so long that no further frame
    /// may be sent under the present key.
    pub(crate) fn next(&mut self, now: Time, low: u32, limit: u32) -> Option<Next> {
        let time = short(now, 4);
        if !self.has(bit::SENT) {
            self.set(bit::SENT, true);
            (self.began, self.since) = (low.into(), time);
            return Some(Next { number: self.began, phase: false, is_new_phase: false, asks: false });
        }
        // A phase has far fewer numbers than half of a number tells apart.
        let frames = low.wrapping_sub(lower_half(self.began));
        let number = self.began.wrapping_add(frames.into());
        let is_due = frames >= limit || time.wrapping_sub(self.since) >= KEY_LIFE;
        let is_new_phase = is_due && self.has(bit::ACKNOWLEDGED);
        let mut asks = false;
        if is_new_phase {
            self.bits ^= bit::SEND_PHASE;
            self.set(bit::ACKNOWLEDGED | bit::ASKED, false);
            (self.began, self.since) = (number, time);
        } else if is_due {
            if frames >= limit.saturating_mul(LIMIT) {
                return None;
            }
            asks = !self.has(bit::ASKED) || frames.is_multiple_of(ASK_EVERY);
            self.set(bit::ASKED, true);
        }
        Some(Next { number, phase: self.has(bit::SEND_PHASE), is_new_phase, asks })
    }

    /// Notes that the peer has received the frame with this number.
    pub(crate) fn on_ack(&mut self, echo: u32) {
        if self.has(bit::SENT) && distance(echo, lower_half(self.began)) >= 0 {
            self.set(bit::ACKNOWLEDGED, true);
        }
    }

    /// Returns which key opens a frame. `None`: none does any more.
    fn phase_of(&self, number: u64, phase: bool) -> Option<Phase> {
        if phase == self.has(bit::RECEIVE_PHASE) {
            return Some(Phase::Present);
        }
        // Numbers of the next phase are above all of the present one.
        let is_earlier = self.has(bit::RECEIVED) && number <= self.received;
        if is_earlier { self.has(bit::PREVIOUS).then_some(Phase::Previous) } else { Some(Phase::Next) }
    }

    /// Returns whether the previous key is to be forgotten now.
    pub(crate) fn take_previous(&mut self, now: Time) -> bool {
        let is_over = self.has(bit::PREVIOUS) && short(now, 0).wrapping_sub(self.receive_since) > PREVIOUS_LIFE;
        if is_over {
            self.set(bit::PREVIOUS, false);
        }
        is_over
    }

    /// Returns whether a sealed frame has come.
    pub(crate) fn has_received(&self) -> bool {
        self.has(bit::RECEIVED)
    }

    /// Notes the peer's reset token.
    pub(crate) fn set_token(&mut self, token: [u8; TAG]) {
        self.token = token;
        self.set(bit::TOKEN, true);
    }

    /// Returns whether this is the peer's reset token. Takes the same time for every wrong one.
    pub(crate) fn is_token(&self, token: &[u8; TAG]) -> bool {
        let difference = self.token.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
        self.has(bit::TOKEN) && core::hint::black_box(difference) == 0
    }

    /// Returns the phases of what is sent and of what is received, as their lowest bits.
    pub(crate) fn phases(&self) -> [bool; 2] {
        [self.has(bit::SEND_PHASE), self.has(bit::RECEIVE_PHASE)]
    }
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) number: u64,
    pub(crate) phase: bool,
    /// The key is to be derived before.
    pub(crate) is_new_phase: bool,
    /// The peer is to be asked for an acknowledgement.
    pub(crate) asks: bool,
}

/// What is known of a number that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It has not come.
    New,
    /// It may have come: it is older than what is remembered.
    Unknown,
    /// It has come, or no key opens it any more.
    Before,
}

/// The sealed connections of an endpoint, by their index.
#[derive(Default)]
pub(crate) struct SealedConns {
    chunks: Vec<Option<Box<[SealedConn]>>>,
    windows: Windows,
    count: u32,
}

impl SealedConns {
    /// Returns whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a connection. Returns false without memory.
    pub(crate) fn begin(&mut self, index: u32) -> bool {
        let at = index as usize / CHUNK;
        if self.chunks.len() <= at {
            if self.chunks.try_reserve(at + 1 - self.chunks.len()).is_err() {
                return false;
            }
            self.chunks.resize_with(at + 1, || None);
        }
        if self.chunks[at].is_none() {
            let mut chunk = Vec::new();
            if chunk.try_reserve_exact(CHUNK).is_err() {
                return false;
            }
            chunk.resize(CHUNK, SealedConn::NEW);
            self.chunks[at] = Some(chunk.into_boxed_slice());
        }
        self.count += 1;
        self.get_mut(index).is_some_and(|conn| {
            *conn = SealedConn::NEW;
            true
        })
    }

    /// Removes a connection that was added.
    pub(crate) fn forget(&mut self, index: u32) {
        let Some(conn) = self.get_mut(index) else { return };
        let window = core::mem::replace(conn, SealedConn::NEW).window;
        if window != NO_WINDOW {
            self.windows.give(window);
        }
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            *self = Self::default();
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&SealedConn> {
        self.chunks.get(index as usize / CHUNK)?.as_ref()?.get(index as usize % CHUNK)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut SealedConn> {
        self.chunks.get_mut(index as usize / CHUNK)?.as_mut()?.get_mut(index as usize % CHUNK)
    }

    /// Returns what is known of a number, and which key opens its frame.
    pub(crate) fn examine(&self, index: u32, number: u64, phase: bool) -> (Seen, Phase) {
        let Some(conn) = self.get(index) else { return (Seen::Before, Phase::Present) };
        let Some(phase) = conn.phase_of(number, phase) else { return (Seen::Before, Phase::Present) };
        let seen = if !conn.has_received() || number > conn.received {
            Seen::New
        } else if conn.window == NO_WINDOW || conn.received - number >= NUMBERS {
            if number == conn.received { Seen::Before } else { Seen::Unknown }
        } else if self.windows.has(conn.window, number) {
            Seen::Before
        } else {
            Seen::New
        };
        (seen, phase)
    }

    /// Notes a frame that was opened.
    pub(crate) fn note(&mut self, now: Time, index: u32, number: u64, phase: Phase) {
        let Some(conn) = self.get_mut(index) else { return };
        if phase == Phase::Next {
            conn.bits ^= bit::RECEIVE_PHASE;
            conn.set(bit::PREVIOUS, true);
            conn.receive_since = short(now, 0);
        }
        let newest = if conn.has(bit::RECEIVED) { conn.received } else { number };
        conn.set(bit::RECEIVED, true);
        conn.received = newest.max(number);
        let mut window = conn.window;
        if window == NO_WINDOW && number > newest + 1 {
            window = self.take_window(index, second(now));
        }
        if window != NO_WINDOW && number.saturating_add(NUMBERS) > newest {
            self.windows.note(window, newest, number, second(now));
        }
    }

    /// Gives a connection a window, if there is one.
    fn take_window(&mut self, index: u32, second: u32) -> u16 {
        let Some((window, loser)) = self.windows.take(index, second) else { return NO_WINDOW };
        if let Some(loser) = loser.and_then(|loser| self.get_mut(loser)) {
            loser.window = NO_WINDOW;
        }
        if let Some(conn) = self.get_mut(index) {
            conn.window = window;
        }
        window
    }

    /// Windows in use, for tests of their bound.
    #[cfg(test)]
    pub(crate) fn windows(&self) -> usize {
        self.windows.len()
    }
}

/// A time in seconds, which wraps.
#[expect(clippy::cast_possible_truncation, reason = "differences are taken modulo 2^32")]
fn second(now: Time) -> u32 {
    (now.0 / 1_000_000_000) as u32
}

/// A time in units of 2 to the power of `bits` seconds, which wraps.
#[expect(clippy::cast_possible_truncation, reason = "differences are taken modulo 2^16")]
fn short(now: Time, bits: u32) -> u16 {
    (second(now) >> bits) as u16
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
fn lower_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests;
