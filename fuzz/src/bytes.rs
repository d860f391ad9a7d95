//! Decisions from bytes. When they are used up, all that follow are 0.

/// Bytes that decide.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from(self.short()) << 16 | u32::from(self.short())
    }

    pub(crate) fn long(&mut self) -> u64 {
        u64::from(self.word()) << 32 | u64::from(self.word())
    }

    /// Below `limit`, which is at least 1.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// A number near 0, either side.
    pub(crate) fn near(&mut self) -> u32 {
        i32::from(self.byte().cast_signed()).cast_unsigned()
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// As many as the next byte says, as far as there are any.
    pub(crate) fn some(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte()).min(self.0.len());
        let (some, rest) = self.0.split_at(count);
        self.0 = rest;
        some
    }
}
