//! Calls that the system refuses: which ones, why, and whether that can pass
//! (`docs/design/sock.md`).

use cci_proto::{Address, Time};
use cci_transport::monotonic;
use rustix::io::Errno;
use std::time::Duration;

/// Addresses whose refusals are remembered.
const REMEMBERED: usize = 64;
/// How long a refusal explains a silence, once other frames have left.
const RECENT: Duration = Duration::from_secs(5);
/// What cannot pass is final after so long without a frame, and so many calls. A filter may concern
/// one of several threads only.
const FINAL_AFTER: Duration = Duration::from_secs(1);
const FINAL_CALLS: u32 = 8;

/// So many refusals of an address, one soon after the other, go on.
const IN_A_ROW: u32 = 3;
/// Refusals that are closer together count once: one moment may refuse a burst of frames.
const APART: Duration = Duration::from_millis(50);

/// What a refusal is to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Explained {
    /// That nothing comes from a peer.
    Silence,
    /// That a connection has ended, or was refused, whoever did it.
    End,
}

/// What a refused send means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The frame is lost. A firewall or a route of this moment refuses it.
    Loss,
    /// The peer cannot be reached: a route or a filter forbids the address.
    Unreachable,
    /// No frame leaves any more: the call does not exist, or the socket is gone.
    Final,
}

/// What it means that the system refuses to send a frame with this error.
pub(super) fn meaning(error: Errno) -> Meaning {
    match error {
        Errno::NOSYS | Errno::BADF | Errno::NOTSOCK => Meaning::Final,
        Errno::ACCESS | Errno::INVAL => Meaning::Unreachable,
        _ => Meaning::Loss,
    }
}

/// Whether the error of a receive is the call's own, and not one of a frame that was sent.
pub(super) fn is_of_receive(error: Errno) -> bool {
    meaning(error) == Meaning::Final || matches!(error, Errno::PERM | Errno::INVAL)
}

/// A call that was refused.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    call: &'static str,
    error: Errno,
    to: Address,
    at: Time,
    /// Frames that had gone through.
    passed: u64,
    /// How many have come for this address, each soon after the one before, and when the last one
    /// of these was counted.
    in_a_row: u32,
    counted: Time,
}

impl Refusal {
    /// The same call, refused again now.
    fn again(self, before: &Self) -> Self {
        match () {
            () if before.at + RECENT <= self.at => self,
            () if before.counted + APART > self.at => {
                Self { in_a_row: before.in_a_row, counted: before.counted, ..self }
            }
            () => Self { in_a_row: before.in_a_row.saturating_add(1), ..self },
        }
    }

    /// What is forgotten first: what has no part in a row, and the oldest.
    fn worth(&self, now: Time) -> (bool, Time) {
        (self.in_a_row >= IN_A_ROW && self.at + RECENT > now, self.at)
    }
}

/// Refusals that cannot pass, in a row.
#[derive(Clone, Copy, Debug)]
struct Streak {
    since: Time,
    calls: u32,
    passed: u64,
}

/// The refusals of calls that send, or of calls that receive.
///
/// Nothing is recorded where a call succeeds. The number of frames that have gone through tells
/// whether a refusal is over, so that the fast path has no part in it.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    met: Vec<Refusal>,
    /// Frames that had gone through at the last refusal.
    last: Option<u64>,
    streak: Option<Streak>,
}

impl Refusals {
    /// Records that the system has refused a call for a frame to an address. `passed`: frames that
    /// have gone through so far. Returns whether none will go through any more.
    #[cold]
    pub(super) fn record(&mut self, call: &'static str, error: Errno, to: &Address, passed: u64) -> bool {
        self.record_any(call, error, to, passed, meaning(error) == Meaning::Final)
    }

    /// As [`Refusals::record`], of a call that receives from any address: whatever is its own error
    /// and no firewall's cannot pass.
    #[cold]
    pub(super) fn record_receive(&mut self, call: &'static str, error: Errno, passed: u64) -> bool {
        self.record_any(call, error, &Address::default(), passed, error != Errno::PERM)
    }

