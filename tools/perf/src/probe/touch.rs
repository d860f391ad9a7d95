//! Reading every byte of a message.

/// Reads every byte of an event's message: its length, or the status of another event.
#[inline]
pub(crate) fn touch(event: &cci::Event<'_>) -> u32 {
    match event {
        cci::Event::Received(message) => {
            std::hint::black_box(message.bytes().map_or_else(|| sum_of_view(message.view()), sum));
            u32::try_from(message.len()).unwrap_or(u32::MAX)
        }
        other => other.outcome().map_or_else(cci::Failure::status, |()| cci::Status::Success) as u32,
    }
}

/// Bytes that [`sum_of_view`] copies at a time.
const PIECE: usize = 512;

/// Reads every byte of a message that its peer could still write: by copies, as a program has to. A
/// look at each word alone would take the processor longer than their way here.
#[inline]
fn sum_of_view(view: cci::View<'_>) -> u64 {
    let (mut piece, mut at, mut total) = ([0; PIECE], 0, 0_u64);
    while at < view.len() {
        let len = view.copy_to(at, &mut piece);
        total = total.wrapping_add(sum(&piece[..len]));
        at += len;
    }
    total
}

/// Reads every byte.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    let mut sum = 0_u64;
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        sum = sum.wrapping_add(u64::from_ne_bytes(word));
    }
    chunks.remainder().iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
