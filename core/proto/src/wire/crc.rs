//! The check of a frame: CRC32C.

/// A CRC32C (Castagnoli: reflected polynomial 0x82F63B78, all ones at start, inverted at the end)
/// over bytes that come piece by piece. With the feature `std` it is computed with the processor's
/// own instructions where it has them, found at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc(u32);

impl Crc {
    /// Of no bytes.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self(u32::MAX)
    }

    /// Continued over these bytes.
    #[inline]
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Self {
        Self(advance(self.0, bytes))
    }

    /// The register, for who continues it over bytes that only he may touch: all ones before the
    /// first byte, and inverted after the last.
    #[inline]
    #[must_use]
    pub const fn register(self) -> u32 {
        self.0
    }

    /// Goes on from a register.
    #[inline]
    #[must_use]
    pub const fn resumed(register: u32) -> Self {
        Self(register)
    }

    /// Of the bytes so far.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u32 {
        !self.0
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

/// The register after these bytes.
#[cfg(feature = "std")]
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a CRC of 32 bits in a wider word")]
fn advance(register: u32, bytes: &[u8]) -> u32 {
    if register == u32::MAX {
        // The way that is short for few bytes exists from the start only.
        return !crc_fast::crc32_iscsi(bytes);
    }
    let mut digest = crc_fast::Digest::new_with_init_state(crc_fast::CrcAlgorithm::Crc32Iscsi, register.into());
    digest.update(bytes);
    !(digest.finalize() as u32)
}

/// The register after these bytes.
#[cfg(not(feature = "std"))]
fn advance(register: u32, bytes: &[u8]) -> u32 {
    table::advance(register, bytes)
}

/// Bytewise, for where there is no system to ask what the processor can do; and what the fast way
/// is compared with.
#[cfg(any(test, not(feature = "std")))]
mod table {
    /// What each low byte of the register becomes.
    static TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < table.len() {
            let mut entry = i as u32;
            let mut bit = 0;
            while bit < 8 {
                entry = if entry & 1 == 1 { (entry >> 1) ^ 0x82F6_3B78 } else { entry >> 1 };
                bit += 1;
            }
            table[i] = entry;
            i += 1;
        }
        table
    };

    /// The register after these bytes.
    pub(super) fn advance(register: u32, bytes: &[u8]) -> u32 {
        bytes
            .iter()
            .fold(register, |register, byte| TABLE[usize::from(register.to_le_bytes()[0] ^ byte)] ^ (register >> 8))
    }
}

#[cfg(test)]
mod tests {
    use super::Crc;

    #[test]
    fn it_is_castagnoli() {
        assert_eq!(Crc::new().value(), 0);
        // The check value of the catalogue, and the examples of RFC 3720, appendix B.4.
        assert_eq!(Crc::new().update(b"123456789").value(), 0xE306_9283);
        assert_eq!(Crc::new().update(&[0; 32]).value(), 0x8A91_36AA);
        assert_eq!(Crc::new().update(&[0xFF; 32]).value(), 0x62A8_AB43);
        assert_eq!(!super::table::advance(u32::MAX, b"123456789"), 0xE306_9283);
    }

    #[test]
    fn it_continues_wherever_it_was_cut() {
        let mut bytes = [0; 700];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = (i * 31 % 251) as u8;
        }
        let whole = !super::table::advance(u32::MAX, &bytes);
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(Crc::new().update(a).update(b).value(), whole, "cut at {cut}");
            let resumed = Crc::resumed(super::table::advance(Crc::new().update(a).register(), b));
            assert_eq!(resumed.value(), whole, "resumed at {cut}");
        }
    }
}
