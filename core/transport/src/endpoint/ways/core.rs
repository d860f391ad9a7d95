//! The methods of [`Core`] for ways.

use super::Outcome;
use crate::endpoint::connection::MOST_WAYS;
use crate::endpoint::os_handle::OsHandle;
use crate::{Connection, Core, Slot};
use cci_mem::sync::Ordering;
use cci_proto::{EventKind, Failure, REQUEST_HEAD, REQUEST_MAGICS, WHOEVER_LISTENS};
use std::mem::swap;

/// Whether the payload of a request begins with a header for whoever listens at its address.
fn is_for_whoever_listens(payload: &[u8]) -> bool {
    let target = payload.get(8..16).filter(|_| payload.len() >= REQUEST_HEAD);
    payload.starts_with(&REQUEST_MAGICS[0]) && target == Some(&WHOEVER_LISTENS.to_le_bytes()[..])
}

impl Core {
    /// The number of ways; 1 for a core without ways.
    #[must_use]
    pub fn way_count(&self) -> u8 {
        self.ways.as_ref().map_or(1, |ways| u8::try_from(ways.aside.len()).unwrap_or(MOST_WAYS))
    }

    /// The current way: the one that has the core, or had it last.
    #[inline(always)]
    #[must_use]
    pub fn way(&self) -> u8 {
        self.current.way
    }

    /// Gives the core to a way. What follows is for its transport alone, up to
    /// [`Core::leave_way`]. A way that the core does not have changes nothing.
    #[inline]
    pub fn enter_way(&mut self, way: u8) {
        if way != self.current.way {
            self.switch_to(way);
        }
        if let Some(handle) = self.ways.as_mut().and_then(|ways| ways.handles.get_mut(usize::from(way))) {
            swap(handle, &mut self.handle);
            self.current.is_within = true;
        }
    }

    /// Whether the core is in a way.
    #[inline]
    pub(in crate::endpoint) fn is_within_way(&self) -> bool {
        self.current.is_within
    }

    /// Takes the core back from the current way, which stays current.
    #[inline]
    pub fn leave_way(&mut self) {
        let way = usize::from(self.current.way);
        self.current.is_within = false;
        if let Some(handle) = self.ways.as_mut().and_then(|ways| ways.handles.get_mut(way)) {
            swap(handle, &mut self.handle);
        }
    }

    /// Whether the handle of a way is armed, while the core is in none.
    #[must_use]
    pub fn is_way_armed(&self, way: u8) -> bool {
        self.ways.as_ref().and_then(|ways| ways.handles.get(usize::from(way))).is_some_and(OsHandle::is_armed)
    }

    /// Whether the handle of the endpoint is armed, also while the core is in a way.
    pub(in crate::endpoint) fn is_endpoint_armed(&self) -> bool {
        let aside = self.ways.as_ref().filter(|_| self.current.is_within);
        let handle = aside.and_then(|ways| ways.handles.get(usize::from(self.current.way)));
        handle.unwrap_or(&self.handle).is_armed()
    }

    /// Slots in use, slots that the program has, and the limit, of the receive class of all ways.
    pub(in crate::endpoint) fn recv_gauges(&self) -> [usize; 3] {
        let [mut taken, mut lent, limit] = self.slots.recv_gauges();
        let Some(ways) = &self.ways else { return [taken, lent, limit] };
        for (number, aside) in ways.aside.iter().enumerate() {
            if number != usize::from(self.current.way) {
                taken += aside.recv.in_use();
                lent += aside.recv.borrowed();
            }
        }
        [taken, lent, ways.recv_limit]
    }

    fn switch_to(&mut self, way: u8) {
        let Some(ways) = &mut self.ways else { return };
        if usize::from(way) >= ways.aside.len() {
            return;
        }
        for number in [self.current.way, way] {
            let aside = &mut ways.aside[usize::from(number)];
            self.slots.swap_recv(&mut aside.recv);
            swap(&mut aside.landings, &mut self.landings);
        }
        self.current.way = way;
        // Other ways may have handed out slots of this one.
        self.slots.suppose_recv_borrowed();
        let left = ways.recv_limit.saturating_sub(ways.taken_by_others(way));
        self.slots.set_recv_limit(left);
    }

    /// The way whose receive slot this is.
    #[must_use]
    pub fn way_of_slot(&self, slot: &Slot) -> u8 {
        let of_one = self.recv_slots().max(1);
        let number = self.slots.number(slot) / of_one;
        u8::try_from(number).ok().filter(|way| *way < self.way_count()).unwrap_or(0)
    }

    /// Receive slots that the program allows, for all ways together.
    #[must_use]
    pub fn recv_limit(&self) -> usize {
        self.ways.as_ref().map_or(self.recv_count().0, |ways| ways.recv_limit)
    }

