//! The next in-order frame while it awaits a receive slot. Its records before the message that
//! found no slot were applied, and are not applied again, whether the frame was held or is
//! retransmitted.

/// How far the next in-order frame was applied.
#[derive(Debug, Default)]
pub(crate) struct NextFrame {
    /// Records that were applied, messages among them, and their bytes.
    records: u16,
    messages: u16,
    bytes: u16,
    /// Whether the connection is in `Engine::awaiting_slot`.
    awaits_slot: bool,
}

impl NextFrame {
    /// Returns whether some of its records were applied.
    #[inline]
    pub(crate) const fn is_begun(&self) -> bool {
        self.records > 0
    }

    /// Returns how many of its records were applied.
    #[inline]
    pub(crate) const fn records(&self) -> u16 {
        self.records
    }

    /// Returns how many of its messages were delivered.
    #[inline]
    pub(crate) const fn messages(&self) -> u16 {
        self.messages
    }

    /// Returns how many bytes its records had that were applied, where the frame came last.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.into()
    }

    /// Notes that so many of its records were applied, with so many messages and bytes, and no more
    /// can be now.
    pub(crate) fn suspend(&mut self, records: u16, messages: u16, bytes: u16) {
        (self.records, self.messages, self.bytes) = (records, messages, bytes);
    }

    /// Notes that all its records were applied.
    #[inline]
    pub(crate) fn finish(&mut self) {
        (self.records, self.messages, self.bytes) = (0, 0, 0);
    }

    /// Notes that the connection awaits a slot. Returns whether it did not before: the caller
    /// appends it to the list.
    pub(crate) fn await_slot(&mut self) -> bool {
        !core::mem::replace(&mut self.awaits_slot, true)
    }

    /// Notes that the connection was removed from the list. Returns whether it awaited a slot.
    pub(crate) fn take_awaits_slot(&mut self) -> bool {
        core::mem::take(&mut self.awaits_slot)
    }

    pub(crate) const fn awaits_slot(&self) -> bool {
        self.awaits_slot
    }
}
