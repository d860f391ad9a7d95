//! The credits that a target lends to its requesters: a state machine without messages. A credit is
//! the right to have one request open, and stands for one reply buffer.

use std::collections::VecDeque;

/// The most credits that a requester gets at a time.
const SHARE: u32 = 32;

/// The credits of one target.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Credits that nobody has.
    free: u32,
    /// Requesters without a credit that have asked for one, oldest first.
    waiting: VecDeque<u32>,
    /// Credits that requesters were asked to give back.
    expected: u32,
}

/// What one requester has of them.
#[derive(Debug, Default)]
pub(crate) struct Loan {
    /// Credits that the requester has, used or not, with those of its open requests.
    pub(crate) lent: u32,
    /// Requests that came and have not ended.
    pub(crate) open: u32,
    /// Credits that it was asked to give back; 0 when it was not asked.
    pub(crate) asked: u32,
    pub(crate) is_waiting: bool,
}

impl Loan {
    /// A request has come. False: the requester had no credit for it.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        self.open += 1;
        self.open <= self.lent
    }

    /// Credits that the requester may have unused.
    pub(crate) fn unused(&self) -> u32 {
        self.lent - self.open.min(self.lent)
    }
}

impl Pool {
    pub(crate) fn new(total: u32) -> Self {
        Self { free: total, waiting: VecDeque::new(), expected: 0 }
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// Credits for a requester that has just come: none when few are left, since those go to who
    /// asks.
    pub(crate) fn welcome(&mut self, loan: &mut Loan) -> u32 {
        self.lend(loan, SHARE.min(self.free / 4))
    }

    /// A requester asks. Credits for it now; 0: it waits.
    pub(crate) fn want(&mut self, index: u32, loan: &mut Loan) -> u32 {
        if self.free > 0 {
            return self.lend(loan, (self.free / 4).clamp(1, SHARE));
        }
        if !loan.is_waiting {
            loan.is_waiting = true;
            self.waiting.push_back(index);
        }
        0
    }

    /// Whether the requester of a request that ends now keeps its credit.
    #[inline]
    pub(crate) fn keeps(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A request has ended, and its requester has its credit back or not.
    #[inline]
    pub(crate) fn end(&mut self, loan: &mut Loan, keeps: bool) {
        loan.open -= 1;
        if !keeps {
            loan.lent -= 1;
            self.free += 1;
        }
    }

    /// How many more credits requesters are to be asked for.
    pub(crate) fn missing(&self) -> u32 {
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        waiting.saturating_sub(self.free + self.expected)
    }

    /// Notes that a requester is asked for what it does not use. False: it has nothing, or was
    /// asked already.
    pub(crate) fn ask(&mut self, loan: &mut Loan) -> bool {
        let asks = loan.asked == 0 && loan.unused() > 0;
        if asks {
            loan.asked = loan.unused();
            self.expected += loan.asked;
        }
        asks
    }

    /// A requester gives credits back. False: it had not so many.
    pub(crate) fn release(&mut self, loan: &mut Loan, count: u32) -> bool {
        if count > loan.unused() || loan.asked == 0 {
            return false;
        }
        self.expected -= std::mem::take(&mut loan.asked);
        loan.lent -= count;
        self.free += count;
        true
    }

    /// The next waiting requester for which there is a credit now. [`Pool::lend_one`] gives it.
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.free == 0 { None } else { self.waiting.pop_front() }
    }

    pub(crate) fn lend_one(&mut self, loan: &mut Loan) -> u32 {
        loan.is_waiting = false;
        self.lend(loan, 1)
    }

    /// A requester is gone. `busy` of its open requests still have their reply buffers.
    pub(crate) fn leave(&mut self, index: u32, loan: &mut Loan, busy: u32) {
        self.expected -= std::mem::take(&mut loan.asked);
        self.free += loan.lent - busy;
        if loan.is_waiting {
            self.waiting.retain(|waiting| *waiting != index);
        }
        *loan = Loan::default();
    }

    /// A reply buffer of a requester that has gone is free.
    pub(crate) fn recover(&mut self) {
        self.free += 1;
    }

    fn lend(&mut self, loan: &mut Loan, count: u32) -> u32 {
        let count = count.min(self.free);
        self.free -= count;
        loan.lent += count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_credits_go_round_among_many() {
        let mut pool = Pool::new(1);
        let mut loans: Vec<Loan> = (0..3).map(|_| Loan::default()).collect();
        assert_eq!(pool.welcome(&mut loans[0]), 0, "the last ones are for who asks");
        assert_eq!(pool.want(0, &mut loans[0]), 1);
        assert_eq!((pool.want(1, &mut loans[1]), pool.want(2, &mut loans[2]), pool.missing()), (0, 0, 2));
        assert!(loans[0].begin() && !pool.keeps());
        pool.end(&mut loans[0], false);
        assert_eq!(pool.next(), Some(1));
        assert_eq!((pool.lend_one(&mut loans[1]), pool.next()), (1, None));
        // Requester 1 does not use it, and gives it back.
        assert!(pool.ask(&mut loans[1]) && !pool.ask(&mut loans[1]));
        assert_eq!(pool.missing(), 0);
        assert!(!pool.release(&mut loans[1], 2) && pool.release(&mut loans[1], 1));
        assert_eq!(pool.next(), Some(2));
    }

    #[test]
    fn a_request_without_a_credit_is_seen() {
        let (mut pool, mut loan) = (Pool::new(8), Loan::default());
        assert_eq!(pool.welcome(&mut loan), 2);
        assert!(loan.begin() && loan.begin() && !loan.begin());
    }

    proptest! {
        /// Whatever happens, no credit is lost or made, and one that waits gets one in the end.
        #[test]
        fn credits_are_conserved(total in 1u32..40, steps in prop::collection::vec((0usize..6, 0u32..5), 0..400)) {
            let mut pool = Pool::new(total);
            let mut loans: Vec<Loan> = (0..6).map(|_| Loan::default()).collect();
            for (at, step) in steps {
                let index = u32::try_from(at).expect("small");
                let loan = &mut loans[at];
                match step {
                    0 => { pool.want(index, loan); }
                    1 if loan.unused() > 0 => { prop_assert!(loan.begin()); }
                    2 if loan.open > 0 => { let keeps = pool.keeps(); pool.end(loan, keeps); }
                    3 if loan.asked > 0 => { let count = loan.unused(); prop_assert!(pool.release(loan, count)); }
                    4 => { let busy = loan.open; pool.leave(index, loan, busy); for _ in 0..busy { pool.recover(); } }
                    _ => { pool.ask(loan); }
                }
                while let Some(next) = pool.next() {
                    pool.lend_one(&mut loans[next as usize]);
                }
                let lent: u32 = loans.iter().map(|loan| loan.lent).sum();
                prop_assert_eq!(pool.free() + lent, total);
                prop_assert_eq!(pool.expected, loans.iter().map(|loan| loan.asked).sum::<u32>());
                prop_assert!(loans.iter().all(|loan| loan.open <= loan.lent));
            }
        }
    }
}
