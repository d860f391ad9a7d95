//! Connecting by client and server.

use crate::attributes::ViAttributes;
use crate::clients::Clients;
use crate::engine::{Core, NO_VI};
use crate::errors::Error;
use crate::pending::{HANG_UP_LOOK, INVITED_LIMIT};
use crate::question::Question;
use crate::rendezvous::{Accept, Address, Answer, Asking, Listener, fresh_ticket};
use crate::state::{Invitation, State, ViState};
use crate::task::Token;
use crate::wire;
use cci::{Connect, ConnectError};
use cci_ground::Drive;
use cci_ground::readable;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

const NOT_IDLE: Error = Error::State("the VI is not idle; disconnect it first");

/// Which attribute of two VIs does not agree.
pub(crate) fn agree(own: &ViAttributes, other: &ViAttributes) -> Result<(), Error> {
    if own.reliability != other.reliability {
        Err(Error::Reliability)
    } else if own.max_transfer != other.max_transfer {
        Err(Error::TransferSize)
    } else if own.qos != other.qos {
        Err(Error::Qos)
    } else {
        Ok(())
    }
}

impl<T: Token> State<T> {
    /// Ends a connect that has not succeeded. Receives stay posted.
    pub(crate) fn abandon(&mut self, number: u32) {
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.state == ViState::ConnectPending) else { return };
        vi.state = ViState::Idle;
        (vi.peer, vi.end_signal) = (None, None);
        vi.invitation = Invitation::None;
        self.changes += 1;
        if let Some(ticket) = vi.ticket.take() {
            self.tickets.remove(&ticket);
        }
    }

    /// Takes an invitation back. Returns false if a client has come with its ticket, or if the
    /// connect has ended.
    pub(crate) fn withdraw_ticket(&mut self, number: u32) -> bool {
        let Some(vi) = self.vis.get_mut(number).filter(|vi| vi.state == ViState::ConnectPending) else { return false };
        let is_unused = vi.ticket.is_some_and(|ticket| self.tickets.remove(&ticket).is_some());
        if is_unused {
            (vi.ticket, vi.peer_attributes) = (None, None);
        }
        is_unused
    }
}

impl<T: Token> Core<T> {
    pub(crate) fn check_local(&self, local: &Address) -> Result<(), Error> {
        local.check()?;
        match local.host == self.host() || local.host.is_loopback() || local.host.is_unspecified() {
            true => Ok(()),
            false => Err(Error::Parameter("the local address is none of this NIC's; take it from its attributes")),
        }
    }

    /// Listens for clients that ask for the local discriminator, until the result is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`]; [`Error::Resource`]: all ports of the discriminator are taken.
    pub fn clients(&self, local: &Address) -> Result<Clients, Error> {
        self.check_local(local)?;
        self.listener(local).map(Clients)
    }

