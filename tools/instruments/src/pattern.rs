//! Bytes that a receiver recognizes.

/// Fills `target` with bytes that differ from one seed to the next and from one place to the next.
///
/// ```
/// let mut bytes = [0; 64];
/// cci_instruments::pattern_into(3, &mut bytes);
/// assert_eq!(bytes[..], cci_instruments::pattern(3, 64));
/// assert_ne!(bytes[..], cci_instruments::pattern(4, 64));
/// ```
pub fn pattern_into(seed: u64, target: &mut [u8]) {
    // Knuth's multiplicative generator (MMIX), whose upper bits are the good ones.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in target.chunks_mut(8) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let word = (state ^ (state >> 29)).to_ne_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// `len` bytes as [`pattern_into`] makes them.
#[must_use]
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern_into(seed, &mut bytes);
    bytes
}
