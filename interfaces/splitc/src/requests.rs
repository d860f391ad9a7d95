//! Requests that are under way: a place for each, from its start until its end has been taken.

use crate::fault::Fault;
use crate::sys::Target;

/// Requests of a rank that may be under way at a time: a power of two.
pub(crate) const MOST: usize = 64;

/// A request whose end has not come.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) rank: u32,
    pub(crate) address: u64,
    pub(crate) len: u64,
    /// Where the bytes of the end go; none where they are there then.
    pub(crate) target: Option<Target>,
    /// Whether a call waits for this one, so that its outcome is kept.
    pub(crate) is_awaited: bool,
    /// Whether it is an RMA, which ends by an event whatever becomes of its rank.
    pub(crate) is_rma: bool,
}

impl Pending {
    pub(crate) fn fault(&self) -> Fault {
        Fault::Unmapped { rank: self.rank, address: self.address, len: self.len }
    }
}

#[derive(Debug)]
enum State {
    Free,
    Open(Pending),
    /// Of a request that a call waits for.
    Ended(Result<u64, Fault>),
    /// An RMA whose end nobody needs any more, and that still uses its place.
    Abandoned,
}

/// The places. A number names a place and, above that, which of its requests it is.
#[derive(Debug)]
pub(crate) struct Requests {
    places: Box<[(u32, State)]>,
    free: Vec<usize>,
    open: usize,
}

impl Default for Requests {
    fn default() -> Self {
        Self { places: (0..MOST).map(|_| (0, State::Free)).collect(), free: (0..MOST).collect(), open: 0 }
    }
}

/// The place of a number.
pub(crate) fn place_of(number: u32) -> usize {
    number as usize % MOST
}

impl Requests {
    /// Whether no end is to come.
    pub(crate) fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// Takes a place. None: all are taken.
    #[inline]
    pub(crate) fn begin(&mut self, pending: Pending) -> Result<u32, Pending> {
        let Some(at) = self.free.pop() else { return Err(pending) };
        self.open += 1;
        let (turn, state) = &mut self.places[at];
        *state = State::Open(pending);
        *turn = turn.wrapping_add(MOST as u32);
        Ok(*turn | at as u32)
    }

    /// The state of the request with this number, unless it has ended long ago.
    fn state(&mut self, number: u32) -> Option<&mut State> {
        let (turn, state) = &mut self.places[place_of(number)];
        (*turn == number - place_of(number) as u32).then_some(state)
    }

    /// Whether a message of this rank, if it is known, may end the request with this number.
    pub(crate) fn is_open(&mut self, number: u32, rank: Option<u32>) -> bool {
        let is_it = |pending: &Pending| !pending.is_rma && rank.is_none_or(|rank| rank == pending.rank);
        matches!(self.state(number), Some(State::Open(pending)) if is_it(pending))
    }

    /// Ends a request, and returns it: the caller takes what has come, and settles it. None: it was
    /// forgotten.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) -> Option<Pending> {
        let state = self.state(number)?;
        match std::mem::replace(state, State::Free) {
            State::Open(pending) => {
                self.open -= 1;
                Some(pending)
            }
            State::Abandoned => {
                self.free.push(place_of(number));
                None
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Keeps the outcome of a request that has just ended, where a call waits for it; returns the
    /// fault otherwise.
    #[inline]
    pub(crate) fn settle(&mut self, number: u32, is_awaited: bool, outcome: Result<u64, Fault>) -> Option<Fault> {
        let at = place_of(number);
        if is_awaited {
            self.places[at].1 = State::Ended(outcome);
            return None;
        }
        self.free.push(at);
        outcome.err()
    }

    /// Takes the outcome of a request, if it has ended.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> Option<Result<u64, Fault>> {
        let state = self.state(number)?;
        if !matches!(state, State::Ended(_)) {
            return None;
        }
        let State::Ended(outcome) = std::mem::replace(state, State::Free) else { return None };
        self.free.push(place_of(number));
        Some(outcome)
    }

    /// Gives back the place of a request that was not started.
    pub(crate) fn give_back(&mut self, number: u32) {
        if self.end(number).is_some() {
            self.free.push(place_of(number));
        }
    }

    /// Forgets a request: what comes of it is dropped.
    pub(crate) fn forget(&mut self, number: u32) {
        let Some(state) = self.state(number) else { return };
        match state {
            State::Open(pending) => {
                let is_rma = pending.is_rma;
                *state = if is_rma { State::Abandoned } else { State::Free };
                self.open -= 1;
                if !is_rma {
                    self.free.push(place_of(number));
                }
            }
            State::Ended(_) => {
                *state = State::Free;
                self.free.push(place_of(number));
            }
            State::Free | State::Abandoned => {}
        }
    }

    /// The numbers of all requests that are under way and pass.
    pub(crate) fn open(&self, passes: impl Fn(&Pending) -> bool) -> Vec<u32> {
        let open = |(at, (turn, state)): (usize, &(u32, State))| match state {
            State::Open(pending) if passes(pending) => Some(*turn | at as u32),
            _ => None,
        };
        self.places.iter().enumerate().filter_map(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(is_awaited: bool, is_rma: bool) -> Pending {
        Pending { rank: 1, address: 64, len: 8, target: None, is_awaited, is_rma }
    }

    #[test]
    fn a_number_is_of_one_request() {
        let mut requests = Requests::default();
        let first = requests.begin(pending(true, false)).expect("a place");
        assert!(!requests.is_idle() && requests.take(first).is_none());
        let ended = requests.end(first).expect("it is open");
        assert_eq!(requests.settle(first, ended.is_awaited, Ok(7)), None);
        assert!(requests.is_idle() && requests.end(first).is_none());
        assert_eq!(requests.take(first), Some(Ok(7)));
        assert_eq!(requests.take(first), None);
        let second = requests.begin(pending(false, false)).expect("a place");
        assert!(place_of(first) == place_of(second) && first != second && requests.end(first).is_none());
        let ended = requests.end(second).expect("it is open");
        assert_eq!(requests.settle(second, false, Err(ended.fault())), Some(pending(false, false).fault()));
    }

    #[test]
    fn a_forgotten_rma_keeps_its_place_until_it_ends() {
        let mut requests = Requests::default();
        let all: Vec<u32> = (0..MOST).map(|_| requests.begin(pending(true, true)).expect("a place")).collect();
        assert!(requests.begin(pending(true, true)).is_err());
        assert_eq!(requests.open(|_| true).len(), MOST);
        all.iter().for_each(|number| requests.forget(*number));
        assert!(requests.is_idle() && requests.begin(pending(true, true)).is_err());
        assert!(requests.end(all[5]).is_none());
        let again = requests.begin(pending(true, false)).expect("a place");
        requests.forget(again);
        assert!(requests.is_idle() && requests.begin(pending(true, false)).is_ok());
    }
}
