//! Random words of the system.

use rustix::rand::{GetRandomFlags, getrandom};

/// Random words, unpredictable for others.
///
/// # Errors
///
/// The system has none.
pub fn random<const N: usize>() -> rustix::io::Result<[u64; N]> {
    // So many bytes come whole.
    const { assert!(8 * N <= 256) };
    let mut bytes = [[0; 8]; N];
    getrandom(bytes.as_flattened_mut(), GetRandomFlags::empty())?;
    Ok(bytes.map(u64::from_ne_bytes))
}