    pub(crate) fn listener(&self, local: &Address) -> Result<Listener, Error> {
        let on: IpAddr = match self.host() {
            host if host.is_loopback() => host,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Listener::bind(on, &local.discriminator)
    }

    /// Waits for a client that asks for the local discriminator, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`], [`Error::Resource`], [`Error::Timeout`].
    pub fn listen(&self, local: &Address, limit: Option<Duration>) -> Result<Asking, Error> {
        self.check_local(local)?;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut clients = Clients(self.listener(local)?);
        loop {
            if let Some(asking) = clients.next() {
                return Ok(asking);
            }
            // Peers of other VIs may need answers meanwhile.
            self.with(|state| state.progress(self.endpoint()));
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::Timeout);
            }
            self.driven.sleep_with(clients.descriptors().map(readable), left.into_iter().chain(clients.left()).min());
        }
    }

    /// Accepts a client's question with an idle VI whose level, maximum and quality of service are
    /// the client's. Waits until it is connected, at most 10 s, and not once the client hangs up.
    ///
    /// # Errors
    ///
    /// The client does not notice, and can be accepted by another VI or rejected:
    /// [`Error::Parameter`], [`Error::State`], or the attribute that differs. [`Error::Timeout`]:
    /// the client is gone.
    pub fn accept(&self, asking: &mut Asking, number: u32) -> Result<(), Error> {
        self.invite(asking, number)?;
        let deadline = Instant::now() + INVITED_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let ended = self.wait(Some(left.min(HANG_UP_LOOK)), |state| {
                match state.vis.get(number).map(|vi| vi.state) {
                    Some(ViState::ConnectPending) => None,
                    // Broken meanwhile: it was connected.
                    Some(ViState::Connected | ViState::Error) => Some(Ok(())),
                    Some(ViState::Idle) | None => Some(Err(Error::Timeout)),
                }
            });
            if let Some(result) = ended {
                return result;
            }
            // A client hangs up once it is connected too: it has followed the invitation by then.
            let is_gone = asking.is_gone();
            self.with(|state| {
                if left.is_zero() || state.has_failed || (is_gone && state.withdraw_ticket(number)) {
                    // Whatever still comes is turned away.
                    state.abandon(number);
                }
            });
        }
    }

    /// Makes progress until the connect of a VI has ended or its invitation has failed, whichever
    /// thread takes that event, at most for `limit`.
    pub(crate) fn wait_in_flight(&self, number: u32, limit: Option<Duration>) {
        self.wait(limit, |state| {
            let vi = state.vis.get(number).filter(|vi| vi.state == ViState::ConnectPending);
            vi.is_none_or(|vi| vi.invitation == Invitation::Failed).then_some(())
        });
    }

    /// Sends a client the way to a VI, which expects it from now on.
    pub(crate) fn invite(&self, asking: &mut Asking, number: u32) -> Result<(), Error> {
        let ticket = fresh_ticket();
        let attributes = self.with(|state| {
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            // A peer's VI is pending until another thread disconnects it.
            if vi.state != (if asking.is_peer { ViState::ConnectPending } else { ViState::Idle }) {
                return Err(NOT_IDLE);
            }
            agree(&vi.attributes, &asking.attributes)?;
            if asking.is_gone() {
                return Err(Error::Timeout);
            }
            vi.state = ViState::ConnectPending;
            vi.ticket = Some(ticket);
            vi.peer_attributes = Some(asking.attributes);
            state.tickets.insert(ticket, number);
            Ok(vi.attributes)
        })?;
        let accept = Accept { ticket, attributes, uri: self.uri().to_owned() };
        asking.answer(&Answer::Accept(accept)).map_err(|_| {
            self.with(|state| {
                if !(asking.is_peer && state.withdraw_ticket(number)) {
                    state.abandon(number);
                }
            });
            Error::Timeout
        })
    }

    /// Rejects a client's question.
    pub fn reject(&self, mut asking: Asking) {
        // A client that is gone needs no answer.
        let _ = asking.answer(&Answer::Reject);
    }

    /// Connects an idle VI to whoever waits for the remote discriminator, within `limit`. Returns
    /// the attributes of the peer's VI.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`], also for no time; [`Error::State`]; [`Error::NoMatch`]: nobody waits,
    /// now; [`Error::Reject`], once no other port may be the server's; [`Error::Timeout`], also
    /// where a port that is silent may be the server's; [`Error::NotReachable`], also where the
    /// server's invitation leads nowhere; [`Error::Resource`]: no descriptor is left.
    pub fn request(
        &self,
        number: u32,
        local: &Address,
        remote: &Address,
        limit: Option<Duration>,
    ) -> Result<ViAttributes, Error> {
        local.check()?;
        remote.check()?;
        if limit.is_some_and(|limit| limit.is_zero()) {
            return Err(Error::Parameter("a connect needs time; give a time limit above 0"));
        }
        let own = self.begin_connect(number)?;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut question = Question::new(remote, local, &own, false);
        // After a success it is not pending any more.
        self.ask(number, &mut question, deadline).inspect_err(|_| self.with(|state| state.abandon(number)))
    }

    /// An idle VI's attributes; it is pending from now on.
    pub(crate) fn begin_connect(&self, number: u32) -> Result<ViAttributes, Error> {
        self.with(|state| {
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            if vi.state != ViState::Idle {
                return Err(NOT_IDLE);
            }
            vi.state = ViState::ConnectPending;
            vi.invitation = Invitation::None;
            Ok(vi.attributes)
        })
    }

    /// Asks until an invitation has led to a connection. Returns the attributes of the peer's VI.
    fn ask(&self, number: u32, question: &mut Question, deadline: Option<Instant>) -> Result<ViAttributes, Error> {
        loop {
            let (outcome, has_failed) = self.with(|state| {
                state.progress(self.endpoint());
                let vi = state.vis.get(number).ok_or(NO_VI)?;
                let outcome = match vi.state {
                    ViState::ConnectPending => None,
                    // Broken meanwhile: it was connected.
                    ViState::Connected | ViState::Error => vi.peer_attributes,
                    ViState::Idle => return Err(Error::NotReachable),
                };
                Ok((outcome, state.has_failed))
            })?;
            if let Some(attributes) = outcome {
                return Ok(attributes);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) || (has_failed && question.is_following()) {
                return Err(question.late());
            }
            self.go_on_asking(number, question, deadline)?;
            let pause = question.left();
            let pause = left.map_or(pause, |left| left.min(pause));
            if question.is_following() {
                self.wait_in_flight(number, Some(pause));
            } else {
                // No event ends it. A disconnect by another thread is found after the pause, 1 s at
                // most.
                self.driven.sleep_with(question.descriptors(), Some(pause));
            }
        }
    }

    /// Goes on with a question, and follows the invitations that it finds. Never waits.
    pub(crate) fn go_on_asking(
        &self,
        number: u32,
        question: &mut Question,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        let has_failed = self.with(|state| {
            let vi = state.vis.get_mut(number).filter(|vi| vi.invitation == Invitation::Failed);
            vi.map(|vi| vi.invitation = Invitation::None).is_some()
        });
        if has_failed {
            question.end_following();
        }
        while let Some(accept) = question.poll()? {
            match self.follow(number, &accept, deadline) {
                Ok(()) => question.begin_following(),
                Err(Error::NotReachable) => question.leave_out(),
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Connects to where an invitation leads.
    fn follow(&self, number: u32, accept: &Accept, deadline: Option<Instant>) -> Result<(), Error> {
        let left = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.max(Duration::from_millis(1))
        });
        self.with(|state| {
            let vi = state.vis.get_mut(number).filter(|vi| vi.state == ViState::ConnectPending).ok_or(NO_VI)?;
            let (ticket, earlier) = (wire::ticket(accept.ticket), vi.attempt);
            let context = vi.next_attempt(number);
            let connect = Connect::to(&accept.uri).payload(&ticket).context(context).timeout(left);
            self.endpoint().connect(&connect).map_err(|why| {
                vi.attempt = earlier;
                match why {
                    ConnectError::NoBuffers | ConnectError::NoMemory => {
                        Error::Resource("no room for a connection in CCI")
                    }
                    _ => Error::NotReachable,
                }
            })?;
            (vi.peer_attributes, vi.invitation) = (Some(accept.attributes), Invitation::Followed);
            Ok(())
        })
    }
}
