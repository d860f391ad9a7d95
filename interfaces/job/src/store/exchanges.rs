//! Exchanges: the n-th call of each rank belongs to the n-th exchange.

use crate::wire::{Frame, Malformed, Refusal, Reply};
use std::collections::VecDeque;
use std::time::Duration;

/// How many exchanges a rank may be ahead of the slowest one. Only failed ones let a rank go on
/// without the others, so that a program that repeats them fills no memory.
const MOST_AHEAD: usize = 1024;

/// One exchange that not all ranks have come to.
struct Exchange {
    values: Vec<Option<Vec<u8>>>,
    waiting: Vec<(u32, Duration)>,
    /// What ranks that come later are told.
    failed: Option<Frame>,
}

pub(super) struct Exchanges {
    /// The exchanges from the first that not all living ranks have come to.
    open: VecDeque<Exchange>,
    /// For each rank how many of `open` it has come to; nothing for one that has gone.
    passed: Vec<Option<usize>>,
    ends: VecDeque<(u32, Frame)>,
}

impl Exchanges {
    pub(super) fn new(size: u32) -> Self {
        Self { open: VecDeque::new(), passed: vec![Some(0); size as usize], ends: VecDeque::new() }
    }

    /// A rank that has not gone comes to its next exchange.
    pub(super) fn handle(&mut self, rank: u32, value: Vec<u8>, deadline: Duration) -> Result<(), Malformed> {
        let at = self.passed[rank as usize].unwrap_or(0);
        if at == MOST_AHEAD {
            return Err(Malformed("1024 exchanges ahead of another rank"));
        }
        if at == self.open.len() {
            self.begin();
        }
        self.passed[rank as usize] = Some(at + 1);
        let exchange = &mut self.open[at];
        match &exchange.failed {
            Some(refused) => self.ends.push_back((rank, refused.clone())),
            None => {
                exchange.values[rank as usize] = Some(value);
                exchange.waiting.push((rank, deadline));
            }
        }
        self.complete(at);
        self.forget();
        Ok(())
    }

    /// Opens the next exchange, which fails at once where a rank has gone.
    fn begin(&mut self) {
        let size = self.passed.len();
        self.open.push_back(Exchange { values: vec![None; size], waiting: Vec::new(), failed: None });
        let gone = self.passed.iter().zip(0..).filter(|(passed, _)| passed.is_none());
        let gone: Vec<u32> = gone.map(|(_, rank)| rank).collect();
        if !gone.is_empty() {
            self.fail(self.open.len() - 1, |_| Refusal::Gone, &gone);
        }
    }

    /// Gives all ranks what all have given, once all have come.
    fn complete(&mut self, at: usize) {
        let exchange = &mut self.open[at];
        if exchange.failed.is_some() || exchange.values.iter().any(Option::is_none) {
            return;
        }
        let values = exchange.values.iter_mut().map(|value| value.take().unwrap_or_default()).collect();
        let frame: Frame = Reply::Values(values).emit().into();
        self.ends.extend(exchange.waiting.drain(..).map(|(rank, _)| (rank, frame.clone())));
    }

    /// Refuses an exchange to all ranks: why, for each that waits, and because of which ranks.
    fn fail(&mut self, at: usize, why: impl Fn(Duration) -> Refusal, ranks: &[u32]) {
        let exchange = &mut self.open[at];
        let refused = |why| Frame::from(Reply::Refused(why, ranks.to_vec()).emit());
        let ends = exchange.waiting.drain(..).map(|(rank, deadline)| (rank, refused(why(deadline))));
        self.ends.extend(ends);
        exchange.failed = Some(refused(why(Duration::MAX)));
        exchange.values.fill(None);
    }

    pub(super) fn handle_gone(&mut self, rank: u32) {
        let passed = self.passed[rank as usize].take().unwrap_or(0);
        for at in passed..self.open.len() {
            if self.open[at].failed.is_none() {
                self.fail(at, |_| Refusal::Gone, &[rank]);
            }
        }
        for exchange in &mut self.open {
            exchange.waiting.retain(|(waiting, _)| *waiting != rank);
        }
        self.forget();
    }

    pub(super) fn handle_timeout(&mut self, now: Duration) {
        for at in 0..self.open.len() {
            let exchange = &self.open[at];
            if exchange.waiting.iter().any(|(_, deadline)| *deadline <= now) {
                let missing = exchange.values.iter().zip(0..).filter(|(value, _)| value.is_none());
                let missing: Vec<u32> = missing.map(|(_, rank)| rank).collect();
                let why = |deadline| if deadline <= now { Refusal::TimedOut } else { Refusal::GivenUp };
                self.fail(at, why, &missing);
            }
        }
    }

    /// Drops the exchanges that all living ranks have come to.
    fn forget(&mut self) {
        let by_all = self.passed.iter().flatten().min().copied().unwrap_or(self.open.len());
        self.open.drain(..by_all);
        self.passed.iter_mut().flatten().for_each(|passed| *passed -= by_all);
    }

    /// How many exchanges are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn poll_end(&mut self) -> Option<(u32, Frame)> {
        self.ends.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.open.iter().flat_map(|exchange| &exchange.waiting).map(|(_, deadline)| *deadline).min()
    }
}
