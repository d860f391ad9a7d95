//! Random words of the system.

use rustix::rand::{GetRandomFlags, getrandom};

/// Random words, unpredictable for others.
///
/// # Errors
///
/// The system has none.
pub fn random<const N: usize>() -> rustix::io::Result<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 8];
        getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        *word = u64::from_ne_bytes(bytes);
    }
    Ok(words)
}
