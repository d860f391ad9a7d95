//! The RMA and large messages that this side has begun.
//!
//! An operation has a place from its beginning to its end. While it is on the wire it also has a
//! number, which the peer answers. A number is used again only after its last answer.

use crate::lane::posted::{Data, Ending};
use cci_mem::memory::Memory;
use cci_proto::engine::MAX_LARGE;
use cci_proto::{Access, Failure, Registration};
use cci_transport::Connection;
use std::collections::VecDeque;

/// Bits of a number that name one of the operations on the wire. The others count its uses.
const INDEX_BITS: u32 = 16;
const INDEX: u32 = (1 << INDEX_BITS) - 1;

/// Operations that are looked at for one of another connection.
const LOOKED_AT: usize = 64;

/// Where the local bytes of an operation are.
pub(crate) enum Local {
    Registered(Registration),
    /// A large message's own.
    Own(Memory),
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not begun: it waits for its turn.
    Waiting,
    /// A large message: the peer is to give memory.
    AwaitMemory,
    /// Bytes of a write are left to be sent.
    Sending,
    /// The peer is to answer.
    AwaitResult,
    /// The peer is to take the operation's message.
    AwaitTaken,
}

pub(crate) struct Operation {
    pub(crate) ending: Ending,
    pub(crate) access: Access,
    pub(crate) local: Local,
    pub(crate) local_offset: u64,
    /// What the peer's memory is named by.
    pub(crate) handle: [u64; 2],
    pub(crate) remote_offset: u64,
    pub(crate) len: u64,
    pub(crate) message: Option<Data>,
    /// Comes after all earlier operations of its connection, and before all later ones.
    pub(crate) fence: bool,
    pub(crate) stage: Stage,
    /// Bytes of a write that were handed to the stream, or of a read that have arrived.
    pub(crate) done: u64,
    /// On the wire.
    pub(crate) number: Option<u32>,
    /// Its bytes go in parts, over all streams of the lane.
    pub(crate) in_parts: bool,
    /// How it has ended, where those before it in its row have not.
    pub(crate) outcome: Option<Result<(), Failure>>,
    /// Order among all operations of the lane.
    pub(crate) order: u64,
}

/// A number on the wire.
#[derive(Clone, Copy)]
struct Number {
    uses: u16,
    /// Its last answer is still to come.
    is_busy: bool,
    /// The place of its operation; `None`: that has ended, and its last answer is still to come.
    place: Option<u32>,
    /// What has come of a read in parts.
    parts: Option<Parts>,
}

/// The parts of a read: its number is in use until all of them have come.
#[derive(Clone, Copy, Default)]
struct Parts {
    /// Bytes of those of which the head has come.
    bytes: u64,
    /// Those of which bytes are still to come.
    moving: u32,
    /// Bytes of all together, once RESULT has come.
    total: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Operations {
    places: Vec<Option<Operation>>,
    free: Vec<u32>,
    numbers: Vec<Number>,
    free_numbers: Vec<u32>,
    /// Places of those that have something to send, in the order of their posts.
    pub(crate) ready: VecDeque<u32>,
    /// Large messages that the peer was asked about, and those that wait to be asked about.
    larges: usize,
    waiting_larges: VecDeque<u32>,
    /// Whose bytes left last: others have their turn.
    last_served: Option<&'static Connection>,
    last_order: u64,
}

impl Operations {
    /// How many are on the wire.
    pub(crate) fn on_wire(&self) -> usize {
        self.numbers.len() - self.free_numbers.len()
    }

    /// Whether none is open, and no answer is to come.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len() && self.free_numbers.len() == self.numbers.len()
    }

