//! What waits for a partner.

use std::collections::VecDeque;

/// Controls that may wait for a partner and are counted.
const MOST_COUNTED: usize = 65_536;

/// A partner asks for more than it takes: its link is to be ended.
///
/// # Example
///
/// ```
/// assert_eq!(format!("{:?}", cci_rendezvous::Flood), "Flood");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct Flood;

/// What waits for one partner, until it has a link and there is room in CCI: controls `C`, which
/// need no credit and leave first, then sends `S`, each in their order.
///
/// A partner may ask for answers as often as it likes, and need not take any: 65,536 of them may
/// wait ([`Outbox::answer`]). Controls that this side has a reason of its own for are not counted
/// ([`Outbox::post`]): its requests, its reads, and the answers that it owes for offers, of which
/// the partner has as many open and each has been received here. So a program that receives 100,000
/// of them while its partner computes keeps its link.
///
/// # Example
///
/// ```
/// use cci_rendezvous::Outbox;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Control {
///     Done(u32),
///     Given(u64),
/// }
///
/// let mut outbox: Outbox<Control, &str> = Outbox::default();
/// assert!(outbox.push_send("a message"), "it is alone: the caller sends");
/// assert!(outbox.post(Control::Done(7)));
/// assert_eq!(outbox.answer(Control::Given(1)), Ok(false), "it has its turn after the other");
/// let mut sent = Vec::new();
/// while let Some(control) = outbox.control() {
///     sent.push(control);
///     outbox.pop_control();
/// }
/// assert_eq!(sent, [Control::Done(7), Control::Given(1)]);
/// assert_eq!(outbox.send(), Some("a message"));
/// outbox.pop_send("a message");
/// assert!(outbox.is_empty());
/// ```
#[derive(Debug)]
pub struct Outbox<C, S> {
    /// With whether they are counted.
    controls: VecDeque<(C, bool)>,
    counted: usize,
    sends: VecDeque<S>,
    is_blocked: bool,
}

impl<C, S> Default for Outbox<C, S> {
    fn default() -> Self {
        Self { controls: VecDeque::new(), counted: 0, sends: VecDeque::new(), is_blocked: false }
    }
}

impl<C: Copy, S: Copy + PartialEq> Outbox<C, S> {
    /// Enters a control that is not counted. Returns whether it is the only one, so that nobody
    /// sends it yet.
    pub fn post(&mut self, control: C) -> bool {
        self.controls.push_back((control, false));
        self.controls.len() == 1
    }

    /// Enters an answer to what the partner asks for at will. Returns as [`Outbox::post`].
    ///
    /// # Errors
    ///
    /// [`Flood`]: 65,536 such answers wait, and nothing has changed.
    pub fn answer(&mut self, control: C) -> Result<bool, Flood> {
        if self.counted >= MOST_COUNTED {
            return Err(Flood);
        }
        self.counted += 1;
        self.controls.push_back((control, true));
        Ok(self.controls.len() == 1)
    }

    /// Returns the control whose turn it is, which stays.
    #[must_use]
    pub fn control(&self) -> Option<C> {
        self.controls.front().map(|(control, _)| *control)
    }

    /// Returns all controls in their order, for messages that take several.
    pub fn controls(&self) -> impl Iterator<Item = C> {
        self.controls.iter().map(|(control, _)| *control)
    }

    /// The control whose turn it is has left.
    pub fn pop_control(&mut self) {
        if let Some((_, is_counted)) = self.controls.pop_front() {
            self.counted -= usize::from(is_counted);
        }
    }

    /// Drops all controls: they were for a link that is no more.
    pub fn clear_controls(&mut self) {
        self.controls.clear();
        self.counted = 0;
    }

    /// Enters a send. Returns whether it is the only one.
    pub fn push_send(&mut self, send: S) -> bool {
        self.sends.push_back(send);
        self.sends.len() == 1
    }

    /// Whether sends wait, so that no other may overtake them.
    #[inline]
    #[must_use]
    pub fn has_sends(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Returns the send whose turn it is, which stays.
    #[must_use]
    pub fn send(&self) -> Option<S> {
        self.sends.front().copied()
    }

    /// A send has left, or has failed, whose turn it was. It may be gone already.
    pub fn pop_send(&mut self, send: S) {
        if self.sends.front() == Some(&send) {
            self.sends.pop_front();
        }
    }

    /// Takes a send out, wherever it waits.
    pub fn remove_send(&mut self, send: S) {
        self.sends.retain(|other| *other != send);
    }

    /// Drops all: nobody is there.
    pub fn clear(&mut self) {
        self.clear_controls();
        self.sends.clear();
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.controls.is_empty() && self.sends.is_empty()
    }

    /// There is no room for what waits. Returns whether that is new: the caller then lists the
    /// partner among those that it tries again.
    pub fn block(&mut self) -> bool {
        !std::mem::replace(&mut self.is_blocked, true)
    }

    /// It is tried again.
    pub fn unblock(&mut self) {
        self.is_blocked = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_nobody_takes_are_a_flood_and_what_is_owed_is_none() {
        let mut outbox: Outbox<u32, u32> = Outbox::default();
        let most = MOST_COUNTED as u32;
        // What is owed is no part of it, before and among them.
        (0..2 * most).for_each(|number| assert_eq!(outbox.post(number), number == 0));
        assert!((0..most).all(|number| outbox.answer(number) == Ok(false)));
        assert_eq!((outbox.answer(0), outbox.controls().count()), (Err(Flood), 3 * MOST_COUNTED));
        assert!(!outbox.post(0));
        // Those that leave make room if they are counted.
        (0..2 * most).for_each(|_| outbox.pop_control());
        assert_eq!(outbox.answer(0), Err(Flood));
        outbox.pop_control();
        assert_eq!((outbox.answer(7), outbox.answer(8)), (Ok(false), Err(Flood)));
        // A later link begins anew.
        outbox.clear_controls();
        assert!(outbox.is_empty() && (0..most).all(|number| outbox.answer(number) == Ok(number == 0)));
        assert_eq!(outbox.answer(0), Err(Flood));
        outbox.clear();
        assert_eq!(outbox.answer(0), Ok(true));
    }

    #[test]
    fn controls_and_sends_leave_in_their_order() {
        let mut outbox: Outbox<char, u32> = Outbox::default();
        outbox.pop_control();
        outbox.pop_send(1);
        assert!(outbox.is_empty() && !outbox.has_sends());
        assert_eq!([1, 2, 3, 4].map(|send| outbox.push_send(send)), [true, false, false, false]);
        assert!("abc".chars().all(|control| outbox.post(control) == (control == 'a')));
        assert_eq!((outbox.control(), outbox.controls().collect::<String>()), (Some('a'), "abc".to_owned()));
        // One that was cancelled meanwhile is not the one whose turn it is.
        outbox.remove_send(1);
        outbox.pop_send(1);
        outbox.remove_send(3);
        assert_eq!(outbox.send(), Some(2));
        outbox.pop_send(2);
        assert_eq!(outbox.send(), Some(4));
        // The end of a link drops what was for it alone.
        outbox.clear_controls();
        assert!(outbox.control().is_none() && outbox.has_sends() && !outbox.is_empty());
        outbox.clear();
        assert!(outbox.is_empty() && outbox.send().is_none());
    }

    #[test]
    fn a_partner_is_listed_once_until_it_is_tried_again() {
        let mut outbox: Outbox<u8, u8> = Outbox::default();
        assert_eq!([outbox.block(), outbox.block()], [true, false]);
        outbox.unblock();
        assert!(outbox.block());
    }
}
