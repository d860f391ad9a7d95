//! What stands where in a lane, and which frames there are. `docs/design/sm.md` has the tables.

use cci_mem::ring::{BODY_WORDS, Entry};
use cci_proto::MAX_REQUEST;

/// Largest message unless the key `mss` says otherwise, bytes.
pub const MAX_SEND_SIZE: u32 = 8192;
/// Layout version that both sides must speak.
pub(crate) const VERSION: u32 = 7;
/// Entries of a ring.
pub(crate) const ENTRIES: usize = 256;
/// log2 of that.
pub(crate) const RING_SHIFT: u32 = ENTRIES.trailing_zeros();
/// log2 of the words of a grant ring; more than `SLOTS`, so that it never overflows.
pub(crate) const GRANT_SHIFT: u32 = 7;
/// Payload slots per direction.
pub(crate) const SLOTS: u32 = 64;
/// Payload slots granted at the start.
pub(crate) const FIRST_SLOTS: u32 = 4;
/// Smallest and largest `max_send_size`: a lane must fit an address space.
pub(crate) const SEND_SIZES: std::ops::RangeInclusive<u32> = 64..=1 << 20;

/// Bytes of an endpoint's ready bitmap.
pub(crate) const READY_LEN: usize = cci_mem::hints::WORDS * 8;

/// Offsets in the words of a direction.
pub(crate) const HEAD: usize = 0;
pub(crate) const SLEEP: usize = 64;
pub(crate) const RNR: usize = 68;
pub(crate) const HAZARD: usize = 128;
pub(crate) const WAIT: usize = 192;
pub(crate) const GRANTS: usize = 256;
/// Bytes of these words: those of both directions share a page, so that an idle lane takes no more
/// pages than it must.
const WORDS: usize = 2048;
/// Bytes of a ring. The rings follow the words.
const RING_BYTES: usize = ENTRIES * size_of::<Entry>();
/// The payload slots follow the rings. What lies before them has memory from the start.
pub(crate) const PAYLOAD: usize = 2 * (WORDS + RING_BYTES);

const _: () = assert!(GRANTS + (1 << GRANT_SHIFT) * size_of::<u32>() <= WORDS);
const _: () = assert!((2 * WORDS).is_multiple_of(4096) && PAYLOAD.is_multiple_of(4096));
const _: () = assert!(SLOTS < 1 << GRANT_SHIFT);

/// No payload slot.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Sizes that the creator of a lane chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) stride: usize,
}

impl Geometry {
    /// For messages of up to `max_send_size` bytes, and for connection requests: room for the zero
    /// byte after them, in whole lines, and an odd number of these, so that slots do not fall on
    /// the same sets of a cache.
    pub(crate) fn new(max_send_size: u32) -> Self {
        let lines = ((max_send_size as usize).max(MAX_REQUEST) + 1).div_ceil(64) | 1;
        Self { stride: lines * 64 }
    }

    /// Bytes of the slots of one direction.
    fn slots(self) -> usize {
        (SLOTS as usize * self.stride).next_multiple_of(4096)
    }

    /// Bytes of a lane.
    pub(crate) fn lane(self) -> usize {
        PAYLOAD + 2 * self.slots()
    }

    /// Where a direction's parts are: the first, or the second.
    pub(crate) fn parts(self, second: bool) -> Parts {
        let nth = usize::from(second);
        Parts { words: nth * WORDS, ring: 2 * WORDS + nth * RING_BYTES, slots: PAYLOAD + nth * self.slots() }
    }
}

/// Offsets of the parts of a direction in its lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) words: usize,
    pub(crate) ring: usize,
    pub(crate) slots: usize,
}

/// Kinds of frames.
pub(crate) mod kind {
    pub(crate) const MESSAGE: u8 = 1;
    pub(crate) const MESSAGE_SLOT: u8 = 2;
    pub(crate) const CONNECT: u8 = 3;
    pub(crate) const ACCEPT: u8 = 4;
    pub(crate) const REJECT: u8 = 5;
    pub(crate) const DISCONNECT: u8 = 6;
    pub(crate) const PING: u8 = 7;
    pub(crate) const PONG: u8 = 8;
    pub(crate) const REDIRECT: u8 = 9;
    pub(crate) const WRITE: u8 = 10;
    pub(crate) const READ: u8 = 11;
    pub(crate) const DATA: u8 = 12;
    pub(crate) const RESULT: u8 = 13;
    pub(crate) const IMPORT: u8 = 14;
    pub(crate) const WITHDRAWN: u8 = 15;
    pub(crate) const FETCH_ADD: u8 = 16;
    pub(crate) const COMPARE_SWAP: u8 = 17;
    pub(crate) const VALUE: u8 = 18;
    pub(crate) const LARGE: u8 = 19;
    pub(crate) const LANDING: u8 = 20;
    pub(crate) const LANDED: u8 = 21;
}

/// Two 32-bit fields in one word of a body.
pub(crate) const fn pair(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// The fields of [`pair`].
#[expect(clippy::cast_possible_truncation, reason = "each field is cut out of the word")]
pub(crate) const fn unpair(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The body of a control frame that begins with these words.
pub(crate) fn body<const N: usize>(words: [u64; N]) -> [u64; BODY_WORDS] {
    let mut body = NOTHING;
    body[..N].copy_from_slice(&words);
    body
}

/// The body of a control frame that says nothing more.
pub(crate) const NOTHING: [u64; BODY_WORDS] = [0; BODY_WORDS];
