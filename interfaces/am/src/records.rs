//! Open requests of this endpoint.

use crate::wire::{Head, Span};

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

impl Record {
    #[inline]
    fn end(&mut self) {
        self.is_open = false;
        self.generation = self.generation.wrapping_add(1);
    }
}

/// All of them. A number names one, and no later one in its place: 16 bits of place, 16 of
/// generation.
#[derive(Debug, Default)]
pub(crate) struct Records {
    all: Vec<Record>,
    free: Vec<u16>,
}

impl Records {
    /// The number of the next record, and its head, in which the request may be written. `None`:
    /// too many are open.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(u32, &mut Head)> {
        if self.free.is_empty() {
            self.grow()?;
        }
        let place = *self.free.last()?;
        let record = self.all.get_mut(usize::from(place))?;
        Some((number(place, record.generation), &mut record.head))
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Option<()> {
        let place = u16::try_from(self.all.len()).ok()?;
        self.all.push(Record { head: Head::empty(), target: 0, of: Of::Request, generation: 0, is_open: false });
        self.free.push(place);
        Some(())
    }

    /// Opens the record that [`Records::next`] has named, of the request in its head.
    #[inline]
    pub(crate) fn open(&mut self, target: u32, of: Of) {
        if let Some(place) = self.free.pop()
            && let Some(record) = self.all.get_mut(usize::from(place))
        {
            (record.target, record.of, record.is_open) = (target, of, true);
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
        if let Some(record) = self.all.get_mut(usize::from(place)) {
            record.end();
            self.free.push(place);
        }
    }

    /// Ends the open request of this number to this target. False: there is none.
    #[inline]
    pub(crate) fn end_request(&mut self, id: u32, target: u32) -> bool {
        let (place, generation) = parts(id);
        let Some(record) = self.all.get_mut(usize::from(place)) else { return false };
        let is_it = record.is_open && record.generation == generation && record.target == target;
        if !is_it || !matches!(record.of, Of::Request) {
            return false;
        }
        record.end();
        self.free.push(place);
        true
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
        let (first, head) = records.next().expect("room");
        head.fill(Kind::Request, 1, first, &[]);
        records.open(3, Of::Request);
        assert_eq!((records.get(first).map(|record| record.target), records.one_of(3)), (Some(3), Some(first)));
        records.end(first);
        assert!(records.get(first).is_none() && records.one_of(3).is_none());
        let (second, _) = records.next().expect("room");
        records.open(4, Of::Request);
        assert!(!records.end_request(first, 4) && !records.end_request(second, 3), "another request, or target");
        assert!(second != first && records.get(first).is_none() && records.get(second).is_some());
    }
}
