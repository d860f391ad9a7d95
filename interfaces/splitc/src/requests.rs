//! Requests that are under way: a place for each, from its start until its end has been taken.

use crate::fault::Fault;
use crate::sys::Target;

/// Requests of a rank that may be under way at a time: a power of two.
pub(crate) const MOST: usize = 64;

/// A request whose end has not come.
#[derive(Clone, Copy, Debug)]
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

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Free,
    Open,
    /// Of a request that a call waits for; its outcome is there.
    Ended,
    /// An RMA whose end nobody needs any more, and that still uses its place.
    Abandoned,
}

/// A place, and what was in it last. What belongs to one state only stays, and is not read: a
/// request copies its few words once.
#[derive(Debug)]
struct Place {
    turn: u32,
    state: State,
    pending: Pending,
    outcome: Result<u64, Fault>,
}

impl Place {
    fn new() -> Self {
        let nothing = Pending { rank: 0, address: 0, len: 0, target: None, is_awaited: false, is_rma: false };
        Self { turn: 0, state: State::Free, pending: nothing, outcome: Ok(0) }
    }
}

/// The places. A number names a place and, above that, which of its requests it is.
#[derive(Debug)]
pub(crate) struct Requests {
    places: Box<[Place]>,
    free: Vec<usize>,
    open: usize,
}

impl Default for Requests {
    fn default() -> Self {
        Self { places: (0..MOST).map(|_| Place::new()).collect(), free: (0..MOST).collect(), open: 0 }
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
    pub(crate) fn begin(&mut self, pending: &Pending) -> Option<u32> {
        let at = self.free.pop()?;
        self.open += 1;
        let place = &mut self.places[at];
        place.state = State::Open;
        place.pending = *pending;
        place.turn = place.turn.wrapping_add(MOST as u32);
        Some(place.turn | at as u32)
    }

    /// The place of the request with this number, unless it has ended long ago.
    #[inline]
    fn place(&mut self, number: u32) -> Option<&mut Place> {
        let at = place_of(number);
        let place = &mut self.places[at];
        (place.turn | at as u32 == number).then_some(place)
    }

    /// Whether a message of this rank, if it is known, may end the request with this number.
    pub(crate) fn is_open(&mut self, number: u32, rank: Option<u32>) -> bool {
        self.place(number).is_some_and(|place| {
            let pending = &place.pending;
            place.state == State::Open && !pending.is_rma && rank.is_none_or(|rank| rank == pending.rank)
        })
    }

    /// Ends a request, and returns it: the caller takes what has come, and settles it. None: it was
    /// forgotten.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) -> Option<&Pending> {
        let place = self.place(number)?;
        match place.state {
            State::Open => {
                place.state = State::Free;
                self.open -= 1;
                Some(&self.places[place_of(number)].pending)
            }
            State::Abandoned => {
                place.state = State::Free;
                self.free.push(place_of(number));
                None
            }
            State::Free | State::Ended => None,
        }
    }

    /// Keeps the outcome of a request that has just ended, where a call waits for it; returns the
    /// fault otherwise.
    #[inline]
    pub(crate) fn settle(&mut self, number: u32, outcome: Result<u64, Fault>) -> Option<Fault> {
        let at = place_of(number);
        let place = &mut self.places[at];
        if place.pending.is_awaited {
            (place.state, place.outcome) = (State::Ended, outcome);
            return None;
        }
        self.free.push(at);
        outcome.err()
    }

    /// Takes the outcome of a request, if it has ended.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> Option<Result<u64, Fault>> {
        let place = self.place(number).filter(|place| place.state == State::Ended)?;
        place.state = State::Free;
        let outcome = std::mem::replace(&mut place.outcome, Ok(0));
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
        let Some(place) = self.place(number) else { return };
        let was = place.state;
        let keeps_place = was == State::Open && place.pending.is_rma;
        if was == State::Open || was == State::Ended {
            place.state = if keeps_place { State::Abandoned } else { State::Free };
            self.open -= usize::from(was == State::Open);
            if !keeps_place {
                self.free.push(place_of(number));
            }
        }
    }

    /// The numbers of all requests that are under way and pass.
    pub(crate) fn open(&self, passes: impl Fn(&Pending) -> bool) -> Vec<u32> {
        let is_open = |place: &Place| place.state == State::Open && passes(&place.pending);
        let open = self.places.iter().enumerate().filter(|(_, place)| is_open(place));
        open.map(|(at, place)| place.turn | at as u32).collect()
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
        let first = requests.begin(&pending(true, false)).expect("a place");
        assert!(!requests.is_idle() && requests.take(first).is_none());
        assert!(requests.end(first).is_some_and(|ended| ended.is_awaited));
        assert_eq!(requests.settle(first, Ok(7)), None);
        assert!(requests.is_idle() && requests.end(first).is_none());
        assert_eq!(requests.take(first), Some(Ok(7)));
        assert_eq!(requests.take(first), None);
        let second = requests.begin(&pending(false, false)).expect("a place");
        assert!(place_of(first) == place_of(second) && first != second && requests.end(first).is_none());
        let fault = requests.end(second).map(Pending::fault).expect("it is open");
        assert_eq!(requests.settle(second, Err(fault.clone())), Some(fault));
    }

    #[test]
    fn a_forgotten_rma_keeps_its_place_until_it_ends() {
        let mut requests = Requests::default();
        let all: Vec<u32> = (0..MOST).map(|_| requests.begin(&pending(true, true)).expect("a place")).collect();
        assert!(requests.begin(&pending(true, true)).is_none());
        assert_eq!(requests.open(|_| true).len(), MOST);
        all.iter().for_each(|number| requests.forget(*number));
        assert!(requests.is_idle() && requests.begin(&pending(true, true)).is_none());
        assert!(requests.end(all[5]).is_none());
        let again = requests.begin(&pending(true, false)).expect("a place");
        requests.forget(again);
        assert!(requests.is_idle() && requests.begin(&pending(true, false)).is_some());
    }
}
