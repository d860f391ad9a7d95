//! Events as words, as rings have them.

use crate::handles::Handle;
use crate::types::{ANY, Described, Event, EventKind, ProcessId};

/// Words of an event.
pub(crate) const WORDS: usize = 15;

/// Two halves, low and high.
#[inline(always)]
pub(crate) fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the halves")]
pub(crate) fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Beside the kind and the failure: the portal index is any.
const IS_ANY: u32 = 1 << 15;

/// By number.
const KINDS: [EventKind; 12] = [
    EventKind::GetStart,
    EventKind::GetEnd,
    EventKind::PutStart,
    EventKind::PutEnd,
    EventKind::GetPutStart,
    EventKind::GetPutEnd,
    EventKind::ReplyStart,
    EventKind::ReplyEnd,
    EventKind::SendStart,
    EventKind::SendEnd,
    EventKind::Ack,
    EventKind::Unlink,
];

/// The words of an event. The last one has handles; of the one before it 32 bits are free.
#[inline(always)]
pub(crate) fn pack(event: &Event) -> [u64; WORDS] {
    let Event { described, .. } = event;
    // The failure is 0 or 1; the portal index is below 2^16, or any.
    let is_any = if event.portal == ANY { IS_ANY } else { 0 };
    let kind = event.kind as u32 | event.failure << 8 | is_any | event.portal << 16;
    [
        event.initiator.word(),
        pair(event.uid, event.jid),
        event.bits,
        event.rlength,
        event.mlength,
        event.offset,
        event.header,
        described.start,
        described.length,
        described.max_size,
        described.user,
        pair(described.options, described.threshold.cast_unsigned()),
        pair(event.link, event.sequence),
        kind.into(),
        pair(event.memory.bits(), described.queue.bits()),
    ]
}

/// The event of these words. `None`: nothing that [`pack`] makes.
#[inline(always)]
pub(crate) fn unpack(words: &[u64; WORDS]) -> Option<Event> {
    let [initiator, user, bits, rlength, mlength, offset, header, rest @ ..] = *words;
    let [start, length, max_size, own, options, counts, kind, handles] = rest;
    let ((uid, jid), (options, threshold), (link, sequence)) = (halves(user), halves(options), halves(counts));
    let ((kind, _), (memory, queue)) = (halves(kind), halves(handles));
    let (portal, queue) = (if kind & IS_ANY == 0 { kind >> 16 } else { ANY }, Handle::from_bits(queue));
    Some(Event {
        kind: *KINDS.get((kind & 0xff) as usize)?,
        initiator: ProcessId::of_word(initiator),
        uid,
        jid,
        portal,
        bits,
        rlength,
        mlength,
        offset,
        memory: Handle::from_bits(memory),
        described: Described { start, length, threshold: threshold.cast_signed(), max_size, options, user: own, queue },
        header,
        link,
        failure: kind >> 8 & 0x7f,
        sequence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_from_their_words() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let (memory, queue) = (Handle::from_bits(7), Handle::from_bits(0x8000_0001));
            let described = Described { start: 1, length: 2, threshold: -1, max_size: 3, options: !0, user: 4, queue };
            let event = Event {
                kind,
                initiator: ProcessId { nid: 5, pid: 6 },
                uid: 8,
                jid: 9,
                portal: [ANY, 255, 0xffff][number % 3],
                bits: 10,
                rlength: 11,
                mlength: 12,
                offset: 13,
                memory,
                described,
                header: u64::MAX,
                link: 14,
                failure: (number % 2) as u32,
                sequence: u32::MAX,
            };
            assert_eq!(unpack(&pack(&event)), Some(event));
        }
        let mut wrong = pack(&Event::default());
        wrong[13] = 12;
        assert_eq!(unpack(&wrong), None);
    }
}
