//! Arithmetic of numbers that wrap (RFC 1982): sequence numbers and transmission numbers.

/// Returns the signed distance from `of` to `number`, modulo 2^32.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "distance modulo 2^32")]
pub(crate) const fn distance(number: u32, of: u32) -> i32 {
    number.wrapping_sub(of) as i32
}

/// Returns the lower half of a number, which tells it from those shortly before it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
pub(crate) const fn low_half(number: u32) -> u16 {
    number as u16
}
