//! Connects that wait for the lookup of their host's name.

use super::Reliable;
use crate::Link;
use cci_proto::{Address, Attribute, ConnectError, EventKind, Failure, Time};
use cci_transport::{Connect, Core, Slot};

/// A connect that waits for an address.
struct PendingConnect {
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
pub(super) struct PendingNames {
    waiting: Vec<PendingConnect>,
    /// The number of the next name that is looked up.
    pub(super) next: u64,
}

impl PendingNames {
    /// Whether a connect waits.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The earliest deadline.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.waiting.iter().filter_map(|pending| pending.deadline).min()
    }
}

impl<L: Link> Reliable<L> {
    /// Keeps a connect until its host's address is known, under the number of
    /// [`PendingNames::next`].
    pub(super) fn await_address(
        &mut self,
        core: &mut Core,
        now: Time,
        connect: &Connect<'_>,
    ) -> Result<(), ConnectError> {
        let number = self.names.next;
        self.names.next += 1;
        let Some(slot) = core.take_send() else {
            self.forget_name(number);
            return Err(ConnectError::NoBuffers);
        };
        self.names.waiting.push(PendingConnect {
            number,
            slot,
            attribute: connect.attribute,
            payload: connect.payload.into(),
            context: connect.context,
            deadline: connect.timeout.map(|timeout| now + timeout),
        });
        Ok(())
    }

    /// Continues the connects whose address was found, and fails those whose timeout has passed.
    #[cold]
    pub(super) fn take_names(&mut self, core: &mut Core, now: Time) {
        while let Some((number, found)) = self.link.names().and_then(|names| names.next()) {
            let Some(at) = self.names.waiting.iter().position(|pending| pending.number == number) else { continue };
            let pending = self.names.waiting.remove(at);
            match found {
                Ok(addresses) => self.continue_connect(core, now, &pending, &addresses),
                Err(reason) => {
                    core.finish_opening(pending.slot, EventKind::Connect, pending.context, Err(Failure::Refused));
                    core.explain(pending.slot, reason);
                }
            }
        }
        let is_over = |pending: &PendingConnect| pending.deadline.is_some_and(|deadline| deadline <= now);
        while let Some(at) = self.names.waiting.iter().position(is_over) {
            let late = self.names.waiting.remove(at);
            self.forget_name(late.number);
            core.finish_opening(late.slot, EventKind::Connect, late.context, Err(Failure::TimedOut));
            core.explain(late.slot, "the host's name was not resolved within the timeout".into());
        }
    }

    fn continue_connect(&mut self, core: &mut Core, now: Time, pending: &PendingConnect, addresses: &[Address]) {
        let connect = Connect {
            uri: "",
            payload: &pending.payload,
            attribute: pending.attribute,
            context: pending.context,
            // A connect without time left fails by its timeout.
            timeout: pending.deadline.map(|deadline| deadline - now),
        };
        let Err(error) = self.connect_to(core, addresses, &connect, pending.slot) else { return };
        let failure = if error == ConnectError::NoMemory { Failure::NoMemory } else { Failure::Refused };
        core.finish_opening(pending.slot, EventKind::Connect, pending.context, Err(failure));
    }

    /// Cancels all lookups, because the endpoint closes.
    pub(super) fn forget_names(&mut self) {
        while let Some(pending) = self.names.waiting.pop() {
            self.forget_name(pending.number);
        }
    }

    fn forget_name(&mut self, number: u64) {
        if let Some(names) = self.link.names() {
            names.forget(number);
        }
    }
}
