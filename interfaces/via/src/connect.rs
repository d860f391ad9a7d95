//! Connecting by client and server.

use crate::attributes::ViAttributes;
use crate::clients::Clients;
use crate::engine::{CLOSED, Core, NO_VI};
use crate::errors::Error;
use crate::pending::{HANG_UP_PERIOD, INVITED_LIMIT, Steps};
use crate::question::Question;
use crate::rendezvous::{Accept, Address, Answer, Asking, Listener, fresh_ticket};
use crate::state::{Invitation, State, Vi, ViState};
use crate::task::Token;
use crate::wire;
use cci::{Connect, ConnectError};
use cci_ground::{Drive, readable};
use cci_mem::descriptors;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

const NOT_IDLE: Error = Error::State("the VI is not idle; disconnect it first");
/// Another thread has disconnected the VI, and may have begun another connect.
pub(crate) const DISCONNECTED: Error = Error::State("the VI has been disconnected meanwhile; connect it again");

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
    /// The VI of a connect that has not ended.
    pub(crate) fn pending(&mut self, number: u32, connect: u32) -> Option<&mut Vi<T>> {
        let is_pending = |vi: &&mut Vi<T>| vi.state == ViState::ConnectPending && vi.connect == connect;
        self.vis.get_mut(number).filter(is_pending)
    }

    /// What has become of a connect: the attributes of the peer's VI once it has succeeded, whether
    /// or not the connection has broken since; `None` until it ends.
    pub(crate) fn outcome(&self, number: u32, connect: u32) -> Result<Option<ViAttributes>, Error> {
        let vi = self.vis.get(number).ok_or(NO_VI)?;
        match vi.state {
            _ if vi.connect != connect => Err(DISCONNECTED),
            ViState::ConnectPending => Ok(None),
            ViState::Connected | ViState::Error => Ok(vi.peer_attributes),
            ViState::Idle => Err(Error::NotReachable),
        }
    }

    /// Ends a connect that has not ended, for this reason. Receives stay posted.
    pub(crate) fn abandon(&mut self, number: u32, connect: u32, why: Error) {
        let Some(vi) = self.pending(number, connect) else { return };
        vi.state = ViState::Idle;
        if !matches!(vi.steps, Steps::None) {
            vi.steps = Steps::Failed(why);
        }
        vi.end_signal = None;
        vi.invitation = Invitation::None;
        let ticket = vi.ticket.take();
        self.changes += 1;
        if let Some(ticket) = ticket {
            self.tickets.remove(&ticket);
        }
    }

    /// Takes an invitation back. Returns false if a client has come with its ticket, or if the
    /// connect has ended.
    pub(crate) fn withdraw_ticket(&mut self, number: u32, connect: u32) -> bool {
        let Some(ticket) = self.pending(number, connect).and_then(|vi| vi.ticket) else { return false };
        let is_unused = self.tickets.remove(&ticket).is_some();
        if let Some(vi) = self.pending(number, connect).filter(|_| is_unused) {
            (vi.ticket, vi.peer_attributes) = (None, None);
        }
        is_unused
    }

    /// Lets a client connect to a pending VI. Returns the ticket, and the attributes of the VI.
    fn issue_ticket(&mut self, number: u32, connect: u32, asking: &Asking) -> Result<(u64, ViAttributes), Error> {
        let ticket = fresh_ticket();
        let vi = self.pending(number, connect).ok_or(DISCONNECTED)?;
        (vi.ticket, vi.peer_attributes) = (Some(ticket), Some(asking.attributes));
        vi.invitation = Invitation::None;
        let attributes = vi.attributes;
        self.tickets.insert(ticket, number);
        Ok((ticket, attributes))
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

    /// What is readable once the NIC is closed. Whoever has it before it finds the NIC open is
    /// woken.
    pub(crate) fn closed(&self) -> Result<&OwnedFd, Error> {
        if self.closed.get().is_none() {
            let why = "no descriptor is left for listening; raise the limit (ulimit -n)";
            let closed = descriptors::eventfd(0).map_err(|_| Error::Resource(why))?;
            // Another thread may have been first.
            let _ = self.closed.set(closed);
        }
        self.closed.get().ok_or(CLOSED)
    }

    /// Waits for a client that asks for the local discriminator, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`], also once the NIC is closed; [`Error::Resource`], also once the
    /// endpoint has failed; [`Error::Timeout`].
    pub fn listen(&self, local: &Address, limit: Option<Duration>) -> Result<Asking, Error> {
        self.check_local(local)?;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut clients = Clients(self.listener(local)?);
        let closed = self.closed()?;
        loop {
            self.with(|state| {
                state.check_open()?;
                // Peers of other VIs may need answers meanwhile.
                state.progress(self.endpoint());
                state.check_endpoint()
            })?;
            if let Some(asking) = clients.next() {
                return Ok(asking);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::Timeout);
            }
            let wakes = clients.descriptors().chain([closed.as_fd()]).map(readable);
            self.driven.sleep_with(wakes, left.into_iter().chain(clients.left()).min());
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
        let connect = self.invite(asking, number)?;
        let deadline = Instant::now() + INVITED_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let ended = self.wait(Some(left.min(HANG_UP_PERIOD)), |state| match state.outcome(number, connect) {
                Ok(None) => None,
                Ok(Some(_)) => Some(Ok(())),
                Err(_) => Some(Err(Error::Timeout)),
            });
            if let Some(result) = ended {
                return result;
            }
            // A client hangs up once it is connected too: it has followed the invitation by then.
            let is_gone = asking.is_gone();
            self.with(|state| {
                if left.is_zero() || state.has_failed || (is_gone && state.withdraw_ticket(number, connect)) {
                    // Whatever still comes is turned away.
                    state.abandon(number, connect, Error::Timeout);
                }
            });
        }
    }

    /// Makes progress until a connect has ended or its invitation has failed, whichever thread
    /// takes that event, at most for `limit`.
    pub(crate) fn wait_in_flight(&self, number: u32, connect: u32, limit: Option<Duration>) {
        self.wait(limit, |state| {
            let vi = state.pending(number, connect);
            vi.is_none_or(|vi| vi.invitation == Invitation::Failed).then_some(())
        });
    }

    /// Whether the invitation of a connect has failed, once each time.
    pub(crate) fn take_failed_invitation(&self, number: u32, connect: u32) -> bool {
        self.with(|state| {
            let vi = state.pending(number, connect).filter(|vi| vi.invitation == Invitation::Failed);
            vi.map(|vi| vi.invitation = Invitation::None).is_some()
        })
    }

    /// Sends a client the way to an idle VI, which expects it from now on. Returns the number of
    /// that connect.
    pub(crate) fn invite(&self, asking: &mut Asking, number: u32) -> Result<u32, Error> {
        let (connect, issued) = self.with(|state| {
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            if vi.state != ViState::Idle {
                return Err(NOT_IDLE);
            }
            agree(&vi.attributes, &asking.attributes)?;
            if asking.is_gone() {
                return Err(Error::Timeout);
            }
            let connect = vi.begin_connect();
            Ok((connect, state.issue_ticket(number, connect, asking)?))
        })?;
        if !self.send_invitation(asking, issued) {
            self.with(|state| state.abandon(number, connect, Error::Timeout));
            return Err(Error::Timeout);
        }
        Ok(connect)
    }

    /// Sends a peer the way to a VI that listens. Returns false if the peer has hung up.
    pub(crate) fn invite_peer(&self, asking: &mut Asking, number: u32, connect: u32) -> Result<bool, Error> {
        if asking.is_gone() {
            return Ok(false);
        }
        let issued = self.with(|state| state.issue_ticket(number, connect, asking))?;
        let is_sent = self.send_invitation(asking, issued);
        if !is_sent {
            self.with(|state| state.withdraw_ticket(number, connect));
        }
        Ok(is_sent)
    }

    fn send_invitation(&self, asking: &mut Asking, (ticket, attributes): (u64, ViAttributes)) -> bool {
        asking.answer(&Answer::Accept(Accept { ticket, attributes, uri: self.uri().to_owned() })).is_ok()
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
    /// server's invitation leads nowhere; [`Error::Resource`]: no descriptor is left, or the
    /// endpoint has failed.
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
        let (connect, own) = self.begin_connect(number)?;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut question = Question::new(remote, local, &own, false);
        self.ask(number, connect, &mut question, deadline).or_else(|why| self.end_connect(number, connect, why))
    }

    /// Ends a connect for this reason, unless it has succeeded meanwhile: another thread may have
    /// taken the event.
    pub(crate) fn end_connect(&self, number: u32, connect: u32, why: Error) -> Result<ViAttributes, Error> {
        self.with(|state| {
            let outcome = state.outcome(number, connect);
            state.abandon(number, connect, why);
            outcome.ok().flatten().ok_or(why)
        })
    }

    /// The number of a new connect, and the attributes of the VI, which was idle.
    pub(crate) fn begin_connect(&self, number: u32) -> Result<(u32, ViAttributes), Error> {
        self.with(|state| {
            let vi = state.vis.get_mut(number).ok_or(NO_VI)?;
            if vi.state != ViState::Idle {
                return Err(NOT_IDLE);
            }
            Ok((vi.begin_connect(), vi.attributes))
        })
    }

    /// Asks until an invitation has led to a connection. Returns the attributes of the peer's VI.
    fn ask(
        &self,
        number: u32,
        connect: u32,
        question: &mut Question,
        deadline: Option<Instant>,
    ) -> Result<ViAttributes, Error> {
        loop {
            let outcome = self.with(|state| {
                state.progress(self.endpoint());
                match state.outcome(number, connect)? {
                    None => state.check_endpoint().map(|()| None),
                    connected => Ok(connected),
                }
            })?;
            if let Some(attributes) = outcome {
                return Ok(attributes);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(question.late());
            }
            self.go_on_asking(number, connect, question, deadline)?;
            let pause = question.left();
            let pause = left.map_or(pause, |left| left.min(pause));
            if question.is_following() {
                self.wait_in_flight(number, connect, Some(pause));
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
        connect: u32,
        question: &mut Question,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        if self.take_failed_invitation(number, connect) {
            question.end_following();
        }
        while let Some(accept) = question.poll()? {
            match self.follow(number, connect, &accept, deadline) {
                Ok(()) => question.begin_following(),
                Err(Error::NotReachable) => question.leave_out(),
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Connects to where an invitation leads, unless another thread has taken the event that ends
    /// the connect.
    pub(crate) fn follow(
        &self,
        number: u32,
        connect: u32,
        accept: &Accept,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        let left = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.max(Duration::from_millis(1))
        });
        self.with(|state| {
            let Some(vi) = state.pending(number, connect) else { return Ok(()) };
            let (ticket, earlier) = (wire::ticket(accept.ticket), vi.attempt);
            let context = vi.next_attempt(number);
            let request = Connect::to(&accept.uri).payload(&ticket).context(context).timeout(left);
            self.endpoint().connect(&request).map_err(|why| {
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
