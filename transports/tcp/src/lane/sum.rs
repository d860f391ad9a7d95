//! The check of a fragment.

use crate::frame::{CHECKED, Fields, Header, SUM};
use cci_mem::memory::{Memory, Piece};
use cci_proto::wire::Crc;

/// The check of a fragment.
pub(crate) struct Sum {
    /// What the peer says.
    expected: u32,
    /// Of the bytes so far.
    computed: Crc,
}

impl Sum {
    /// The check of what follows, where the header says so. `fields`: the sum.
    pub(crate) fn of(header: &Header, fields: &mut Fields<'_>) -> Option<Self> {
        let is_checked = header.flags & CHECKED != 0;
        is_checked.then(|| Self { expected: fields.u32(), computed: Crc::new() })
    }

    /// Whether the bytes are not those that were sent.
    pub(crate) fn is_wrong(&self) -> bool {
        self.computed.value() != self.expected
    }
}

/// Copies bytes into memory, and sums them where they are checked. False: they do not fit.
pub(crate) fn store(memory: &Memory, at: u64, bytes: &[u8], sum: Option<&mut Sum>) -> bool {
    let Some(sum) = sum else { return memory.copy_in(at, bytes) };
    let register = memory.copy_in_checked(at, bytes, sum.computed.register());
    register.map(|register| sum.computed = Crc::resumed(register)).is_some()
}

/// Copies memory behind room for its sum, and fills that in: the sum is of the copy, whatever the
/// memory becomes meanwhile.
pub(crate) fn copy_checked(memory: &Piece, to: &mut [u8]) {
    let Some((sum, bytes)) = to.split_first_chunk_mut::<SUM>() else { return };
    memory.copy_to(0, bytes);
    *sum = Crc::new().update(bytes).value().to_le_bytes();
}
