//! Rate-based congestion control.
//!
//! As in BBR (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016),
//! the sender measures the delivery rate of the path and the smallest round-trip time. It sends at
//! that rate, probes for more in one round of eight, and keeps at most about twice their product in
//! flight. Unlike in BBR, loss counts in a round whose smallest delay rose above target, or that
//! lost more than a tenth. Marks of routers always count.

use crate::Time;
use crate::engine::serial::distance;

/// Rounds over which the largest rate is taken.
const ROUNDS: usize = 10;
/// Gains of the rounds of a cycle, in sixteenths of the rate.
const CYCLE: [u64; 8] = [20, 12, 16, 16, 16, 16, 16, 16];
/// Growth while the rate still rises by a quarter each round: 2/ln 2, in sixteenths (BBR).
const STARTUP_GAIN: u64 = 46;
/// In flight before anything is known, bytes (RFC 6928 has ten frames of 1,460; a batch of segments
/// here).
const INITIAL: u64 = 64 << 10;
/// Beyond twice the product of rate and delay: what acknowledgements and batches add, at most. Of
/// frames so large that a batch holds but one, it is [`SLACK_FRAMES`]: an end writes, checks and
/// acknowledges so many in one go. By trial over the loop-back interface: with three frames of
/// 65,000 bytes both ends waited for each other a third of the time.
const SLACK: u64 = 192 << 10;
const SLACK_FRAMES: u64 = 32;
/// Burst that pacing allows at once, bytes: one batch of segments, or [`BURST_FRAMES`].
const BURST: u64 = 64 << 10;
const BURST_FRAMES: u64 = 8;
/// Least window: frames that may be in flight, and leave in a round trip, at any estimate of the
/// path.
const LEAST_FRAMES: u64 = 4;
/// Time after which the smallest delay is measured anew (BBR), nanoseconds.
const MIN_RTT_AGE: u64 = 10_000_000_000;
/// The finest delay above the smallest that counts as a queue, microseconds.
const GRANULE: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    /// Round of the cycle.
    Cruise(u8),
    /// The smallest delay is being measured with next to nothing in flight; rounds left.
    Measure(u8),
}

/// The sample of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Bytes newly accepted.
    pub(crate) bytes: u64,
    /// Round-trip time, microseconds, if this acknowledgement measured it.
    pub(crate) rtt: Option<u32>,
    /// Smallest round-trip time of the connection's life, microseconds.
    pub(crate) base_rtt: u32,
    /// Newest transmission number that it echoes.
    pub(crate) echoed: u32,
    /// Next transmission number.
    pub(crate) number: u32,
    /// Frames newly marked by routers.
    pub(crate) marks: u16,
    /// The path was not the limit (app-limited): nothing waits to be sent, or the peer has no room
    /// for it.
    pub(crate) is_app_limited: bool,
}

/// State of the congestion control of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    mode: Mode,
    /// Rates of the last rounds, bytes per second.
    rates: [u64; ROUNDS],
    at: usize,
    rate: u64,
    /// In flight while the rate is unknown.
    startup_window: u64,
    best: u64,
    flat_rounds: u8,
    /// Smallest round-trip time of the connection's life, microseconds: a queue that others keep
    /// full since this flow began hides in `min_rtt`.
    base_rtt: u32,
    round_end: Option<u32>,
    round_began: Time,
    delivered: u64,
    lost: u64,
    marks: u32,
    /// Marks that the peer has counted in the life of the connection.
    peer_marks: u16,
    round_rtt: u32,
    app_limited: bool,
    min_rtt: u32,
    min_rtt_at: Time,
    /// Time at which pacing lets the next frame leave.
    next_at: Time,
    /// What a congested round took away, to be given back if its loss was none.
    undo: Option<[u64; ROUNDS]>,
}

impl Congestion {
    pub(crate) fn new() -> Self {
        Self {
            mode: Mode::Startup,
            rates: [0; ROUNDS],
            at: 0,
            rate: 0,
            startup_window: INITIAL,
            best: 0,
            flat_rounds: 0,
            base_rtt: 0,
            round_end: None,
            round_began: Time(0),
            delivered: 0,
            lost: 0,
            marks: 0,
            peer_marks: 0,
            round_rtt: u32::MAX,
            app_limited: false,
            min_rtt: 0,
            min_rtt_at: Time(0),
            next_at: Time(0),
            undo: None,
        }
    }

    /// Returns the estimated rate of the path, bytes per second; 0 = not measured.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Returns the window, bytes, for frames of `frame` bytes.
    pub(crate) fn window(&self, frame: u64) -> u64 {
        let least = LEAST_FRAMES * frame;
        if let Mode::Measure(_) = self.mode {
            return least;
        }
        if self.mode == Mode::Startup {
            return self.startup_window.max(least);
        }
        let product = self.rate.saturating_mul(u64::from(self.min_rtt.max(1))) / 1_000_000;
        let slack = (self.rate / 1000).clamp(least, SLACK.max(SLACK_FRAMES * frame));
        product.saturating_mul(2).saturating_add(slack)
    }

