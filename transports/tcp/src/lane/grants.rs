//! Grants: how many messages each side of a lane may send.
//!
//! A grant stands for a receive slot. Both sides count messages from the beginning of the lane,
//! modulo 2^32; a grant is the count up to which the other side may send.

/// Grants that a lane gets at first, and at most.
pub(crate) const FIRST: u32 = 4;
pub(crate) const MOST: u32 = 256;

/// What this side has granted to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// The peer may send up to this count.
    limit: u32,
    /// The limit that the peer was told.
    told: u32,
    /// Messages that have arrived.
    received: u32,
    /// Messages that were taken: in a slot, or dropped because their connection is gone.
    pub(crate) taken: u32,
    /// How many the peer is to have at a time.
    window: u32,
    /// The peer was asked for what it does not use, and has not answered.
    pub(crate) recalled: bool,
    /// A connection of the lane is paused: the window is 0.
    paused: bool,
}

/// Of so many slots, those that peers get one at a time, when they ask.
pub(crate) fn kept_for_asking(slots: usize) -> usize {
    slots / 16
}

impl Default for Given {
    fn default() -> Self {
        Self { limit: 0, told: 0, received: 0, taken: 0, window: FIRST, recalled: false, paused: false }
    }
}

impl Given {
    /// Whether the peer has a grant that it was told of.
    #[inline]
    pub(crate) fn is_expected(&self) -> bool {
        self.told != self.received
    }

    /// A message has arrived. False: the peer was told of no grant for it.
    #[inline]
    pub(crate) fn on_received(&mut self) -> bool {
        let has_grant = self.is_expected();
        if has_grant {
            self.received = self.received.wrapping_add(1);
        }
        has_grant
    }

    /// Messages that may still arrive.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.limit.wrapping_sub(self.received)
    }

    /// How many more the peer is to have, if any.
    #[inline]
    pub(crate) fn wanted(&self) -> u32 {
        let outstanding = self.outstanding();
        if outstanding * 2 <= self.window && !self.recalled { self.window - outstanding } else { 0 }
    }

    /// Of so many slots, those that the peer gets only when it asks. One that sends nothing may
    /// never call again, and keep its grants: an eighth is left for requests and for those
    /// that send, and of that a half for those that ask.
    pub(crate) fn kept_from(&self, slots: usize) -> usize {
        if self.received == 0 { slots / 8 } else { kept_for_asking(slots) }
    }

    /// Grants more. A peer that uses what it has gets twice as many the next time, up to its share
    /// of the slots.
    pub(crate) fn add(&mut self, messages: u32, share: u32) {
        self.limit = self.limit.wrapping_add(messages);
        if self.received > 0 {
            self.window = (self.window * 2).min(share);
        }
    }

    /// Whether the peer does not know all of its grants, and is about to need them.
    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.told != self.limit && self.told.wrapping_sub(self.received) * 4 <= self.window
    }

    /// The limit, if the peer was told another one.
    #[inline]
    pub(crate) fn untold(&self) -> Option<u32> {
        (self.told != self.limit).then_some(self.limit)
    }

    /// Whether a frame may tell the peer another limit. One behind RECALL would give back what the
    /// peer has given up.
    #[inline]
    pub(crate) fn may_tell(&self) -> bool {
        self.told != self.limit && !self.recalled
    }

    /// The peer is told the limit now.
    pub(crate) fn tell(&mut self) -> u32 {
        self.told = self.limit;
        self.limit
    }

    /// The peer gives back what it has not used: it has sent `sent` messages. Returns how many came
    /// back; `None`: it cannot have.
    pub(crate) fn on_returned(&mut self, sent: u32) -> Option<u32> {
        // The stream is in order: all that the peer has sent has arrived.
        if sent != self.received || !self.recalled {
            return None;
        }
        let back = self.outstanding();
        (self.limit, self.told, self.recalled) = (sent, sent, false);
        self.window = if self.paused { 0 } else { FIRST };
        Some(back)
    }

    /// Grants nothing more. Returns how many come back at once, because the peer was not told of
    /// them. A window of 0 wants none: what grants does not ask for the pause.
    pub(crate) fn pause(&mut self) -> u32 {
        let back = self.limit.wrapping_sub(self.told);
        (self.limit, self.window, self.paused) = (self.told, 0, true);
        back
    }

    /// Grants again.
    pub(crate) fn resume(&mut self) {
        (self.window, self.paused) = (FIRST, false);
    }
}

