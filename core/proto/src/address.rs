//! Where a frame comes from or goes to.

/// An address as its link understands it; the engine only compares and keeps it. 24 bytes, so that
/// a connection can hold its own: no table of peers has to grow with them.
///
/// The first 16 bytes name the host, as an IPv6 address does; the rest is the endpoint there. An
/// IPv4 address is written as IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub [u8; 24]);

impl Address {
    /// The network that one user may have all addresses of: an IPv4 address, or the first 64 bits
    /// of any other.
    ///
    /// ```
    /// use cci_proto::Address;
    ///
    /// let mut address = Address::default();
    /// address.0[10..16].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 7]);
    /// let mut other_port = address;
    /// other_port.0[17] = 9;
    /// assert_eq!(address.network(), other_port.network());
    /// ```
    #[must_use]
    pub fn network(&self) -> u64 {
        let word = |at: usize| self.0[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        match (word(0), word(8)) {
            (0, low) if low >> 32 == 0xffff => low,
            (high, _) => high,
        }
    }
}
