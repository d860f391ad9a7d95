//! Credits: what a side may send before the other one has received it.

/// Bytes of a granule, in which credit is counted.
///
/// # Example
///
/// ```
/// assert_eq!(cci_rendezvous::GRANULE, 64);
/// ```
pub const GRANULE: usize = 64;
/// What each message costs beside its bytes, granules.
const FRONT: u32 = 2;
/// Granules that are given back by a message of their own.
const MUCH: u32 = 1_024;

/// Returns what a message of `len` bytes costs that may be kept at its receiver: 2 granules, and
/// one for each 64 bytes. What no window covers costs `u32::MAX`.
///
/// # Example
///
/// ```
/// use cci_rendezvous::cost_of_bytes;
///
/// assert_eq!([0, 1, 64, 65].map(cost_of_bytes), [2, 3, 3, 4]);
/// ```
#[inline]
#[must_use]
pub const fn cost_of_bytes(len: usize) -> u32 {
    let granules = len.div_ceil(GRANULE);
    if granules > (u32::MAX - FRONT) as usize { u32::MAX } else { FRONT + granules as u32 }
}

/// Returns the longest message, in bytes, that half of a window covers: so that two are under way.
///
/// # Example
///
/// ```
/// use cci_rendezvous::longest_of_half;
///
/// assert_eq!([0, 4, 6, 64].map(longest_of_half), [0, 0, 64, 30 * 64]);
/// ```
#[must_use]
pub const fn longest_of_half(window: u32) -> usize {
    (window / 2).saturating_sub(FRONT) as usize * GRANULE
}

/// What the windows of all links of an endpoint share: granules. How much each link gets is the
/// caller's choice, which may go beyond the total.
///
/// What a link has is back once it is closed, but for what its messages hold that nobody has
/// received. Those give theirs back one by one ([`Windows::release`]).
///
/// # Example
///
/// ```
/// use cci_rendezvous::Windows;
///
/// let mut windows = Windows::new(1_000);
/// let mut first = windows.open(windows.half());
/// assert_eq!((first.size(), windows.half()), (500, 250));
/// // It sends a message that nobody receives, and its link ends.
/// assert!(first.charge(100));
/// first.hold(100);
/// windows.close(&mut first);
/// assert_eq!(windows.granted(), 100);
/// windows.release(100);
/// assert_eq!(windows.granted(), 0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    total: u32,
    granted: u64,
}

impl Windows {
    /// So many granules, none of which is granted.
    #[must_use]
    pub const fn new(total: u32) -> Self {
        Self { total, granted: 0 }
    }

    /// Returns how many granules they share.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// Returns what links have, and messages of closed links hold, in granules: more than the total
    /// where the caller has gone beyond it.
    #[must_use]
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// Returns half of what is left, so that later links get some; 0 where nothing is left.
    #[must_use]
    pub const fn half(&self) -> u32 {
        // Not more than the total.
        (self.total as u64).saturating_sub(self.granted) as u32 / 2
    }

    /// Returns the window of a link that has come up; 0 granules are one too.
    #[must_use]
    pub const fn open(&mut self, granules: u32) -> Window {
        self.granted += granules as u64;
        Window { size: granules, given: granules, owed: 0, held: 0 }
    }

    /// Lets a partner send more: it is owed, and leaves with what is given back.
    pub const fn grow(&mut self, window: &mut Window, granules: u32) {
        self.granted += granules as u64;
        window.size += granules;
        window.owed += granules;
    }

    /// Takes a window back, whose link is no more. It is of 0 granules then, so that a second call
    /// takes nothing.
    pub const fn close(&mut self, window: &mut Window) {
        self.granted -= (window.size - window.held) as u64;
        *window = Window::CLOSED;
    }

    /// Takes back what a message of a closed link has held, which is received or dropped.
    pub const fn release(&mut self, cost: u32) {
        self.granted -= cost as u64;
    }
}

