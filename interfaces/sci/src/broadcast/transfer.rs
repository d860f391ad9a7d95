//! Transfers of DMA queues to a group and from it: what is written goes to all hosts, as what a
//! window has changed does.

use crate::mirror::{Change, WORD, emit, mask_before};
use crate::queue::{Begun, Transfer};
use crate::state::State;
use cci::Endpoint;

/// Bytes that are copied, or sent, together.
const STEP: u64 = 4096;

/// The words that these bytes change, from an offset of the segment on.
fn changes(offset: u64, bytes: &[u8]) -> Vec<Change> {
    let begin = offset as usize % WORD;
    let end = begin + bytes.len();
    let mut words = vec![0; begin];
    words.extend(bytes);
    words.resize(end.next_multiple_of(WORD), 0);
    let (words, _) = words.as_chunks::<WORD>();
    let change = |(at, word): (usize, &[u8; WORD])| Change {
        place: offset / WORD as u64 + at as u64,
        mask: mask_before(at * WORD, end) & !mask_before(at * WORD, begin),
        value: u64::from_ne_bytes(*word),
    };
    words.iter().enumerate().map(change).collect()
}

impl State {
    /// Goes on with a transfer of this queue, of which `moved` bytes have been moved. A write goes
    /// into the memory of this host and to all others, and has ended once they have confirmed it. A
    /// read takes what the memory of this host has.
    pub(crate) fn cast_transfer(
        &mut self,
        endpoint: &Endpoint,
        (id, token): (u32, u64),
        transfer: &Transfer,
        moved: &mut u64,
    ) -> Begun {
        let mut room = [0; STEP as usize];
        while *moved < transfer.len {
            let Some(group) = self.groups.get(&id) else { return Begun::Failed };
            let bytes = &mut room[..STEP.min(transfer.len - *moved) as usize];
            let (own, far) = ((transfer.own_offset + *moved) as usize, transfer.remote_offset + *moved);
            let (common, is_here) = (group.commons.memory(), group.lanes.is_empty());
            let is_moved = match transfer.is_read {
                true => common.copy_out(far, bytes) && transfer.own.write(own, bytes),
                false if is_here => transfer.own.read(own, bytes) && common.copy_in(far, bytes),
                false if !self.may_cast_transfer(id) => return Begun::NoRoom,
                false => transfer.own.read(own, bytes),
            };
            if !is_moved {
                return Begun::Failed;
            }
            *moved += bytes.len() as u64;
            if !transfer.is_read && !is_here {
                self.cast_bytes(endpoint, (id, token), (far, bytes), *moved == transfer.len);
            }
        }
        // It may have ended in the midst of the call.
        let waits = |group: &super::Group| group.waits.iter().any(|(_, of, _)| *of == token);
        if self.groups.get(&id).is_some_and(waits) { Begun::Open } else { Begun::Ended }
    }

    /// Sends bytes of a transfer; `is_last`: and asks for the confirmation of all.
    fn cast_bytes(
        &mut self,
        endpoint: &Endpoint,
        (id, token): (u32, u64),
        (offset, bytes): (u64, &[u8]),
        is_last: bool,
    ) {
        let mut messages = emit(&changes(offset, bytes), self.most_of_cast(id)).into_iter().peekable();
        while let Some((groups, _)) = messages.next() {
            let is_asking = is_last && messages.peek().is_none();
            self.cast(endpoint, id, (token, 0, is_asking), groups);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_the_words_that_they_lie_in() {
        let masks =
            |offset, len| changes(offset, &vec![1; len]).iter().map(|of| (of.place, of.mask)).collect::<Vec<_>>();
        assert_eq!(masks(0, 8), [(0, 0xff)]);
        assert_eq!(masks(9, 1), [(1, 2)]);
        assert_eq!(masks(15, 10), [(1, 0x80), (2, 0xff), (3, 1)]);
        assert_eq!(changes(6, &[7, 8])[0].value.to_ne_bytes(), [0, 0, 0, 0, 0, 0, 7, 8]);
    }
}
