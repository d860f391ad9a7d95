//! Connects and requests over all ways (`docs/design/auto.md`, Connecting).

use crate::auto::Auto;
use crate::candidate::{Candidate, Route};
use crate::connecting::{Attempt, Pending};
use crate::secret::Secret;
use crate::way::NO_WAY;
use cci_mem::sync::Ordering;
use cci_proto::{ConnectError, EventKind, Failure, REQUEST_HEAD, REQUEST_MAGICS, WHOEVER_LISTENS};
use cci_transport::{Connect, Connection, Core, Outcome, Scope, Slot, monotonic, random};
use std::sync::Arc;
use std::time::Duration;

/// The first word of the header of a request.
const MAGIC: u64 = u64::from_le_bytes(REQUEST_MAGICS[0]);
/// How long a way of the network has before the next one is asked too.
const NEXT_AFTER: Duration = Duration::from_millis(100);
/// How long an address of a way has before another one is: all of them have had their turn before
/// the next way is slow to come.
const NEXT_ADDRESS: Duration = Duration::from_millis(40);

/// Where the target stands in a plain header.
const TARGET: std::ops::Range<usize> = 8..16;

/// The same of an endpoint that proves a secret.
const PROVEN: u64 = u64::from_le_bytes(REQUEST_MAGICS[1]);

/// What stands before the program's payload in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Plain {
        /// Of the endpoint that the client wants.
        target: u64,
        /// Of the connect, random.
        connect: [u64; 2],
    },
    Proven {
        /// Of the connect, random.
        nonce: u64,
        /// Of the endpoint that the client wants and the nonce; the identity of the connect.
        proof: [u64; 2],
    },
}

impl Head {
    pub(crate) fn write(self) -> [u8; REQUEST_HEAD] {
        let mut bytes = [0; REQUEST_HEAD];
        let words = match self {
            Self::Plain { target, connect: [first, second] } => [MAGIC, target, first, second],
            Self::Proven { nonce, proof: [first, second] } => [PROVEN, nonce, first, second],
        };
        for (target, word) in bytes.chunks_exact_mut(8).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a header. `None`: the request comes from an endpoint that has no ways.
    pub(crate) fn read(bytes: &[u8; REQUEST_HEAD]) -> Option<Self> {
        let word = |at: usize| bytes[8 * at..].first_chunk().copied().map(u64::from_le_bytes);
        let (first, rest) = (word(1)?, [word(2)?, word(3)?]);
        match word(0)? {
            MAGIC => Some(Self::Plain { target: first, connect: rest }),
            PROVEN => Some(Self::Proven { nonce: first, proof: rest }),
            _ => None,
        }
    }
}

/// What to do if another endpoint has come to where the URI leads. The URI names the old one for
/// ever.
fn restarted(place: Option<&str>) -> String {
    let by_port = place.map_or(String::new(), |place| format!(", or connect to {place}, whoever listens there"));
    format!("if the server was restarted, its URI is another one: ask it for that{by_port}")
}

/// Whether another way may lead to a peer to which one did not.
fn may_go_on(failure: Failure) -> bool {
    matches!(failure, Failure::Refused | Failure::Protocol | Failure::Disconnected | Failure::NoMemory)
}

impl Auto {
    /// Starts a connect by the best way.
    pub(crate) fn begin_connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let route = if connect.attribute.is_multicast() { Self::ways_to_group } else { Self::ways_to };
        let Route { left, reasons, target, place } = route(self, connect.uri)?;
        let head = match target {
            Some(target) => {
                let connect: [u64; 2] = random().map_err(|_| ConnectError::NoMemory)?;
                let proven =
                    |secret: &Secret| Head::Proven { nonce: connect[0], proof: secret.proof(target, connect[0]) };
                // Who has not the secret could not check a proof.
                let is_known = |secret: &&Secret| target != WHOEVER_LISTENS && secret.is_of(target);
                let secret = self.secret.as_ref().filter(is_known);
                secret.map_or(Head::Plain { target, connect }, proven).write().to_vec()
            }
            None => Vec::new(),
        };
        let pending = Pending {
            context: connect.context,
            attribute: connect.attribute,
            payload: [&head, connect.payload].concat(),
            deadline: connect.timeout.map(|timeout| monotonic() + timeout),
            left,
            next_at: None,
            open: 0,
            has_timed_out: false,
            reasons,
            advice: target.filter(|target| *target != WHOEVER_LISTENS).map(|_| restarted(place.as_deref())),
        };
        let number = self.connects.number();
        self.plain = NO_WAY;
        self.connects.pending.insert(number, pending);
        let begun = self.go_on(core, number);
        if matches!(begun, Ok(true)) {
            self.end_call(core);
            return Ok(());
        }
        let Some(pending) = self.connects.pending.remove(&number) else { return Ok(()) };
        begun?;
        // Nothing was sent: still it ends by an event, because another process might be there.
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        let behind = core.newest_event();
        core.finish_of_way(slot, (EventKind::Connect, pending.context), Err(Failure::Refused), behind);
        core.explain(slot, pending.why(Failure::Refused));
        Ok(())
    }

