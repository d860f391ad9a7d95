//! Credits of one pipe: how many messages may be on their way to receives that the peer has posted,
//! and what is owed to the peer for messages of its own.

/// What a message counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Request = 0,
    Reply = 1,
}

impl Class {
    pub(crate) fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Request),
            1 => Some(Self::Reply),
            _ => None,
        }
    }
}

/// Both directions of a pipe.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    limit: [u16; 2],
    used: [u16; 2],
    owed: [u16; 2],
    /// Credits that are sent back without a message to ride on.
    every: u16,
}

impl Flow {
    /// Credits go back after `every` messages at the latest; not after more than a side can have
    /// sent before it has none.
    pub(crate) fn new(requests: u16, replies: u16, every: u16) -> Self {
        let every = every.clamp(1, requests.min(replies).max(1));
        Self { limit: [requests, replies], used: [0; 2], owed: [0; 2], every }
    }

    /// The most updates that the peer has not seen: each stands for `every` messages that it has
    /// not been given back, and those are limited. One more may be under way as it sends again.
    pub(crate) fn most_updates(&self) -> u16 {
        (self.limit[0] + self.limit[1]).div_ceil(self.every) + 1
    }

    /// Takes the credit of a message.
    #[inline]
    pub(crate) fn take(&mut self, class: Class) -> bool {
        let at = class as usize;
        let has = self.used[at] < self.limit[at];
        self.used[at] += u16::from(has);
        has
    }

    /// Gives the credit of a message back that was not sent.
    pub(crate) fn untake(&mut self, class: Class) {
        self.used[class as usize] = self.used[class as usize].saturating_sub(1);
    }

    /// The peer gives credits back. False: more than it had.
    #[inline]
    pub(crate) fn returned(&mut self, back: [u16; 2]) -> bool {
        let [requests, replies] = [0, 1].map(|at| self.used[at].checked_sub(back[at]));
        let (Some(requests), Some(replies)) = (requests, replies) else { return false };
        self.used = [requests, replies];
        true
    }

    /// A message of the peer has come.
    #[inline]
    pub(crate) fn came(&mut self, class: Class) {
        // A peer that sends without credit may lose count of it.
        self.owed[class as usize] = self.owed[class as usize].wrapping_add(1);
    }

    /// Returns what is owed to the peer; the caller sends it, or [`Flow::owe`] takes it back.
    #[inline]
    pub(crate) fn pay(&mut self) -> [u16; 2] {
        std::mem::take(&mut self.owed)
    }

    pub(crate) fn owe(&mut self, back: [u16; 2]) {
        self.owed = [0, 1].map(|at| self.owed[at].wrapping_add(back[at]));
    }

    /// Whether an update is due.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.owed[0].wrapping_add(self.owed[1]) >= self.every
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Flow};
    use std::collections::VecDeque;

    /// Two ends that send at random, with updates: what is under way never exceeds the receives of
    /// either side, and neither side stops for ever.
    #[test]
    fn no_end_overruns_the_other_and_none_stops() {
        let mut random = fastrand::Rng::with_seed(7);
        for (requests, replies, every) in [(1, 1, 1), (8, 8, 2), (8, 8, 16), (3, 250, 5), (64, 64, 16)] {
            let mut ends = [Flow::new(requests, replies, every), Flow::new(requests, replies, every)];
            let updates = ends[0].most_updates();
            // What is on its way to each: class and credits, or an update.
            let mut wire = [VecDeque::<(Option<Class>, [u16; 2])>::new(), VecDeque::new()];
            let mut sent = 0;
            for _ in 0..40_000 {
                let at = random.usize(0..2);
                if random.bool() {
                    let class = if random.bool() { Class::Request } else { Class::Reply };
                    if ends[at].take(class) {
                        let back = ends[at].pay();
                        wire[1 - at].push_back((Some(class), back));
                        sent += 1;
                    }
                } else if let Some((class, back)) = wire[at].pop_front() {
                    assert!(ends[at].returned(back));
                    if let Some(class) = class {
                        ends[at].came(class);
                    }
                    if ends[at].is_due() {
                        let back = ends[at].pay();
                        wire[1 - at].push_back((None, back));
                    }
                }
                for wire in &wire {
                    let regular = wire.iter().filter(|(class, _)| class.is_some()).count();
                    let update = wire.len() - regular;
                    assert!(regular <= usize::from(requests + replies));
                    assert!(update <= usize::from(updates), "{update} updates of {updates}");
                }
            }
            assert!(sent > 4_000, "{sent} of 20,000 attempts with {requests}, {replies}, {every}");
        }
    }

    /// A side that only receives gives back in time, however seldom it was asked to.
    #[test]
    fn one_direction_alone_goes_on() {
        for (requests, replies, every) in [(1, 1, 9), (8, 8, 16), (8, 2, 100), (3, 250, 5)] {
            let mut ends = [Flow::new(requests, replies, every), Flow::new(requests, replies, every)];
            for _ in 0..1_000 {
                assert!(ends[0].take(Class::Request), "{requests}, {replies}, {every}");
                ends[1].came(Class::Request);
                if ends[1].is_due() {
                    let back = ends[1].pay();
                    assert!(ends[0].returned(back));
                }
            }
        }
    }

    #[test]
    fn more_credits_than_were_taken_are_refused() {
        let mut flow = Flow::new(2, 1, 1);
        assert!(flow.take(Class::Request) && flow.take(Class::Request) && !flow.take(Class::Request));
        assert!(flow.take(Class::Reply) && !flow.take(Class::Reply));
        assert!(!flow.returned([3, 0]) && !flow.returned([0, 2]));
        assert!(flow.returned([2, 1]) && !flow.returned([1, 0]));
    }
}
