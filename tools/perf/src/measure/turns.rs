//! Whose turn it is at the only port of a server.
//!
//! The run's endpoint takes the port of the listening one, so that a client that is let in and does
//! not connect keeps the port from others. Who was refused meanwhile asks again, and goes first, in
//! the order in which they came; hosts whose clients did not connect go last for a while.

use cci_admission::Origin;
use std::time::{Duration, Instant};

/// A client that has not asked for so long lets others go first, and keeps its place: it may be
/// slow.
const LATE: Duration = Duration::from_secs(1);
/// One that has not asked for so long has gone.
const GONE: Duration = Duration::from_secs(10);
/// How long an origin goes last whose client did not connect.
const LAST: Duration = Duration::from_secs(60);
/// Clients that are known at once, and origins that go last.
const MOST: usize = 64;

/// A client that asks again and again.
#[derive(Debug)]
struct Waiting {
    run: u64,
    origin: Origin,
    /// When it asked last.
    asked: Instant,
}

/// Those who wait for the port, who came first at first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    waiting: Vec<Waiting>,
    failed: Vec<(Origin, Instant)>,
}

impl Turns {
    /// Notes that a client asks, by its run, and has to wait.
    pub(super) fn add(&mut self, run: u64, origin: Origin, now: Instant) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.run == run) {
            // Over `tcp` each request has a port of its own.
            (waiting.asked, waiting.origin) = (now, origin);
            return;
        }
        self.waiting.push(Waiting { run, origin, asked: now });
        if self.waiting.len() > MOST {
            self.drop_one_of_the_loudest();
        }
    }

    /// The newest client of the origin that has the most.
    fn drop_one_of_the_loudest(&mut self) {
        let clients = |origin| self.waiting.iter().filter(|waiting| waiting.origin == origin).count();
        let loudest = (0..self.waiting.len()).max_by_key(|&at| (clients(self.waiting[at].origin), at));
        loudest.map(|at| self.waiting.remove(at));
    }

    /// Whether a client that asks has its turn, which it then takes; else it waits.
    pub(super) fn take(&mut self, run: u64, origin: Origin, now: Instant) -> bool {
        self.add(run, origin, now);
        self.waiting.retain(|waiting| now.saturating_duration_since(waiting.asked) <= GONE);
        self.failed.retain(|(_, since)| now.saturating_duration_since(*since) <= LAST);
        let goes_last = |waiting: &&Waiting| self.failed.iter().any(|(failed, _)| *failed == waiting.origin);
        let is_late = |waiting: &&Waiting| now.saturating_duration_since(waiting.asked) > LATE;
        let first =
            self.waiting.iter().filter(|waiting| !is_late(waiting)).min_by_key(goes_last).map(|waiting| waiting.run);
        let has_turn = first == Some(run);
        if has_turn {
            self.waiting.retain(|waiting| waiting.run != run);
        }
        has_turn
    }

    /// Notes that a client that took its turn did not connect.
    pub(super) fn failed(&mut self, origin: Origin, now: Instant) {
        self.failed.retain(|(failed, _)| *failed != origin);
        if self.failed.len() == MOST {
            self.failed.remove(0);
        }
        self.failed.push((origin, now));
    }

    /// Forgets who waits: a run has begun, and they are told so.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Origin = Origin::V4(1);
    const THERE: Origin = Origin::V4(2);

    #[test]
    fn who_waits_goes_first_in_order_while_it_asks() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        assert!(turns.take(1, HERE, now));
        turns.add(2, HERE, now);
        turns.add(1, HERE, now);
        assert!(!turns.take(1, HERE, now) && !turns.take(3, HERE, now));
        assert!(turns.take(2, HERE, now) && turns.take(1, HERE, now));
        // The third is late, and then has gone.
        let later = now + 2 * LATE;
        assert!(turns.take(4, HERE, later));
        turns.add(4, HERE, later);
        assert!(turns.take(3, HERE, later) && turns.take(4, HERE, later));
        turns.add(3, HERE, later);
        turns.add(4, HERE, later + GONE);
        let later = later + 2 * GONE;
        assert!(turns.take(4, HERE, later) && turns.waiting.is_empty());
        turns.add(5, HERE, later);
        turns.clear();
        assert!(turns.take(6, HERE, later));
    }

    #[test]
    fn an_origin_whose_client_did_not_connect_goes_last_for_a_while() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        turns.failed(HERE, now);
        assert!(turns.take(1, HERE, now), "nobody else waits");
        turns.add(1, HERE, now);
        turns.add(2, THERE, now);
        assert!(!turns.take(1, HERE, now) && turns.take(2, THERE, now) && turns.take(1, HERE, now));
        let later = now + 2 * LAST;
        turns.add(1, HERE, later);
        turns.add(2, THERE, later);
        assert!(!turns.take(2, THERE, later) && turns.take(1, HERE, later));
    }

    #[test]
    fn many_clients_of_one_origin_keep_no_other_from_its_place() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        (0..200).for_each(|run| turns.add(run, HERE, now));
        turns.add(1000, THERE, now);
        assert_eq!(turns.waiting.len(), MOST);
        (0..MOST as u64 - 1).for_each(|run| assert!(turns.take(run, HERE, now), "{run}"));
        assert!(turns.take(1000, THERE, now));
        (0..200_u32).for_each(|of| turns.failed(Origin::V4(of), now));
        assert_eq!(turns.failed.len(), MOST);
    }
}