/// What the peer has granted to this side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credit {
    limit: u32,
    sent: u32,
    /// Messages of which the peer has said that it has taken them.
    taken: u32,
}

impl Credit {
    /// Whether a message may be sent.
    #[inline]
    pub(crate) fn is_left(&self) -> bool {
        self.limit != self.sent
    }

    /// A message is sent.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// The peer has granted up to this count. False: it takes back what it gave.
    pub(crate) fn on_granted(&mut self, limit: u32) -> bool {
        let is_right = limit.wrapping_sub(self.sent) <= MOST && limit.wrapping_sub(self.sent) >= self.left();
        if is_right {
            self.limit = limit;
        }
        is_right
    }

    fn left(&self) -> u32 {
        self.limit.wrapping_sub(self.sent)
    }

    /// Gives back what is left; returns the count of sent messages.
    pub(crate) fn give_back(&mut self) -> u32 {
        self.limit = self.sent;
        self.sent
    }

    /// The peer has taken so many messages, all together. Returns how many more than before;
    /// `None`: it says what cannot be.
    #[inline]
    pub(crate) fn on_taken(&mut self, taken: u32) -> Option<u32> {
        let more = taken.wrapping_sub(self.taken);
        if more > self.sent.wrapping_sub(self.taken) {
            return None;
        }
        self.taken = taken;
        Some(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_uses_its_grants_gets_more_of_them() {
        let mut given = Given { limit: u32::MAX - 1, told: u32::MAX - 1, received: u32::MAX - 1, ..Given::default() };
        assert!(!given.on_received(), "nothing was granted");
        let mut windows = Vec::new();
        for _ in 0..10 {
            let wanted = given.wanted();
            given.add(wanted, MOST);
            windows.push(given.outstanding());
            assert!(given.is_urgent() && given.untold() == Some(given.limit));
            given.tell();
            assert!(!given.is_urgent());
            while given.outstanding() > 0 {
                assert!(given.on_received());
            }
        }
        assert_eq!(windows, [4, 8, 16, 32, 64, 128, 256, 256, 256, 256]);
        given.add(1, 40);
        assert!(!given.on_received(), "the peer cannot know");
        given.tell();
        assert!(given.on_received());
        assert_eq!(given.wanted(), 40, "others have come");
    }

    #[test]
    fn unused_grants_come_back_once() {
        let (mut given, mut credit) = (Given::default(), Credit::default());
        given.add(4, MOST);
        assert!(credit.on_granted(given.tell()));
        credit.on_sent();
        assert!(given.on_received());
        assert_eq!(given.on_returned(1), None, "nobody asked");
        given.recalled = true;
        assert_eq!(given.wanted(), 0, "nothing more until the answer");
        let sent = credit.give_back();
        assert!(!credit.is_left());
        assert_eq!((given.on_returned(sent + 1), given.on_returned(sent)), (None, Some(3)));
        assert_eq!((given.outstanding(), given.wanted()), (0, 4));
    }

    #[test]
    fn a_paused_peer_gets_no_grant() {
        let (mut given, mut credit) = (Given::default(), Credit::default());
        given.add(4, MOST);
        assert!(credit.on_granted(given.tell()));
        given.add(given.wanted(), MOST);
        given.add(2, MOST);
        assert_eq!(given.pause(), 2, "the peer does not know of these");
        assert_eq!((given.wanted(), given.may_tell(), given.outstanding()), (0, false, 4));
        credit.on_sent();
        assert!(given.on_received());
        given.recalled = true;
        assert_eq!(given.on_returned(credit.give_back()), Some(3));
        assert_eq!((given.wanted(), given.is_urgent()), (0, false), "still paused");
        given.resume();
        assert_eq!(given.wanted(), FIRST);
    }

    #[test]
    fn a_peer_cannot_take_back_or_take_what_was_not_sent() {
        let mut credit = Credit { limit: u32::MAX, sent: u32::MAX, taken: u32::MAX };
        assert!(credit.on_granted(2) && !credit.on_granted(1) && !credit.on_granted(MOST + 100));
        credit.on_sent();
        credit.on_sent();
        assert_eq!([1, 0, 2].map(|taken| credit.on_taken(taken)), [Some(2), None, None]);
        assert!(credit.is_left());
        credit.on_sent();
        assert!(!credit.is_left());
    }
}
