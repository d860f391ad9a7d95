//! What strangers are counted by.

use std::net::IpAddr;

/// Where a connection comes from: strangers of equal origins share the places that these have.
///
/// ```
/// use cci_admission::Origin;
/// use std::net::IpAddr;
///
/// let of = |text: &str| Origin::of(text.parse::<IpAddr>().expect("an address"));
/// assert_eq!(of("127.0.0.1"), of("::ffff:127.0.0.2"));
/// assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
/// assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "there are no other addresses")]
pub enum Origin {
    /// This host, from which all ranks of a job may come.
    Here,
    /// One process or endpoint of this host, where the server knows which.
    Local(u32),
    /// An address of IPv4.
    V4(u32),
    /// A network of IPv6 with a prefix of 64 bits, whose addresses one host may have.
    V6(u64),
}

impl Origin {
    /// The origin of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Here,
            IpAddr::V4(address) => Self::V4(address.into()),
            IpAddr::V6(address) => Self::V6((u128::from(address) >> 64) as u64),
        }
    }
}
