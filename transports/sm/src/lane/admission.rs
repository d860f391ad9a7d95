//! How a lane stands among those that share the endpoint's receive slots, and what of the lane the
//! program holds.

/// What found no receive slot.
#[derive(Default)]
pub(crate) struct Admission {
    /// The `rnr` word of the lane is set.
    refusing: bool,
    /// The lane stands in `EndpointState::wanting`.
    wants: bool,
    /// Something was refused, and nothing has been taken since.
    held_back: bool,
}

impl Admission {
    /// Whether the lane refuses what lies in its ring.
    #[inline]
    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing
    }

    /// The lane refuses. False: it did already.
    pub(crate) fn begin_refusing(&mut self) -> bool {
        !std::mem::replace(&mut self.refusing, true)
    }

    /// The lane refuses no more. False: it did not.
    pub(crate) fn end_refusing(&mut self) -> bool {
        std::mem::take(&mut self.refusing)
    }

    /// The lane is to have a slot before others. False: that was so already.
    pub(crate) fn begin_wanting(&mut self) -> bool {
        !std::mem::replace(&mut self.wants, true)
    }

    /// The lane has got a slot, or needs none any more. False: it did not want one.
    pub(crate) fn end_wanting(&mut self) -> bool {
        std::mem::take(&mut self.wants)
    }

    /// Whether something was refused, and nothing has been taken since.
    #[inline]
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// Something finds no slot, or no more.
    pub(crate) fn set_held_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Whether calls have to look at the lane although no frame comes.
    pub(crate) fn is_open(&self) -> bool {
        self.refusing || self.held_back || self.wants
    }
}

/// What of the lane the program holds.
#[derive(Default)]
pub(crate) struct HeldSlots {
    /// Payload slots and requests.
    inbound: u32,
    /// Outbound payload slots that the program has, to write messages there.
    rooms: u32,
}

impl HeldSlots {
    /// Counts an event that goes to the program.
    #[inline(always)]
    pub(crate) fn add(&mut self) {
        self.inbound += 1;
    }

    /// Counts so many events that the program has returned.
    #[inline]
    pub(crate) fn release(&mut self, count: u32) {
        self.inbound = self.inbound.saturating_sub(count);
    }

    /// How many events the program has.
    pub(crate) fn inbound(&self) -> u32 {
        self.inbound
    }

    /// Counts a room that goes to the program.
    pub(crate) fn add_room(&mut self) {
        self.rooms += 1;
    }

    /// Counts a room that the program has sent or given back.
    pub(crate) fn release_room(&mut self) {
        self.rooms -= 1;
    }

    /// Whether the program holds nothing of the lane.
    pub(crate) fn is_empty(&self) -> bool {
        self.inbound + self.rooms == 0
    }

    /// How many rooms the program has.
    #[cfg(test)]
    pub(crate) fn rooms(&self) -> u32 {
        self.rooms
    }
}