    /// Tries the next way of a connect. False: none is left.
    ///
    /// # Errors
    ///
    /// What no other way would change.
    fn go_on(&mut self, core: &mut Core, connect: u64) -> Result<bool, ConnectError> {
        while let Some(pending) = self.connects.pending.get_mut(&connect) {
            pending.next_at = None;
            let now = monotonic();
            let is_late = pending.deadline.is_some_and(|deadline| deadline <= now) && !pending.reasons.is_empty();
            let Some(Candidate { way, uri, label, target }) =
                pending.left.pop_front().filter(|_| !is_late || pending.open == 0)
            else {
                return Ok(false);
            };
            let (attribute, mut payload) = (pending.attribute, std::mem::take(&mut pending.payload));
            if let Some((target, word)) = target.zip(payload.get_mut(TARGET)) {
                word.copy_from_slice(&target.to_le_bytes());
            }
            let timeout = pending.deadline.map(|deadline| deadline - now);
            let number = self.connects.number();
            let request = Connect { uri: &uri, payload: &payload, attribute, context: number, timeout };
            let begun = self.within(core, way, |transport, core| transport.connect(core, &request));
            let is_network = self.ways.get(usize::from(way)).is_some_and(|way| way.scope == Scope::Network);
            // A group does not answer: whoever has joined it is connected.
            // Who has the name of a port within this host may be another one, which is stopped.
            let waits = (is_network || target.is_some()) && !attribute.is_multicast();
            let next =
                self.connects.pending.get(&connect).and_then(|pending| pending.left.front()).map(|next| next.way);
            let is_same_way = next.is_some_and(|next| self.name(next) == self.name(way));
            let Some(pending) = self.connects.pending.get_mut(&connect) else { return Ok(true) };
            pending.payload = payload;
            match begun {
                Some(Ok(())) => {
                    pending.open += 1;
                    // A way within this host refuses at once what it cannot reach otherwise.
                    let turn = if is_same_way { NEXT_ADDRESS } else { NEXT_AFTER };
                    pending.next_at = (waits && !pending.left.is_empty()).then(|| now + turn);
                    self.connects.attempts.insert(number, Attempt { connect, way, label, turn });
                    self.warm(way);
                    return Ok(true);
                }
                Some(Err(ConnectError::BadUri | ConnectError::NotImplemented)) if !pending.left.is_empty() => {
                    pending.reasons.push(format!("{label}: {uri} is no URI of it"));
                }
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Ok(true)
    }

    /// Tries the next way of each connect whose ways have not answered for a while.
    #[cold]
    pub(crate) fn go_on_in_time(&mut self, core: &mut Core) {
        let now = monotonic();
        let is_due = |pending: &Pending| pending.next_at.is_some_and(|at| at <= now);
        let due: Vec<u64> =
            self.connects.pending.iter().filter(|(_, pending)| is_due(pending)).map(|(number, _)| *number).collect();
        for number in due {
            // A way that cannot be tried now leaves the others to answer.
            let _ = self.go_on(core, number);
        }
        self.end_call(core);
    }

    /// Ends a call of ways: decides about what they have done, if it is for this transport.
    #[inline]
    pub(crate) fn end_call(&mut self, core: &mut Core) {
        // What is decided may end at once, and is to be decided again.
        while core.has_outcomes() {
            self.decide(core);
        }
    }

    pub(crate) fn name(&self, number: u8) -> &'static str {
        self.ways.get(usize::from(number)).map_or("", |way| way.name)
    }

    /// Decides about what the ways have done.
    #[cold]
    pub(crate) fn decide(&mut self, core: &mut Core) {
        for outcome in core.take_outcomes() {
            match outcome {
                Outcome::Connect { slot, context, outcome, behind } => {
                    self.on_connect_ended(core, slot, context, (outcome, behind));
                }
                Outcome::Accept { slot, context, outcome, behind } => {
                    self.on_accept_ended(core, slot, context, (outcome, behind));
                }
                Outcome::Request { slot, head } => self.on_request(core, slot, &head),
            }
        }
    }

    /// A way has ended its part of a connect: the program hears of it, or other ways go on.
    fn on_connect_ended(
        &mut self,
        core: &mut Core,
        slot: &'static Slot,
        number: u64,
        (outcome, behind): (Result<&'static Connection, Failure>, Option<&'static Slot>),
    ) {
        let Some(Attempt { connect, way, label, .. }) = self.connects.attempts.remove(&number) else {
            return core.release(slot);
        };
        let Some(pending) = self.connects.pending.get_mut(&connect) else {
            // Another way was faster, and the server has let this one pass all the same.
            core.release(slot);
            if let Ok(connection) = outcome {
                self.within(core, way, |transport, core| transport.disconnect(core, connection));
            }
            return;
        };
        let failure = match outcome {
            Ok(connection) => {
                let pending = self.connects.pending.remove(&connect);
                let Some(pending) = pending else { return core.release(slot) };
                self.keep_why(connection, connect, &pending);
                return core.finish_of_way(slot, (EventKind::Connect, pending.context), Ok(connection), behind);
            }
            Err(failure) => failure,
        };
        pending.open -= 1;
        pending.has_timed_out |= failure == Failure::TimedOut;
        let why = core.reason(slot).map_or_else(|| failure.to_string(), str::to_owned);
        pending.reasons.push(format!("{label}: {why}"));
        if may_go_on(failure) && self.go_on(core, connect).unwrap_or(false) {
            return core.release(slot);
        }
        let is_over = |pending: &Pending| pending.open == 0;
        let Some(pending) = self.connects.pending.get(&connect).filter(|pending| is_over(pending)) else {
            return core.release(slot);
        };
        let failure = if pending.has_timed_out { Failure::TimedOut } else { failure };
        core.finish_of_way(slot, (EventKind::Connect, pending.context), Err(failure), behind);
        core.explain(slot, pending.why(failure));
        self.connects.pending.remove(&connect);
    }

    /// Keeps why a connection goes its way and no other, for its report.
    fn keep_why(&mut self, connection: &'static Connection, connect: u64, pending: &Pending) {
        let name = self.name(connection.way());
        let slow = self.connects.attempts.values().filter(|attempt| attempt.connect == connect);
        let slow = slow.map(|attempt| {
            format!("{}: asked before, and did not answer within {} ms", attempt.label, attempt.turn.as_millis())
        });
        let worse = pending.left.iter().map(|other| match self.name(other.way) == name {
            true => format!("{}: another address was faster", other.label),
            false => format!("{}: {name} is better", other.label),
        });
        let why = pending.reasons.iter().cloned().chain(slow).chain(worse).collect::<Vec<_>>().join("; ");
        if why.is_empty() {
            self.why.remove(&connection.place());
            return;
        }
        if *self.last_why != *why {
            self.last_why = why.into();
        }
        self.why.insert(connection.place(), (connection.generation(), Arc::clone(&self.last_why)));
    }

    /// A client asks: the program sees it, unless it wants another endpoint, is known, or does not
    /// prove the secret.
    fn on_request(&mut self, core: &mut Core, slot: &'static Slot, head: &[u8; REQUEST_HEAD]) {
        let connect = match (Head::read(head), &self.secret) {
            (None, None) => return core.push(slot),
            (Some(Head::Plain { target, connect }), None) => self.is_target(target).then_some(connect),
            (Some(Head::Proven { nonce, proof }), Some(secret)) => {
                secret.proves(self.identity, nonce, proof).then_some(proof)
            }
            // It proves nothing, or what this side cannot check.
            _ => None,
        };
        if connect.is_none() && self.secret.is_some() {
            core.counters().strays.fetch_add(1, Ordering::Relaxed);
        }
        let connect = connect.filter(|_| slot.skip_payload(REQUEST_HEAD as u32));
        match connect {
            Some(connect) if self.connects.known.remember(connect) => {
                self.accepts.on_shown(connect, slot);
                core.push(slot);
            }
            Some(connect) if self.accepts.keep_other(connect, slot) => (),
            _ => self.turn_away(core, slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_written_and_another_payload_is_none() {
        let head = Head::Plain { target: 7, connect: [8, u64::MAX] };
        let proven = Head::Proven { nonce: 7, proof: [8, u64::MAX] };
        assert_eq!([Head::read(&head.write()), Head::read(&proven.write())], [Some(head), Some(proven)]);
        for at in 0..8 {
            let mut bytes = head.write();
            bytes[at] ^= 1;
            assert_eq!(Head::read(&bytes), None);
        }
    }
}