/// What the partner of a link may still send, and what is owed to it. Each granule of the window
/// is in one of these states:
///
/// ```text
///      +--------------- has_given ---------------+
///      v                                         |
///    given --- charge ---> of a message --- owe -+-> owed
///      ^                     |      ^             ^
///      +----- uncharge ------+      hold          |
///                            v                    |
///                           held --- let_go ------+
/// ```
///
/// # Example
///
/// ```
/// use cci_rendezvous::{Windows, cost_of_bytes};
///
/// let mut window = Windows::new(64).open(32);
/// let cost = cost_of_bytes(1_000);
/// assert!(window.charge(cost) && !window.charge(cost), "the second one is beyond the window");
/// // It is received. Half of the window is owed, which is worth a message of its own.
/// assert!(window.owe(cost));
/// let back = window.due();
/// window.has_given(back);
/// assert!(back == 18 && window.charge(cost));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    size: u32,
    /// What the partner may use.
    given: u32,
    owed: u32,
    /// What messages hold that nobody has received.
    held: u32,
}

impl Window {
    /// Of no link: the partner may send nothing, and is owed nothing.
    pub const CLOSED: Self = Self { size: 0, given: 0, owed: 0, held: 0 };

    /// Returns how many granules it has, in all states.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Whether the partner may send what costs so much.
    #[inline]
    #[must_use]
    pub const fn covers(&self, cost: u32) -> bool {
        self.given >= cost
    }

    /// Charges the partner for a message that has come. False: it costs more than the partner had,
    /// and nothing has changed.
    #[inline]
    #[must_use]
    pub const fn charge(&mut self, cost: u32) -> bool {
        let is_covered = self.covers(cost);
        if is_covered {
            self.given -= cost;
        }
        is_covered
    }

    /// Takes a charge back: the message is looked at again.
    pub const fn uncharge(&mut self, cost: u32) {
        self.given += cost;
    }

    /// A message that was charged, and not held, is over: its cost is owed. Returns
    /// [`Window::owes_much`].
    #[inline]
    pub const fn owe(&mut self, cost: u32) -> bool {
        self.owed += cost;
        self.owes_much()
    }

    /// A message that was charged is kept until it is received.
    pub const fn hold(&mut self, cost: u32) {
        self.held += cost;
    }

    /// As [`Window::owe`], of a message that was held.
    pub const fn let_go(&mut self, cost: u32) -> bool {
        self.held -= cost;
        self.owe(cost)
    }

    /// Whether so much is owed that a message of its own gives it back: 1,024 granules, or half of
    /// a smaller window.
    #[inline]
    #[must_use]
    pub const fn owes_much(&self) -> bool {
        let half = self.size / 2;
        let much = if half < MUCH { half } else { MUCH };
        self.owed > 0 && self.owed >= much
    }

    /// Returns the credit that the next message of this side gives back, in granules.
    #[inline]
    #[must_use]
    pub const fn due(&self) -> u16 {
        if self.owed > u16::MAX as u32 { u16::MAX } else { self.owed as u16 }
    }

    /// A message has left that gives so much back, at most [`Window::due`].
    #[inline]
    pub const fn has_given(&mut self, credit: u16) {
        self.owed -= credit as u32;
        self.given += credit as u32;
    }
}

/// What this side of a link may still send, in granules.
///
/// # Example
///
/// ```
/// use cci_rendezvous::Credit;
///
/// let mut credit = Credit::new(10, 10);
/// assert!(credit.covers(8));
/// credit.spend(8);
/// assert!(!credit.covers(3) && credit.give(1) && credit.covers(3));
/// assert!(!credit.give(8), "7 are spent");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Credit {
    left: u32,
    most: u32,
}

impl Credit {
    /// What the partner has given when the link came up, and the most that it can ever be, which
    /// is as much where windows do not grow.
    #[must_use]
    pub const fn new(left: u32, most: u32) -> Self {
        Self { left, most: if most < left { left } else { most } }
    }

    /// Whether this side may send what costs so much.
    #[inline]
    #[must_use]
    pub const fn covers(&self, cost: u32) -> bool {
        self.left >= cost
    }

    /// A message has left that [`Credit::covers`].
    #[inline]
    pub const fn spend(&mut self, cost: u32) {
        self.left -= cost;
    }

    /// Whether the partner may give so much back.
    #[inline]
    #[must_use]
    pub const fn may_take(&self, back: u16) -> bool {
        self.most - self.left >= back as u32
    }