    /// The call is allowed: what was refused was for another thread, or is over.
    #[inline]
    pub(super) fn end(&mut self) {
        if self.last.is_some() {
            (self.last, self.streak) = (None, None);
        }
    }

    fn record_any(&mut self, call: &'static str, error: Errno, to: &Address, passed: u64, is_final: bool) -> bool {
        let now = monotonic();
        self.remember(Refusal { call, error, to: *to, at: now, passed, in_a_row: 1, counted: now });
        self.last = Some(passed);
        if !is_final {
            self.streak = None;
            return false;
        }
        let begun = self.streak.filter(|streak| streak.passed == passed);
        let mut streak = begun.unwrap_or(Streak { since: now, calls: 0, passed });
        streak.calls = streak.calls.saturating_add(1);
        let is_over = streak.calls >= FINAL_CALLS && streak.since + FINAL_AFTER <= now;
        // What is begun later ends likewise.
        self.streak = Some(if is_over { Streak { since: now, calls: 0, passed } } else { streak });
        is_over
    }

    fn remember(&mut self, refusal: Refusal) {
        if let Some(met) = self.met.iter_mut().find(|met| met.to == refusal.to) {
            *met = refusal.again(met);
        } else if self.met.len() < REMEMBERED && self.met.try_reserve(1).is_ok() {
            self.met.push(refusal);
        } else if let Some(met) = self.met.iter_mut().min_by_key(|met| met.worth(refusal.at)) {
            *met = refusal;
        }
    }

    /// Whether nothing has gone through since the last refusal.
    #[inline]
    pub(super) fn is_current(&self, passed: u64) -> bool {
        self.last == Some(passed)
    }