    pub(in crate::endpoint) fn set_recv_limit_of_ways(&mut self, limit: usize) {
        let way = self.way();
        let Some(ways) = &mut self.ways else { return };
        ways.recv_limit = limit;
        let left = limit.saturating_sub(ways.taken_by_others(way));
        self.slots.set_recv_limit(left);
    }

    /// Has the large messages of the current way take into account those of the others.
    pub(in crate::endpoint) fn share_landings(&mut self) {
        if let Some(ways) = &mut self.ways {
            // That of the current way has none.
            self.landings.share_with(|act| ways.aside.iter_mut().for_each(|aside| act(&mut aside.landings)));
        }
    }

    /// Allows large messages of so many bytes, all together.
    pub fn set_large_limit(&mut self, limit: u64) {
        self.landings.set_limit(limit);
        for aside in self.ways.iter_mut().flat_map(|ways| &mut ways.aside) {
            aside.landings.set_limit(limit);
        }
    }

    /// Whether the program has every receive slot of the ways that are not current.
    #[cold]
    pub(in crate::endpoint) fn others_hold_all_recv(&self) -> bool {
        self.ways.as_ref().is_none_or(|ways| ways.all_borrowed(self.way()))
    }

    /// Whether a request is for another endpoint, which has ways, while this one has none: it was
    /// opened at the address of an endpoint that was closed. The transport rejects the request;
    /// here it is counted.
    pub fn is_stray_request(&self, payload: &[u8]) -> bool {
        let is_for_ways =
            REQUEST_MAGICS.iter().any(|magic| payload.starts_with(magic)) && payload.len() >= REQUEST_HEAD;
        let is_stray = is_for_ways && self.ways.is_none() && !is_for_whoever_listens(payload);
        if is_stray {
            self.counters().strays.fetch_add(1, Ordering::Relaxed);
        }
        is_stray
    }

    /// Queues a filled request. With ways it goes to the transport over them
    /// ([`Core::take_outcomes`]), with what `head` has copied of its payload. Without them the
    /// program does not see a header for whoever listens here.
    pub fn push_request(&mut self, slot: &'static Slot, head: &[u8]) {
        let Some(ways) = &mut self.ways else {
            if is_for_whoever_listens(head) {
                slot.skip_payload(REQUEST_HEAD as u32);
            }
            return self.push(slot);
        };
        let mut kept = [0; REQUEST_HEAD];
        let len = head.len().min(REQUEST_HEAD);
        kept[..len].copy_from_slice(&head[..len]);
        ways.outcomes.push(Outcome::Request { slot, head: kept });
        self.current.has_outcomes = true;
    }

    /// Keeps the end of a connect or an accept for the transport over the ways. False: there are no
    /// ways.
    pub(in crate::endpoint) fn keep_opening(
        &mut self,
        slot: &'static Slot,
        kind: EventKind,
        context: u64,
        outcome: Result<&'static Connection, Failure>,
    ) -> bool {
        let Some(ways) = &mut self.ways else { return false };
        self.current.has_outcomes = true;
        let behind = self.events.newest();
        ways.outcomes.push(match kind {
            EventKind::Connect => Outcome::Connect { slot, context, outcome, behind },
            _ => Outcome::Accept { slot, context, outcome, behind },
        });
        true
    }

    /// Whether [`Core::take_outcomes`] would give something.
    #[inline]
    #[must_use]
    pub fn has_outcomes(&self) -> bool {
        self.current.has_outcomes
    }

    /// Takes what the ways have done that their transport decides about, in order.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        self.current.has_outcomes = false;
        self.ways.as_mut().map(|ways| std::mem::take(&mut ways.outcomes)).unwrap_or_default()
    }

    /// Queues the CONNECT or ACCEPT event that [`Outcome::Connect`] or [`Outcome::Accept`] held
    /// back, with the program's context, in its place among the others: `behind` is the outcome's.
    pub fn finish_of_way(
        &mut self,
        slot: &'static Slot,
        (kind, context): (EventKind, u64),
        outcome: Result<&'static Connection, Failure>,
        behind: Option<&'static Slot>,
    ) {
        if let Ok(connection) = outcome {
            connection.context.store(context, Ordering::Relaxed);
        }
        self.fill_opening(slot, kind, context, outcome);
        self.events.insert_behind(behind, slot);
    }

    /// The way that is being opened.
    #[must_use]
    pub fn opening_way(&self) -> u8 {
        self.current.opening.get()
    }

    /// Records the way that is being opened.
    pub fn set_opening_way(&self, way: u8) {
        self.current.opening.set(way);
    }

    /// The way that the progress thread acts for.
    #[must_use]
    pub fn background_way(&self) -> u8 {
        self.current.background
    }

    pub(crate) fn set_background_way(&mut self, way: u8) {
        self.current.background = way;
    }
}
