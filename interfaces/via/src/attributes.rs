//! What NICs, VIs and memory are asked for with.

/// What a VI promises about its transfers. Both ends of a connection have the same.
///
/// # Example
///
/// ```
/// use cci_via::Reliability;
///
/// assert_eq!(Reliability::from_bits(2), Some(Reliability::Delivery));
/// assert_eq!(Reliability::from_bits(3), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the three levels of the VI Architecture")]
pub enum Reliability {
    /// A transfer may be lost; nothing that happens to it breaks the connection.
    Unreliable,
    /// A send completes when the peer's library has it.
    Delivery,
    /// A send completes when the peer has put it into memory.
    Reception,
}

impl Reliability {
    /// Returns the level's bit in VIPL.
    #[must_use]
    pub const fn bits(self) -> u16 {
        match self {
            Self::Unreliable => 1,
            Self::Delivery => 2,
            Self::Reception => 4,
        }
    }

    /// Returns the level of one bit; `None` for no bit, several, or an unknown one.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Option<Self> {
        match bits {
            1 => Some(Self::Unreliable),
            2 => Some(Self::Delivery),
            4 => Some(Self::Reception),
            _ => None,
        }
    }
}

/// What peers may do by RDMA.
///
/// # Example
///
/// ```
/// assert!(!cci_via::Access::default().write);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "there are these two kinds of RDMA")]
pub struct Access {
    /// RDMA writes.
    pub write: bool,
    /// RDMA reads.
    pub read: bool,
}

/// The name of a protection tag, of one NIC. 0 names none.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = cci_via::Nic::open(cci::Context::new()?.default_device()?)?;
/// assert_ne!(nic.protection()?, cci_via::Tag::default());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(pub(crate) u32);

impl Tag {
    /// Returns the tag as a number, for bindings.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the tag of that number, which may name none.
    #[must_use]
    pub const fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// How a VI is made.
///
/// # Example
///
/// ```
/// use cci_via::{Reliability, ViAttributes};
///
/// let attributes = ViAttributes { reliability: Reliability::Reception, ..ViAttributes::default() };
/// assert_eq!(attributes.max_transfer, 65_536);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the attributes of the VI Architecture")]
pub struct ViAttributes {
    /// What it promises.
    pub reliability: Reliability,
    /// The longest transfer, bytes, 1 to [`MAX_TRANSFER`].
    pub max_transfer: u64,
    /// Quality of service: 0, there is only one.
    pub qos: u64,
    /// The protection tag: memory of another tag is refused.
    pub tag: Tag,
    /// What the peer may do by RDMA, where the memory allows it too.
    pub access: Access,
}

impl Default for ViAttributes {
    /// Reliable delivery of up to 64 KiB, no tag, no RDMA by the peer.
    fn default() -> Self {
        let reliability = Reliability::Delivery;
        Self { reliability, max_transfer: 65_536, qos: 0, tag: Tag(0), access: Access::default() }
    }
}

/// The longest transfer, bytes.
pub const MAX_TRANSFER: u64 = 1 << 20;
/// The most data segments of a descriptor.
pub const MAX_SEGMENTS: usize = 252;
/// The most descriptors in a queue, completed ones that the program has not taken included.
pub const MAX_DESCRIPTORS: usize = 4_096;
/// The most entries of a completion queue.
pub const MAX_QUEUE_ENTRIES: usize = 65_536;
/// The longest discriminator, bytes.
pub const MAX_DISCRIMINATOR: usize = 64;
/// The most VIs, completion queues, registrations or tags of a NIC, of each kind.
pub const MAX_OBJECTS: usize = 32_768;