    /// Returns when the next frame may leave.
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    /// A frame of so many bytes leaves, where frames have `frame` bytes at most. However slow the
    /// path is believed to be, a few may leave in a round trip.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, frame: u64) {
        let gain = match self.mode {
            Mode::Startup => STARTUP_GAIN,
            Mode::Cruise(phase) => CYCLE[usize::from(phase) % CYCLE.len()],
            Mode::Measure(_) => 16,
        };
        if self.rate == 0 {
            return;
        }
        let floor = (LEAST_FRAMES * frame).saturating_mul(1_000_000) / u64::from(self.min_rtt.max(1));
        let pace = (self.rate.saturating_mul(gain) / 16).max(floor).max(1);
        let time = |bytes: u64| bytes.saturating_mul(1_000_000_000) / pace;
        let earliest = Time(now.0.saturating_sub(time(BURST.max(BURST_FRAMES * frame))));
        self.next_at = Time(self.next_at.max(earliest).0.saturating_add(time(bytes)));
    }

    /// Notes that a frame leaves after nothing was in flight. The idle time belongs to no round.
    pub(crate) fn on_restart(&mut self) {
        self.round_end = None;
    }

    /// Notes lost bytes.
    pub(crate) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Restores what a spurious loss had reduced.
    pub(crate) fn on_spurious(&mut self) {
        if let Some(rates) = self.undo.take() {
            self.rates = rates;
            self.rate = self.rates.iter().copied().max().unwrap_or(0);
        }
    }

    /// Notes the marks of routers that the peer has counted, a number that wraps. Returns how many
    /// are new.
    #[inline]
    pub(crate) fn new_marks(&mut self, counted: u16) -> u16 {
        counted.wrapping_sub(core::mem::replace(&mut self.peer_marks, counted))
    }

    /// Handles an acknowledgement.
    pub(crate) fn on_ack(&mut self, now: Time, sample: &Sample) {
        self.base_rtt = sample.base_rtt;
        self.delivered += sample.bytes;
        self.marks += u32::from(sample.marks);
        self.app_limited |= sample.is_app_limited;
        if let Some(rtt) = sample.rtt {
            self.round_rtt = self.round_rtt.min(rtt);
            if self.min_rtt == 0 || rtt <= self.min_rtt {
                (self.min_rtt, self.min_rtt_at) = (rtt, now);
            }
        }
        if self.mode == Mode::Startup && !sample.is_app_limited {
            self.startup_window = self.startup_window.saturating_add(sample.bytes);
        }
        match self.round_end {
            None => self.begin_round(now, sample.number),
            Some(end) if distance(sample.echoed, end) >= 0 => {
                self.end_round(now);
                self.begin_round(now, sample.number);
            }
            Some(_) => {}
        }
    }

    fn begin_round(&mut self, now: Time, number: u32) {
        self.round_end = Some(number);
        self.round_began = now;
        (self.delivered, self.lost, self.marks, self.round_rtt) = (0, 0, 0, u32::MAX);
        self.app_limited = false;
    }

    fn end_round(&mut self, now: Time) {
        let congested = self.is_overloading() || self.is_losing();
        let elapsed = now.since(self.round_began).max(1000);
        // Lost bytes were carried up to the point of loss. They count as delivered unless a queue
        // dropped them.
        let carried = self.delivered + if congested { 0 } else { self.lost };
        let rate = carried.saturating_mul(1_000_000_000) / elapsed;
        let measuring = matches!(self.mode, Mode::Measure(_));
        if !measuring && (!self.app_limited || rate > self.rate) {
            self.at = (self.at + 1) % ROUNDS;
            self.rates[self.at] = rate;
        }
        if congested {
            self.undo = Some(self.rates);
            let reduced = self.rate.saturating_mul(27) / 32;
            self.rates.iter_mut().for_each(|rate| *rate = (*rate).min(reduced));
        } else {
            // A report this late does not concern that loss.
            self.undo = None;
        }
        self.rate = self.rates.iter().copied().max().unwrap_or(0);
        self.advance(now, congested);
    }

    /// Returns whether this round filled a queue.
    fn is_overloading(&self) -> bool {
        let target = self.base_rtt.saturating_add((self.base_rtt / 4).max(GRANULE));
        let delayed = self.round_rtt != u32::MAX && self.round_rtt > target;
        self.marks > 0 || self.lost > 0 && delayed
    }

    /// Returns whether this round lost over a tenth.
    fn is_losing(&self) -> bool {
        self.lost * 9 > self.delivered
    }

    fn advance(&mut self, now: Time, congested: bool) {
        match self.mode {
            Mode::Startup => {
                if self.rate > self.best + self.best / 4 {
                    (self.best, self.flat_rounds) = (self.rate, 0);
                } else if !self.app_limited {
                    self.flat_rounds += 1;
                }
                if congested || self.flat_rounds >= 3 {
                    // The second phase of the cycle drains the queue that the startup built.
                    self.mode = Mode::Cruise(1);
                }
            }
            Mode::Cruise(_) if now.since(self.min_rtt_at) > MIN_RTT_AGE && !self.app_limited => {
                self.mode = Mode::Measure(2);
                self.min_rtt = 0;
            }
            Mode::Cruise(phase) => self.mode = Mode::Cruise((phase + 1) % 8),
            Mode::Measure(0) => self.mode = Mode::Cruise(0),
            Mode::Measure(left) => self.mode = Mode::Measure(left - 1),
        }
    }
}
