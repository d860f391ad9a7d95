//! How a mapping is opened.

use std::time::Duration;

/// The ways of the paper to carry Active Messages over the VI Architecture.
///
/// # Example
///
/// ```
/// assert_eq!(cci_am_via::Variant::ALL.map(|variant| variant.name()), ["v1", "v2", "v3", "v4"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the paper has three, and proposes the fourth")]
pub enum Variant {
    /// Three VIs for each channel, for short, medium and bulk messages, each with credits of its
    /// own. Sends and receives only: bulk data is copied at both ends.
    V1 = 1,
    /// One VI. Every message is an RDMA write with immediate data into a ring in the target's
    /// memory, whose space the sender manages.
    V2 = 2,
    /// One VI and one counter of credits. Messages are sent and received; bulk data goes by RDMA
    /// write, with a message after it.
    V3 = 3,
    /// As [`Variant::V3`], with immediate data of 64 bits: a message that fits in it needs no
    /// buffer, and bulk data points with it to its message.
    V4 = 4,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::V3, Self::V4];

    /// Returns its name, as the command line has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
        }
    }
}

/// How many buffers stand behind `k` credits.
///
/// # Example
///
/// ```
/// assert_ne!(cci_am_via::Buffers::Double, cci_am_via::Buffers::Power);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the two readings of the paper")]
pub enum Buffers {
    /// 2 k sends and 2 k + 1 receives: a reply for each request, and one for the message whose
    /// handler runs. What works, and the default.
    Double,
    /// 2 to the power of k sends, and one receive more, as the text at hand prints it. For k of 2
    /// to 10.
    Power,
}

/// How a mapping is opened.
///
/// # Example
///
/// ```
/// use cci_am_via::{Options, Variant};
///
/// let options = Options::new(Variant::V3).credits(16);
/// assert_eq!((options.credits, options.update_every), (16, None));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Which mapping.
    pub variant: Variant,
    /// Credits of each channel and direction, 1 to 256 (8); of v1 those for medium and bulk
    /// messages, and 8 times as many for short ones.
    pub credits: u16,
    /// How many buffers stand behind them.
    pub buffers: Buffers,
    /// Messages after which credits go back without a message to ride on; unless set, a quarter of
    /// the credits.
    pub update_every: Option<u16>,
    /// Bytes of the ring of v2 and v4 (65,536), at most 1 MiB.
    pub ring: u32,
    /// For a channel to open.
    pub timeout: Duration,
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new(variant: Variant) -> Self {
        let timeout = Duration::from_secs(30);
        Self { variant, credits: 8, buffers: Buffers::Double, update_every: None, ring: 65_536, timeout }
    }

    /// Sets the credits.
    #[must_use]
    pub fn credits(mut self, credits: u16) -> Self {
        self.credits = credits;
        self
    }

    /// Sets how many buffers stand behind the credits.
    #[must_use]
    pub fn buffers(mut self, buffers: Buffers) -> Self {
        self.buffers = buffers;
        self
    }

    /// Sets after how many messages credits go back without one to ride on.
    #[must_use]
    pub fn update_every(mut self, messages: u16) -> Self {
        self.update_every = Some(messages);
        self
    }

    /// Sets the bytes of the ring.
    #[must_use]
    pub fn ring(mut self, bytes: u32) -> Self {
        self.ring = bytes;
        self
    }
}
