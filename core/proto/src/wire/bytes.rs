//! Big-endian fields at offsets.

use super::TAG;

/// The `N` bytes at this offset, if the frame is that long.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// One byte.
#[inline]
pub(super) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Two bytes.
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// Four bytes.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// Eight bytes.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

/// `Some` if the `N` bytes at this offset are there and zero, as reserved ones are.
#[inline]
pub(super) fn zero<const N: usize>(bytes: &[u8], at: usize) -> Option<()> {
    (array::<N>(bytes, at)? == [0; N]).then_some(())
}

/// Writes a field.
#[inline]
pub(super) fn put<const N: usize>(frame: &mut [u8], at: usize, field: [u8; N]) {
    frame[at..at + N].copy_from_slice(&field);
}

/// Writes `bytes` and says where they end.
#[inline]
pub(super) fn put_bytes(frame: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    let end = at + bytes.len();
    frame[at..end].copy_from_slice(bytes);
    end
}

/// Writes a tag, if there is one, and says where the frame ends.
pub(super) fn put_tag(frame: &mut [u8], at: usize, tag: Option<[u8; TAG]>) -> usize {
    let Some(tag) = tag else { return at };
    put(frame, at, tag);
    at + TAG
}

/// The tag that ends a frame whose other bytes end at `at`, if it has one. `None` if the frame is
/// neither that long nor longer by a tag.
pub(super) fn tag_at_end(frame: &[u8], at: usize) -> Option<Option<[u8; TAG]>> {
    if frame.len() == at { Some(None) } else { Some(Some(frame.get(at..)?.try_into().ok()?)) }
}

/// A length as a field of two bytes. No frame is longer, so that the bound is never met by a frame
/// that fits its buffer.
#[inline]
pub(super) fn length(bytes: usize) -> [u8; 2] {
    debug_assert!(bytes <= usize::from(u16::MAX), "{bytes} bytes do not fit a frame");
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}
