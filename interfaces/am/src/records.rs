//! Open requests of this endpoint.

use crate::wire::{Head, Span};

/// The most open requests of an endpoint.
const MOST: usize = 1 << 16;

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// A request that has taken a credit.
    Request,
    /// A get, whose bytes come to this range of the segment.
    Get(Span),
}

/// One open request.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) head: Head,
    pub(crate) target: u32,
    pub(crate) of: Of,
    generation: u16,
    is_open: bool,
}

/// All of them. A number names one, and no later one in its place: 16 bits of place, 16 of
/// generation.
#[derive(Debug, Default)]
pub(crate) struct Records {
    all: Vec<Record>,
    free: Vec<u16>,
}

impl Records {
    /// The number of the next record. `None`: too many are open.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        match self.free.last() {
            Some(&place) => Some(number(place, self.all[usize::from(place)].generation)),
            None if self.all.len() < MOST => u32::try_from(self.all.len()).ok(),
            None => None,
        }
    }

    /// Opens the record whose number [`Records::next`] has told.
    #[inline]
    pub(crate) fn open(&mut self, target: u32, of: Of, head: Head) {
        match self.free.pop() {
            Some(place) => {
                let record = &mut self.all[usize::from(place)];
                (record.target, record.of, record.head, record.is_open) = (target, of, head, true);
            }
            None => self.all.push(Record { head, target, of, generation: 0, is_open: true }),
        }
    }

    /// The open record of this number.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Record> {
        let (place, generation) = parts(id);
        self.all.get(usize::from(place)).filter(|record| record.is_open && record.generation == generation)
    }

    /// Ends the record of this number, which is open.
    #[inline]
    pub(crate) fn end(&mut self, id: u32) {
        let (place, _) = parts(id);
        let record = &mut self.all[usize::from(place)];
        record.is_open = false;
        record.generation = record.generation.wrapping_add(1);
        self.free.push(place);
    }

    /// The number of an open record of a target.
    pub(crate) fn one_of(&self, target: u32) -> Option<u32> {
        let at = self.all.iter().position(|record| record.is_open && record.target == target)?;
        Some(number(u16::try_from(at).ok()?, self.all[at].generation))
    }
}

#[inline]
fn number(place: u16, generation: u16) -> u32 {
    u32::from(generation) << 16 | u32::from(place)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the number")]
fn parts(id: u32) -> (u16, u16) {
    (id as u16, (id >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn a_number_names_one_request_only() {
        let mut records = Records::default();
        let head = Head::new(Kind::Request, 1, 0, &[]);
        let first = records.next().expect("room");
        records.open(3, Of::Request, head);
        assert_eq!((records.get(first).map(|record| record.target), records.one_of(3)), (Some(3), Some(first)));
        records.end(first);
        assert!(records.get(first).is_none() && records.one_of(3).is_none());
        let second = records.next().expect("room");
        records.open(4, Of::Request, head);
        assert!(second != first && records.get(first).is_none() && records.get(second).is_some());
    }
}
