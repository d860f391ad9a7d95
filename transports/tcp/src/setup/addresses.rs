//! The addresses of a host that has several: a connect asks at one after the other.

use cci_proto::Time;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// How long an address may take in the first round (RFC 8305, section 8: Connection Attempt Delay).
/// Twice as long in each further one, so that a long way answers at last.
const TURN: Duration = Duration::from_millis(250);
const LONGEST_TURN: Duration = Duration::from_secs(4);

/// What a connect may ask at besides the address of the lane that it waits on. Empty where the host
/// has one address.
#[derive(Debug, Default)]
pub(crate) struct OtherAddresses {
    left: VecDeque<SocketAddr>,
    /// How many of these have not had their turn in this round.
    fresh: usize,
    turn: Duration,
    /// When the next one has its turn.
    next_at: Option<Time>,
    /// Why addresses are not asked any more.
    reasons: Vec<String>,
}

impl OtherAddresses {
    /// Of a connect that asks elsewhere from now on.
    pub(crate) fn new(left: impl IntoIterator<Item = SocketAddr>, now: Time) -> Self {
        let left: VecDeque<_> = left.into_iter().collect();
        let mut others = Self { fresh: left.len(), left, turn: TURN, next_at: None, reasons: Vec::new() };
        others.begin_turn(now);
        others
    }

    /// When the next address has its turn; `None`: there is no other.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.next_at
    }

    fn begin_turn(&mut self, now: Time) {
        self.next_at = (!self.left.is_empty()).then(|| now + self.turn);
    }

    /// The present address may answer later, and has failed for now: the next one has its turn at
    /// once, but only once in a round.
    pub(crate) fn hurry(&mut self, now: Time) {
        if self.fresh > 0 {
            self.next_at = Some(now);
        }
    }

    /// The present address has had its turn: the next one, if there is another and it is time.
    pub(crate) fn after(&mut self, present: SocketAddr, now: Time) -> Option<SocketAddr> {
        if self.next_at.is_none_or(|at| at > now) {
            return None;
        }
        let next = self.left.pop_front()?;
        self.left.push_back(present);
        if let Some(fresh) = self.fresh.checked_sub(1) {
            self.fresh = fresh;
        } else {
            self.fresh = self.left.len();
            self.turn = (self.turn * 2).min(LONGEST_TURN);
        }
        self.begin_turn(now);
        Some(next)
    }

    /// The present address is not asked any more: the next one, or why there is none.
    pub(crate) fn without(&mut self, reason: String, now: Time) -> Result<SocketAddr, String> {
        self.reasons.push(reason);
        let next = self.left.pop_front().ok_or_else(|| self.reasons.join("; "))?;
        self.fresh = self.fresh.saturating_sub(1);
        self.begin_turn(now);
        Ok(next)
    }

    /// A sentence about the present address, with what there is to say of those before it.
    pub(crate) fn sentence(&self, reason: String) -> String {
        let mut all = self.reasons.clone();
        all.push(reason);
        if !self.left.is_empty() {
            all.push(format!("its host's other addresses do not answer either ({})", self.listed()));
        }
        all.join("; ")
    }

    fn listed(&self) -> String {
        let all: Vec<String> = self.left.iter().map(SocketAddr::to_string).collect();
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn each_has_its_turn_and_turns_grow_by_the_round() {
        let mut now = Time(0);
        let mut others = OtherAddresses::new([address(2), address(3)], now);
        let mut present = address(1);
        let mut turns = Vec::new();
        for _ in 0..7 {
            let at = others.next_at().expect("there are others");
            assert_eq!(others.after(present, now), None, "not before its time");
            turns.push((present.port(), (at - now).as_millis()));
            now = at;
            present = others.after(present, now).expect("it is time");
        }
        assert_eq!(turns, [(1, 250), (2, 250), (3, 250), (1, 500), (2, 500), (3, 500), (1, 1000)]);
    }

    #[test]
    fn a_failure_is_hurried_once_in_a_round() {
        let now = Time(5);
        let mut others = OtherAddresses::new([address(2)], now);
        others.hurry(now);
        assert_eq!(others.after(address(1), now), Some(address(2)));
        others.hurry(now);
        assert_eq!(others.after(address(2), now), None, "both have had their turn");
        assert!(others.next_at().is_some_and(|at| at > now));
    }

    #[test]
    fn an_address_that_has_failed_is_left_out_and_named() {
        let now = Time(0);
        let mut others = OtherAddresses::new([address(2)], now);
        assert_eq!(others.without("no 1".into(), now), Ok(address(2)));
        assert_eq!(others.next_at(), None, "it is the last");
        assert_eq!(others.sentence("late".into()), "no 1; late");
        assert_eq!(others.without("no 2".into(), now), Err("no 1; no 2".into()));
        let mut none = OtherAddresses::default();
        assert_eq!((none.after(address(1), Time(u64::MAX)), none.next_at()), (None, None));
        assert_eq!(none.without("no".into(), now), Err("no".into()));
    }
}
