//! Connects whose host is still looked up by its name.

use super::Reliable;
use crate::{Connect, Core, Link, Slot};
use cci_proto::{Address, Attribute, ConnectError, EventKind, Failure, Time};

/// A connect that waits for an address.
struct Named {
    number: u64,
    /// Reserved for the CONNECT event.
    slot: &'static Slot,
    attribute: Attribute,
    payload: Box<[u8]>,
    context: u64,
    deadline: Option<Time>,
}

/// The connects of an endpoint that wait for an address, oldest first.
#[derive(Default)]
pub(super) struct Names {
    waiting: Vec<Named>,
    /// The number of the next name that is looked up.
    pub(super) next: u64,
}

impl Names {
    /// Whether a connect waits.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When the first of them is over.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.waiting.iter().filter_map(|named| named.deadline).min()
    }
}

impl<L: Link> Reliable<L> {
    /// Keeps a connect until its host's address is known, under the number of [`Names::next`].
    pub(super) fn await_name(&mut self, core: &mut Core, now: Time, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let number = self.names.next;
        self.names.next += 1;
        let Some(slot) = core.take_send() else {
            self.link.forget_name(number);
            return Err(ConnectError::NoBuffers);
        };
        self.names.waiting.push(Named {
            number,
            slot,
            attribute: connect.attribute,
            payload: connect.payload.into(),
            context: connect.context,
            deadline: connect.timeout.map(|timeout| now + timeout),
        });
        Ok(())
    }

    /// Goes on with the connects whose address is known, and ends those whose time is over.
    #[cold]
    pub(super) fn take_names(&mut self, core: &mut Core, now: Time) {
        while let Some((number, found)) = self.link.next_name() {
            let Some(at) = self.names.waiting.iter().position(|named| named.number == number) else { continue };
            let named = self.names.waiting.remove(at);
            match found {
                Ok(to) => self.go_on(core, now, &named, to),
                Err(reason) => {
                    core.finish_opening(named.slot, EventKind::Connect, named.context, Err(Failure::Refused));
                    core.explain(named.slot, reason);
                }
            }
        }
        let is_over = |named: &Named| named.deadline.is_some_and(|deadline| deadline <= now);
        while let Some(at) = self.names.waiting.iter().position(is_over) {
            let late = self.names.waiting.remove(at);
            self.link.forget_name(late.number);
            core.finish_opening(late.slot, EventKind::Connect, late.context, Err(Failure::TimedOut));
            core.explain(late.slot, "the host's name was not resolved within the timeout".into());
        }
    }

    fn go_on(&mut self, core: &mut Core, now: Time, named: &Named, to: Address) {
        let connect = Connect {
            uri: "",
            payload: &named.payload,
            attribute: named.attribute,
            context: named.context,
            // One that has none is over, and is ended as such.
            timeout: named.deadline.map(|deadline| deadline - now),
        };
        let Err(error) = self.connect_to(core, to, &connect, named.slot) else { return };
        let failure = if error == ConnectError::NoMemory { Failure::NoMemory } else { Failure::Refused };
        core.finish_opening(named.slot, EventKind::Connect, named.context, Err(failure));
    }

    /// The endpoint closes: nobody waits for names any more.
    pub(super) fn forget_names(&mut self) {
        for named in self.names.waiting.drain(..) {
            self.link.forget_name(named.number);
        }
    }
}
