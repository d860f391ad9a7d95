//! How a lane stands among those that share the endpoint's receive slots, and what of the lane the
//! program holds.

use std::collections::VecDeque;

/// What makes a lane take less than it could: others that come first, or a program that wants no
/// messages of it. One flag covers both, because each frame asks.
#[derive(Default)]
pub(crate) struct Contention {
    /// Lanes with less than a quarter of the receive slots that found none free, and have got none
    /// since: they get those that become free, in this order.
    wanting: VecDeque<u32>,
    /// Connections that the program has paused.
    paused: u32,
    /// There is either.
    is_on: bool,
}

impl Contention {
    /// Whether a lane may have to leave a message where it is although a slot is free.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The lane that gets the next slot.
    pub(crate) fn first(&self) -> Option<u32> {
        self.wanting.front().copied()
    }

    /// Lanes that want a slot.
    pub(crate) fn wanting(&self) -> usize {
        self.wanting.len()
    }

    /// A lane wants a slot.
    pub(crate) fn push(&mut self, lane: u32) {
        self.wanting.push_back(lane);
        self.is_on = true;
    }

    /// A lane wants none any more.
    pub(crate) fn remove(&mut self, lane: u32) {
        self.wanting.retain(|other| *other != lane);
        self.update();
    }

    /// So many connections are paused, and so many not any more.
    fn count_paused(&mut self, more: u32, less: u32) {
        self.paused = (self.paused + more).saturating_sub(less);
        self.update();
    }

    fn update(&mut self) {
        self.is_on = !self.wanting.is_empty() || self.paused > 0;
    }
}

/// What found no receive slot.
#[derive(Default)]
pub(crate) struct Admission {
    /// The `rnr` word of the lane is set.
    refusing: bool,
    /// The lane stands in `EndpointState::wanting`.
    wants: bool,
    /// Something was refused, and nothing has been taken since.
    held_back: bool,
    /// A message of a paused connection is next in the ring.
    stopped: bool,
    /// Paused connections, by this side's numbers.
    paused: Vec<u32>,
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

    /// Pauses a connection. A second call changes nothing.
    pub(crate) fn pause(&mut self, number: u32, contention: &mut Contention) {
        if !self.paused.contains(&number) {
            self.paused.push(number);
            contention.count_paused(1, 0);
        }
    }

    /// Ends the pause of a connection. False: there was none.
    pub(crate) fn resume(&mut self, number: u32, contention: &mut Contention) -> bool {
        let Some(at) = self.paused.iter().position(|other| *other == number) else { return false };
        self.paused.swap_remove(at);
        contention.count_paused(0, 1);
        true
    }

    /// Whether a connection is paused.
    pub(crate) fn is_paused(&self, number: u32) -> bool {
        self.paused.contains(&number)
    }

    /// A message of a paused connection is next. False: it was already.
    pub(crate) fn begin_stop(&mut self) -> bool {
        !std::mem::replace(&mut self.stopped, true)
    }

    /// The next message may be taken, as far as pauses go. False: that was so already.
    pub(crate) fn end_stop(&mut self) -> bool {
        std::mem::take(&mut self.stopped)
    }

    /// Whether a message of a paused connection holds up the lane.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
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
