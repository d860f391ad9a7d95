//! Entries by ticket, and by index.

use crate::Ticket;
use cci_slab::{Key, Slab};

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) type Nodes<N> = Slab<N, Ticket, 32, 32>;

pub(crate) const fn nodes<N>() -> Nodes<N> {
    Slab::new(Ticket { index: 0, life: 0 }, NONE)
}

impl Key for Ticket {
    #[inline]
    fn from_u64(bits: u64) -> Self {
        Self { index: bits as u32, life: (bits >> 32) as u32 }
    }

    #[inline]
    fn to_u64(self) -> u64 {
        u64::from(self.life) << 32 | u64::from(self.index)
    }
}
