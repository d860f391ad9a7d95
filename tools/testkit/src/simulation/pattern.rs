//! What messages and memory contain, so that each byte tells where it belongs.

use cci_sim::Random;
use std::sync::OnceLock;

/// Bytes of the pattern: long enough that any message or transfer lies in it at many places.
pub(super) const LEN: usize = 1 << 18;

/// Random bytes, the same in every run. All that is sent comes from here.
pub(super) fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut random = Random::new(0x5eed);
        (0..LEN / 8).flat_map(|_| random.next().to_le_bytes()).collect()
    })
}

/// Where the content of a message lies: the `index`-th of a stream.
fn place(stream: u32, index: u32, len: usize) -> usize {
    let mixed = (u64::from(stream) << 32 | u64::from(index)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> 40).unwrap_or(0) % (LEN - len)
}

/// Bytes of a message's content that say which one it is, when it is long enough.
pub(super) const HEAD: usize = 4;

/// A message's two parts: its index (if it is long enough to say), then its content.
pub(super) fn message(stream: u32, index: u32, len: usize) -> ([u8; HEAD], &'static [u8]) {
    let head = if len >= HEAD { HEAD } else { 0 };
    let at = place(stream, index, len);
    (index.to_be_bytes(), &bytes()[at..at + len - head])
}

/// Whether these bytes are that message.
pub(super) fn is_message(stream: u32, index: u32, len: usize, seen: &[u8]) -> bool {
    let (head, body) = message(stream, index, len);
    match seen.split_first_chunk::<HEAD>() {
        Some((first, rest)) => *first == head && rest == body,
        None => seen == body,
    }
}

/// The index that a message says it has.
pub(super) fn index(seen: &[u8]) -> Option<u32> {
    seen.first_chunk::<HEAD>().map(|head| u32::from_be_bytes(*head))
}