    /// Takes what the partner gives back. False: it is more than it can be, and nothing has
    /// changed.
    #[inline]
    #[must_use]
    pub const fn give(&mut self, back: u16) -> bool {
        let is_right = self.may_take(back);
        if is_right {
            self.left += back as u32;
        }
        is_right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_window_covers_costs_more_than_any() {
        assert_eq!(cost_of_bytes(GRANULE * 1_000), 1_002);
        assert_eq!(cost_of_bytes(GRANULE * (u32::MAX - 2) as usize), u32::MAX);
        assert_eq!(cost_of_bytes(usize::MAX), u32::MAX);
        assert_eq!(longest_of_half(u32::MAX), (u32::MAX / 2 - 2) as usize * GRANULE);
    }

    #[test]
    fn later_links_get_less_and_at_last_nothing_but_a_window_all_the_same() {
        let mut windows = Windows::new(100);
        let mut open: Vec<Window> = (0..8).map(|_| windows.open(windows.half())).collect();
        assert_eq!(open.iter().map(Window::size).collect::<Vec<_>>(), [50, 25, 12, 6, 3, 2, 1, 0]);
        let last = open.last_mut().expect("eight");
        assert!(last.charge(0) && !last.charge(1) && !last.owes_much() && last.due() == 0);
        // One that has 0 gets some when there are some.
        windows.close(&mut open[0]);
        windows.grow(&mut open[7], 20);
        assert!(open[7].owes_much() && open[7].due() == 20 && !open[7].charge(1), "it has not left yet");
        open[7].has_given(20);
        assert!(open[7].charge(20) && !open[7].charge(1));
        open.iter_mut().for_each(|window| windows.close(window));
        assert_eq!((windows.granted(), windows.half()), (0, 50));
    }

    #[test]
    fn a_caller_that_goes_beyond_the_total_is_told_so() {
        let mut windows = Windows::new(10);
        let mut open = [windows.open(64), windows.open(64)];
        assert_eq!((windows.total(), windows.granted(), windows.half()), (10, 128, 0));
        open.iter_mut().for_each(|window| windows.close(window));
        assert_eq!(windows.granted(), 0);
    }

    /// In each state of a message its link may end, and every granule is back in the end.
    #[test]
    fn the_end_of_a_link_in_any_state_of_a_message_loses_no_granule() {
        for state in ["none", "charged", "held", "owed", "given"] {
            let mut windows = Windows::new(200);
            let mut window = windows.open(100);
            let is_charged = state == "none" || window.charge(60);
            assert!(is_charged, "{state}");
            match state {
                "held" => window.hold(60),
                "owed" | "given" => assert!(window.owe(60)),
                _ => {}
            }
            if state == "given" {
                window.has_given(window.due());
            }
            windows.close(&mut window);
            windows.close(&mut window);
            assert_eq!(windows.granted(), if state == "held" { 60 } else { 0 }, "{state}");
            if state == "held" {
                windows.release(60);
            }
            assert_eq!((windows.granted(), window.size()), (0, 0), "{state}");
        }
    }

    #[test]
    fn a_charge_that_is_taken_back_was_none() {
        let mut window = Windows::new(10).open(10);
        assert!(window.charge(7));
        window.uncharge(7);
        assert!(window.charge(10));
    }

    #[test]
    fn much_is_half_of_a_small_window_and_1024_of_a_large_one() {
        for (size, much) in [(1, 1), (2, 1), (64, 32), (2_048, 1_024), (65_535, 1_024), (u32::MAX, 1_024)] {
            let mut window = Windows::new(0).open(size);
            assert!(window.charge(much));
            assert!(!window.owe(much - 1), "{size}");
            assert!(window.owe(1), "{size}");
        }
    }

    #[test]
    fn a_message_gives_back_what_its_header_has_room_for() {
        let mut window = Windows::new(0).open(200_000);
        assert!(window.charge(200_000));
        window.hold(200_000);
        assert!(window.let_go(200_000));
        for left in [200_000 - 65_535, 200_000 - 2 * 65_535, 200_000 - 3 * 65_535, 0] {
            window.has_given(window.due());
            assert!(window.covers(200_000 - left) && !window.covers(200_001 - left));
        }
        assert_eq!(window.due(), 0);
    }

    #[test]
    fn a_partner_that_gives_more_than_it_can_changes_nothing() {
        let mut credit = Credit::new(5, 5);
        assert!(!credit.give(1) && !credit.covers(6));
        credit.spend(5);
        assert!(!credit.give(6) && !credit.covers(1) && credit.give(0) && credit.give(5));
        // Of a window that may grow; and the largest one does not wrap.
        let mut credit = Credit::new(0, u32::MAX);
        assert!((0..65_537).all(|_| credit.give(u16::MAX)) && !credit.give(1), "65,537 times 65,535");
    }
}
