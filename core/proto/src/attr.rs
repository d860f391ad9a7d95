//! Connection attributes.

/// What a connection promises, with the values of `cci_conn_attribute_t`.
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::Attribute;
///
/// assert!(Attribute::ReliableUnordered.is_reliable() && !Attribute::Unreliable.is_reliable());
/// assert_eq!(Attribute::ReliableOrdered.name(), "RO");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Attribute {
    /// Reliable, completions and deliveries in order.
    ReliableOrdered = 0,
    /// Reliable, completions and deliveries in any order.
    ReliableUnordered = 1,
    /// Unreliable, unordered: a message arrives intact and at most once, or not at all.
    Unreliable = 2,
    /// The sending side of a multicast group.
    MulticastSend = 3,
    /// The receiving side of a multicast group.
    MulticastReceive = 4,
}

impl Attribute {
    /// The attribute with this number, if there is one.
    #[must_use]
    pub const fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::ReliableOrdered,
            1 => Self::ReliableUnordered,
            2 => Self::Unreliable,
            3 => Self::MulticastSend,
            4 => Self::MulticastReceive,
            _ => return None,
        })
    }

    /// Whether every message is delivered or reported as failed.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableUnordered)
    }

    /// Whether this is one side of a multicast group.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        matches!(self, Self::MulticastSend | Self::MulticastReceive)
    }

    /// The field's short name: RO, RU, UU, MC_TX, MC_RX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReliableOrdered => "RO",
            Self::ReliableUnordered => "RU",
            Self::Unreliable => "UU",
            Self::MulticastSend => "MC_TX",
            Self::MulticastReceive => "MC_RX",
        }
    }
}