    /// Which call is refused for frames of this address, or of every address: a sentence. One that
    /// has been lost explains a silence; an end is explained by what goes on.
    #[cold]
    pub(super) fn sentence(&self, to: &Address, passed: u64, explained: Explained) -> Option<String> {
        let now = monotonic();
        let explains = |met: &&Refusal| {
            let is_current = met.passed == passed;
            let goes_on = is_current || explained == Explained::Silence || met.in_a_row >= IN_A_ROW;
            let is_its = met.to == *to && goes_on && met.at + RECENT > now;
            is_its || is_current && meaning(met.error) == Meaning::Final
        };
        let met = self.met.iter().filter(explains).max_by_key(|met| (met.to == *to, met.at))?;
        let (call, why) = (met.call, std::io::Error::from(met.error));
        Some(format!(
            "the system refuses {call} for frames ({why}); check filters of system calls, firewalls and routes"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> Address {
        crate::address::of_socket(&std::net::SocketAddr::from(([192, 0, 2, number], 5000)))
    }

    /// Lets time pass since all that was refused.
    fn go_back(refusals: &mut Refusals, by: Duration) {
        let by = u64::try_from(by.as_nanos()).expect("short");
        for met in &mut refusals.met {
            (met.at, met.counted) = (Time(met.at.0 - by), Time(met.counted.0 - by));
        }
    }

    #[test]
    fn a_refusal_is_over_once_a_frame_has_passed_but_explains_the_silence_of_its_address() {
        let mut refusals = Refusals::default();
        assert!(!refusals.record("sendto", Errno::PERM, &address(1), 7));
        assert!(refusals.is_current(7) && !refusals.is_current(8));
        let sentence = refusals.sentence(&address(1), 7, Explained::Silence).expect("a reason");
        assert!(sentence.contains("refuses sendto for frames (Operation not permitted (os error 1))"), "{sentence}");
        assert_eq!(refusals.sentence(&address(2), 7, Explained::Silence), None, "another address was not refused");
        assert!(refusals.sentence(&address(1), 8, Explained::Silence).is_some(), "other frames have left");
        assert_eq!(refusals.sentence(&address(1), 8, Explained::End), None, "the frame was sent again");
        assert!((0..9).all(|_| !refusals.record("sendto", Errno::PERM, &address(1), 8)));
        assert_eq!(refusals.sentence(&address(1), 9, Explained::End), None, "one burst was refused");
        for _ in 1..IN_A_ROW {
            go_back(&mut refusals, APART);
            assert!(!refusals.record("sendto", Errno::PERM, &address(1), 8));
        }
        assert!(refusals.sentence(&address(1), 9, Explained::End).is_some(), "it goes on beside others");
        go_back(&mut refusals, RECENT);
        assert_eq!(refusals.sentence(&address(1), 9, Explained::Silence), None, "it is long ago");
        assert_eq!(refusals.sentence(&address(1), 8, Explained::Silence), None, "and it may be over");
    }

    #[test]
    fn what_cannot_pass_is_final_after_a_second_of_calls_without_a_frame() {
        let mut refusals = Refusals::default();
        let record = |refusals: &mut Refusals, error, passed| refusals.record("sendmsg", error, &address(1), passed);
        assert!((0..20).all(|_| !record(&mut refusals, Errno::NOSYS, 0)), "too soon");
        refusals.streak.as_mut().expect("a streak").since = Time(0);
        assert!(record(&mut refusals, Errno::NOSYS, 0));
        assert!(!record(&mut refusals, Errno::NOSYS, 0), "who comes later has a second of its own");
        assert!(refusals.sentence(&address(2), 0, Explained::Silence).is_some(), "it concerns every address");
        assert!(!record(&mut refusals, Errno::NOSYS, 1), "a frame has passed");
        refusals.streak.as_mut().expect("a streak").since = Time(0);
        assert!((2..FINAL_CALLS).all(|_| !record(&mut refusals, Errno::NOSYS, 1)), "too few calls");
        assert!(record(&mut refusals, Errno::NOSYS, 1));
        assert!(!record(&mut refusals, Errno::PERM, 1), "a firewall may change");
        assert!(!record(&mut refusals, Errno::NOSYS, 1), "it begins anew");
    }

    #[test]
    fn more_addresses_than_are_remembered_forget_the_oldest_that_is_refused_no_more() {
        let mut refusals = Refusals::default();
        let refuse = |refusals: &mut Refusals, number| refusals.record("sendto", Errno::PERM, &address(number), 0);
        for _ in 0..IN_A_ROW {
            go_back(&mut refusals, APART);
            refuse(&mut refusals, 0);
        }
        for number in 1..=u8::try_from(REMEMBERED).expect("few") {
            refuse(&mut refusals, number);
        }
        let mut is_known = |number| refusals.sentence(&address(number), 0, Explained::Silence).is_some();
        assert_eq!([0, 1, 2].map(&mut is_known), [true, false, true]);
        // One that is over makes room as others do.
        go_back(&mut refusals, RECENT);
        refuse(&mut refusals, 2);
        refuse(&mut refusals, 1);
        assert_eq!(refusals.met.iter().filter(|met| met.to == address(0)).count(), 0);
        assert_eq!(refusals.met.len(), REMEMBERED);
    }

    #[test]
    fn many_addresses_that_are_refused_by_turns_all_go_on() {
        let mut refusals = Refusals::default();
        for _ in 0..IN_A_ROW {
            go_back(&mut refusals, APART);
            (0..20).for_each(|number| assert!(!refusals.record("sendto", Errno::PERM, &address(number), 0)));
        }
        assert!((0..20).all(|number| refusals.sentence(&address(number), 1, Explained::End).is_some()));
    }

    #[test]
    fn a_receive_that_is_allowed_ends_the_refusals_of_others() {
        for error in [Errno::NOSYS, Errno::INVAL] {
            let mut refusals = Refusals::default();
            let record = |refusals: &mut Refusals| {
                assert!((0..FINAL_CALLS).all(|_| !refusals.record_receive("recvmsg", error, 0)), "too soon");
                refusals.streak.as_mut().expect("a streak").since = Time(0);
            };
            record(&mut refusals);
            refusals.end();
            assert!(!refusals.is_current(0) && !refusals.record_receive("recvmsg", error, 0));
            record(&mut refusals);
            assert!(refusals.record_receive("recvmsg", error, 0));
        }
        let mut refusals = Refusals::default();
        refusals.record_receive("recvmsg", Errno::PERM, 0);
        assert!(refusals.streak.is_none(), "a filter of this moment");
    }
}