    /// Adds an operation, and returns its place.
    pub(crate) fn add(&mut self, mut operation: Operation) -> u32 {
        self.last_order += 1;
        operation.order = self.last_order;
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(operation);
                place
            }
            None => {
                self.places.push(Some(operation));
                u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&Operation> {
        self.places.get(place as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Operation> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Changes the open operations.
    pub(crate) fn each(&mut self, change: impl FnMut(&mut Operation)) {
        self.places.iter_mut().flatten().for_each(change);
    }

    /// The open operations, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Operation)> {
        (0..).zip(&self.places).filter_map(|(place, operation)| Some((place, operation.as_ref()?)))
    }

    /// Gives an operation a number; `None`: the peer allows no more than `most` at a time.
    pub(crate) fn number(&mut self, place: u32, most: u32) -> Option<u32> {
        let index = match self.free_numbers.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.numbers.len()).ok().filter(|index| *index < most.min(INDEX))?;
                self.numbers.push(Number { uses: 0, is_busy: false, place: None, parts: None });
                index
            }
        };
        let number = &mut self.numbers[index as usize];
        number.uses = number.uses.wrapping_add(1);
        (number.is_busy, number.place, number.parts) = (true, Some(place), None);
        let named = u32::from(number.uses) << INDEX_BITS | index;
        self.get_mut(place)?.number = Some(named);
        Some(named)
    }

    /// The answer to this number comes in parts.
    pub(crate) fn expect_parts(&mut self, named: u32) {
        if let Some(number) = self.numbers.get_mut((named & INDEX) as usize) {
            number.parts = Some(Parts::default());
        }
    }

    fn parts(&mut self, named: u32) -> Option<&mut Parts> {
        let number = self.numbers.get_mut((named & INDEX) as usize)?;
        let is_its = number.is_busy && u32::from(number.uses) == named >> INDEX_BITS;
        number.parts.as_mut().filter(|_| is_its)
    }

    /// Whether the answer to this number comes in parts.
    pub(crate) fn expects_parts(&mut self, named: u32) -> bool {
        self.parts(named).is_some()
    }

    /// The head of a part has come. False: no such part was to come.
    pub(crate) fn on_part(&mut self, named: u32, bytes: u64) -> bool {
        let Some(parts) = self.parts(named) else { return false };
        let all = parts.bytes.saturating_add(bytes);
        let is_right = parts.total.is_none_or(|total| all <= total);
        if is_right {
            (parts.bytes, parts.moving) = (all, parts.moving + 1);
        }
        is_right
    }

    /// All bytes of a part have come.
    pub(crate) fn on_part_done(&mut self, named: u32) {
        if let Some(parts) = self.parts(named) {
            parts.moving = parts.moving.saturating_sub(1);
        }
    }

    /// RESULT says how many bytes come in parts. False: it was said before, or more have come.
    pub(crate) fn on_total(&mut self, named: u32, total: u64) -> bool {
        let parts = self.parts(named).filter(|parts| parts.total.is_none() && parts.bytes <= total);
        parts.map(|parts| parts.total = Some(total)).is_some()
    }

    /// Whether RESULT and all parts have come.
    pub(crate) fn has_all_parts(&mut self, named: u32) -> bool {
        self.parts(named).is_some_and(|parts| parts.total == Some(parts.bytes) && parts.moving == 0)
    }

    /// Whether a write in parts has bytes to send, of which the peer allows `most` at a time.
    pub(crate) fn has_in_parts(&self, most: u32) -> bool {
        let is_allowed = self.on_wire() < most as usize;
        let mut writes = self.ready.iter().take(LOOKED_AT).filter_map(|place| self.get(*place));
        writes.any(|other| other.in_parts && other.access == Access::Write && (is_allowed || other.number.is_some()))
    }

    /// The write in parts whose next part leaves, with a number; `None`: there is none, or the peer
    /// allows no more than `most` operations at a time.
    pub(crate) fn next_in_parts(&mut self, most: u32) -> Option<u32> {
        let writes = || {
            let places = self.ready.iter().take(LOOKED_AT).copied();
            places
                .filter_map(|place| Some((place, self.get(place)?)))
                .filter(|(_, other)| other.in_parts && other.access == Access::Write)
        };
        let is_others =
            |(_, other): &(u32, &Operation)| self.last_served.is_none_or(|last| !std::ptr::eq(last, other.ending.cell));
        let place = writes().find(is_others).or_else(|| writes().next()).map(|(place, _)| place)?;
        if self.get(place)?.number.is_none() {
            self.number(place, most)?;
        }
        self.get_mut(place)?.stage = Stage::Sending;
        Some(place)
    }

    /// An operation has ended that stays for its turn: its number does not name it any more.
    pub(crate) fn detach(&mut self, place: u32) {
        self.ready.retain(|other| *other != place);
        let number = self.get_mut(place).and_then(|operation| operation.number.take());
        if let Some(number) = number {
            self.numbers[(number & INDEX) as usize].place = None;
        }
    }

    /// All bytes of a write in parts were handed to streams.
    pub(crate) fn on_handed(&mut self, place: u32) {
        self.ready.retain(|other| *other != place);
        if let Some(operation) = self.get_mut(place) {
            operation.stage = Stage::AwaitResult;
        }
    }

    /// The place of the operation with this number.
    #[inline]
    pub(crate) fn place_of(&self, named: u32) -> Option<u32> {
        let number = self.numbers.get((named & INDEX) as usize)?;
        if u32::from(number.uses) == named >> INDEX_BITS { number.place } else { None }
    }

    /// The peer's last answer to this number has come. False: none was to come.
    pub(crate) fn answered(&mut self, named: u32) -> bool {
        let index = named & INDEX;
        let number = self.numbers.get_mut(index as usize);
        let Some(number) = number.filter(|number| number.is_busy && u32::from(number.uses) == named >> INDEX_BITS)
        else {
            return false;
        };
        number.is_busy = false;
        let place = number.place.take();
        self.free_numbers.push(index);
        if let Some(operation) = place.and_then(|place| self.get_mut(place)) {
            operation.number = None;
        }
        true
    }

    /// Where in `ready` the next one with something to send is: of a connection, the first; and
    /// the connections have their turns, as far as the first few tell.
    pub(crate) fn next_ready(&self) -> Option<usize> {
        let is_others = |place: &u32| {
            let operation = self.get(*place);
            operation
                .is_some_and(|operation| self.last_served.is_none_or(|last| !std::ptr::eq(last, operation.ending.cell)))
        };
        let of_others = self.ready.iter().take(LOOKED_AT).position(is_others);
        of_others.or((!self.ready.is_empty()).then_some(0))
    }

    /// Bytes of the operation at this place leave.
    pub(crate) fn on_served(&mut self, place: u32) {
        self.last_served = self.get(place).map(|operation| operation.ending.cell);
    }

    /// Whether the peer may be asked about another large message; if not, this one waits.
    pub(crate) fn may_ask(&mut self, place: u32) -> bool {
        let may_ask = self.larges < MAX_LARGE;
        if may_ask {
            self.larges += 1;
        } else {
            self.waiting_larges.push_back(place);
        }
        may_ask
    }

    /// The peer was not asked after all.
    pub(crate) fn unask(&mut self) {
        self.larges -= 1;
    }

    /// Takes an operation that ends. Its number, if it has one, stays in use until the last answer.
    pub(crate) fn take(&mut self, place: u32) -> Option<Operation> {
        let operation = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        self.ready.retain(|other| *other != place);
        self.waiting_larges.retain(|other| *other != place);
        if operation.access == Access::Large {
            self.larges -= usize::from(operation.stage != Stage::Waiting);
            if self.larges < MAX_LARGE {
                self.ready.extend(self.waiting_larges.pop_front());
            }
        }
        if let Some(number) = operation.number {
            self.numbers[(number & INDEX) as usize].place = None;
        }
        Some(operation)
    }
}
